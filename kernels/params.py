"""What a kernel is told: one frozen record an operator, the same for every device and every rung.

The engine lowers ONNX nodes to these (auto_pad resolved, shapes static, batch fixed); rungs read them and
nothing else. Tensors are dense, row-major (C order). `flops` counts a multiply-add as two; `nbytes` is the
least traffic possible: every input and output once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import ClassVar

from kernels.errors import KernelError

# What a kernel computes in: strict float32; 3xTF32 on tensor cores, as exact; TF32; float16, summed in
# float32.
PRECISIONS = ("fp32", "fp32-tc", "tf32", "fp16")
ACTIVATIONS = ("relu", "tanh", "sigmoid")
UNARY_KINDS = ("relu", "tanh", "sigmoid", "identity")
BINARY_KINDS = ("add", "sub", "mul", "div")
PAD_MODES = ("constant", "reflect", "edge")
ITEMSIZE = {
    "float32": 4,
    "float16": 2,
    "float64": 8,
    "int32": 4,
    "int64": 8,
    "uint8": 1,
    "int8": 1,
    "bool": 1,
}


@dataclass(frozen=True)
class Conv:
    """2-D convolution (cross-correlation), y = activation(x ∗ w + bias).

    Tensors in order: x (n, c, h, w), weight (m, c // group, kh, kw), bias (m,) if `bias`; y (n, m, out_h,
    out_w).
    """

    op: ClassVar[str] = "conv"
    n: int
    c: int
    h: int
    w: int
    m: int
    kh: int
    kw: int
    out_h: int
    out_w: int
    stride_h: int = 1
    stride_w: int = 1
    pad_top: int = 0
    pad_left: int = 0
    pad_bottom: int = 0
    pad_right: int = 0
    dilation_h: int = 1
    dilation_w: int = 1
    group: int = 1
    bias: bool = False
    activation: str | None = None
    dtype: str = "float32"

    @property
    def weights(self) -> int:
        """Elements of the weights."""
        return self.m * (self.c // self.group) * self.kh * self.kw

    @property
    def image(self) -> int:
        """Elements of one image."""
        return self.c * self.h * self.w

    @property
    def flops(self) -> int:
        return 2 * self.n * self.m * self.out_h * self.out_w * (self.c // self.group) * self.kh * self.kw

    @property
    def nbytes(self) -> int:
        elements = (
            self.n * self.c * self.h * self.w
            + self.m * (self.c // self.group) * self.kh * self.kw
            + (self.m if self.bias else 0)
            + self.n * self.m * self.out_h * self.out_w
        )
        return elements * ITEMSIZE[self.dtype]


@dataclass(frozen=True)
class Gemm:
    """Matrix product, y = activation(alpha · op(a) · op(b) + beta · bias), `batch` times.

    Tensors in order: a (batch, m, k) or (batch, k, m) if `trans_a`; b (batch, k, n) or (batch, n, k) if
    `trans_b`; bias if `bias`; y (batch, m, n). `stride_a` and `stride_b` are elements between batches (0: the
    same matrix for all). The bias element of (row, column) lies at row · bias_stride_m + column ·
    bias_stride_n,
    the same for every batch.
    """

    op: ClassVar[str] = "gemm"
    m: int
    n: int
    k: int
    trans_a: bool = False
    trans_b: bool = False
    alpha: float = 1.0
    beta: float = 1.0
    bias: bool = False
    bias_stride_m: int = 0
    bias_stride_n: int = 1
    batch: int = 1
    stride_a: int = 0
    stride_b: int = 0
    activation: str | None = None
    dtype: str = "float32"

    @property
    def weights(self) -> int:
        """Elements of b."""
        return self.n * self.k * (self.batch if self.stride_b else 1)

    @property
    def flops(self) -> int:
        return 2 * self.batch * self.m * self.n * self.k

    @property
    def nbytes(self) -> int:
        a = self.m * self.k * (self.batch if self.stride_a else 1)
        b = self.k * self.n * (self.batch if self.stride_b else 1)
        bias = (
            (self.m if self.bias_stride_m else 1) * (self.n if self.bias_stride_n else 1) if self.bias else 0
        )
        return (a + b + bias + self.batch * self.m * self.n) * ITEMSIZE[self.dtype]


@dataclass(frozen=True)
class Pool:
    """2-D pooling, `kind` "max" or "average" (global average: the kernel is the whole image), then
    `activation`.

    Tensors in order: x (n, c, h, w); y (n, c, out_h, out_w). Padding never wins a maximum; an average counts
    it only if `count_include_pad`, and never counts what ceil_mode adds beyond the padded image.
    """

    op: ClassVar[str] = "pool"
    kind: str
    n: int
    c: int
    h: int
    w: int
    kh: int
    kw: int
    out_h: int
    out_w: int
    stride_h: int = 1
    stride_w: int = 1
    pad_top: int = 0
    pad_left: int = 0
    pad_bottom: int = 0
    pad_right: int = 0
    dilation_h: int = 1
    dilation_w: int = 1
    count_include_pad: bool = False
    activation: str | None = None
    dtype: str = "float32"

    @property
    def side_by_side(self) -> int:
        """The columns of a window, where windows lie side by side from the first pixel of a row to its last;
        else 0."""
        beside = self.kw == self.stride_w and self.dilation_w == 1 and self.pad_left == 0
        return self.kw if beside and self.out_w * self.kw == self.w else 0

    @property
    def flops(self) -> int:
        return self.n * self.c * self.out_h * self.out_w * self.kh * self.kw

    @property
    def nbytes(self) -> int:
        return self.n * self.c * (self.h * self.w + self.out_h * self.out_w) * ITEMSIZE[self.dtype]


@dataclass(frozen=True)
class Lrn:
    """Local response normalisation across channels, as ONNX's LRN: y = x / (bias + alpha / size · Σ x²)^beta.

    The sum runs over channels c − ⌊(size−1)/2⌋ … c + ⌈(size−1)/2⌉ that exist.
    Tensors in order: x (n, c, inner); y the same.
    """

    op: ClassVar[str] = "lrn"
    n: int
    c: int
    inner: int
    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    bias: float = 1.0
    dtype: str = "float32"

    @property
    def flops(self) -> int:
        return self.n * self.c * self.inner * (2 * self.size + 3)

    @property
    def nbytes(self) -> int:
        return 2 * self.n * self.c * self.inner * ITEMSIZE[self.dtype]


@dataclass(frozen=True)
class LrnPool:
    """Local response normalisation, then pooling of what it gives: fields as in Lrn and Pool.

    Tensors in order: x (n, c, h, w); y (n, c, out_h, out_w).
    """

    op: ClassVar[str] = "lrn_pool"
    size: int
    kind: str
    n: int
    c: int
    h: int
    w: int
    kh: int
    kw: int
    out_h: int
    out_w: int
    stride_h: int = 1
    stride_w: int = 1
    pad_top: int = 0
    pad_left: int = 0
    pad_bottom: int = 0
    pad_right: int = 0
    dilation_h: int = 1
    dilation_w: int = 1
    count_include_pad: bool = False
    alpha: float = 1e-4
    beta: float = 0.75
    bias: float = 1.0
    dtype: str = "float32"

    @classmethod
    def of(cls, lrn: Lrn, pool: Pool) -> LrnPool:
        """Both in one; `pool` reads what `lrn` gives and has no activation."""
        window = {f.name: getattr(pool, f.name) for f in fields(pool) if f.name != "activation"}
        return cls(size=lrn.size, alpha=lrn.alpha, beta=lrn.beta, bias=lrn.bias, **window)

    @property
    def lrn(self) -> Lrn:
        """The first half."""
        return Lrn(self.n, self.c, self.h * self.w, self.size, self.alpha, self.beta, self.bias, self.dtype)

    @property
    def pool(self) -> Pool:
        """The second half."""
        names = {f.name for f in fields(Pool)} - {"activation"}
        return Pool(**{name: getattr(self, name) for name in names})

    @property
    def flops(self) -> int:
        return self.lrn.flops + self.pool.flops

    @property
    def nbytes(self) -> int:
        return self.pool.nbytes


@dataclass(frozen=True)
class ConvPool:
    """Convolution with its bias and activation, then pooling of what it gives, with an activation of its own.

    Tensors in order: x (n, c, h, w), weight (m, c // group, kh, kw), bias (m,) if `conv.bias`; y (n, m,
    pool.out_h, pool.out_w). Raises KernelError where `pool` does not read what `conv` gives.
    """

    op: ClassVar[str] = "conv_pool"
    conv: Conv
    pool: Pool

    def __post_init__(self) -> None:
        conv, pool = self.conv, self.pool
        given = (conv.n, conv.m, conv.out_h, conv.out_w, conv.dtype)
        if given != (pool.n, pool.c, pool.h, pool.w, pool.dtype):
            raise KernelError(f"{pool} does not read what {conv} gives")

    def of_images(self, n: int) -> ConvPool:
        """The same of so many images."""
        return ConvPool(replace(self.conv, n=n), replace(self.pool, n=n))

    @property
    def n(self) -> int:
        return self.conv.n

    @property
    def c(self) -> int:
        return self.conv.c

    @property
    def m(self) -> int:
        return self.conv.m

    @property
    def kh(self) -> int:
        """Of the convolution's window, as kw."""
        return self.conv.kh

    @property
    def kw(self) -> int:
        return self.conv.kw

    @property
    def group(self) -> int:
        return self.conv.group

    @property
    def bias(self) -> bool:
        return self.conv.bias

    @property
    def kind(self) -> str:
        """The pool's."""
        return self.pool.kind

    @property
    def dtype(self) -> str:
        return self.conv.dtype

    @property
    def weights(self) -> int:
        """Elements of the weights."""
        return self.conv.weights

    @property
    def image(self) -> int:
        """Elements of one image of x."""
        return self.conv.image

    @property
    def outputs(self) -> int:
        """Elements of y."""
        return self.n * self.m * self.pool.out_h * self.pool.out_w

    @property
    def flops(self) -> int:
        return self.conv.flops + self.pool.flops

    @property
    def nbytes(self) -> int:
        elements = self.n * self.image + self.weights + (self.m if self.bias else 0) + self.outputs
        return elements * ITEMSIZE[self.dtype]


