"""What operators with windows over images (conv, pool) share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from kernels.ops.conv import Conv
    from kernels.ops.conv_transpose import ConvTranspose
    from kernels.ops.pool import Pool

    Window = TypeVar("Window", Conv, Pool)


def sized(p: Window) -> Window:
    """The same record with the size of the output, which follows from the other fields."""
    out_h = (p.h + p.pad_top + p.pad_bottom - (p.kh - 1) * p.dilation_h - 1) // p.stride_h + 1
    out_w = (p.w + p.pad_left + p.pad_right - (p.kw - 1) * p.dilation_w - 1) // p.stride_w + 1
    return replace(p, out_h=max(1, out_h), out_w=max(1, out_w))


def touched(p: Conv | Pool) -> int:
    """The input elements that windows reach at least; with a stride larger than the window some are left
    out."""
    rows = _reached(p.h, p.out_h, p.kh, p.stride_h, p.dilation_h, p.pad_top, p.pad_bottom)
    columns = _reached(p.w, p.out_w, p.kw, p.stride_w, p.dilation_w, p.pad_left, p.pad_right)
    return p.n * p.c * rows * columns


def _reached(size: int, out: int, kernel: int, stride: int, dilation: int, before: int, after: int) -> int:
    """The elements that windows reach along one axis, less those that may be padding."""
    each = min(kernel, stride) if dilation == 1 else 1
    beyond = max(0, (out - 1) * stride + (kernel - 1) * dilation + 1 - size - before - after)
    return max(0, min(size, (out - 1) * each + kernel - before - after - beyond))


def steps_words(p: Conv | ConvTranspose | Pool) -> list[str]:
    """Stride and dilation in words, if they are not 1."""
    parts = []
    for name in ("stride", "dilation"):
        pair = getattr(p, f"{name}_h"), getattr(p, f"{name}_w")
        if pair != (1, 1):
            parts.append(f"{name} {pair[0]}" if pair[0] == pair[1] else f"{name} {pair[0]}×{pair[1]}")
    return parts


def window_words(p: Conv | Pool) -> list[str]:
    """As steps_words, with padding."""
    parts = steps_words(p)
    pads = (p.pad_top, p.pad_left, p.pad_bottom, p.pad_right)
    if any(pads):
        parts.append(f"pad {pads[0]}" if len(set(pads)) == 1 else f"pad {', '.join(map(str, pads))}")
    return parts


def taps(axes: Iterable[tuple[int, int, int, int, int, int]]) -> int:
    """The taps of all windows that lie inside the image: a product over the axes, of each (windows, size,
    kernel, stride, pad, dilation)."""
    count = 1
    for windows, size, kernel, stride, pad, dilation in axes:
        at = np.arange(windows)[:, None] * stride - pad + np.arange(kernel) * dilation
        count *= int(((at >= 0) & (at < size)).sum())
    return count
