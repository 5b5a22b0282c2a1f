"""Mistakes of conversion."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from bench.judge.mistakes import Mistake
from kernels.ops.cast import Cast


def mistakes(p: Cast, x: np.ndarray) -> Iterator[Mistake]:
    to = np.dtype(p.to)
    if to.kind in "iu":
        for words, function in (
            ("values are rounded to the nearest, not towards zero", np.rint),
            ("values are rounded down, not towards zero", np.floor),
            ("values are rounded up, not towards zero", np.ceil),
        ):
            yield "kind", words, partial(_rounded, x, function)
        yield "kind", "the sign is lost", lambda: np.abs(np.trunc(x))
        yield "kind", "negative values become 0", lambda: np.maximum(0, np.trunc(x))
    if to.kind == "b":
        yield "kind", "true is what is positive, not what differs from 0", lambda: (x > 0).astype(float)
        yield (
            "kind",
            "true is what is at least 1, not what differs from 0",
            lambda: (np.abs(x) >= 1).astype(float),
        )
        yield "kind", "true and false are swapped", lambda: (x == 0).astype(float)


def _rounded(x: np.ndarray, function: np.ufunc) -> np.ndarray:
    return np.asarray(function(x))
