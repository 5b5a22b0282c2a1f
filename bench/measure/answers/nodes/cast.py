"""Change of the element type in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import helper

from bench.measure.answers.nodes._common import Nodes, node
from kernels.ops import EXPONENTS, FLOATS8
from kernels.ops.cast import Cast


def drawn(p: Cast, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Normal values; positive where a type has no sign."""
    unsigned = any(name == EXPONENTS or name.startswith("uint") for name in (p.dtype, p.to))
    return np.abs(values) if unsigned else values


def nodes(p: Cast, names: Sequence[str], output: str) -> Nodes:
    how: dict[str, int | str] = {"saturate": int(p.saturate)} if p.to in (*FLOATS8, EXPONENTS) else {}
    if p.to == EXPONENTS:
        how["round_mode"] = p.towards
    return [node("Cast", names, output, to=helper.np_dtype_to_tensor_dtype(np.dtype(p.to)), **how)], {}
