"""Element-wise arithmetic in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import helper

from bench.measure.answers.nodes._common import Nodes, node
from kernels.ops.binary import Binary

_KINDS = {"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div"}


def nodes(p: Binary, names: Sequence[str], output: str) -> Nodes:
    whole = helper.make_node("Expand", ["part", "shape"], [output], name="expand")
    return [node(_KINDS[p.kind], names, "part"), whole], {"shape": np.array(p.shape, np.int64)}


def drawn(p: Binary, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """What divides is bounded away from 0."""
    if p.kind == "div" and place == 1:
        values += np.copysign(np.float32(1), values)
    return values
