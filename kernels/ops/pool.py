"""Pooling: what its kernels are told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from kernels.ops._base import Division, Params, Shape
from kernels.ops._windows import sized, touched, window_words

POOL_KINDS = ("max", "average")
WINDOW = (  # a pool on the device, but for its activation
    "int kind, n, c, h, w, kh, kw, out_h, out_w, stride_h, stride_w;"
    "int pad_top, pad_left, pad_bottom, pad_right, dilation_h, dilation_w, count_include_pad"
)
_WHOLE = ((1, 1), (5, 7), (33, 31))  # images that are pooled into one value each
_BARE: dict[str, Any] = dict.fromkeys(("pad_top", "pad_left", "pad_bottom", "pad_right"), 0) | {
    "dilation_h": 1,
    "dilation_w": 1,
}


@dataclass(frozen=True)
class Pool(Params):
    """2-D pooling, `kind` "max" or "average" (global average: the kernel is the whole image), then
    `activation`.

    Tensors in order: x (n, c, h, w); y (n, c, out_h, out_w). Padding never wins a maximum; an average counts
    it only if `count_include_pad`, and never counts what ceil_mode adds beyond the padded image.
    """

    op: ClassVar[str] = "pool"
    struct: ClassVar[str] = WINDOW + "; int activation"
    units: ClassVar[str] = "n"
    enumerated: ClassVar[Mapping[str, tuple[str, tuple[str, ...]]]] = {"kind": ("POOL", POOL_KINDS)}
    axes: ClassVar[tuple[str, ...]] = ("image", "channel", "row", "column")
    images: ClassVar[bool] = True

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
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        return ((self.n, self.c, self.h, self.w),)

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (self.n, self.c, self.out_h, self.out_w)

    def least_read(self) -> int:
        return touched(self)

    @property
    def division(self) -> Division:
        planes = self.n * self.c
        outputs = self.out_h * self.out_w
        return Division(planes, (self.h * self.w,), outputs, lambda count: replace(self, n=count, c=1))

    def small_shapes(self) -> Iterator[Shape]:
        few = replace(self, n=2, c=min(self.c, 5))
        yield Shape("own", few)
        yield Shape("activation", replace(few, activation="tanh"))
        if few == replace(few, kh=self.h, kw=self.w, out_h=1, out_w=1, **_BARE):  # of the whole image
            yield from (Shape("size", replace(few, h=h, w=w, kh=h, kw=w)) for h, w in _WHOLE)
        else:
            yield from (Shape(tag, shape) for tag, shape in few.small().items())

    def small(self) -> dict[str, Pool]:
        """Other windows over a small image of as many planes."""
        plain = Pool(self.kind, self.n, self.c, 9, 11, 2, 3, 0, 0)
        padded = replace(plain, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1)
        counted = self.kind == "average"
        shapes = {
            "plain": plain,
            "pad": padded,
            "strides": replace(plain, stride_h=2, stride_w=3),
            "dilation": replace(plain, dilation_h=2, dilation_w=3),
            "all": replace(padded, h=14, w=17, kh=3, stride_h=2, stride_w=2, count_include_pad=counted),
        }
        # Windows of which the last ones reach beyond the padded image, as ceil_mode has them.
        beyond = replace(padded, h=10, w=12, kh=3, stride_h=2, stride_w=2, count_include_pad=counted)
        return {tag: sized(shape) for tag, shape in shapes.items()} | {
            "ceil": replace(beyond, out_h=6, out_w=7)
        }

    @property
    def words(self) -> str:
        return f"{self.n}×{self.c}×{self.h}×{self.w} → {self.out_h}×{self.out_w}, {self.words_of_window}"

    @property
    def words_of_window(self) -> str:
        """What is done, without the sizes."""
        parts = [f"{self.kind} of {self.kh}×{self.kw}", *window_words(self)]
        parts += ["padding counted"] if self.count_include_pad else []
        return ", ".join(parts + ([self.activation] if self.activation else []))
