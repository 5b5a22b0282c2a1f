"""Comparisons in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import helper

from bench.measure.answers.nodes._common import Nodes, node
from kernels.ops.compare import Compare

_KINDS = {
    "equal": "Equal",
    "less": "Less",
    "less_equal": "LessOrEqual",
    "greater": "Greater",
    "greater_equal": "GreaterOrEqual",
}


def nodes(p: Compare, names: Sequence[str], output: str) -> Nodes:
    whole = helper.make_node("Expand", ["part", "shape"], [output], name="expand")
    return [node(_KINDS[p.kind], names, "part"), whole], {"shape": np.array(p.shape, np.int64)}


def drawn(p: Compare, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Halves of whole numbers, of which many are equal."""
    return np.rint(2 * values) / np.float32(2)
