"""Products of eight-bit tensors as one step: a product, and what is known of its factors and of what follows
it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from engine.graph.plan import TensorSpec
from engine.ops._base import Kernel, Lowered, Refused, View
from kernels.ops._quantized import EIGHT_BITS, LARGEST, TOO_MANY
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from kernels.ops.qconv import QConv
from kernels.ops.qgemm import QGemm

Zero = str | np.ndarray | None
"""A zero point: a tensor that is worked out in a pass, or its value; None is 0."""


@dataclass(frozen=True)
class Whole:
    """A factor: an eight-bit tensor by name, its element type, its zero point, and its value where that is
    constant."""

    name: str
    dtype: str
    zero: Zero = None
    value: np.ndarray | None = None


@dataclass(frozen=True)
class Behind:
    """What becomes of a sum (kernels.ops._quantized): real = (sum + bias) · scale + shift, float64 of one
    element or one a channel. That is y in float32, or is divided by out_scale, rounded, moved by out_zero
    and held between low and high."""

    scale: np.ndarray
    bias: np.ndarray | None = None
    shift: np.ndarray | None = None
    to: str = "float32"
    out_scale: float = 1.0
    out_zero: int = 0
    low: int = 0
    high: int = 255


def within(to: str) -> tuple[int, int]:
    """The least and the largest number of an eight-bit type."""
    info = np.iinfo(to)
    return int(info.min), int(info.max)


def check_eight_bits(*dtypes: str) -> None:
    """Raises Refused for any other type."""
    for dtype in dtypes:
        if dtype not in EIGHT_BITS:
            raise Refused(
                f"it multiplies whole numbers of {dtype}, and {' and '.join(EIGHT_BITS)} are supported"
            )


def quantized(product: Kernel, x: Whole, weight: Whole, behind: Behind | None = None) -> Lowered:
    """A convolution or matrix product, as it is of floating-point numbers, of these whole numbers; without
    `behind` its sums. Raises Refused."""
    check_eight_bits(x.dtype, weight.dtype)
    own, output = product.params, product.output
    if not isinstance(own, Conv | Gemm):
        raise Refused("of eight-bit numbers windows have one or two axes, not three")
    if isinstance(own, Gemm) and own.trans_a:
        raise Refused("its first matrix is transposed, and of eight-bit numbers the second alone may be")
    bare = replace(own, dtype="float32", bias=False, activation=None)
    if isinstance(bare, Gemm):
        bare = replace(bare, alpha=1.0, beta=1.0, bias_stride_m=0, bias_stride_n=1)
    constants: dict[str, np.ndarray] = {}

    def held(name: str, value: np.ndarray) -> str:
        constants[f"{output}:{name}"] = np.ascontiguousarray(value)
        return f"{output}:{name}"

    channels = bare.m if isinstance(bare, Conv) else bare.n
    zeros = _zeros(weight, channels)
    if behind is not None:
        _check_sums(bare, weight, zeros)
    factor = weight.name
    if isinstance(bare, Gemm) and weight.value is not None and weight.value.ndim == 2 and not bare.trans_b:
        # Along k, as the rows of a lie.
        factor, bare = held("weight", weight.value.T), replace(bare, trans_b=True)
    names = [x.name, factor]
    for place, each, value in (("x_zero", x, x.zero), ("weight_zero", weight, zeros)):
        if isinstance(value, str):
            names.append(value)
        else:
            names.append(held(place, np.zeros(1, each.dtype) if value is None else value.reshape(-1)))
    several = isinstance(zeros, np.ndarray) and zeros.size > 1
    kind = QConv if isinstance(bare, Conv) else QGemm
    params = kind(bare, dtype=x.dtype, weight_dtype=weight.dtype, weight_zeros=channels if several else 1)  # type: ignore[arg-type]
    if behind is not None:
        bias = np.zeros(channels, np.int32) if behind.bias is None else behind.bias
        names.append(held("bias", _each(bias, channels, "bias")))
        names.append(held("scale", _each(behind.scale, channels, "scale")))
        if behind.shift is not None:
            names.append(held("shift", _each(behind.shift, channels, "bias")))
        params = replace(
            params,
            to=behind.to,
            shifted=behind.shift is not None,
            out_scale=behind.out_scale,
            out_zero=behind.out_zero,
            low=behind.low,
            high=behind.high,
        )
    specs = {name: TensorSpec(value.shape, value.dtype.name) for name, value in constants.items()}
    return Lowered((replace(product, params=params, inputs=tuple(names)),), specs, constants)


def rewritten(lowered: Lowered, x: Whole, weight: Whole, behind: Behind | None = None) -> Lowered:
    """As `quantized`, of the last of the kernels that a node became. Raises Refused."""
    *before, last = lowered.items
    if isinstance(last, View):
        raise Refused("it is no product")
    a, b = last.inputs[:2]  # which may be other tensors than the node's, made of them
    known = weight.value if b == weight.name else None
    product = quantized(last, replace(x, name=a), replace(weight, name=b, value=known), behind)
    to = "int32" if behind is None else behind.to
    specs = {**lowered.specs, **product.specs}
    specs[last.output] = replace(specs[last.output], dtype=to)
    return Lowered((*before, *product.items), specs, {**lowered.constants, **product.constants})


def _zeros(weight: Whole, channels: int) -> Zero:
    """One zero point, or one a channel. Raises Refused."""
    zero = weight.zero
    if not isinstance(zero, np.ndarray) or zero.size == 1:
        return zero
    if zero.size != channels or zero.ndim != 1:
        raise Refused(f"its weights' zero points of shape {zero.shape} do not fit {channels} channels")
    return zero.reshape(-1)[:1] if (zero == zero.reshape(-1)[0]).all() else zero


def _each(values: np.ndarray, channels: int, what: str) -> np.ndarray:
    if values.size not in (1, channels):
        raise Refused(f"its {what} of shape {values.shape} does not fit {channels} channels")
    return np.broadcast_to(values.reshape(-1), (channels,))


def _check_sums(product: Conv | Gemm, weight: Whole, zeros: Zero) -> None:
    """Raises Refused where a sum may leave 32 bits; where these are the answer ONNX allows that."""
    terms = product.k if isinstance(product, Gemm) else product.weights // product.m
    if terms <= TOO_MANY:
        return
    if weight.value is not None and weight.value.ndim > 1 and not isinstance(zeros, str):
        of_channels = weight.value.astype(np.int64)
        if isinstance(product, Gemm) and not product.trans_b:
            of_channels = of_channels.T
        of_channels = of_channels.reshape(len(of_channels), -1)
        less = 0 if zeros is None else zeros.astype(np.int64).reshape(-1, 1)
        if int(np.abs(of_channels - less).sum(axis=1).max()) * LARGEST < 2**31:
            return
    raise Refused(f"a sum of its {terms:,} products may be beyond 32 bits")


def scale_of(product_of: tuple[np.ndarray, ...]) -> np.ndarray:
    """The product of scales in float64, where the product of two float32 is exact."""
    scale_product = np.ones(1)
    for scale in product_of:
        scale_product = scale_product * scale.astype(np.float64).reshape(-1)
    return scale_product
