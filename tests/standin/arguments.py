"""A kernel's scalar arguments read back into the operator's parameters: their scalars() turned round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.ops import ITEMSIZE, MAX_RANK, Params, codes
from kernels.ops.attention import Attention
from kernels.ops.binary import Binary
from kernels.ops.cast import Cast
from kernels.ops.compare import Compare
from kernels.ops.concat import Concat
from kernels.ops.conv import Conv
from kernels.ops.conv3d import Conv3d
from kernels.ops.conv_pool import ConvPool
from kernels.ops.conv_transpose import ConvTranspose
from kernels.ops.cumulate import Cumulate
from kernels.ops.gather import Gather
from kernels.ops.gemm import Gemm
from kernels.ops.grid_sample import GridSample
from kernels.ops.lrn import Lrn
from kernels.ops.lrn_pool import LrnPool
from kernels.ops.multiply_add import MultiplyAdd
from kernels.ops.normalize import Normalize
from kernels.ops.pad import Pad
from kernels.ops.pool import Pool
from kernels.ops.pool_index import PoolIndex
from kernels.ops.qadd import QAdd
from kernels.ops.qconv import QConv
from kernels.ops.qgemm import QGemm
from kernels.ops.quantize import Quantize
from kernels.ops.recurrent import Recurrent
from kernels.ops.reduce import Reduce
from kernels.ops.resize import Place, Resize
from kernels.ops.scatter import Scatter
from kernels.ops.softmax import Softmax
from kernels.ops.top_k import TopK
from kernels.ops.transpose import Transpose
from kernels.ops.unary import Unary
from kernels.ops.where import Where
from kernels.tasks import record_of

_CONV, _POOLING = 16, 18  # scalars of a convolution without its activation, and of a pool


def params(op: str, scalars: Sequence[Any], bias: bool) -> Params:
    """bias: whether the optional input was given, of products of eight-bit numbers the shift."""
    if op not in _READ:
        return record_of(op)(*map(int, scalars))  # a task's are its sizes
    return _READ[op](list(scalars), bias)


def _word(group: str, number: int) -> Any:
    """The word behind a code; None for "none"."""
    prefix = f"{group}_"
    for name, value in codes().items():
        if name.startswith(prefix) and value == number:
            word = name.removeprefix(prefix).lower()
            return None if word == "none" else word
    raise ValueError(f"{number} is no code of {group}")


def _conv(given: list[Any], bias: bool) -> Conv:
    n, c, h, w, m, kh, kw, out_h, out_w, stride_h, stride_w, top, left, dilation_h, dilation_w, group = given[
        :_CONV
    ]
    return Conv(
        n, c, h, w, m, kh, kw, out_h, out_w, stride_h, stride_w, top, left,
        # Kernels are not told what lies beyond the last row and column: they see it by what they count.
        max(0, (out_h - 1) * stride_h + (kh - 1) * dilation_h + 1 - h - top),
        max(0, (out_w - 1) * stride_w + (kw - 1) * dilation_w + 1 - w - left),
        dilation_h, dilation_w, group, bias, _word("ACTIVATION", given[_CONV]),
    )  # fmt: skip


def _conv_transpose(given: list[Any], bias: bool) -> ConvTranspose:
    return ConvTranspose(*given, bias=bias)


def _conv3d(given: list[Any], bias: bool) -> Conv3d:
    n, c, m, group = given[:4]
    size, kernel, *others = (tuple(given[at : at + 3]) for at in range(4, 22, 3))
    return Conv3d(n, c, size, m, kernel, *others, group=group, bias=bias)  # type: ignore[arg-type]


def _gemm(given: list[Any], bias: bool) -> Gemm:
    m, n, k, trans_a, trans_b, alpha, beta, bias_m, bias_n, stride_a, stride_b, batch, after = given
    return Gemm(
        m, n, k, bool(trans_a), bool(trans_b), alpha, beta, bias, bias_m, bias_n, batch, stride_a, stride_b,
        _word("ACTIVATION", after),
    )  # fmt: skip


def _pooling(given: list[Any]) -> dict[str, Any]:
    names = "kind n c h w kh kw out_h out_w stride_h stride_w pad_top pad_left pad_bottom pad_right"
    fields = dict(zip([*names.split(), "dilation_h", "dilation_w"], given, strict=False))
    return fields | {"kind": _word("POOL", given[0]), "count_include_pad": bool(given[_POOLING - 1])}


def _pool(given: list[Any], bias: bool) -> Pool:
    return Pool(**_pooling(given), activation=_word("ACTIVATION", given[_POOLING]))


def _pool_index(given: list[Any], bias: bool) -> PoolIndex:
    return PoolIndex(Pool(**_pooling(given)), bool(given[_POOLING]))


def _conv_pool(given: list[Any], bias: bool) -> ConvPool:
    conv = _conv(given[: _CONV + 1], bias)
    kind, *window, count_pad, after = given[_CONV + 1 :]
    sizes = [conv.n, conv.m, conv.out_h, conv.out_w]
    return ConvPool(conv, _pool([kind, *sizes, *window, count_pad, after], False))


def _lrn(given: list[Any], bias: bool) -> Lrn:
    n, c, inner, size, alpha, beta, k = given
    return Lrn(n, c, inner, size, alpha * size, beta, k)


def _lrn_pool(given: list[Any], bias: bool) -> LrnPool:
    size, _, beta, k, alpha, *quantized = given[_POOLING:]
    names = ("x_scale", "out_scale", "x_zero", "out_zero")
    of_bytes = dict(zip(names, quantized, strict=True))
    alpha = float(str(np.float32(alpha)))  # as the model has it, in decimal: the scale is made of that
    return LrnPool(size=size, alpha=alpha, beta=beta, bias=k, **of_bytes, **_pooling(given))


def _softmax(given: list[Any], bias: bool) -> Softmax:
    outer, axis, inner, log = given
    return Softmax(outer, axis, inner, bool(log))


def _unary(given: list[Any], bias: bool) -> Unary:
    size, kind, alpha, beta = given
    return Unary(_word("UNARY", kind), size, alpha=alpha, beta=beta)


def _binary(given: list[Any], bias: bool) -> Binary:
    dims, a, b = _axes(given[1:], 3)
    return Binary(_word("BINARY", given[-2]), dims, a, b, _word("ACTIVATION", given[-1]))


def _compare(given: list[Any], bias: bool) -> Compare:
    dims, a, b = _axes(given[1:], 3)
    return Compare(_word("COMPARE", given[-1]), dims, a, b)


def _where(given: list[Any], bias: bool) -> Where:
    return Where(*_axes(given[1:], 4))


def _multiply_add(given: list[Any], bias: bool) -> MultiplyAdd:
    return MultiplyAdd(*_axes(given[1:], 4), _word("ACTIVATION", given[-1]))


def _concat(given: list[Any], bias: bool) -> Concat:
    outer, _, *widths, itemsize = given
    dtype = next(name for name, size in ITEMSIZE.items() if size == itemsize)
    return Concat(outer, tuple(width for width in widths if width), dtype)


def _transpose(given: list[Any], bias: bool) -> Transpose:
    dims, steps = _axes(given[1:], 2)
    axes = [axis for axis in range(MAX_RANK) if dims[axis] != 1] or [0]
    order = sorted(axes, key=lambda axis: -steps[axis])
    return Transpose(tuple(dims[axis] for axis in order), tuple(order.index(axis) for axis in axes))


def _pad(given: list[Any], bias: bool) -> Pad:
    rows = _axes(given[1:], 4)
    axes = [axis for axis in range(MAX_RANK) if rows[3][axis]]  # the others were filled up
    out, sizes, begin = (tuple(row[axis] for axis in axes) for row in rows[:3])
    end = tuple(o - s - b for o, s, b in zip(out, sizes, begin, strict=True))
    return Pad(sizes, begin, end, _word("PAD", given[-2]), given[-1])


def _cast(given: list[Any], bias: bool) -> Cast:
    types = _word("DTYPE", given[1]), _word("DTYPE", given[2])
    return Cast(given[0], *types, bool(given[3]), _word("TOWARDS", given[4]))


@dataclass(frozen=True)
class _Placed(Resize):
    """Resizing by the places themselves, which is what kernels are told."""

    at: tuple[Place, Place] = ()  # type: ignore[assignment]

    def places(self) -> tuple[Place, Place]:
        return self.at


def _resize(given: list[Any], bias: bool) -> Resize:
    outer, h, w, inner, out_h, out_w, mode, rounding, outside, crops = given[:10]
    return _Placed(
        outer, h, w, out_h, out_w, 1.0, 1.0, inner, _word("RESIZE", mode),
        "tf_crop_and_resize" if crops else "half_pixel", _word("ROUNDING", rounding),
        cubic_a=given[18], exclude_outside=bool(outside), value=given[19],
        at=(Place(*given[10:14]), Place(*given[14:18])),
    )  # fmt: skip


def _reduce(given: list[Any], bias: bool) -> Reduce:
    outer, axis, inner, kind, last = given
    return Reduce(_word("REDUCE", kind), outer, axis, inner, bool(last))


def _normalize(given: list[Any], affine: bool) -> Normalize:
    count, length, inner, groups, centred, gives, epsilon = given
    word = _word("NORMALIZE", gives)
    return Normalize(count, length, inner, groups, affine, bool(centred), epsilon, word)


def _attention(given: list[Any], masked: bool) -> Attention:
    """The mask's shape by its strides: where an axis takes no step there is one for all."""
    batch, heads, kv_heads, queries, keys, depth, depth_v, scale, softcap = given[:9]
    earliest, latest, guarded, ways, *strides = given[9:]
    whole = (batch, heads, queries, keys)
    mask = tuple(size if step else 1 for size, step in zip(whole, strides, strict=True)) if masked else ()
    return Attention(
        batch, heads, queries, keys, depth, depth_v, kv_heads, scale, softcap, earliest, latest,
        bool(guarded), mask, tuple(bool(ways >> place & 1) for place in range(4)), packed=bool(ways >> 4),
    )  # fmt: skip


