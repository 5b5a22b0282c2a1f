"""Convolution and pooling in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.measure.answers.nodes import conv, pool
from bench.measure.answers.nodes._common import Nodes, activate
from kernels.ops.conv_pool import ConvPool


def nodes(p: ConvPool, names: Sequence[str], output: str) -> Nodes:
    made, _ = conv.nodes(p.conv, names, "maps")
    activate(made, p.conv.activation, "sums", "maps")
    made += pool.nodes(p.pool, ["maps"], output)[0]
    activate(made, p.pool.activation, "linear", output)
    return made, {}


def drawn(p: ConvPool, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    return conv.drawn(p.conv, place, values, random)
