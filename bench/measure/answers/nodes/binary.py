"""Element-wise arithmetic in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import helper

from bench.measure.answers.nodes._common import Nodes, node
from kernels.ops.binary import BINARY_KINDS, Binary

_KINDS = {kind: kind.capitalize() for kind in BINARY_KINDS} | {"fmod": "Mod", "prelu": "PRelu"}


def nodes(p: Binary, names: Sequence[str], output: str) -> Nodes:
    attributes: dict[str, Any] = {"fmod": 1} if p.kind == "fmod" else {}
    whole = helper.make_node("Expand", ["whole", "shape"], [output], name="expand")
    shape = {"shape": np.array(p.shape, np.int64)}
    if p.kind != "prelu":
        made = node(_KINDS[p.kind], names, "whole", **attributes)
        return [made, whole], shape
    # Slopes are broadcast to x, and x is not to them.
    whole = helper.make_node("Expand", [names[0], "shape"], ["whole"], name="expand")
    return [whole, node("PRelu", ["whole", names[1]], output)], shape


def drawn(p: Binary, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """What divides is bounded away from 0, and what is raised to a power is above it."""
    if p.kind in ("div", "mod", "fmod") and place == 1:
        values += np.copysign(np.float32(1), values)
    if p.kind == "pow" and place == 0:
        values[...] = np.abs(values) + np.float32(0.1)
    return values
