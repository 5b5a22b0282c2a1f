"""Softmax in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.measure.answers.nodes._common import LARGE, Nodes, node
from kernels.ops.softmax import Softmax


def nodes(p: Softmax, names: Sequence[str], output: str) -> Nodes:
    return [node("LogSoftmax" if p.log else "Softmax", names, output, axis=1)], {}


def drawn(p: Softmax, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Some rows are so large that an exponential overflows for whoever does not see to it."""
    values += LARGE * random.standard_normal((p.outer, 1, p.inner), np.float32)
    return values
