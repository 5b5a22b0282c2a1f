"""Rows brought to mean 0 and deviation 1, in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.measure.answers.nodes._common import Nodes, node
from kernels.ops.normalize import Normalize


def nodes(p: Normalize, names: Sequence[str], output: str) -> Nodes:
    """LayerNormalization where that says it all; else its parts, as exporters of older opsets write them."""
    if p.gives == "all" and p.centred and p.inner == p.groups == 1:
        extra = {} if p.affine else {"ones": np.ones(p.length, p.dtype)}
        return [node("LayerNormalization", [*names, *extra], output, axis=1, epsilon=p.epsilon)], extra
    return _parts(p, names, output)


def _parts(p: Normalize, names: Sequence[str], output: str) -> Nodes:
    x, extra = names[0], {"axes": np.array([1], np.int64)}
    made = []
    if p.centred:
        made.append(node("ReduceMean", [x, "axes"], output if p.gives == "mean" else "mean"))
        if p.gives == "mean":
            return made, extra
        made.append(node("Sub", [x, "mean"], "moved"))
        x = "moved"
    extra["epsilon"] = np.array(p.epsilon, p.dtype)
    made += [
        node("Mul", [x, x], "squares"),
        node("ReduceMean", ["squares", "axes"], "variance"),
        node("Add", ["variance", "epsilon"], "above_zero"),
        node("Sqrt", ["above_zero"], "deviation"),
    ]
    if p.gives == "factor":
        return [*made, node("Reciprocal", ["deviation"], output)], extra
    made.append(node("Div", [x, "deviation"], "normal" if p.affine else output))
    if p.affine:
        parts = (p.groups, p.length // p.inner)
        extra |= {
            "parts": np.array([-1, *parts, p.inner], np.int64),
            "column": np.array([1, *parts, 1], np.int64),
            "whole": np.array([p.count, p.length], np.int64),
        }
        made += [
            node("Reshape", ["normal", "parts"], "apart"),
            node("Reshape", [names[1], "column"], "scales"),
            node("Reshape", [names[2], "column"], "shifts"),
            node("Mul", ["apart", "scales"], "scaled"),
            node("Add", ["scaled", "shifts"], "shifted"),
            node("Reshape", ["shifted", "whole"], output),
        ]
    return made, extra


def drawn(p: Normalize, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Rows whose mean is not 0, so that it matters."""
    return values + np.float32(1) if place == 0 else values
