"""What the inputs of each operator are drawn from, so that its answers are numbers worth comparing."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from kernels.ops import EXPONENTS, Params
from kernels.ops._quantized import EIGHT_BITS, Quantized
from kernels.ops.attention import Attention
from kernels.ops.binary import Binary
from kernels.ops.cast import Cast
from kernels.ops.compare import Compare
from kernels.ops.conv import Conv
from kernels.ops.conv3d import Conv3d
from kernels.ops.conv_pool import ConvPool
from kernels.ops.conv_transpose import ConvTranspose
from kernels.ops.cumulate import Cumulate
from kernels.ops.gather import Gather
from kernels.ops.gemm import Gemm
from kernels.ops.grid_sample import GridSample
from kernels.ops.lrn_pool import LrnPool
from kernels.ops.normalize import Normalize
from kernels.ops.pool import Pool
from kernels.ops.qadd import QAdd
from kernels.ops.quantize import Quantize
from kernels.ops.recurrent import Recurrent
from kernels.ops.reduce import Reduce
from kernels.ops.scatter import Scatter
from kernels.ops.softmax import Softmax
from kernels.ops.top_k import TopK
from kernels.ops.unary import Unary

LARGE = np.float32(100)  # exp(89) is float32's infinity


@singledispatch
def drawn(p: Params, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """What is given to the input number `place`, of its shape, out of normal values: these themselves for an
    operator that says nothing else here."""
    return values


@drawn.register
def _unary(p: Unary, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Some are so large that an exponential overflows for whoever does not see to it; where the function has
    no value for all numbers, or none that float32 holds, those that it has one for."""
    flat = values.reshape(-1)
    if p.kind in ("asin", "acos", "atanh"):
        values[...] = np.tanh(values)
    elif p.kind in ("log", "sqrt", "acosh", "reciprocal", "pow"):
        values[...] = np.abs(values) + np.float32(1 if p.kind == "acosh" else 0.1)
    elif p.kind in ("exp", "sinh", "cosh"):
        flat[3::4] *= 8
    elif p.kind == "tan":
        values[...] = np.arctan(values)
    elif np.dtype(p.dtype).kind == "f":
        flat[3::4] *= LARGE
    return values


