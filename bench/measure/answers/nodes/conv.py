"""Convolution in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.measure.answers.nodes._common import Nodes, activated, node, reached, window
from kernels.ops.conv import Conv


def nodes(p: Conv, names: Sequence[str], output: str) -> Nodes:
    return [node("Conv", names, output, group=p.group, **window(p))], {}


def drawn(p: Conv, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Weights are such that outputs are of order 1."""
    return values / np.sqrt(np.float32(p.c // p.group * p.kh * p.kw)) if place == 1 else values


def elements(p: Conv, inputs: Sequence[np.ndarray], places: np.ndarray) -> np.ndarray:
    """See bench.measure.answers.elements."""
    return at(p, inputs, *np.unravel_index(places, p.output_shape))


def at(
    p: Conv, inputs: Sequence[np.ndarray], n: np.ndarray, m: np.ndarray, row: np.ndarray, column: np.ndarray
) -> np.ndarray:
    """Float64 (count,): the outputs of these images, maps, rows and columns, each a sum of its own."""
    x, weights = inputs[0].reshape(p.input_shapes[0]), inputs[1].reshape(p.input_shapes[1])
    high, above = reached(row, p.h, p.kh, p.stride_h, p.pad_top, p.dilation_h)
    wide, beside = reached(column, p.w, p.kw, p.stride_w, p.pad_left, p.dilation_w)
    depth = p.c // p.group
    channels = (m // (p.m // p.group) * depth)[:, None] + np.arange(depth)
    read = x[n[:, None, None, None], channels[:, :, None, None], high[:, None, :, None], wide[:, None, None]]
    inside = above[:, None, :, None] & beside[:, None, None]
    sums = (np.where(inside, read, 0).astype(np.float64) * weights[m]).sum(axis=(1, 2, 3))
    return activated(sums + inputs[2][m] if p.bias else sums, p.activation)
