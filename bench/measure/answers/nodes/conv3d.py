"""Convolution of volumes in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.measure.answers.nodes._common import Nodes, node, reached
from kernels.ops.conv3d import Conv3d


def nodes(p: Conv3d, names: Sequence[str], output: str) -> Nodes:
    """Behind x as many zeros as the last windows read."""
    behind = [
        (out - 1) * step + (k - 1) * d + 1 - size - before
        for out, step, k, d, size, before in zip(
            p.out, p.stride, p.kernel, p.dilation, p.size, p.pad, strict=True
        )
    ]
    made = node(
        "Conv",
        names,
        output,
        kernel_shape=p.kernel,
        strides=p.stride,
        dilations=p.dilation,
        pads=[*p.pad, *(max(0, more) for more in behind)],
        group=p.group,
    )
    return [made], {}


def drawn(p: Conv3d, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Weights are such that outputs are of order 1."""
    return values / np.sqrt(np.float32(p.depth)) if place == 1 else values


def elements(p: Conv3d, inputs: Sequence[np.ndarray], places: np.ndarray) -> np.ndarray:
    """See bench.measure.answers.elements."""
    x, weights = inputs[0].reshape(p.input_shapes[0]), inputs[1].reshape(p.input_shapes[1])
    n, m, *at = np.unravel_index(places, p.output_shape)
    axes = zip(at, p.size, p.kernel, p.stride, p.pad, p.dilation, strict=True)
    (deep, above), (high, over), (wide, beside) = (reached(*axis) for axis in axes)
    depth = p.c // p.group
    channels = (m // (p.m // p.group) * depth)[:, None] + np.arange(depth)
    read = x[
        n[:, None, None, None, None],
        channels[:, :, None, None, None],
        deep[:, None, :, None, None],
        high[:, None, None, :, None],
        wide[:, None, None, None],
    ]
    inside = above[:, None, :, None, None] & over[:, None, None, :, None] & beside[:, None, None, None]
    sums = (np.where(inside, read, 0).astype(np.float64) * weights[m]).sum(axis=(1, 2, 3, 4))
    return sums + inputs[2][m] if p.bias else sums