@drawn.register
def _binary(p: Binary, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """What divides is bounded away from 0, and what is raised to a power is above it."""
    if p.kind in ("div", "mod", "fmod") and place == 1:
        values += np.copysign(np.float32(1), values)
    if p.kind == "pow" and place == 0:
        values[...] = np.abs(values) + np.float32(0.1)
    return values


@drawn.register
def _compare(p: Compare, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Halves of whole numbers, of which many are equal."""
    return np.rint(2 * values) / np.float32(2)


@drawn.register
def _cast(p: Cast, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Normal values; positive where a type has no sign."""
    unsigned = any(name == EXPONENTS or name.startswith("uint") for name in (p.dtype, p.to))
    return np.abs(values) if unsigned else values


_STEP = np.float32(2**-7)


@drawn.register
def _quantize(p: Quantize, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Scales that are powers of two and values in whole steps: quotients are exact, many of them halves, and
    some are beyond what the type holds."""
    if place == 0:
        return np.rint(values / _STEP) * _STEP if p.dtype == "float32" else values
    if place == 1:
        return np.exp2(np.clip(np.rint(values), -1, 1) - 6).astype(np.float32)
    low, high = p.limits
    return np.zeros_like(values) if p.through == "int32" else np.rint(10 * values + (low + high + 1) // 2)


@drawn.register
def _qadd(p: QAdd, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Every number that eight bits hold."""
    held = np.iinfo(p.input_dtypes[place])
    return random.integers(held.min, held.max + 1, values.shape)


@drawn.register
def _pool(p: Pool | LrnPool, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Of eight bits every number that these hold."""
    if p.dtype not in EIGHT_BITS:
        return values
    held = np.iinfo(p.dtype)
    return random.integers(held.min, held.max + 1, values.shape)


@drawn.register
def _gather(p: Gather, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Places anywhere on the axis, some of them counted from its end."""
    return random.integers(-p.axis, p.axis, values.shape) if place == 1 else values


@drawn.register
def _scatter(p: Scatter, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Places anywhere, some of them counted from the end; none twice where that would leave it open what is
    put there."""
    if place != 1:
        return values
    if p.kind == "put" and p.count <= p.size:
        chosen = random.permutation(p.size)[: p.count]
        return chosen - p.size * random.integers(0, 2, p.count)
    return random.integers(-p.size, p.size, values.shape)


@drawn.register
def _softmax(p: Softmax, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Some rows are so large that an exponential overflows for whoever does not see to it."""
    values += LARGE * random.standard_normal((p.outer, 1, p.inner), np.float32)
    return values


@drawn.register
def _normalize(p: Normalize, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Rows whose mean is not 0, so that it matters."""
    return values + np.float32(1) if place == 0 else values


@drawn.register
def _reduce(p: Reduce, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Of a logarithm positive, of a product near 1, of exponentials some rows so large that one overflows."""
    if p.kind == "logsum":
        return np.abs(values)
    if p.kind == "prod":
        return np.float32(1) + values / np.sqrt(np.float32(p.axis + 4))
    if p.kind == "logsumexp":
        values += LARGE * random.standard_normal((p.outer, 1, p.inner), np.float32)
    return values


@drawn.register
def _top_k(p: TopK, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Values of which some are equal."""
    return np.rint(values * 16) / np.float32(8)


@drawn.register
def _cumulate(p: Cumulate, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Factors round 1, so that products of many stay numbers."""
    if p.kind == "prod" and np.dtype(p.dtype).kind == "f":
        return np.exp2(values / np.float32(np.sqrt(p.axis + 4)))
    return values


@drawn.register
def _conv(p: Conv, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Weights are such that outputs are of order 1."""
    return values / np.sqrt(np.float32(p.c // p.group * p.kh * p.kw)) if place == 1 else values


@drawn.register
def _conv_pool(p: ConvPool, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    return drawn(p.conv, place, values, random)


@drawn.register
def _conv3d(p: Conv3d, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Weights are such that outputs are of order 1."""
    return values / np.sqrt(np.float32(p.depth)) if place == 1 else values


@drawn.register
def _conv_transpose(
    p: ConvTranspose, place: int, values: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """Weights are such that outputs are of order 1."""
    taps = max(1, p.kh // p.stride_h) * max(1, p.kw // p.stride_w)
    return values / np.sqrt(np.float32(p.c // p.group * taps)) if place == 1 else values


@drawn.register
def _grid_sample(p: GridSample, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Places within and somewhat beyond the images; none so near to where two elements are as near that one
    rounding decides."""
    if place == 0:
        return values
    places = np.clip(values, -1.6, 1.6)
    if p.mode != "nearest":
        return places
    for axis in range(p.dims):
        size = p.size[-1 - axis]
        scale, shift = ((size - 1) / 2, (size - 1) / 2) if p.corners else (size / 2, (size - 1) / 2)
        at = places[..., axis] * scale + shift
        near = np.rint(at) + np.clip(at - np.rint(at), -0.4, 0.4)
        places[..., axis] = (near - shift) / scale if scale else places[..., axis]
    return places


@drawn.register
def _gemm(p: Gemm, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Weights are such that outputs are of order 1."""
    return values / np.sqrt(np.float32(p.k)) if place == 1 else values


@drawn.register
def _attention(p: Attention, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Scores of which a few have most of the weight; by the mask those of some queries are so large that an
    exponential overflows for whoever does not see to it."""
    if place == 0:
        larger = np.float32(3 / (max(abs(p.scale), 1e-6) * np.sqrt(p.depth)))
        if not p.packed:
            return values * larger
        queries = np.arange(p.width) < p.heads * p.depth
        return np.where(queries, values * larger, values)
    if place == (1 if p.packed else 3):
        return values + LARGE * (random.random((*p.mask[:3], 1)) < 0.3).astype(np.float32)
    return values


@drawn.register
def _recurrent(p: Recurrent, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Weights that keep the states of order 1, and sequences of all lengths."""
    if place == 1:
        return values / np.float32(np.sqrt(p.hidden))
    if place == 3:
        return random.integers(1, p.steps + 1, values.shape)
    return values


TYPICAL = 60.0  # of an answer in eight bits: some are beyond what these hold, most are not


@drawn.register
def _quantized(p: Quantized, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Every number that eight bits hold; scales such that most answers are held in eight bits, too, and not a
    power of two, so that ties are rare. Where the answer's scale is one, the last channel is x itself,
    halved: every odd number is a tie, in float32, too; and x's zero point lies about the middle, so that
    numbers on both sides of it are held."""
    made = _quantized_at(p, place, values, random)
    if p.to not in EIGHT_BITS or np.frexp(p.out_scale)[0] != 0.5:
        return made
    if place == 2:
        middle = 128 if p.dtype == "uint8" else 0
        return middle + (made - middle) // 4
    if place != 0:
        of_last = _last_channel(p, place, made)
        of_last[...] = (0, COPIED, 0, COPIED, 0, p.out_scale / 2, 0)[place]
        if place == 1:
            of_last[0] = COPIED + 1
    return made


# The zero point of a channel that is x itself: all of its weights but the first, which is one more.
COPIED = 3


def _last_channel(p: Quantized, place: int, made: np.ndarray) -> np.ndarray:
    """Of an array what belongs to it, the terms of the weights before all else: a view."""
    if place != 1:
        return made.reshape(-1)[-1:]
    weights = made.reshape(p.input_shapes[1])
    if isinstance(p.product, Gemm):
        return (weights[:, -1] if p.product.trans_b else weights[:, :, -1]).T
    return weights[-1].reshape(-1)


def _quantized_at(p: Quantized, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    if p.input_dtypes[place] in EIGHT_BITS:
        held = np.iinfo(p.input_dtypes[place])
        return random.integers(held.min, held.max + 1, values.shape)
    spread = 100.0**2 * np.sqrt(p.terms)  # of a sum
    if p.input_dtypes[place] == "int32":
        return np.rint(0.5 * spread * np.clip(values, -3, 3)).astype(np.int32)
    wanted = (TYPICAL if p.to in EIGHT_BITS else 1.0) * p.out_scale
    if place == 5:
        return (wanted / spread * np.exp(0.3 * np.clip(values, -3, 3))).astype(np.float32).astype(np.float64)
    return np.asarray(0.3 * wanted * values, np.float32).astype(np.float64)
