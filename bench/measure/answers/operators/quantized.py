"""Operators of whole numbers for the oracle: sums without rounding, everything else in float64.

`onnx.reference` multiplies and divides the scales first, which moves a tie a little away from the tie, and it
lacks the operators of com.microsoft. Here the real number is computed first and rounded once: q = round(real
/ scale) + zero point, with ties to the even neighbour, as QuantizeLinear says.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.measure.answers import ties
from bench.measure.answers.operators.mended import AveragePool, Conv, DequantizeLinear, Mended
from engine.ort.fused_conv import DOMAIN

Array = np.ndarray


def _less(x: Array, zero: Array | None, axis: int | None = None) -> Array:
    """x − zero in float64, with a zero point for all, or for each place along an axis."""
    wide = x.astype(np.float64)
    return wide if zero is None else wide - _along(zero.astype(np.float64), x.ndim, axis)


def _along(values: Array, rank: int, axis: int | None) -> Array:
    if values.size == 1 or axis is None:
        return values.reshape(()) if values.size == 1 else values
    column = [1] * rank
    column[axis] = -1
    return values.reshape(column)


def _to_eight_bits(of: Mended, real: Array, scale: Array, zero: Array | None, like: Array) -> Array:
    """The answer of a node, `of`, which may be told to round ties the other way (`ties`)."""
    dtype = like.dtype if zero is None else zero.dtype
    held = np.iinfo(dtype)
    steps = real / scale.reshape(())
    if near := of._get("near"):
        steps = ties.other_side(steps, near, ties.drawn(of.onnx_node.output[0], of._get("draw"), steps.shape))
    q = np.rint(steps) + (0.0 if zero is None else zero.astype(np.float64).reshape(()))
    return np.clip(q, held.min, held.max).astype(dtype)


def _wrapped(sums: Array) -> Array:
    """ "The accumulation may overflow if and only if in 32 bits"."""
    return sums.astype(np.int64).astype(np.int32)


class ConvInteger(Conv):
    """ "The integer convolution operator consumes an input tensor, its zero-point, a filter, and its
    zero-point, and computes the output": padding is the zero point."""

    def _run(self, x, w, x_zero=None, w_zero=None, **_):  # type: ignore[override]
        (sums,) = super()._run(_less(x, x_zero), _less(w, w_zero, 0))
        return (_wrapped(sums),)


class QLinearConv(Conv):
    """ "B … must be quantized using scale = x_scale * w_scale and zero_point = 0"."""

    def _run(self, x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, b=None, **_):  # type: ignore[override]
        (sums,) = super()._run(_less(x, x_zero), _less(w, w_zero, 0), None if b is None else b.astype(float))
        scale = _along(x_scale.astype(float) * w_scale.astype(float), x.ndim, 1)
        return (_to_eight_bits(self, sums * scale, y_scale.astype(float), y_zero, x),)


class MatMulInteger(Mended):
    """ "Matrix product that behaves like numpy.matmul", of a with a zero point for all or one a row, and b
    with one for all or one a column."""

    def _run(self, a, b, a_zero=None, b_zero=None, **_):
        return (_wrapped(_less(a, a_zero, a.ndim - 2) @ _less(b, b_zero, b.ndim - 1)),)


class QLinearMatMul(Mended):
    """As MatMulInteger, with scales alike."""

    def _run(self, a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero, **_):
        sums = _less(a, a_zero, a.ndim - 2) @ _less(b, b_zero, b.ndim - 1)
        rows, columns = (
            _along(scale.astype(float), sums.ndim, axis)
            for scale, axis in ((a_scale, sums.ndim - 2), (b_scale, sums.ndim - 1))
        )
        return (_to_eight_bits(self, sums * (rows * columns), y_scale.astype(float), y_zero, a),)


class _Microsoft(Mended):
    op_domain = DOMAIN


class QGemm(_Microsoft):
    """ "Quantized Gemm": y = alpha · a · b + c, c in int32 by alpha · a_scale · b_scale; float32 where y has
    no scale."""

    def _run(self, a, a_scale, a_zero, b, b_scale, b_zero, c=None, y_scale=None, y_zero=None, **_):
        a, b = _less(a, a_zero), _less(b, b_zero, 0 if self._get("transB", 0) else 1)
        sums = (a.T if self._get("transA", 0) else a) @ (b.T if self._get("transB", 0) else b)
        sums = sums if c is None else sums + c.astype(float)
        real = sums * (self._get("alpha", 1.0) * a_scale.astype(float) * b_scale.astype(float))
        if y_scale is None:
            return (real,)
        return (_to_eight_bits(self, real, y_scale.astype(float), y_zero, y_zero),)


class _Arithmetic(_Microsoft):
    """ "C = (A_scale * (A - A_zero_point) op B_scale * (B - B_zero_point))/C_scale + C_zero_point"."""

    function: Any = None

    def _run(self, a, a_scale, a_zero, b, b_scale, b_zero, c_scale, c_zero=None, **_):
        left = _less(a, a_zero) * a_scale.astype(float).reshape(())
        right = _less(b, b_zero) * b_scale.astype(float).reshape(())
        return (_to_eight_bits(self, type(self).function(left, right), c_scale.astype(float), c_zero, a),)


