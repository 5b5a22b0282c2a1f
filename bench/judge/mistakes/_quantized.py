"""Mistakes of products of eight-bit numbers, of convolutions and matrix products alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from bench.judge.mistakes import Mistake
from kernels.ops._quantized import EIGHT_BITS, Quantized

Array = np.ndarray
# (x, weight), whole numbers → their sums
Product = Callable[[Array, Array], Array]


def mistakes(
    p: Quantized, product: Product, axis: int, outer: int, inputs: Sequence[Array]
) -> Iterator[Mistake]:
    """axis: of the channels, in the weights; outer: in the answer."""
    x, weight, x_zero, weight_zero, *behind = (array.astype(np.float64) for array in inputs)
    along = [1] * weight.ndim
    along[axis] = -1
    zeros = weight_zero.reshape(along)

    def made(
        x: Array = x, zero: Array = x_zero, weight: Array = weight, zeros: Array = zeros, **how: object
    ) -> Array:
        return finished(p, product(x - zero, weight - zeros), outer, how.pop("behind", behind), **how)  # type: ignore[arg-type]

    yield "zeros_only", "answers as for inputs of zeros, whatever it is given", partial(made, x=0 * x)
    yield "bias", "the zero point of x is ignored", partial(made, zero=0 * x_zero)
    yield "bias", "the zero point of the weights is ignored", partial(made, zeros=0 * zeros)
    if p.weight_zeros > 1:
        words = "the first zero point of the weights serves all channels"
        yield "layout", words, partial(made, zeros=np.full_like(zeros, zeros.flat[0]))
    for name, array, dtype in (("x", x, p.dtype), ("the weights", weight, p.weight_dtype)):
        held = np.iinfo(dtype)
        other = (
            np.where(array > 127, array - 256, array)
            if held.min == 0
            else np.where(array < 0, array + 256, array)
        )
        words = f"{name} of {dtype} is read as {EIGHT_BITS[held.min == 0]}"
        yield "kind", words, partial(made, **{"x" if name == "x" else "weight": other})
    words = "the sums are held in 16 bits"
    yield (
        "half_precision",
        words,
        lambda: finished(p, (product(x - x_zero, weight - zeros) + 2**15) % 2**16 - 2**15, outer, behind),
    )
    if not behind:
        return
    bias, scale, *shift = behind
    yield "bias", "the bias is missing", partial(made, behind=[0 * bias, scale, *shift])
    first = np.full_like(scale, scale.flat[0])
    yield "layout", "the first channel's scale serves all", partial(made, behind=[bias, first, *shift])
    if shift:
        yield "bias", "the shift is missing", partial(made, behind=[bias, scale])
    if p.to not in EIGHT_BITS:
        return
    yield "kind", "halves are rounded away from 0", partial(made, rounded=_away)
    yield "kind", "halves are rounded up", partial(made, rounded=lambda v: np.floor(v + 0.5))
    yield "kind", "it is rounded towards 0, not to the nearest", partial(made, rounded=np.trunc)
    yield "kind", "it is rounded down, not to the nearest", partial(made, rounded=np.floor)
    yield "kind", "what the type does not hold wraps around", partial(made, wraps=True)
    yield "bias", "the zero point of the answer is ignored", partial(made, out_zero=0)
    held = np.iinfo(p.to)
    if (p.low, p.high) != (held.min, held.max):
        limits = (int(held.min), int(held.max))
        yield "activation", "the activation is missing", partial(made, limits=limits)


def finished(
    p: Quantized,
    sums: Array,
    axis: int,
    behind: Sequence[Array],
    *,
    rounded: Callable[[Array], Array] = np.rint,
    wraps: bool = False,
    out_zero: int | None = None,
    limits: tuple[int, int] | None = None,
) -> Array:
    """What p makes of its sums. axis: of the channels; rounded: how; wraps: nothing is held, but taken modulo
    256."""
    if not behind:
        return sums
    along = [1] * sums.ndim
    along[axis] = -1
    bias, scale, *shift = (array.reshape(along) for array in behind)
    real = (sums + bias) * scale
    real = real + shift[0] if shift else real
    if p.to == "float32":
        return real
    q = rounded(real / np.float32(p.out_scale)) + (p.out_zero if out_zero is None else out_zero)
    least = np.iinfo(p.to).min
    if wraps:
        return np.asarray((q - least) % 256 + least)
    return np.asarray(np.clip(q, *(limits or (p.low, p.high))))


def _away(v: Array) -> Array:
    return np.asarray(np.copysign(np.floor(np.abs(v) + 0.5), v))