@dataclass(frozen=True)
class Softmax:
    """Softmax (or its logarithm, if `log`) over `axis` of x (outer, axis, inner); y the same shape."""

    op: ClassVar[str] = "softmax"
    outer: int
    axis: int
    inner: int
    log: bool = False
    dtype: str = "float32"

    @property
    def flops(self) -> int:
        return 5 * self.outer * self.axis * self.inner

    @property
    def nbytes(self) -> int:
        return 2 * self.outer * self.axis * self.inner * ITEMSIZE[self.dtype]


@dataclass(frozen=True)
class Unary:
    """An element-wise function, `kind` one of UNARY_KINDS. Tensors in order: x (size,); y (size,)."""

    op: ClassVar[str] = "unary"
    kind: str
    size: int
    dtype: str = "float32"

    @property
    def flops(self) -> int:
        return 0 if self.kind == "identity" else self.size

    @property
    def nbytes(self) -> int:
        return 2 * self.size * ITEMSIZE[self.dtype]


@dataclass(frozen=True)
class Binary:
    """Element-wise arithmetic with broadcasting, `kind` one of BINARY_KINDS, then `activation`.

    Tensors in order: a, b; y of `shape`. `strides_a` and `strides_b` are elements a step along each axis of
    `shape` (0 where that operand is broadcast).
    """

    op: ClassVar[str] = "binary"
    kind: str
    shape: tuple[int, ...]
    strides_a: tuple[int, ...]
    strides_b: tuple[int, ...]
    activation: str | None = None
    dtype: str = "float32"

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def flops(self) -> int:
        return self.size

    @property
    def nbytes(self) -> int:
        def operand(strides: tuple[int, ...]) -> int:
            return math.prod(d for d, s in zip(self.shape, strides, strict=True) if s)

        return (operand(self.strides_a) + operand(self.strides_b) + self.size) * ITEMSIZE[self.dtype]