class QLinearAdd(_Arithmetic):
    """op: +"""

    function = np.add


class QLinearMul(_Arithmetic):
    """op: ·"""

    function = np.multiply


class _Function(_Microsoft):
    """A function of x between its own scale and y's."""

    def _real(self, x: Array) -> Array:
        raise NotImplementedError

    def _run(self, x, x_scale, x_zero, y_scale, y_zero=None, **_):
        real = self._real(_less(x, x_zero) * x_scale.astype(float).reshape(()))
        return (_to_eight_bits(self, real, y_scale.astype(float), y_zero, x),)


class QLinearGlobalAveragePool(_Function):
    """The mean over the spatial axes, "channels_last" or not."""

    def _real(self, x):
        first = 1 if self._get("channels_last", 0) else 2
        return x.mean(axis=tuple(range(first, first + x.ndim - 2)), keepdims=True)


class QLinearLeakyRelu(_Function):
    """f(x) = x where x ≥ 0, else alpha · x"""

    def _real(self, x):
        return np.where(x < 0, self._get("alpha", 0.01) * x, x)


class QLinearSigmoid(_Function):
    """f(x) = 1 / (1 + exp(−x))"""

    def _real(self, x):
        return np.exp(-np.logaddexp(0.0, -x))


class QLinearSoftmax(_Function):
    """Softmax of the opset that its attribute names: along the axis, or below 13 along all from it on."""

    def _real(self, x):
        later = self._get("opset", 13) >= 13
        axis = self._get("axis", -1 if later else 1) % x.ndim
        axes = (axis,) if later else tuple(range(axis, x.ndim))
        powers = np.exp(x - x.max(axis=axes, keepdims=True))
        return powers / powers.sum(axis=axes, keepdims=True)


class QLinearAveragePool(_Function):
    """As AveragePool; its padding, where it counts, is 0, which is the zero point."""

    def _real(self, x):
        return AveragePool._run(self, x)[0]  # type: ignore[arg-type]

    _geometry, _taps = AveragePool._geometry, AveragePool._taps


class QLinearConcat(_Microsoft):
    """y_scale, y_zero, then x, its scale and its zero point of each: concatenated along `axis`."""

    def _run(self, y_scale, y_zero, *given, **_):
        parts = [
            _less(x, zero) * scale.astype(float).reshape(())
            for x, scale, zero in zip(given[::3], given[1::3], given[2::3], strict=True)
        ]
        whole = np.concatenate(parts, axis=self._get("axis"))
        return (_to_eight_bits(self, whole, y_scale.astype(float), y_zero, y_zero),)


class MatMulNBits(_Microsoft):
    """ "Matrix multiplication with right hand side matrix (B) being pre-packed and quantized int4 data blob":
    for each of N columns blocks of block_size weights, the lower bits of a byte first, with a scale and a
    zero point each, 2^(bits − 1) where none is given."""

    def _run(self, a, packed, scales, zeros=None, order=None, bias=None, **_):
        bits, inner, columns = (self._get(name) for name in ("bits", "K", "N"))
        if order is not None or bits not in (4, 8):
            raise NotImplementedError("MatMulNBits of other than 4 or 8 bits, or with an order of its groups")
        blocks = -(-inner // self._get("block_size"))
        values = self._apart(packed.reshape(columns, -1), bits).reshape(columns, blocks, -1)
        if zeros is None:
            zeros = np.full((columns, blocks), 2.0 ** (bits - 1))
        elif zeros.dtype == np.uint8:
            zeros = self._apart(zeros.reshape(columns, -1), bits)[:, :blocks]
        real = (values - zeros.reshape(columns, blocks, 1)) * scales.reshape(columns, blocks, 1)
        y = a @ real.reshape(columns, -1)[:, :inner].T
        return (y if bias is None else y + bias,)

    @staticmethod
    def _apart(packed: Array, bits: int) -> Array:
        places = np.arange(packed.shape[1] * 8 // bits)
        return ((packed[:, places * bits // 8] >> (places * bits % 8)) & (2**bits - 1)).astype(np.float64)


class DequantizeLinearOfMicrosoft(DequantizeLinear):
    """As ONNX's own."""

    op_domain = DOMAIN


def _named(made: type, name: str) -> type:
    return type(name, (made,), {})


class QuantizeLinear(_Microsoft):
    """As ONNX's own, by tensor or by axis."""

    def _run(self, x, scale, zero=None, **_):
        axis = self._get("axis", 1)
        dtype = np.dtype(np.uint8) if zero is None else zero.dtype
        held = np.iinfo(dtype)
        q = np.rint(x / _along(scale.astype(float), x.ndim, axis))
        q = q if zero is None else q + _along(zero.astype(float), x.ndim, axis)
        return (np.clip(q, held.min, held.max).astype(dtype),)


OPERATORS = (
    ConvInteger,
    QLinearConv,
    MatMulInteger,
    MatMulNBits,
    QLinearMatMul,
    QGemm,
    QLinearAdd,
    QLinearMul,
    QLinearAveragePool,
    QLinearGlobalAveragePool,
    QLinearSoftmax,
    QLinearLeakyRelu,
    QLinearSigmoid,
    QLinearConcat,
    _named(DequantizeLinearOfMicrosoft, "DequantizeLinear"),
    QuantizeLinear,
)
