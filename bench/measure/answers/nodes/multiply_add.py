"""A product and a sum in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import helper

from bench.measure.answers.nodes._common import Nodes, as_drawn, node
from kernels.ops.multiply_add import MultiplyAdd

drawn = as_drawn


def nodes(p: MultiplyAdd, names: Sequence[str], output: str) -> Nodes:
    made = [node("Mul", names[:2], "product"), node("Add", ["product", names[2]], "part")]
    whole = helper.make_node("Expand", ["part", "shape"], [output], name="expand")
    return [*made, whole], {"shape": np.array(p.shape, np.int64)}
