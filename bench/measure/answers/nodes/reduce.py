"""One axis reduced to a number, in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.measure.answers.nodes._common import LARGE, Nodes, node
from kernels.ops.reduce import PLACES, Reduce

_NAMES = {
    "sum": "ReduceSum",
    "mean": "ReduceMean",
    "max": "ReduceMax",
    "min": "ReduceMin",
    "prod": "ReduceProd",
    "l1": "ReduceL1",
    "l2": "ReduceL2",
    "sumsquare": "ReduceSumSquare",
    "logsum": "ReduceLogSum",
    "logsumexp": "ReduceLogSumExp",
    "argmax": "ArgMax",
    "argmin": "ArgMin",
}


def nodes(p: Reduce, names: Sequence[str], output: str) -> Nodes:
    if p.kind in PLACES:
        how = {"axis": 1, "keepdims": 0, "select_last_index": int(p.last)}
        return [node(_NAMES[p.kind], names, output, **how)], {}
    axes = {"axes": np.array([1], np.int64)}
    return [node(_NAMES[p.kind], [*names, *axes], output, keepdims=0)], axes


def drawn(p: Reduce, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Of a logarithm positive, of a product near 1, of exponentials some rows so large that one overflows."""
    if p.kind == "logsum":
        return np.abs(values)
    if p.kind == "prod":
        return np.float32(1) + values / np.sqrt(np.float32(p.axis + 4))
    if p.kind == "logsumexp":
        values += LARGE * random.standard_normal((p.outer, 1, p.inner), np.float32)
    return values
