"""Whether an answer depends on what the output or the workspace held before the pass. If only a pass on zeros
is right, the rung adds to the old content; if only a pass on large negative numbers is right, it takes the
maximum with it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bench.judge.comparison import compare
from bench.judge.samples import Sample
from engine.rung_rows import raw

# A byte to fill with, and what a rung does that is right upon it. As float32: 0, and −1.7e38.
_STARTS = (
    (0x00, "adds to what the output or the workspace held before the pass, instead of beginning at 0"),
    (0xFE, "takes the maximum with what the output or the workspace held before the pass"),
)


def began_with(
    sample: Sample, unwritten: np.ndarray, pass_on: Callable[[int], np.ndarray], precision: str
) -> str:
    """Words for how an answer follows from what lay there; "" where it does not, or nothing is known of how.

    unwritten: elements that two passes on other bytes left as they were; pass_on: the answer of a pass on
    one."""
    changed = np.zeros(unwritten.shape, bool)
    for byte, words in _STARTS:
        got = pass_on(byte)
        if compare(got, sample, precision).stats.ok:
            return words
        changed |= ~(raw(got) == byte).reshape(got.size, -1).all(axis=1).reshape(unwritten.shape)
    if (unwritten & changed).any():
        return "depends on what the output or the workspace held before the pass"
    return ""
