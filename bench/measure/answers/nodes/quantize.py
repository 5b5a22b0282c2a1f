"""Numbers brought to eight bits and back, in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import helper

from bench.measure.answers.nodes._common import Nodes, node
from kernels.ops.quantize import Quantize

_STEP = np.float32(2**-7)


def nodes(p: Quantize, names: Sequence[str], output: str) -> Nodes:
    x, scale, zero = names
    to = helper.np_dtype_to_tensor_dtype(np.dtype(p.through))
    made, given = [node("Cast", [zero], "zero", to=to)], [scale, "zero"]
    if p.dtype == "float32":
        whole = output if p.to == p.through else "whole"
        made.append(node("QuantizeLinear", [x, *given], whole, axis=1))
        x = whole
    if p.to == "float32":
        made.append(node("DequantizeLinear", [x, *given], output, axis=1))
    return made, {}


def drawn(p: Quantize, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Scales that are powers of two and values in whole steps: quotients are exact, many of them halves, and
    some are beyond what the type holds."""
    if place == 0:
        return np.rint(values / _STEP) * _STEP if p.dtype == "float32" else values
    if place == 1:
        return np.exp2(np.clip(np.rint(values), -1, 1) - 6).astype(np.float32)
    low, high = p.limits
    return np.zeros_like(values) if p.through == "int32" else np.rint(10 * values + (low + high + 1) // 2)
