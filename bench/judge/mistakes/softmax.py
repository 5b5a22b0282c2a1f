"""Mistakes of softmax."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from bench.judge.mistakes import Mistake
from kernels.ops.softmax import Softmax


def mistakes(p: Softmax, x: np.ndarray) -> Iterator[Mistake]:
    def over_all() -> np.ndarray:
        return soft(x.reshape(1, -1), 1, p.log).reshape(x.shape)

    def undivided() -> np.ndarray:
        moved = x - x.max(axis=1, keepdims=True)
        return moved if p.log else np.exp(moved)

    yield "axis", "the sum runs over the inner axis", partial(soft, x, 2, p.log)
    yield "axis", "the sum runs over the outer axis", partial(soft, x, 0, p.log)
    yield "axis", "the sum runs over all elements", over_all
    yield "axis", "the sum runs over neighbours in memory, not along the axis", lambda: _beside(p, x)
    if p.log:
        yield "kind", "the logarithm is missing", partial(soft, x, 1, False)
    else:
        yield "kind", "the logarithm is taken, which nobody asked for", partial(soft, x, 1, True)
    yield "scale", "the exponentials are not divided by their sum", undivided
    if p.axis > 1:
        yield (
            "left_out",
            "the last element is left out of the sum",
            partial(soft, x, 1, p.log, slice(None, -1)),
        )
        yield (
            "left_out",
            "the first element is left out of the sum",
            partial(soft, x, 1, p.log, slice(1, None)),
        )
    for whole in (2, 4, 8, 16, 32):
        if kept := p.axis // whole * whole:
            words = f"the elements beyond the last whole {whole} are left out of the sum"
            yield "left_out", words, partial(soft, x, 1, p.log, slice(None, kept))


def _beside(p: Softmax, x: np.ndarray) -> np.ndarray:
    return soft(x.reshape(p.outer * p.inner, p.axis), 1, p.log).reshape(x.shape)


def soft(x: np.ndarray, axis: int, log: bool, part: slice = slice(None)) -> np.ndarray:
    """part: of the axis (which is then 1), over which the sum runs."""
    moved = x - x.max(axis=axis, keepdims=True)
    powers = np.exp(moved)
    with np.errstate(all="ignore"):
        total = (powers if part == slice(None) else powers[:, part]).sum(axis=axis, keepdims=True)
        return np.asarray(moved - np.log(total) if log else powers / total)
