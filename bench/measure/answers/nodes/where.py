"""A choice between two operands in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import helper

from bench.measure.answers.nodes._common import Nodes, as_drawn, node
from kernels.ops.where import Where

drawn = as_drawn


def nodes(p: Where, names: Sequence[str], output: str) -> Nodes:
    whole = helper.make_node("Expand", ["part", "shape"], [output], name="expand")
    return [node("Where", names, "part"), whole], {"shape": np.array(p.shape, np.int64)}
