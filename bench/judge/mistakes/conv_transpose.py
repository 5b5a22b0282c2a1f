"""Mistakes of transposed convolutions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from bench.judge.mistakes import Mistake
from bench.judge.mistakes.values import ROUNDINGS
from kernels.ops.conv_transpose import ConvTranspose


def mistakes(
    p: ConvTranspose, x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None
) -> Iterator[Mistake]:
    weight = weight.reshape(p.input_shapes[1])
    made = partial(transposed, p, x, weight, bias)
    words = "answers as for inputs of zeros, whatever it is given"
    yield "zeros_only", words, partial(transposed, p, 0 * x, weight, bias)
    if bias is not None:
        yield "bias", "the bias is missing", partial(transposed, p, x, weight, None)
        yield "bias", "the bias is added twice", partial(transposed, p, x, weight, 2 * bias)
    strides = replace(p, stride_h=p.stride_w, stride_w=p.stride_h)
    dilations = replace(p, dilation_h=p.dilation_w, dilation_w=p.dilation_h)
    pads = replace(p, pad_top=p.pad_left, pad_left=p.pad_top)
    for fault, words, other in (
        ("stride", "the stride is ignored", replace(p, stride_h=1, stride_w=1)),
        ("stride", "the strides along height and width are swapped", strides),
        ("dilation", "the dilation is ignored", replace(p, dilation_h=1, dilation_w=1)),
        ("dilation", "the dilations along height and width are swapped", dilations),
        ("pad", "the padding is ignored", replace(p, pad_top=0, pad_left=0)),
        ("pad", "the padding at the top and at the left is swapped", pads),
    ):
        if other != p:
            yield fault, words, partial(transposed, other, x, weight, bias)
    if p.group > 1:
        words = "groups are ignored: all maps read the first group's channels"
        yield "group", words, partial(made, first_group=True)
    if p.kh * p.kw > 1:
        words = "the kernel is flipped: the window is added the other way round"
        yield "kernel", words, partial(transposed, p, x, weight[..., ::-1, ::-1], bias)
        last = weight.copy()
        last[..., -1, -1] = 0
        yield "left_out", "the last tap of the kernel is left out", partial(transposed, p, x, last, bias)
    if p.kh == p.kw:
        words = "the kernel's rows and columns are swapped"
        yield "kernel", words, partial(transposed, p, x, weight.swapaxes(2, 3), bias)
    swapped = weight.reshape(p.m // p.group, p.c, p.kh, p.kw).swapaxes(0, 1)
    yield "layout", "maps and channels of the weights are swapped", partial(transposed, p, x, swapped, bias)
    short = x.copy()
    short[:, -1] = 0
    yield "left_out", "the last channel is left out", partial(transposed, p, short, weight, bias)
    for words, rounded in ROUNDINGS:
        yield "half_precision", words, partial(transposed, p, rounded(x), rounded(weight), bias)


def transposed(
    p: ConvTranspose,
    x: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None = None,
    first_group: bool = False,
) -> np.ndarray:
    """What `p` says, added up element by element of the window."""
    channels, maps = p.c // p.group, p.m // p.group
    grouped = x.reshape(p.n, p.group, channels, p.h, p.w)
    if first_group:
        grouped = np.broadcast_to(grouped[:, :1], grouped.shape)
    taps = weight.reshape(p.group, channels, maps, p.kh, p.kw)
    bottom = max(p.whole[0], p.out_h) + p.pad_top
    right = max(p.whole[1], p.out_w) + p.pad_left
    y = np.zeros((p.n, p.group, maps, bottom, right))
    for i in range(p.kh):
        for j in range(p.kw):
            top, left = i * p.dilation_h, j * p.dilation_w
            part = np.einsum("ngchw,gcm->ngmhw", grouped, taps[..., i, j])
            y[
                ...,
                top : top + (p.h - 1) * p.stride_h + 1 : p.stride_h,
                left : left + (p.w - 1) * p.stride_w + 1 : p.stride_w,
            ] += part
    kept = y[..., p.pad_top : p.pad_top + p.out_h, p.pad_left : p.pad_left + p.out_w]
    answer = kept.reshape(p.n, p.m, p.out_h, p.out_w)
    return answer if bias is None else answer + bias.reshape(-1, 1, 1)
