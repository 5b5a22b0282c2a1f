"""Sums or products of all that comes before, in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.measure.answers.nodes._common import Nodes, node
from kernels.ops.cumulate import Cumulate


def nodes(p: Cumulate, names: Sequence[str], output: str) -> Nodes:
    """CumSum; of products, which have no operator before opset 26, a ReduceProd of what is chosen for each
    place."""
    if p.kind == "sum":
        made = node("CumSum", [*names, "axis"], output, exclusive=int(p.exclusive), reverse=int(p.reverse))
        return [made], {"axis": np.array(1, np.int64)}
    places = np.arange(p.axis)
    before = places[:, None] > places if p.exclusive else places[:, None] >= places
    chosen = before.T if p.reverse else before
    return [
        node("Unsqueeze", [*names, "second"], "rows"),
        node("Where", ["chosen", "rows", "one"], "kept"),
        node("ReduceProd", ["kept", "third"], output, keepdims=0),
    ], {
        "second": np.array([1], np.int64),
        "third": np.array([2], np.int64),
        "chosen": chosen[None, :, :, None],
        "one": np.array(1, p.dtype),
    }


def drawn(p: Cumulate, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Factors round 1, so that products of many stay numbers."""
    if p.kind == "prod" and np.dtype(p.dtype).kind == "f":
        return np.exp2(values / np.float32(np.sqrt(p.axis + 4)))
    return values
