"""A fault that was found in a rung's answer, and the shape and inputs on which it was found; the exception
that carries it, and what is kept of the answer for display."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bench.measure.answers.samples import Sample
from bench.measure.outcomes import Incorrect
from bench.results.finding import Finding
from kernels.ops import Params


@dataclass(frozen=True)
class Failure:
    """A finding with what it was found on, for a diagnosis; got is the whole batch's answer."""

    finding: Finding
    params: Params
    sample: Sample
    got: np.ndarray
    error_map: np.ndarray | None = None

    @property
    def where(self) -> str:
        """How many elements are wrong and which is the first, or what was seen to be wrong."""
        if self.finding.fault != "stale":
            return self.finding.reason
        found = self.finding
        return (
            f"{found.wrong:,} of {found.elements:,} elements are wrong, first {found.index}: {found.got} "
            f"instead of {found.expected}"
        )


# ------------------------------------------------------------------------------------------------- pictures

# What is kept of a wrong answer to look at: the error map, and whole images of what was expected and got, as
# many as are worth keeping.


MOST = 1 << 19  # elements that are kept of either


def pictures(failure: Failure) -> dict[str, np.ndarray]:
    """Arrays by name. error_map (rows, columns): the largest |error| over everything else. expected, got:
    float32 (k, c, rows, columns) of the images `images` (k,) and the channels `channels` (c,), from the
    answer's row `row` on; the image and channel of the finding are among them. at (4,): where the finding
    is (image, channel, row, column). tolerance: an element that is further off is wrong.

    An answer of two axes is one image of one channel; axes between the first and the last two are channels.
    """
    got, sample, finding = failure.got, failure.sample, failure.finding
    images, channels, rows, columns = shape = _shape(got.shape)
    flat = int(np.ravel_multi_index(finding.index, got.shape)) if finding.index else 0
    at = tuple(int(i) for i in np.unravel_index(flat, shape))
    tall = min(rows, max(1, MOST // columns))
    first = min(max(0, at[2] - tall // 4), rows - tall)
    many = _around(at[1], channels, MOST // (tall * columns))
    few = _around(at[0], images, MOST // (tall * columns * len(many)))
    wanted = failure.sample.expected
    whose = few if sample.rows is None or got.ndim < 3 else sample.rows[few]
    answers = {"expected": (wanted.reshape(-1, *shape[1:]), whose), "got": (got.reshape(shape), few)}
    cut = np.s_[first : first + tall]
    bound = finding.error.bound if finding.error is not None else 0.0
    return {
        "error_map": failure.error_map if failure.error_map is not None else np.zeros((0, 0)),
        **{name: array[of][:, many, cut].astype(np.float32) for name, (array, of) in answers.items()},
        "images": np.array(few),
        "channels": np.array(many),
        "row": np.array(first),
        "at": np.array(at),
        "tolerance": np.array(bound * (float(np.abs(wanted).max(initial=0.0)) or 1.0)),
    }


def _shape(shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    """(images, channels, rows, columns) of an answer."""
    if len(shape) < 3:
        rows, columns = (1, 1, *shape)[-2:]
        return 1, 1, rows, columns
    return shape[0], math.prod(shape[1:-2]), shape[-2], shape[-1]


def _around(index: int, count: int, most: int) -> np.ndarray:
    """At most so many indices in a row, at least one, with this one among them."""
    wide = min(count, max(1, most))
    first = min(max(0, index - wide // 2), count - wide)
    return np.arange(first, first + wide)


# ---------------------------------------------------------------------------------------------------- wrong


class Wrong(Incorrect):
    """A rung's answer is wrong; carries the finding and the error map (None: there is nothing to map)."""

    def __init__(
        self, finding: Finding, error_map: np.ndarray | None = None, failure: Failure | None = None
    ) -> None:
        Exception.__init__(self, finding.reason)
        self.finding, self.error = finding, finding.error
        self.error_map = error_map
        self._failure = failure

    def pictures(self) -> dict[str, np.ndarray]:
        """What to keep of the answer, as bench.judge.failure has it; of less the error map alone, or
        nothing."""
        if self._failure is not None:
            return pictures(self._failure)
        return {} if self.error_map is None else {"error_map": self.error_map}
