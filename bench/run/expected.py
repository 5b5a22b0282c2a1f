"""What the parts of a turn are expected to take: by the size of its model and of its batch, as runs of models
small and large had it, and more and more as the turns of this run have it.

A part is a sum of four: one that is always there, one by the megabyte of the model's file, one by the image
of a batch, and one by both. How much each weighs is known roughly beforehand. Every turn that is over
corrects it (Bayes' rule for a line): its own model's by much, others' by less, one held up by little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

# Seconds, as LeNet, ece408 and AlexNet had them on two cores that nobody else used (18 runs; least squares of
# the logarithms): always, by the megabyte, by the image, by both. Of a turn: what comes before its timing,
# where it is its model's first, or another; of a case: its samples, of which the first is a share of what
# the budget allows (some verdicts are clear early), and what comes after them.
WEIGHTS = {
    "first": (0.34, 0.016, 0.002, 0.0005),
    "before": (0.075, 0.0077, 0.0003, 0.0005),
    "samples": (0.81, 0.0014, 0.00017, 0.00033),
    "after": (0.45, 0.0068, 0.00005, 0.0005),
}
UNSURE = (0.6, 0.6, 1.5, 1.5)  # of each weight, by which another machine's or model's may differ
TOGETHER = 0.4  # of that, what all weights have in common: a slow machine is slow in all
OWN, OTHERS = 0.45, 0.9  # of a part's time, by which turns of the same model and of others differ
OWN_SAMPLES = 0.5  # which the budget holds together, and a verdict that is clear early ends
BACKENDS = 0.5  # and by how much more cases of other backends
LEAST_S = 0.3  # of which a turn that differs by so much says nothing
UNKNOWN = 1.0  # megabytes of a model whose file is not known
HELD_UP = 1.5  # times what was thought of as likely, from which on a turn says less
FLOOR = 0.25  # of what was expected beforehand, below which nothing is expected

Weights = tuple[float, ...]


def sampling_s(budget: float | None) -> float:
    """Of a case whose passes are short, at the most: the budget, and the warm-ups that come with it."""
    return 1.0 if budget is None else min(1.6 * budget, budget + 1.0)


def taken(megabytes: float, batch: int) -> Weights:
    """What the weights are multiplied with."""
    return (1.0, megabytes, float(batch), megabytes * batch)


def differs(part: str, same_model: bool, same_backend: bool) -> float:
    """Of a part's time, by which that of another turn differs anyway."""
    own = OWN_SAMPLES if part == "samples" else OWN
    return (own if same_model else OTHERS) + (0.0 if same_backend else BACKENDS)


@dataclass
class Line:
    """The weights of one part, and how sure they are."""

    weights: list[float]
    spread: list[list[float]] = field(init=False)

    def __post_init__(self) -> None:
        self._least = tuple(FLOOR * weight for weight in self.weights)
        unsure = [one * weight for one, weight in zip(UNSURE, self.weights, strict=True)]
        self.spread = [
            [a * b * (1.0 if i == j else TOGETHER) for j, b in enumerate(unsure)]
            for i, a in enumerate(unsure)
        ]

    def at(self, x: Sequence[float]) -> float:
        return max(_dot(self.weights, x), _dot(self._least, x))

    def copy(self) -> Line:
        """One that learns by itself."""
        other = Line(self.weights)
        other.weights, other._least = self.weights, self._least
        other.spread = self.spread
        return other

    def doubt(self, share: float) -> None:
        """Be less sure of how long all takes together, by such a share of it."""
        self.spread = [
            [entry + share**2 * a * b for entry, b in zip(row, self.weights, strict=True)]
            for row, a in zip(self.spread, self.weights, strict=True)
        ]

    def learn(self, x: Sequence[float], seconds: float, differs: float, farther: bool = False) -> None:
        """differs: of the time, by which such turns do anyway; farther: of a larger batch than any before,
        which is longer by right and not held up."""
        moved = [_dot(row, x) for row in self.spread]
        sure = _dot(moved, x)
        thought = self.at(x)
        error = seconds - thought
        noise = (differs * max(LEAST_S, thought, min(seconds, 2 * thought))) ** 2
        likely = HELD_UP * (sure + noise) ** 0.5
        if abs(error) > likely and not farther:
            noise *= (error / likely) ** 2
        gain = [one / (sure + noise) for one in moved]
        self.weights = [w + by * error for w, by in zip(self.weights, gain, strict=True)]
        self.spread = [
            [entry - by * other for entry, other in zip(row, moved, strict=True)]
            for row, by in zip(self.spread, gain, strict=True)
        ]


def line(part: str, budget: float | None) -> Line:
    """What is known of a part before any turn. budget: in seconds, None where there is none."""
    always, *others = WEIGHTS[part]
    return Line([always * sampling_s(budget) if part == "samples" else always, *others])


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))
