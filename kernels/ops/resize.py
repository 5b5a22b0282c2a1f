"""Resizing of images: what its kernels are told."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, NamedTuple

import numpy as np

from kernels.ops._base import Params, Scalar, Shape, int32

RESIZE_MODES = ("nearest", "linear", "cubic")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
COORDINATES = (
    *("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel"),
    *("align_corners", "asymmetric", "tf_crop_and_resize"),
)
TAPS = {"nearest": 1, "linear": 2, "cubic": 4}
_FINEST = 1 << 16  # scales that are ratios of whole numbers up to here are taken as such
_CLOSE = 1e-12


class Place(NamedTuple):
    """Where an output lies in the input along one axis: output i at (i · times + plus) / over + shift."""

    times: float
    plus: float
    over: float
    shift: float


class Taps(NamedTuple):
    """Along one axis the elements that each output is a sum of (out, taps), their weights, and whether the
    output lies beyond the input (out,), where it is a value instead."""

    at: np.ndarray
    weight: np.ndarray
    beyond: np.ndarray


@dataclass(frozen=True)
class Resize(Params):
    """y of x with one or two neighbouring axes made longer or shorter: each output the nearest element of x,
    or a sum of the `linear` two or the `cubic` four beside its place on each axis, the edges going on beyond.

    Tensors in order: x (outer, h, w, inner); y (outer, out_h, out_w, inner). An output's place follows from
    `coordinates`, the scales and, for tf_crop_and_resize, from the region start … end, as ONNX's Resize says;
    beyond x it is then `value`. `rounding`: of places, for the nearest. `exclude_outside`: what lies beyond x
    weighs nothing.
    """

    op: ClassVar[str] = "resize"
    struct: ClassVar[str] = (
        "index_t outer; int h, w, inner, out_h, out_w, mode, rounding, exclude_outside, crops;"
        "float times_h, plus_h, over_h, shift_h, times_w, plus_w, over_w, shift_w, cubic_a, value"
    )
    units: ClassVar[str] = "outer"
    enumerated: ClassVar[Mapping[str, tuple[str, tuple[str, ...]]]] = {
        "mode": ("RESIZE", RESIZE_MODES),
        "rounding": ("ROUNDING", ROUNDINGS),
    }

    outer: int
    h: int
    w: int
    out_h: int
    out_w: int
    scale_h: float
    scale_w: float
    inner: int = 1
    mode: str = "nearest"
    coordinates: str = "half_pixel"
    rounding: str = "round_prefer_floor"
    start_h: float = 0.0
    end_h: float = 1.0
    start_w: float = 0.0
    end_w: float = 1.0
    cubic_a: float = -0.75
    exclude_outside: bool = False
    value: float = 0.0
    dtype: str = "float32"

    @property
    def flops(self) -> int:
        taps = TAPS[self.mode]
        return 2 * self.outputs * taps * taps if taps > 1 else 0

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        return ((self.outer, self.h, self.w, self.inner),)

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (self.outer, self.out_h, self.out_w, self.inner)

    def least_read(self) -> int:
        """One element a plane: what is cropped may be that small."""
        return self.outer

    def places(self) -> tuple[Place, Place]:
        """Of the rows and of the columns."""
        return (
            self._place(self.h, self.out_h, self.scale_h, self.start_h, self.end_h),
            self._place(self.w, self.out_w, self.scale_w, self.start_w, self.end_w),
        )

    def _place(self, size: int, out: int, scale: float, start: float, end: float) -> Place:
        whole = Fraction(scale).limit_denominator(_FINEST)
        over, times = scale, 1.0
        if abs(float(whole) - scale) < _CLOSE * scale:
            over, times = float(whole.numerator), float(whole.denominator)
        # `length` is no whole number where the scale does not fit; the others are so far apart.
        length = over * size / times
        if self.coordinates == "asymmetric":
            return Place(times, 0, over, 0)
        if self.coordinates == "align_corners":
            return Place(0, 0, 1, 0) if length == 1 else Place((size - 1) * times, 0, over * size - times, 0)
        if self.coordinates == "tf_crop_and_resize":
            first, along = start * (size - 1), (end - start) * (size - 1)
            return Place(0, 0, 1, first + along / 2) if length == 1 else Place(along, 0, length - 1, first)
        if self.coordinates == "pytorch_half_pixel" and length == 1:
            return Place(0, 0, 1, 0)
        shift = size / 2 * (1 - out / length) if self.coordinates == "half_pixel_symmetric" else 0
        return Place(times, times / 2, over, shift - 0.5)

    def taps(self) -> tuple[Taps, Taps]:
        """Of the rows and of the columns, in float64."""
        rows, columns = self.places()
        return self._taps(rows, self.h, self.out_h), self._taps(columns, self.w, self.out_w)

    def _taps(self, place: Place, size: int, out: int) -> Taps:
        at = (np.arange(out) * place.times + place.plus) / place.over + place.shift
        beyond = ((at < 0) | (at > size - 1)) & (self.coordinates == "tf_crop_and_resize")
        if self.mode == "nearest":
            index = _rounded(at, self.rounding)[:, None]
            return Taps(np.clip(index, 0, size - 1), np.ones(index.shape), beyond)
        first = np.floor(at)
        part = (at - first)[:, None]
        if self.mode == "linear":
            index, weight = first[:, None] + np.arange(2), np.hstack([1 - part, part])
        else:
            index = first[:, None] + np.arange(-1, 3)
            weight = _cubic(np.abs(part - np.arange(-1, 3)), self.cubic_a)
        if self.exclude_outside:
            weight = np.where((index < 0) | (index > size - 1), 0, weight)
            total = weight.sum(axis=1, keepdims=True)
            weight = weight / np.where(total == 0, 1, total)
        return Taps(np.clip(index, 0, size - 1).astype(np.intp), weight, beyond)

    def scalars(self) -> tuple[Scalar, ...]:
        sizes = int32(self.h, self.w, self.inner, self.out_h, self.out_w)
        how = int32(RESIZE_MODES.index(self.mode), ROUNDINGS.index(self.rounding), self.exclude_outside)
        crops = int32(self.coordinates == "tf_crop_and_resize")
        numbers = (*self.places()[0], *self.places()[1], self.cubic_a, self.value)
        return (np.int64(self.outer), *sizes, *how, *crops, *map(np.float32, numbers))

    def small_shapes(self) -> Iterator[Shape]:
        """Of its own mode and coordinates: larger and smaller, by whole numbers and others, on one axis and
        on both, of one channel and of several."""
        p = self
        own = replace(p, outer=min(p.outer, 3), inner=min(p.inner, 4))
        yield Shape("own", own.resized(min(p.h, 16), min(p.w, 16), p.scale_h, p.scale_w))
        few = replace(own, outer=2, inner=1)
        yield Shape("plain", few.resized(4, 4, 2.0, 2.0))
        yield Shape("batch", replace(few, outer=5).resized(4, 4, 2.0, 2.0))
        yield Shape("layout", replace(few, inner=3).resized(4, 4, 2.0, 2.0))
        yield Shape("size", few.resized(5, 7, 13 / 5, 3 / 7))
        yield Shape("size", few.resized(6, 4, 2 / 3, 1.5))
        yield Shape("all", replace(few, inner=2, value=-1.5, outer=3).resized(9, 6, 5 / 9, 11 / 6))
        other = few.resized(5, 6, 7 / 5, 0.5)
        if p.mode == "nearest":
            yield from (Shape("kind", replace(other, rounding=rounding)) for rounding in ROUNDINGS)
        if p.mode == "cubic":
            yield Shape("scale", replace(other, cubic_a=-0.5))
            yield Shape("pad", replace(other, exclude_outside=not p.exclude_outside))

    def resized(self, h: int, w: int, scale_h: float, scale_w: float) -> Resize:
        """The same of other sizes, about so much larger."""
        out_h, out_w = max(1, round(h * scale_h)), max(1, round(w * scale_w))
        return replace(self, h=h, w=w, out_h=out_h, out_w=out_w, scale_h=out_h / h, scale_w=out_w / w)

    @property
    def words(self) -> str:
        inner = f"×{self.inner}" if self.inner > 1 else ""
        how = [self.mode, self.rounding] if self.mode == "nearest" else [self.mode]
        how += [self.coordinates] + ["outside excluded"] * self.exclude_outside
        sizes = f"{self.outer}×{self.h}×{self.w}{inner} → {self.out_h}×{self.out_w}"
        return ", ".join([sizes, *(word.replace("_", " ") for word in how)])


def _rounded(at: np.ndarray, rounding: str) -> np.ndarray:
    """Places as whole numbers. They are rounded to float32 first: what lacks the last bit of a whole number,
    or of a half, is one."""
    near = at.astype(np.float32).astype(np.float64)
    if rounding == "floor":
        return np.floor(near).astype(np.intp)
    if rounding == "ceil":
        return np.ceil(near).astype(np.intp)
    return (np.ceil(near - 0.5) if rounding == "round_prefer_floor" else np.floor(near + 0.5)).astype(np.intp)


def _cubic(away: np.ndarray, a: float) -> np.ndarray:
    """The weight of an element so far away, by R. G. Keys's polynomials."""
    near = ((a + 2) * away - (a + 3)) * away * away + 1
    far = ((a * away - 5 * a) * away + 8 * a) * away - 4 * a
    return np.where(away <= 1, near, np.where(away < 2, far, 0))


def fits(size: int, scale: float) -> int:
    """The size that a scale makes of one, as ONNX rounds it down: the scale is a float32."""
    return math.floor(np.float32(size) * np.float32(scale))
