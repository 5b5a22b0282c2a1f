"""Convolution of volumes in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.measure.answers.nodes._common import Nodes, node
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
