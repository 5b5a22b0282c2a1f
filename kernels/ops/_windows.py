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
    """With the output's size that follows from the other fields."""
    out_h = (p.h + p.pad_top + p.pad_bottom - (p.kh - 1) * p.dilation_h - 1) // p.stride_h + 1
    out_w = (p.w + p.pad_left + p.pad_right - (p.kw - 1) * p.dilation_w - 1) // p.stride_w + 1
    return replace(p, out_h=max(1, out_h), out_w=max(1, out_w))


def touched(p: Conv | Pool) -> int:
    """Elements of the input that windows reach at least: strides beyond the window leave some out."""
    rows = _reached(p.h, p.out_h, p.kh, p.stride_h, p.dilation_h, p.pad_top, p.pad_bottom)
    columns = _reached(p.w, p.out_w, p.kw, p.stride_w, p.dilation_w, p.pad_left, p.pad_right)
    return p.n * p.c * rows * columns


def _reached(size: int, out: int, kernel: int, stride: int, dilation: int, before: int, after: int) -> int:
    """Of one axis: a window, and what each further one has that those before it have not; less what of them
    may lie in the padding, or beyond it where the last one is not whole."""
    each = min(kernel, stride) if dilation == 1 else 1
    beyond = max(0, (out - 1) * stride + (kernel - 1) * dilation + 1 - size - before - after)
    return max(0, min(size, (out - 1) * each + kernel - before - after - beyond))


def steps_words(p: Conv | ConvTranspose | Pool) -> list[str]:
    """Stride and dilation in words, where there are any."""
    parts = []
    for name in ("stride", "dilation"):
        pair = getattr(p, f"{name}_h"), getattr(p, f"{name}_w")
        if pair != (1, 1):
            parts.append(f"{name} {pair[0]}" if pair[0] == pair[1] else f"{name} {pair[0]}×{pair[1]}")
    return parts


def window_words(p: Conv | Pool) -> list[str]:
    """As steps_words, and padding."""
    parts = steps_words(p)
    pads = (p.pad_top, p.pad_left, p.pad_bottom, p.pad_right)
    if any(pads):
        parts.append(f"pad {pads[0]}" if len(set(pads)) == 1 else f"pad {', '.join(map(str, pads))}")
    return parts


def taps(axes: Iterable[tuple[int, int, int, int, int, int]]) -> int:
    """Taps of all windows that lie within the image, the axes multiplied: (windows, size, kernel, stride,
    pad, dilation) each."""
    count = 1
    for windows, size, kernel, stride, pad, dilation in axes:
        at = np.arange(windows)[:, None] * stride - pad + np.arange(kernel) * dilation
        count *= int(((at >= 0) & (at < size)).sum())
    return count
