"""Convolution in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.measure.answers.nodes._common import Nodes, node, window
from kernels.ops.conv import Conv


def nodes(p: Conv, names: Sequence[str], output: str) -> Nodes:
    return [node("Conv", names, output, group=p.group, **window(p))], {}


def drawn(p: Conv, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Weights are such that outputs are of order 1."""
    return values / np.sqrt(np.float32(p.c // p.group * p.kh * p.kw)) if place == 1 else values
