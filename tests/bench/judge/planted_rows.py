"""Mistakes of operators that walk rows or move elements along an axis."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kernels.ops.attention import Attention
from kernels.ops.gather import Gather
from kernels.ops.normalize import Normalize
from kernels.ops.qadd import QAdd
from kernels.ops.quantize import Quantize
from kernels.ops.reduce import Reduce
from tests.bench.judge.planting import answers

Array = np.ndarray
LARGEST = Reduce("argmax", 3, 10, 4)

answers("reduce", "reduce: mean for the sum", lambda p, x: x.mean(axis=1), "mean")
answers(
    "reduce", "reduce: the last left out", lambda p, x: x[:, : max(1, p.axis - 1)].sum(axis=1), "last element"
)
answers("reduce", "reduce: of squares", lambda p, x: (x * x).sum(axis=1), "sumsquare")
answers(
    "reduce",
    "reduce: root left out",
    lambda p, x: (x * x).sum(axis=1),
    "sumsquare",
    params=Reduce("l2", 3, 10, 4),
)
answers(
    "reduce",
    "reduce: neighbours in memory",
    lambda p, x: x.reshape(-1, p.axis).sum(axis=1).reshape(p.outer, p.inner),
    "neighbours",
)
answers(
    "reduce",
    "reduce: maximum for the logarithm of exponentials",
    lambda p, x: x.max(axis=1),
    "exponentials are missing|max",
    params=Reduce("logsumexp", 3, 10, 4),
)
answers("reduce", "reduce: place of the minimum", lambda p, x: x.argmin(axis=1), "argmin", params=LARGEST)
answers("reduce", "reduce: places from 1", lambda p, x: x.argmax(axis=1) + 1, "from 1", params=LARGEST)


def _normal(name: str, *says: str, params: Any = None, **wrong: Any) -> None:
    answers(
        "normalize",
        f"normalize: {name}",
        lambda p, *given: _normalised(p, *given, **wrong),
        *says,
        params=params,
    )


def _normalised(
    p: Normalize,
    x: Array,
    scale: Array | None = None,
    bias: Array | None = None,
    *,
    mean: bool = True,
    less: int = 0,
    epsilon: bool = True,
    scaled: bool = True,
    shifted: bool = True,
    by_place: bool = False,
    all_rows: bool = False,
) -> Array:
    axis = None if all_rows else 1
    moved = x - x.mean(axis=axis, keepdims=True) * mean
    squares = (moved**2).mean(axis=axis, keepdims=True) * p.length / max(1, p.length - less)
    y = moved / np.sqrt(squares + p.epsilon * epsilon)
    if scale is None or bias is None:
        return y
    row, column = np.indices(x.shape)
    channel = row % p.groups * (p.length // p.inner) + column // p.inner
    if by_place:
        channel = (row * p.length + column) % p.channels
    return y * (scale[channel] if scaled else 1) + (bias[channel] if shifted else 0)


_normal("mean not subtracted", "mean is not subtracted", mean=False)
_normal("variance of a sample", "one less", less=1)
_normal("epsilon left out", "epsilon", epsilon=False, params=Normalize(6, 20, epsilon=0.5))
_normal("scale left out", "scale is missing", scaled=False)
_normal("bias left out", "bias is missing", shifted=False)
_normal("all rows as one", all_rows=True)
_normal("channels taken by place", by_place=True)


def _taken(name: str, places: Any, *says: str) -> None:
    def wrong(p: Gather, x: Array, given: Array) -> Array:
        return x[:, np.clip(places(p, given), 0, p.axis - 1)]

    answers("gather", f"gather: {name}", wrong, *says)


_taken("negative places as they are", lambda p, given: given, "negative places are taken as the first")
_taken("all places one further", lambda p, given: given % p.axis + 1, "one further along")
_taken("places left alone", lambda p, given: np.arange(p.count), "ignored")
_taken("places modulo the axis less one", lambda p, given: given % max(1, p.axis - 1))


def _eight(name: str, *says: str, rounded: Any = np.rint, held: bool = True, zeros: bool = True) -> None:
    def wrong(p: Quantize, x: Array, scale: Array, zero: Array) -> Array:
        scale, zero = scale.reshape(1, -1, 1), zero.reshape(1, -1, 1)
        q = rounded(x / scale) + zero * zeros
        return ((np.clip(q, *p.limits) if held else q) - zero * zeros) * scale

    answers("quantize", f"quantize: {name}", wrong, *says)


def _summed(name: str, *says: str, rounded: Any = np.rint, held: bool = True, **of: Any) -> None:
    def wrong(p: QAdd, a: Array, b: Array) -> Array:
        p = replace(p, **of)
        left = (a.astype(np.float64) - p.a_zero) * np.float32(p.a_scale)
        right = (b.astype(np.float64) - p.b_zero) * np.float32(p.b_scale)
        q = rounded((left + right) / np.float32(p.out_scale)) + p.out_zero
        return np.clip(q, p.low, p.high) if held else q % 256

    answers("qadd", f"qadd: {name}", wrong, *says)


_summed("halves upwards", "halves are rounded up", rounded=lambda v: np.floor(v + 0.5))
_summed("cut", "towards 0", rounded=np.trunc)
_summed("wraps", "wraps around", held=False)
_summed("b left out", "b is left out", b_scale=0.0)
_summed("no zero of a", "zero point of a is ignored", a_zero=0)
_eight("halves upwards", "halves are rounded up", rounded=lambda v: np.floor(v + np.float32(0.5)))
_eight("cut", "towards 0", rounded=np.trunc)
_eight("no zero", "zero is ignored", zeros=False)
_eight("not held within limits", held=False)


def _attention(name: str, *says: str, params: Any = None, **wrong: Any) -> None:
    answers(
        "attention",
        f"attention: {name}",
        lambda p, *given: _attended(p, *given, **wrong),
        *says,
        params=params,
    )


def _attended(
    p: Attention,
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None = None,
    *,
    scaled: bool = True,
    masked: bool = True,
    late: bool = False,
    ahead: bool = False,
    largest: bool = True,
    restarted: bool = False,
    in_turns: bool = False,
) -> Array:
    """restarted: of the keys four at a time, what was summed is not made smaller by a larger score."""
    q, k, v = (of.swapaxes(1, 2) if way else of for of, way in zip((q, k, v), p.swapped, strict=False))
    heads = np.arange(p.heads)
    of = heads % p.kv_heads if in_turns else heads // (p.heads // p.kv_heads)
    k, v = k[:, of], v[:, of]
    scores = q @ k.swapaxes(2, 3) * np.float32(p.scale if scaled else 1)
    if mask is not None and masked:
        scores = scores + mask
    away = np.arange(p.keys) - np.arange(p.queries)[:, None]
    if not ahead:
        scores = np.where(away > p.latest - late, np.float32(-np.inf), scores)
    with np.errstate(all="ignore"):
        powers = np.exp(scores - (scores.max(axis=3, keepdims=True) if largest else 0))
        if restarted:
            most = np.maximum.accumulate(scores, axis=3)[..., 3::4].repeat(4, axis=3)[..., : p.keys]
            most = np.concatenate([most, scores.max(axis=3, keepdims=True).repeat(p.keys, 3)], axis=3)
            powers = np.exp(scores - most[..., : p.keys])
        y = powers / powers.sum(axis=3, keepdims=True) @ v
    return y.swapaxes(1, 2) if p.swapped[3] else y


_attention("scale left out", "not scaled", scaled=False)
_attention("mask left out", "mask is missing", masked=False)
_attention("keys ahead are seen", "sees all keys", ahead=True)
_attention("one key too few", "too few ahead", late=True)
_attention("heads share in turns", "in turns", in_turns=True)
_attention("maximum not subtracted", "is not subtracted", largest=False)
_attention("sums kept as they were", restarted=True)