@dataclass(frozen=True)
class Transpose:
    """Axes permuted: y's axis i is x's axis perm[i]. `shape` is x's."""

    op: ClassVar[str] = "transpose"
    shape: tuple[int, ...]
    perm: tuple[int, ...]
    dtype: str = "float32"

    @property
    def flops(self) -> int:
        return 0

    @property
    def nbytes(self) -> int:
        return 2 * math.prod(self.shape) * ITEMSIZE[self.dtype]


@dataclass(frozen=True)
class Pad:
    """x of `shape` with `begin[i]` and `end[i]` elements added on axis i (negative: cut), `mode` of
    PAD_MODES."""

    op: ClassVar[str] = "pad"
    shape: tuple[int, ...]
    begin: tuple[int, ...]
    end: tuple[int, ...]
    mode: str = "constant"
    value: float = 0.0
    dtype: str = "float32"

    @property
    def out_shape(self) -> tuple[int, ...]:
        return tuple(d + b + e for d, b, e in zip(self.shape, self.begin, self.end, strict=True))

    @property
    def flops(self) -> int:
        return 0

    @property
    def nbytes(self) -> int:
        return (math.prod(self.shape) + math.prod(self.out_shape)) * ITEMSIZE[self.dtype]


@dataclass(frozen=True)
class Cast:
    """Element type changed from `dtype` to `to`. Tensors in order: x (size,); y (size,)."""

    op: ClassVar[str] = "cast"
    size: int
    dtype: str
    to: str

    @property
    def flops(self) -> int:
        return 0

    @property
    def nbytes(self) -> int:
        return self.size * (ITEMSIZE[self.dtype] + ITEMSIZE[self.to])


Params = Conv | Gemm | Pool | Lrn | LrnPool | ConvPool | Softmax | Unary | Binary | Transpose | Pad | Cast
OPS: dict[str, type] = {
    cls.op: cls
    for cls in (Conv, Gemm, Pool, Lrn, LrnPool, ConvPool, Softmax, Unary, Binary, Transpose, Pad, Cast)
}
