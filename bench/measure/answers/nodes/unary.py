"""Functions of one element in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.measure.answers.nodes._common import ACTIVATIONS, LARGE, Nodes, node
from kernels.ops.unary import Unary

_KINDS = ACTIVATIONS | {"identity": "Identity"}


def nodes(p: Unary, names: Sequence[str], output: str) -> Nodes:
    return [node(_KINDS[p.kind], names, output)], {}


def drawn(p: Unary, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Some are so large that an exponential overflows for whoever does not see to it."""
    if np.dtype(p.dtype).kind == "f":
        values.reshape(-1)[3::4] *= LARGE
    return values
