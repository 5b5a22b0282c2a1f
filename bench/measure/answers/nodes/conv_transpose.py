"""Transposed convolution in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.measure.answers.nodes._common import Nodes, Taps, node
from kernels.ops.conv_transpose import ConvTranspose


def nodes(p: ConvTranspose, names: Sequence[str], output: str) -> Nodes:
    """What y lacks of all that is added up is padding at the end, what it has beyond is output padding."""
    less = [whole - out for whole, out in zip(p.whole, (p.out_h, p.out_w), strict=True)]
    made = node(
        "ConvTranspose",
        names,
        output,
        kernel_shape=[p.kh, p.kw],
        strides=[p.stride_h, p.stride_w],
        dilations=[p.dilation_h, p.dilation_w],
        pads=[p.pad_top, p.pad_left, *(max(0, missing) for missing in less)],
        output_padding=[max(0, -missing) for missing in less],
        group=p.group,
    )
    return [made], {}


def drawn(p: ConvTranspose, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Weights are such that outputs are of order 1."""
    taps = max(1, p.kh // p.stride_h) * max(1, p.kw // p.stride_w)
    return values / np.sqrt(np.float32(p.c // p.group * taps)) if place == 1 else values


def elements(p: ConvTranspose, inputs: Sequence[np.ndarray], places: np.ndarray) -> np.ndarray:
    """See bench.measure.answers.elements. An output gathers what the elements of x within reach add to it."""
    x, weights = inputs[0].reshape(p.input_shapes[0]), inputs[1].reshape(p.input_shapes[1])
    n, m, row, column = np.unravel_index(places, p.output_shape)
    high, above = _added(row + p.pad_top, p.h, p.kh, p.stride_h, p.dilation_h)
    wide, beside = _added(column + p.pad_left, p.w, p.kw, p.stride_w, p.dilation_w)
    depth, maps = p.c // p.group, p.m // p.group
    channels = (m // maps * depth)[:, None] + np.arange(depth)
    read = x[n[:, None, None, None], channels[:, :, None, None], high[:, None, :, None], wide[:, None, None]]
    inside = above[:, None, :, None] & beside[:, None, None]
    sums = (np.where(inside, read, 0).astype(np.float64) * weights[channels, (m % maps)[:, None]]).sum(
        axis=(1, 2, 3)
    )
    return sums + inputs[2][m] if p.bias else sums


def _added(place: np.ndarray, size: int, kernel: int, stride: int, dilation: int) -> Taps:
    """Of one axis: which element adds to these places by each tap, (count, kernel), and where one does."""
    at, left = np.divmod(place[:, None] - np.arange(kernel) * dilation, stride)
    inside = (left == 0) & (at >= 0) & (at < size)
    return np.where(inside, at, 0), inside
