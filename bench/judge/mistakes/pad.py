"""Mistakes of padding."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from bench.judge.mistakes import Mistake
from kernels.ops.pad import PAD_MODES, Pad

_WORDS = {
    "constant": "the value is added, whatever mode was asked for",
    "edge": "the edge is repeated, whatever mode was asked for",
    "reflect": "the input is reflected, whatever mode was asked for",
    "wrap": "the input wraps around",
}


def mistakes(p: Pad, x: np.ndarray) -> Iterator[Mistake]:
    made = partial(padded, p, x)
    if p.mode == "constant" and p.value:
        yield "pad", "the value is ignored: zeros are added", partial(made, value=0.0)
    for mode in PAD_MODES:
        if mode != p.mode:
            yield "pad", _WORDS[mode], partial(made, mode=mode)
    yield "pad", "the reflection has the edge twice", partial(made, mode="symmetric")
    yield "pad", "what is added at the beginning and at the end is swapped", partial(made, begin=p.end)
    yield "pad", "what is added at the beginning is ignored", partial(made, begin=(0,) * len(p.begin))
    yield (
        "pad",
        "it is off by one: one more at the beginning",
        partial(made, begin=tuple(b + 1 for b in p.begin)),
    )
    yield (
        "pad",
        "it is off by one: one less at the beginning",
        partial(made, begin=tuple(b - 1 for b in p.begin)),
    )
    yield "pad", "the axes are padded in reverse order", partial(made, begin=p.begin[::-1])


def padded(
    p: Pad, x: np.ndarray, *, begin: tuple[int, ...] = (), mode: str = "", value: float | None = None
) -> np.ndarray:
    """As large as `p` says, with other numbers at the beginning, another mode or value. NaN where numpy has
    nothing to take."""
    begin, mode = begin or p.begin, mode or p.mode
    end = [out - size - b for out, size, b in zip(p.out_shape, p.shape, begin, strict=True)]
    kept = tuple(slice(max(0, -b), size - max(0, -e)) for size, b, e in zip(p.shape, begin, end, strict=True))
    around = [(max(0, b), max(0, e)) for b, e in zip(begin, end, strict=True)]
    if mode == "constant":
        return np.pad(x[kept], around, constant_values=p.value if value is None else value)
    if 0 in x[kept].shape:
        return np.full(p.out_shape, np.nan)
    return np.pad(x[kept], around, mode)  # type: ignore[call-overload]