def _gather(given: list[Any], bias: bool) -> Gather:
    outer, axis, count, inner, wide = given
    return Gather(outer, axis, inner, count, "int64" if wide else "int32")


def _quantize(given: list[Any], bias: bool) -> Quantize:
    size, channels, inner, source, target, low, _ = given
    through = "uint8" if low == 0 else "int8" if low == -128 else "int32"
    outer = size // (channels * inner)
    return Quantize(outer, channels, inner, through, _word("DTYPE", target), _word("DTYPE", source))


def _scatter(given: list[Any], bias: bool) -> Scatter:
    size, inner, count, kind = given
    return Scatter(_word("SCATTER", kind), size, inner, count)


def _cumulate(given: list[Any], bias: bool) -> Cumulate:
    outer, axis, inner, kind, exclusive, reverse = given
    return Cumulate(_word("CUMULATE", kind), outer, axis, inner, bool(exclusive), bool(reverse))


def _top_k(given: list[Any], bias: bool) -> TopK:
    outer, axis, inner, k, largest = given
    return TopK(outer, axis, inner, k, bool(largest))


def _grid_sample(given: list[Any], bias: bool) -> GridSample:
    n, c = given[:2]
    size, out = tuple(given[2:5]), tuple(given[5:8])
    dims, mode, padding, corners = given[8:]
    return GridSample(n, c, size, out, dims, _word("GRID", mode), _word("BEYOND", padding), bool(corners))


