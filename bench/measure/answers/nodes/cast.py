"""Change of the element type in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import helper

from bench.measure.answers.nodes._common import Nodes, as_drawn, node
from kernels.ops.cast import Cast

drawn = as_drawn


def nodes(p: Cast, names: Sequence[str], output: str) -> Nodes:
    return [node("Cast", names, output, to=helper.np_dtype_to_tensor_dtype(np.dtype(p.to)))], {}
