"""Matrix product of eight-bit numbers in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.measure.answers.nodes import _quantized, gemm
from bench.measure.answers.nodes._common import Nodes, node
from bench.measure.answers.nodes._quantized import drawn, finished
from kernels.ops.qgemm import QGemm

__all__ = ["drawn", "elements", "nodes"]


def nodes(p: QGemm, names: Sequence[str], output: str) -> Nodes:
    """One b for all is a matrix, which zero points a column need."""
    a, b, *others = names
    first = []
    if p.product.trans_b:
        first.append(node("Transpose", [b], "b_turned", perm=[0, 2, 1]))
        b = "b_turned"
    if p.input_shapes[1][0] == 1:
        first.append(node("Squeeze", [b, "front"], "b_alone"))
        b = "b_alone"
    made, extra = _quantized.nodes(p, [a, b, *others], "product", "MatMul", -1, {})
    # Of one a for several b's too, and the other way round.
    made.append(node("Expand", ["product", "whole"], output))
    extra |= {"front": np.array([0], np.int64), "whole": np.array(p.output_shape, np.int64)}
    return [*first, *made], extra


def elements(p: QGemm, inputs: Sequence[np.ndarray], places: np.ndarray) -> np.ndarray:
    """See bench.measure.answers.elements."""
    column = np.unravel_index(places, p.output_shape)[2]
    zeros = inputs[3].astype(np.int64).reshape((1, -1, 1) if p.product.trans_b else (1, 1, -1))
    b = inputs[1].reshape(p.input_shapes[1]).astype(np.int64) - zeros
    less = [inputs[0].astype(np.int64) - inputs[2].astype(np.int64), b]
    return finished(p, gemm.elements(p.product, less, places), column, inputs[4:])
