"""Mistakes of matrix products, of attention, and of products of eight-bit numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from bench.judge.mistakes.common import OVERFLOWS, Mistake, mistakes
from bench.judge.mistakes.elementwise import ROUNDINGS, activated, other_activations
from bench.judge.mistakes.windows import convolution
from kernels.ops._quantized import EIGHT_BITS, Quantized
from kernels.ops.attention import FAR, Attention
from kernels.ops.gemm import Gemm
from kernels.ops.qconv import QConv
from kernels.ops.qgemm import QGemm


@mistakes.register
def _gemm(p: Gemm, a: np.ndarray, b: np.ndarray, bias: np.ndarray | None = None) -> Iterator[Mistake]:
    def made(
        q: Gemm = p, a: np.ndarray = a, b: np.ndarray = b, shift: np.ndarray | None = bias
    ) -> np.ndarray:
        return product(q, a, b, shift)

    yield "zeros_only", "answers as for inputs of zeros, whatever it is given", partial(made, a=0 * a)
    if bias is not None:
        yield "bias", "the bias is missing", partial(made, shift=None)
        if p.activation:
            late = p.beta * bias
            yield "bias", "the bias is added after the activation", lambda: made(shift=None) + late
        if p.beta != 1:
            yield "bias", "beta is ignored", partial(made, replace(p, beta=1.0))
        if p.alpha != 1:
            both = replace(p, beta=p.alpha * p.beta)
            yield "bias", "alpha is applied to the bias as well", partial(made, both)
        yield "bias", "the bias is added twice", partial(made, shift=2 * bias)
        yield "bias", "the bias is subtracted", partial(made, shift=-bias)
        first = np.full_like(bias, bias.flat[0])
        yield "bias", "the first element of the bias is added everywhere", partial(made, shift=first)
        if p.m == p.n and 1 in bias.shape:
            yield "bias", "the bias is added along the other axis", partial(made, shift=bias.swapaxes(-1, -2))
    if p.alpha != 1:
        yield "scale", "alpha is ignored", partial(made, replace(p, alpha=1.0))
    yield from other_activations(p.activation, partial(made, replace(p, activation=None)))
    yield "layout", f"the left matrix is read {_gemm_as(p.trans_a)} (transA)", partial(made, a=_turned(a))
    yield "layout", f"the right matrix is read {_gemm_as(p.trans_b)} (transB)", partial(made, b=_turned(b))
    yield "layout", "both matrices are read the other way about", partial(made, a=_turned(a), b=_turned(b))
    yield "left_out", "the last product of each sum is left out", partial(made, a=_cut(p, a, p.k - 1, p.k))
    yield "left_out", "the first product of each sum is left out", partial(made, a=_cut(p, a, 0, 1))
    for whole in (2, 4, 8, 16, 32, 64):
        words = f"the products of each sum beyond the last whole {whole} are left out"
        yield "left_out", words, partial(made, a=_cut(p, a, p.k // whole * whole, p.k))
    for words, rounded in ROUNDINGS:
        yield "half_precision", words, partial(made, a=rounded(a), b=rounded(b))
    if p.stride_a:
        yield (
            "batch_one_only",
            "every product reads the first left matrix",
            partial(made, a=a[:1].repeat(p.batch, 0)),
        )
    if p.stride_b:
        yield (
            "batch_one_only",
            "every product reads the first right matrix",
            partial(made, b=b[:1].repeat(p.batch, 0)),
        )


def _gemm_as(transposed: bool) -> str:
    return "as if it did not lie transposed" if transposed else "as if it lay transposed"


def _turned(a: np.ndarray) -> np.ndarray:
    """The same bytes, read along the other axis."""
    return a.reshape(a.shape[0], a.shape[2], a.shape[1]).swapaxes(1, 2)


def _cut(p: Gemm, a: np.ndarray, start: int, stop: int) -> np.ndarray:
    a = a.copy()
    a[(slice(None), slice(start, stop)) if p.trans_a else (..., slice(start, stop))] = 0
    return a


def product(p: Gemm, a: np.ndarray, b: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    """(batch, m, n)"""
    y = p.alpha * (a.swapaxes(1, 2) if p.trans_a else a) @ (b.swapaxes(1, 2) if p.trans_b else b)
    return activated(y if bias is None else y + p.beta * bias, p.activation)


@mistakes.register
def _attention(p: Attention, *inputs: np.ndarray) -> Iterator[Mistake]:
    q, k, v, *masks = p.apart(inputs)
    yield from _of_heads(p.plain, q, k, v, *masks)


def _of_heads(
    p: Attention, q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None = None
) -> Iterator[Mistake]:
    def made(
        told: Attention = p,
        q: np.ndarray = q,
        k: np.ndarray = k,
        v: np.ndarray = v,
        mask: np.ndarray | None = mask,
        **how: bool,
    ) -> np.ndarray:
        return attended(told, q, k, v, mask, **how)

    yield "nan", OVERFLOWS, partial(made, overflowing=True)
    if p.scale != 1:
        yield "scale", "the scores are not scaled", partial(made, replace(p, scale=1.0))
        yield "scale", "the scores are scaled twice", partial(made, replace(p, scale=p.scale**2))
        yield "scale", "the scores are divided by the scale", partial(made, replace(p, scale=1 / p.scale))
    if p.softcap:
        yield "scale", "the scores are not capped", partial(made, replace(p, softcap=0.0))
    if mask is not None:
        yield "bias", "the mask is missing", partial(made, mask=None)
        yield "bias", "the mask is subtracted", partial(made, mask=-mask)
        yield "bias", "the mask is scaled, too", partial(made, mask=p.scale * mask)
        for axis, name in enumerate(("image", "head", "query", "key")):
            if mask.shape[axis] > 1:
                first = mask.take([0], axis).repeat(mask.shape[axis], axis)
                yield "bias", f"the mask of the first {name} serves all", partial(made, mask=first)
    if p.earliest != -FAR or p.latest != FAR:
        yield "left_out", "every query sees all keys", partial(made, replace(p, earliest=-FAR, latest=FAR))
        for by, words in ((1, "one key too far"), (-1, "one key too few")):
            if p.latest != FAR:
                moved = replace(p, latest=p.latest + by)
                yield "left_out", f"queries see {words} ahead", partial(made, moved)
            if p.earliest != -FAR:
                moved = replace(p, earliest=p.earliest - by)
                yield "left_out", f"queries see {words} behind", partial(made, moved)
    yield "scale", "the weights are not divided by their sum", partial(made, undivided=True)
    yield "axis", "the softmax runs over the queries", partial(made, over_queries=True)
    yield "layout", "heads take their keys and values in turns", partial(made, in_turns=True)
    if p.batch > 1:
        alike = [of[:1].repeat(p.batch, 0) for of in (q, k, v)]
        yield "batch_one_only", "every image has the queries of the first", partial(made, q=alike[0])
        yield "batch_one_only", "every image has the keys of the first", partial(made, k=alike[1])
        yield "batch_one_only", "every image has the values of the first", partial(made, v=alike[2])
    yield "left_out", "the last element of each score is left out", partial(made, q=_without_last(q))
    yield "left_out", "the last key is left out", partial(made, last=True)
    for whole in (4, 8, 16, 32, 64):
        if 0 < (kept := p.keys // whole * whole) < p.keys:
            words = f"the keys beyond the last whole {whole} are left out"
            yield "left_out", words, partial(_first_keys, p, q, k, v, mask, kept)
    for words, rounded in ROUNDINGS:
        yield "half_precision", words, partial(made, q=rounded(q), k=rounded(k), v=rounded(v))


def _without_last(q: np.ndarray) -> np.ndarray:
    q = q.copy()
    q[..., -1] = 0
    return q


def _first_keys(
    p: Attention, q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None, kept: int
) -> np.ndarray:
    hidden = np.zeros((1, 1, 1, p.keys))
    hidden[..., kept:] = -np.inf
    return attended(p, q, k, v, hidden if mask is None else mask + hidden)


def attended(
    p: Attention,
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    mask: np.ndarray | None,
    undivided: bool = False,
    over_queries: bool = False,
    in_turns: bool = False,
    last: bool = False,
    overflowing: bool = False,
) -> np.ndarray:
    q, k, v = (of.swapaxes(1, 2) if way else of for of, way in zip((q, k, v), p.swapped, strict=False))
    heads = np.arange(p.heads)
    of = heads % p.kv_heads if in_turns else heads // (p.heads // p.kv_heads)
    with np.errstate(all="ignore"):
        scores = p.scale * (q @ k[:, of].swapaxes(2, 3))
        if p.softcap:
            scores = p.softcap * np.tanh(scores / p.softcap)
        if mask is not None:
            scores = scores + mask
        away = np.arange(p.keys) - np.arange(p.queries)[:, None]
        scores = np.where((away < p.earliest) | (away > p.latest), -np.inf, scores)
        if last:
            scores[..., -1] = -np.inf
        axis = 2 if over_queries else 3
        most = scores.max(axis=axis, keepdims=True)
        if overflowing:
            weights = np.exp(scores.astype(np.float32))
        else:
            weights = np.exp(scores - np.where(np.isneginf(most), 0, most))
        if not undivided:
            total = weights.sum(axis=axis, keepdims=True)
            weights = weights / (np.where(total == 0, 1, total) if p.guarded else total)
        y = weights @ v[:, of]
    return np.ascontiguousarray(y.swapaxes(1, 2)) if p.swapped[3] else y


Array = np.ndarray


# (x, weight), whole numbers → their sums
Product = Callable[[Array, Array], Array]


def _of_eight_bits(
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
    words = "the sums are held between the ends of 16 bits"
    yield (
        "half_precision",
        words,
        lambda: finished(p, np.clip(product(x - x_zero, weight - zeros), -(2**15), 2**15 - 1), outer, behind),
    )
    if not behind:
        return
    bias, scale, *shift = behind
    yield "bias", "the bias is missing", partial(made, behind=[0 * bias, scale, *shift])
    first = np.full_like(scale, scale.flat[0])
    yield "layout", "the first channel's scale serves all", partial(made, behind=[bias, first, *shift])
    after = np.roll(scale, -1)
    yield "layout", "each channel has the next one's scale", partial(made, behind=[bias, after, *shift])
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


@mistakes.register
def _qgemm(p: QGemm, *inputs: Array) -> Iterator[Mistake]:
    a, b = (array.reshape(shape) for array, shape in zip(inputs[:2], p.input_shapes[:2], strict=True))
    axis = 1 if p.product.trans_b else 2

    def sums(a: Array, b: Array) -> Array:
        return np.broadcast_to(product(p.product, a, b, None), p.output_shape)

    yield from _of_eight_bits(p, sums, axis, 2, (a, b, *inputs[2:]))
    behind = [array.astype(np.float64) for array in inputs[4:]]
    zeros = inputs[3].astype(np.float64).reshape((1, -1, 1) if axis == 1 else (1, 1, -1))
    whole = (a - inputs[2].astype(np.float64), b - zeros)
    for fault, words, found in mistakes(p.product, *whole):
        if fault not in ("zeros_only", "half_precision", "activation"):
            yield fault, words, partial(_of_sums, p, found, behind)


def _of_sums(p: QGemm, sums: object, behind: list[Array]) -> Array:
    made = np.broadcast_to(sums(), p.output_shape)  # type: ignore[operator]
    return finished(p, made, 2, behind)


@mistakes.register
def _qconv(p: QConv, *inputs: Array) -> Iterator[Mistake]:
    x, weight = (array.reshape(shape) for array, shape in zip(inputs[:2], p.input_shapes[:2], strict=True))
    given = (x, weight, *inputs[2:])
    yield from _of_eight_bits(p, partial(convolution, p.product), 0, 1, given)
    behind = [array.astype(np.float64) for array in inputs[4:]]
    whole = (x - inputs[2].astype(np.float64), weight - inputs[3].astype(np.float64).reshape(-1, 1, 1, 1))
    for fault, words, sums in mistakes(p.product, *whole):
        if fault not in ("zeros_only", "half_precision", "activation"):
            yield fault, words, partial(_of_windows, p, sums, behind)
    raw = p.product
    if raw.pad_top or raw.pad_left or raw.pad_bottom or raw.pad_right:
        yield "pad", "the padding is 0, not the zero point of x", partial(_unshifted, p, given, behind)


def _of_windows(p: QConv, sums: object, behind: list[Array]) -> Array:
    return finished(p, sums(), 1, behind)  # type: ignore[operator]


def _unshifted(p: QConv, inputs: tuple[Array, ...], behind: list[Array]) -> Array:
    """What lies outside the image is 0 before its zero point is taken off."""
    x, weight, x_zero, weight_zero = (array.astype(np.float64) for array in inputs[:4])
    less = weight - weight_zero.reshape(-1, 1, 1, 1)
    inside = convolution(p.product, x, less)
    everywhere = less.sum(axis=(1, 2, 3)).reshape(1, -1, 1, 1) * x_zero.reshape(())
    return finished(p, inside - everywhere, 1, behind)
