"""Places along an axis picked by their numbers, in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.measure.answers.nodes._common import Nodes, node
from kernels.ops.gather import Gather


def nodes(p: Gather, names: Sequence[str], output: str) -> Nodes:
    return [node("Gather", names, output, axis=1)], {}


def drawn(p: Gather, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Places anywhere on the axis, some of them counted from its end."""
    return random.integers(-p.axis, p.axis, values.shape) if place == 1 else values
