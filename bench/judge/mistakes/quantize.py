"""Mistakes of bringing numbers to eight bits and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from bench.judge.mistakes import Mistake
from kernels.ops.quantize import Quantize

Array = np.ndarray


def mistakes(p: Quantize, x: Array, scale: Array, zero: Array) -> Iterator[Mistake]:
    made = partial(quantized, p, x, scale, zero)
    low, _ = p.limits
    if p.dtype == "float32":
        yield "kind", "halves are rounded away from 0", partial(made, rounded=_away)
        yield "kind", "halves are rounded up", partial(made, rounded=lambda v: np.floor(v + 0.5))
        yield "kind", "it is rounded towards 0, not to the nearest", partial(made, rounded=np.trunc)
        yield "kind", "it is rounded down, not to the nearest", partial(made, rounded=np.floor)
        yield "kind", "it is not rounded", partial(made, rounded=lambda v: v)
        yield "kind", "what the type does not hold wraps around", partial(made, wraps=True)
        yield "kind", "the lowest number is left out of the range", partial(made, low=low + 1)
        yield "scale", "it multiplies by the scale instead of dividing", partial(made, inverse=True)
    yield "bias", "the zero is ignored", lambda: quantized(p, x, scale, np.zeros_like(zero))
    if p.channels > 1:
        first = np.full_like(scale, scale[0])
        yield "layout", "the first channel's scale serves all", lambda: quantized(p, x, first, zero)


def quantized(
    p: Quantize,
    x: Array,
    scale: Array,
    zero: Array,
    *,
    rounded: Callable[[Array], Array] = np.rint,
    wraps: bool = False,
    low: int | None = None,
    inverse: bool = False,
) -> Array:
    """What `p` says of x. rounded: how; wraps: what is too large is taken modulo the type's numbers; low: the
    lowest number that it holds."""
    scale, zero = scale.reshape(1, -1, 1), zero.reshape(1, -1, 1)
    whole = x
    if p.dtype == "float32":
        least, most = p.limits
        whole = rounded(x * scale if inverse else x / scale) + zero
        if wraps:
            whole = (whole - least) % (most - least + 1) + least
        whole = np.clip(whole, least if low is None else low, most)
    return np.asarray((whole - zero) * scale if p.to == "float32" else whole)


def _away(v: Array) -> Array:
    return np.asarray(np.copysign(np.floor(np.abs(v) + 0.5), v))
