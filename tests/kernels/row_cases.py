"""As tests.kernels.cuda_cases, of operators that walk rows or move elements along an axis.

The answers are NumPy's, in float64 where anything is computed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from kernels.ops import Params
from kernels.ops.attention import Attention
from kernels.ops.gather import INDEX_TYPES, Gather
from kernels.ops.normalize import Normalize
from kernels.ops.qadd import QAdd
from kernels.ops.quantize import Quantize
from kernels.ops.reduce import PLACES, REDUCE_KINDS, Reduce
from tests.kernels import drawn_sequences

Array = np.ndarray
Made = tuple[Params, tuple[Array | None, ...], Array]


def normal(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def _reduce(rng: np.random.Generator) -> Iterator[Made]:
    shapes = (
        (1, 1, 1),
        (3, 7, 1),
        (2, 1030, 1),
        (4, 33, 5),
        (3, 40, 17),
        (1, 5000, 9),
        (70, 3, 40),
        (2, 9000, 1),
    )
    for kind in REDUCE_KINDS:
        for outer, axis, inner in shapes:
            x = normal(rng, outer, axis, inner)
            if kind == "logsum":
                x = np.abs(x) + np.float32(0.5)
            elif kind == "prod":
                x = (1 + x / np.sqrt(np.float32(axis + 4))).astype(np.float32)
            elif kind == "logsumexp":
                x = x + 100 * normal(rng, outer, 1, inner)
            elif kind in PLACES:
                x = np.rint(4 * x)  # several places hold the extreme value
            for last in (False, True) if kind in PLACES else (False,):
                yield (Reduce(kind, outer, axis, inner, last), (x,), _reduced(kind, last, x))
    yield from _typed(rng)


def _typed(rng: np.random.Generator) -> Iterator[Made]:
    """Of other types than float32; sums of whole numbers stay so."""
    for dtype in ("float64", "int32", "int64", "uint8"):
        for kind in REDUCE_KINDS if dtype == "float64" else ("sum", "max", "min", "prod", "argmax"):
            x = rng.integers(1, 3, (3, 7, 5)).astype(dtype)
            y = _reduced(kind, False, x)
            yield Reduce(kind, 3, 7, 5, dtype=dtype), (x,), y if kind in PLACES else y.astype(dtype)


def _reduced(kind: str, last: bool, x: Array) -> Array:
    if kind in PLACES:
        extreme = x.max(axis=1, keepdims=True) if kind == "argmax" else x.min(axis=1, keepdims=True)
        places = np.arange(x.shape[1])[None, :, None]
        held = np.where(x == extreme, places, -1 if last else x.shape[1])
        return (held.max(axis=1) if last else held.min(axis=1)).astype(np.int64)
    wide = x.astype(np.float64)
    if kind == "logsumexp":
        return np.logaddexp.reduce(wide, axis=1)
    if kind in ("l1", "l2"):
        return np.linalg.norm(wide, 1 if kind == "l1" else 2, axis=1)
    if kind == "sumsquare":
        return np.square(wide).sum(axis=1)
    return np.log(wide.sum(axis=1)) if kind == "logsum" else getattr(wide, kind)(axis=1)


def _normalize(rng: np.random.Generator) -> Iterator[Made]:
    for params in (
        Normalize(5, 1),
        Normalize(3, 7, affine=True),
        Normalize(2, 1030, epsilon=0.1, affine=True),
        Normalize(6, 49, 49, 3, affine=True),  # instances
        Normalize(4, 98, 49, 2, affine=True),  # groups of two channels
        Normalize(9, 100, centred=False, affine=True),
        Normalize(2, 9000),
        Normalize(5, 192, affine=True),  # rows that begin at 16 bytes
        *(Normalize(33, 40, centred=gives == "mean", gives=gives) for gives in ("mean", "factor")),
    ):
        x = 3 + normal(rng, params.count, params.length)
        scale, bias = normal(rng, params.channels), normal(rng, params.channels)
        given = (x, scale, bias) if params.affine else (x, None, None)
        yield params, given, _normal(params, *(a.astype(np.float64) for a in (x, scale, bias)))


def _normal(p: Normalize, x: Array, scale: Array, bias: Array) -> Array:
    mean = x.mean(axis=1, keepdims=True) if p.centred else np.zeros((p.count, 1))
    factor = 1 / np.sqrt(np.square(x - mean).mean(axis=1, keepdims=True) + p.epsilon)
    if p.gives != "all":
        return mean if p.gives == "mean" else factor
    y = (x - mean) * factor
    if p.affine:
        row, column = np.indices(x.shape)
        channel = row % p.groups * (p.length // p.inner) + column // p.inner
        y = y * scale[channel] + bias[channel]
    return y


def _gather(rng: np.random.Generator) -> Iterator[Made]:
    for outer, axis, inner, count in (
        (1, 1, 1, 1),
        (3, 7, 1, 40),
        (2, 5, 9, 3),
        (1, 100, 12, 300),
        (4, 2, 33, 2),
    ):
        for index in INDEX_TYPES:
            x, places = normal(rng, outer, axis, inner), rng.integers(-axis, axis, count)
            yield Gather(outer, axis, inner, count, index), (x, places.astype(index)), x[:, places]
    for dtype in ("int32", "int64", "uint8", "float64"):  # labels, and what else is moved as it is
        x, places = (100 * normal(rng, 2, 5, 3)).astype(dtype), rng.integers(-5, 5, 9)
        yield Gather(2, 5, 3, 9, "int64", dtype), (x, places), x[:, places]


def _quantize(rng: np.random.Generator) -> Iterator[Made]:
    for through in ("uint8", "int8"):
        for source, target in (("float32", "float32"), ("float32", through), (through, "float32")):
            for outer, channels, inner in ((1, 1, 1), (1, 1, 1030), (3, 5, 7), (2, 40, 1)):
                p = Quantize(outer, channels, inner, through, target, source)
                low, high = p.limits
                scale = np.exp2(rng.integers(-7, -4, channels)).astype(np.float32)  # quotients are exact
                zero = rng.integers(low + 100, high - 100, channels).astype(np.float32)
                x = (rng.integers(-500, 500, p.output_shape) / 128).astype(np.float32)
                if source != "float32":
                    x = rng.integers(low, high + 1, p.output_shape).astype(source)
                yield p, (x, scale, zero), _quantized(p, x, scale, zero)
    p = Quantize(2, 3, 4, "int32", "float32", "int32")
    x, scale = rng.integers(-999, 999, p.output_shape).astype(np.int32), normal(rng, 3)
    yield p, (x, scale, np.zeros(3, np.float32)), _quantized(p, x, scale, np.zeros(3, np.float32))


def _qadd(rng: np.random.Generator) -> Iterator[Made]:
    """Every pair of types, ties and none, an answer that is cut; and one operand alone."""
    for number, types in enumerate(itertools.product(("uint8", "int8"), repeat=3)):
        held = [np.iinfo(name) for name in types]
        zeros = [int(rng.integers(each.min, each.max + 1)) for each in held]
        scales = (0.25, 0.5, 0.5) if number % 2 else (0.11, 0.3 * (number % 3), 0.17)
        a_scale, b_scale, out_scale = (float(np.float32(scale)) for scale in scales)
        low = zeros[2] if number % 3 else int(held[2].min)
        for size in (1, 37, 4100):
            p = QAdd(
                size, a_scale, zeros[0], b_scale, zeros[1], out_scale, zeros[2], low, int(held[2].max), *types
            )
            a, b = (rng.integers(each.min, each.max + 1, size, each.dtype) for each in held[:2])
            real = (a.astype(int) - zeros[0]) * a_scale + (b.astype(int) - zeros[1]) * b_scale
            y = np.clip(np.rint(real / out_scale) + zeros[2], low, held[2].max)
            yield p, (a, b), y.astype(types[2])


def _quantized(p: Quantize, x: Array, scale: Array, zero: Array) -> Array:
    scale, zero = (a.astype(np.float64).reshape(1, -1, 1) for a in (scale, zero))
    q = x.astype(np.float64)
    if p.dtype == "float32":
        q = np.clip(np.rint(q / scale) + zero, *p.limits)
    return (q - zero) * scale if p.to == "float32" else q.astype(p.to)


def _attention(rng: np.random.Generator) -> Iterator[Made]:
    plain = Attention(2, 3, 5, 7, 4, 4, 3, scale=0.5)
    several = Attention(1, 2, 70, 131, 33, 20, 2, scale=0.2)  # beyond one tile of queries, two of keys
    swapped = (True, True, False, True)
    for p in (
        plain,
        Attention(1, 1, 1, 1, 1, 1, 1),
        replace(plain, mask=(2, 1, 5, 7)),
        replace(plain, mask=(1, 3, 1, 7), swapped=(True,) * 4, depth_v=9),
        replace(plain, mask=(2, 3, 5, 1), swapped=swapped, guarded=True),
        replace(plain, heads=6, softcap=2.0, mask=(1, 1, 1, 1)),
        replace(plain, queries=9, latest=-2, guarded=True),  # some see nothing
        replace(plain, earliest=-1, latest=1),
        several,
        replace(several, latest=61, mask=(1, 2, 70, 131), softcap=3.0, swapped=swapped),
        Attention(1, 1, 3, 200, 16, 100, 1, scale=0.25),
        Attention(1, 2, 2, 9, 70, 256, 1, scale=0.1, latest=7),
        Attention(1, 2, 17, 530, 64, 64, 1, scale=0.2, latest=500),  # many tiles of keys
        Attention(9, 16, 3, 40, 20, 8, 16, scale=0.3, swapped=swapped),  # many queries
        Attention(2, 6, 197, 197, 64, 64, 6, scale=0.125, swapped=(True,) * 4),  # a small vision transformer
        Attention(1, 4, 37, 37, 12, 20, 2, scale=0.3, mask=(1, 1, 37, 37), swapped=(True,) * 4, packed=True),
        Attention(1, 4, 17, 17, 16, 24, 2, scale=0.3, mask=(1, 1, 17, 17), swapped=(True,) * 4, packed=True),
        Attention(2, 3, 35, 35, 9, 6, 3, scale=0.3, swapped=(True, True, True, False), packed=True),
    ):
        given = [normal(rng, *shape) for shape in p.input_shapes[: 1 if p.packed else 3]]
        given[0] = 3 * given[0]  # few keys have most of the weight
        mask = None
        if p.mask:
            mask = normal(rng, *p.mask)
            if p.mask[3] > 1:
                mask[..., -2] = -np.inf
            elif p.guarded:
                mask[:, :, -1] = -np.inf
        yield p, (*given, mask), _attended(p, given, mask)


def _attended(p: Attention, given: list[Array], mask: Array | None) -> Array:
    q, k, v = (of.astype(np.float64) for of in p.apart(given))
    k, v = (np.repeat(of, p.heads // p.kv_heads, axis=1) for of in (k, v))
    scores = p.scale * q @ k.swapaxes(2, 3)
    if p.softcap:
        scores = p.softcap * np.tanh(scores / p.softcap)
    away = np.arange(p.keys) - np.arange(p.queries)[:, None]
    scores = np.where((p.earliest <= away) & (away <= p.latest), scores, -np.inf)
    if mask is not None:
        scores = scores + mask
    most = scores.max(axis=3, keepdims=True)
    powers = np.exp(scores - np.where(np.isneginf(most), 0, most))
    with np.errstate(invalid="ignore"):
        weights = powers / powers.sum(axis=3, keepdims=True)
    y = (np.where(np.isneginf(most), 0, weights) if p.guarded else weights) @ v
    return y.swapaxes(1, 2) if p.swapped[3] else y


MAKERS: dict[str, Callable[[np.random.Generator], Iterator[Made]]] = {
    "reduce": _reduce,
    "quantize": _quantize,
    "qadd": _qadd,
    "gather": _gather,
    "normalize": _normalize,
    **{op: drawn_sequences.cases(op) for op in drawn_sequences.DRAWN},
    "attention": _attention,
}
