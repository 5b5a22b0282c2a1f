"""What windows over images contain, and the mistakes in this that convolutions and pools share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from kernels.ops.conv import Conv
from kernels.ops.pool import Pool

Window = TypeVar("Window", Conv, Pool)


def places(p: Conv | Pool) -> tuple[np.ndarray, np.ndarray]:
    """(out_h, kh) rows and (out_w, kw) columns of the image that the windows see; beyond it: padding."""
    rows = np.arange(p.out_h)[:, None] * p.stride_h - p.pad_top + np.arange(p.kh) * p.dilation_h
    columns = np.arange(p.out_w)[:, None] * p.stride_w - p.pad_left + np.arange(p.kw) * p.dilation_w
    return rows, columns


def seen(p: Conv | Pool, x: np.ndarray, beyond: str = "", fill: float = 0.0) -> np.ndarray:
    """(n, c, out_h, kh, out_w, kw) of x (n, c, h, w). beyond: what lies beyond the image: "" (the fill),
    "edge", "reflect", "wrap", or "memory": what lies beside a row of the image in memory."""
    rows, columns = places(p)
    inside = _within(rows, p.h)[:, :, None, None] & _within(columns, p.w)
    if beyond == "memory":
        flat = (rows[:, :, None, None] * p.w + columns) + (
            np.arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], 1, 1, 1, 1) * (p.h * p.w)
        )
        real = _within(flat, x.size) & _within(rows, p.h)[:, :, None, None]
        return np.where(real, x.reshape(-1)[flat.clip(0, x.size - 1)], fill)
    if beyond:
        rows, columns = _folded(rows, p.h, beyond), _folded(columns, p.w, beyond)
        return x[:, :, rows][..., columns]
    found = x[:, :, rows.clip(0, p.h - 1)][..., columns.clip(0, p.w - 1)]
    return np.where(inside, found, fill)


def _within(places: np.ndarray, size: int) -> np.ndarray:
    return (places >= 0) & (places < size)


def _folded(places: np.ndarray, size: int, how: str) -> np.ndarray:
    if how == "wrap":
        return places % size
    if how == "reflect" and size > 1:
        around = places % (2 * size - 2)
        return np.minimum(around, 2 * size - 2 - around)
    return places.clip(0, size - 1)


def reaches_beyond(p: Conv | Pool) -> np.ndarray:
    """(out_h, out_w): whose window sees more than the image."""
    rows, columns = places(p)
    high, wide = (_within(rows, p.h).all(axis=1), _within(columns, p.w).all(axis=1))
    return np.asarray(~np.logical_and.outer(high, wide))


def taken_otherwise(p: Window) -> Iterator[tuple[str, str, Window]]:
    """(fault, words, params) of windows with a field mistaken; the output has its own size."""
    if p.stride_h != p.stride_w:
        yield (
            "stride",
            "the strides along height and width are swapped",
            _with(p, "stride", p.stride_w, p.stride_h),
        )
        yield (
            "stride",
            "the stride along height is taken from the other axis",
            _with(p, "stride", p.stride_w, p.stride_w),
        )
        yield (
            "stride",
            "the stride along width is taken from the other axis",
            _with(p, "stride", p.stride_h, p.stride_h),
        )
    if (p.stride_h, p.stride_w) != (1, 1):
        yield "stride", "the stride is ignored", _with(p, "stride", 1, 1)
    if p.stride_h != 1:
        yield "stride", "the stride along height is ignored", _with(p, "stride", 1, p.stride_w)
    if p.stride_w != 1:
        yield "stride", "the stride along width is ignored", _with(p, "stride", p.stride_h, 1)
    if (p.dilation_h, p.dilation_w) != (1, 1):
        yield "dilation", "the dilation is ignored", _with(p, "dilation", 1, 1)
    if p.dilation_h != p.dilation_w:
        swapped = _with(p, "dilation", p.dilation_w, p.dilation_h)
        yield "dilation", "the dilations along height and width are swapped", swapped
    if p.dilation_h != 1:
        yield "dilation", "the dilation along height is ignored", _with(p, "dilation", 1, p.dilation_w)
    if p.dilation_w != 1:
        yield "dilation", "the dilation along width is ignored", _with(p, "dilation", p.dilation_h, 1)
    if p.pad_top or p.pad_left:
        yield "pad", "the padding is ignored", replace(p, pad_top=0, pad_left=0)
        if p.pad_top:
            yield "pad", "the padding at the top is ignored", replace(p, pad_top=0)
        if p.pad_left:
            yield "pad", "the padding at the left is ignored", replace(p, pad_left=0)
    if (p.pad_top, p.pad_left) != (p.pad_bottom, p.pad_right):
        swapped = replace(p, pad_top=p.pad_bottom, pad_left=p.pad_right)
        yield "pad", "the padding at the beginning and the padding at the end are swapped", swapped
    if p.pad_top != p.pad_left:
        swapped = replace(p, pad_top=p.pad_left, pad_left=p.pad_top)
        yield "pad", "the padding at the top and at the left is swapped", swapped
    for top, left in ((1, 1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1)):
        axes = " and ".join(n for n, step in (("top", top), ("left", left)) if step)
        more = "more" if top + left > 0 else "less"
        shifted = replace(p, pad_top=p.pad_top + top, pad_left=p.pad_left + left)
        yield "pad", f"the padding is off by one: one {more} at the {axes}", shifted


def _with(p: Window, name: str, high: int, wide: int) -> Window:
    fields: dict[str, Any] = {f"{name}_h": high, f"{name}_w": wide}
    return replace(p, **fields)
