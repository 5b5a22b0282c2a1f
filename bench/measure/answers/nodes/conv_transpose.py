"""Transposed convolution in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.measure.answers.nodes._common import Nodes, node
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
