"""Rows of a tensor replaced, or joined with others, in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.measure.answers.nodes._common import Nodes, node
from kernels.ops.scatter import Scatter


def nodes(p: Scatter, names: Sequence[str], output: str) -> Nodes:
    x, places, updates = names
    reduction = "none" if p.kind == "put" else p.kind
    return [
        node("Reshape", [places, "column"], "rows"),
        node("ScatterND", [x, "rows", updates], output, reduction=reduction),
    ], {"column": np.array([-1, 1], np.int64)}


def drawn(p: Scatter, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Places anywhere, some of them counted from the end; none twice where that would leave it open what is
    put there."""
    if place != 1:
        return values
    if p.kind == "put" and p.count <= p.size:
        chosen = random.permutation(p.size)[: p.count]
        return chosen - p.size * random.integers(0, 2, p.count)
    return random.integers(-p.size, p.size, values.shape)
