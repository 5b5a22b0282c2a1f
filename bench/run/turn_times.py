"""How long each part of a turn is expected to take, for the progress bar and the time that is left.

Two estimates are combined:

- By size (`SizeModel`): a linear model of the seconds of a part. It has four terms: a constant, one for each
  megabyte of the model's file, one for each image of the batch, and one for each megabyte and image. The
  weights start from measured runs (`WEIGHTS`). Each finished turn corrects them (Bayesian linear regression):
  a turn of the same model by much, one of another model by less, one that was held up by little.
- By the same turn in an earlier run on this machine, if there was one, times how much slower this run is.
  For what comes before and after the samples it decides nearly alone. For the samples it counts half: their
  number depends on when the verdict is clear, which differs from run to run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from bench.run.past import Took, Where

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
LEAST_TURN_S = 0.3  # of which a turn that differs by so much says nothing
UNKNOWN = 1.0  # megabytes of a model whose file is not known
HELD_UP = 1.5  # times what was thought of as likely, from which on a turn says less
FLOOR = 0.25  # of what was expected beforehand, below which nothing is expected

Weights = tuple[float, ...]


def sampling_s(budget: float | None) -> float:
    """The most seconds that sampling a case of short passes takes: its budget and the warm-ups."""
    return 1.0 if budget is None else min(1.6 * budget, budget + 1.0)


def terms(megabytes: float, batch: int) -> Weights:
    """The values that the four weights are multiplied with."""
    return (1.0, megabytes, float(batch), megabytes * batch)


def relative_spread(part: str, same_model: bool, same_backend: bool) -> float:
    """The standard deviation, as a share of a part's time, between two turns: of the same net or backend or
    not."""
    own = OWN_SAMPLES if part == "samples" else OWN
    return (own if same_model else OTHERS) + (0.0 if same_backend else BACKENDS)


@dataclass
class SizeModel:
    """The linear model of one part. weights: seconds, one for each of `terms`; spread: their covariance."""

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

    def copy(self) -> SizeModel:
        """A copy that learns independently."""
        other = SizeModel(self.weights)
        other.weights, other._least = self.weights, self._least
        other.spread = self.spread
        return other

    def doubt(self, share: float) -> None:
        """Add this relative standard deviation, common to all weights, to the covariance."""
        self.spread = [
            [entry + share**2 * a * b for entry, b in zip(row, self.weights, strict=True)]
            for row, a in zip(self.spread, self.weights, strict=True)
        ]

    def learn(self, x: Sequence[float], seconds: float, differs: float, farther: bool = False) -> None:
        """Correct the weights by a turn that took so many seconds. differs: see relative_spread; farther: its
        batch is larger than any before, so a long time does not mean that it was held up."""
        moved = [_dot(row, x) for row in self.spread]
        sure = _dot(moved, x)
        thought = self.at(x)
        error = seconds - thought
        noise = (differs * max(LEAST_TURN_S, thought, min(seconds, 2 * thought))) ** 2
        likely = HELD_UP * (sure + noise) ** 0.5
        if abs(error) > likely and not farther:
            noise *= (error / likely) ** 2
        gain = [one / (sure + noise) for one in moved]
        self.weights = [w + by * error for w, by in zip(self.weights, gain, strict=True)]
        self.spread = [
            [entry - by * other for entry, other in zip(row, moved, strict=True)]
            for row, by in zip(self.spread, gain, strict=True)
        ]


def prior(part: str, budget: float | None) -> SizeModel:
    """The model of a part before any turn is over. budget: in seconds, None where there is none."""
    always, *others = WEIGHTS[part]
    return SizeModel([always * sampling_s(budget) if part == "samples" else always, *others])


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


LEAST_S = 0.1  # beside which two times do not differ
SURE = 0.5  # times that it takes to believe half of how much slower this run is
SHARED = 2.0  # times of a model that say as much as what all models had
UNHELD = ("first", "before", "after")  # the parts that no budget holds
# How much the very turn counts beside what its size tells.
KNOWN, KNOWN_SAMPLES = 0.85, 0.5
AGED = 0.4  # by which all of a run may take longer than an earlier one, or less long


class ExpectedTimes:
    """earlier: turns of other runs; budget: of a case of this run, in seconds, None where there is none;
    nbytes: gives the size of a model's file, 0 where there is no file; slowed: by what factor other programs
    make this run longer. Parts without a budget are kept as they would take on an idle machine."""

    def __init__(
        self,
        earlier: Sequence[Took],
        budget: float | None,
        nbytes: Callable[[str], int],
        slowed: float = 1.0,
    ) -> None:
        self._budget = budget
        self._nbytes = nbytes
        self._slowed = slowed
        self._known_nbytes: dict[str, int] = {}
        self._earlier = [self._at_this_budget(one.on_idle_machine()) for one in earlier]
        self._known = {
            (part, one.where, one.nbytes, backend): seconds
            for one in self._earlier
            for part in WEIGHTS
            for backend, seconds in one.of(part)
        }
        self._turns: list[Took] = []  # of this run
        self._models: dict[tuple[str, str, str], SizeModel] = {}  # by part, model and backend
        self._before: dict[tuple[str, str, str], SizeModel] = {}  # the same without turns of this run
        self._times: dict[tuple[str, str], float] = {}

    def learn(self, turn: Took) -> None:
        """Take in a turn of this run that is over."""
        self._turns.append(turn.on_idle_machine())
        self._models.clear()
        self._times.clear()
        for model in [model for model, nbytes in self._known_nbytes.items() if not nbytes]:
            del self._known_nbytes[model]  # it may have been built meanwhile

    @property
    def known(self) -> bool:
        """Whether any turn is known, of this run or of an earlier one."""
        return bool(self._turns or self._earlier)

    def part(self, part: str, where: Where, backend: str = "") -> float:
        """The seconds that a part of a turn is expected to take."""
        return self._alone(part, where, backend) * (self._slowed if part in UNHELD else 1.0)

    def _alone(self, part: str, where: Where, backend: str) -> float:
        """The same on an idle machine."""
        nbytes = self._known_nbytes.get(where.model)
        if nbytes is None:
            nbytes = self._known_nbytes[where.model] = self._nbytes(where.model)
        by_size = self._model(part, where.model, backend).at(_terms(where, nbytes))
        known = self._known.get((part, where, nbytes, backend))
        if known is None:
            return by_size
        known = (known + LEAST_S) * self._slower(part, where.model)
        counts = KNOWN_SAMPLES if part == "samples" else KNOWN
        return max(0.0, known**counts * (by_size + LEAST_S) ** (1 - counts) - LEAST_S)

    def _slower(self, part: str, model: str) -> float:
        """By what factor this run is slower than earlier ones, by this model's turns. Where these are few,
        the factor of all turns counts, too: a busy machine slows all of them, but not samples with a
        budget."""
        if (part, model) not in self._times:
            own = self._logs((part,), model)
            if part == "samples":
                self._times[part, model] = math.exp(sum(own) / (len(own) + SURE))
            else:
                shared = self._logs(UNHELD)
                load = sum(shared) / (len(shared) + 1.0)
                self._times[part, model] = math.exp((sum(own) + SHARED * load) / (len(own) + SHARED))
        return self._times[part, model]

    def _logs(self, parts: Sequence[str], model: str | None = None) -> list[float]:
        """Logarithms of the ratio of times of this run (of this model's turns) to those of earlier runs."""
        return [
            math.log((seconds + LEAST_S) / (known + LEAST_S))
            for one in self._turns
            if model in (None, one.where.model)
            for part in parts
            for backend, seconds in one.of(part)
            if (known := self._known.get((part, one.where, one.nbytes, backend))) is not None
        ]

    def _model(self, part: str, model: str, backend: str) -> SizeModel:
        which = part, model, backend
        if which not in self._before:
            self._before[which] = prior(part, self._budget)
            if self._earlier:
                _learn(self._before[which], self._earlier, *which)
                self._before[which].doubt(AGED)
        if which not in self._models:
            self._models[which] = self._before[which].copy()
            _learn(self._models[which], self._turns, *which)
        return self._models[which]

    def _at_this_budget(self, turn: Took) -> Took:
        """An earlier turn as it would be at this run's budget: the samples change by the difference."""
        if turn.samples is None:
            return turn
        more = sampling_s(self._budget) - sampling_s(turn.budget_s)
        return msgspec.structs.replace(turn, samples=max(0.0, turn.samples + more))


def _learn(model_of_part: SizeModel, turns: Sequence[Took], part: str, model: str, backend: str) -> None:
    """Correct the model of a part by these turns; turns of the same net come last."""
    largest = 0
    for turn in sorted(turns, key=lambda turn: turn.where.model == model):
        own, batch = turn.where.model == model, turn.where.batch
        for on, seconds in turn.of(part):
            spread = relative_spread(part, own, on == backend)
            model_of_part.learn(_terms(turn.where, turn.nbytes), seconds, spread, own and batch > largest > 0)
        largest = max(largest, batch if own else 0)


def _terms(where: Where, nbytes: int) -> Weights:
    megabytes = nbytes / 1e6 if nbytes else UNKNOWN
    return terms(megabytes if where.model else 0.0, where.batch)