def _recurrent(given: list[Any], bias: bool) -> Recurrent:
    steps, n, hidden, kind, direction, linear, coupled, clip, *functions = given
    words = (_word("GATE", function) for function in functions)
    return Recurrent(
        _word("RECURRENT", kind), steps, n, hidden, _word("DIRECTION", direction), bool(linear),
        bool(coupled), clip, *words,
    )  # fmt: skip


def _quantized(given: list[Any], shifted: bool) -> dict[str, Any]:
    source, weight, zeros, to, out_scale, out_zero, low, high = given
    return {
        "dtype": _word("DTYPE", source), "weight_dtype": _word("DTYPE", weight), "weight_zeros": zeros,
        "to": _word("DTYPE", to), "shifted": shifted, "out_scale": out_scale, "out_zero": out_zero,
        "low": low, "high": high,
    }  # fmt: skip


def _qadd(given: list[Any], bias: bool) -> QAdd:
    size, *types, a_scale, b_scale, out_scale, a_zero, b_zero, out_zero, low, high = given
    return QAdd(
        size, a_scale, a_zero, b_scale, b_zero, out_scale, out_zero, low, high,
        *(_word("DTYPE", each) for each in types),
    )  # fmt: skip


def _qconv(given: list[Any], shifted: bool) -> QConv:
    return QConv(_conv([*given[:_CONV], 0], False), **_quantized(given[_CONV:], shifted))


def _qgemm(given: list[Any], shifted: bool) -> QGemm:
    m, n, k, trans_b, batch, stride_a, stride_b = given[:7]
    gemm = Gemm(m, n, k, trans_b=bool(trans_b), batch=batch, stride_a=stride_a, stride_b=stride_b)
    return QGemm(gemm, **_quantized(given[7:], shifted))


def _axes(given: list[Any], rows: int) -> list[tuple[int, ...]]:
    return [tuple(given[row * MAX_RANK : (row + 1) * MAX_RANK]) for row in range(rows)]


_READ: dict[str, Callable[[list[Any], bool], Params]] = {
    "conv": _conv,
    "gemm": _gemm,
    "pool": _pool,
    "conv_pool": _conv_pool,
    "pool_index": _pool_index,
    "conv3d": _conv3d,
    "conv_transpose": _conv_transpose,
    "lrn": _lrn,
    "lrn_pool": _lrn_pool,
    "softmax": _softmax,
    "unary": _unary,
    "binary": _binary,
    "compare": _compare,
    "where": _where,
    "concat": _concat,
    "multiply_add": _multiply_add,
    "transpose": _transpose,
    "pad": _pad,
    "cast": _cast,
    "resize": _resize,
    "reduce": _reduce,
    "quantize": _quantize,
    "qadd": _qadd,
    "qconv": _qconv,
    "qgemm": _qgemm,
    "gather": _gather,
    "normalize": _normalize,
    "scatter": _scatter,
    "cumulate": _cumulate,
    "top_k": _top_k,
    "grid_sample": _grid_sample,
    "recurrent": _recurrent,
    "attention": _attention,
}
