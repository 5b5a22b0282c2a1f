"""Functions of one element in ONNX's nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bench.measure.answers.nodes._common import ACTIVATIONS, LARGE, Nodes, node
from kernels.ops.unary import UNARY_KINDS, Unary

_NAMES = {
    **{kind: kind.capitalize() for kind in UNARY_KINDS},
    **ACTIVATIONS,
    "leaky_relu": "LeakyRelu",
    "thresholded_relu": "ThresholdedRelu",
    "hard_sigmoid": "HardSigmoid",
    "hard_swish": "HardSwish",
}
# What ONNX calls alpha and beta, where these are attributes.
_ATTRIBUTES = {
    **dict.fromkeys(("leaky_relu", "thresholded_relu", "elu", "celu"), ("alpha",)),
    "hard_sigmoid": ("alpha", "beta"),
    "selu": ("alpha", "gamma"),
    "shrink": ("lambd", "bias"),
}
# Those of an opset beyond that of a single operator, and those whose parameters are inputs, in other nodes.
_Made = Callable[[str, str], list[Any]]


def nodes(p: Unary, names: Sequence[str], output: str) -> Nodes:
    if p.kind in _COMPOSED:
        constants = {
            "alpha": p.alpha,
            "beta": p.beta,
            "half": 0.5,
            "one": 1.0,
            "cube": 0.044715,
            "root_half": math.sqrt(0.5),
            "root_of_pi": math.sqrt(2 / math.pi),
        }
        made = _COMPOSED[p.kind](names[0], output)
        read = {name for each in made for name in each.input}
        return made, {name: np.array(value, p.dtype) for name, value in constants.items() if name in read}
    attributes = dict(zip(_ATTRIBUTES.get(p.kind, ()), (p.alpha, p.beta), strict=False))
    return [node(_NAMES[p.kind], names, output, **attributes)], {}


def drawn(p: Unary, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Some are so large that an exponential overflows for whoever does not see to it; where the function has
    no value for all numbers, or none that float32 holds, those that it has one for."""
    flat = values.reshape(-1)
    if p.kind in ("asin", "acos", "atanh"):
        values[...] = np.tanh(values)
    elif p.kind in ("log", "sqrt", "acosh", "reciprocal", "pow"):
        values[...] = np.abs(values) + np.float32(1 if p.kind == "acosh" else 0.1)
    elif p.kind in ("exp", "sinh", "cosh"):
        flat[3::4] *= 8
    elif p.kind == "tan":
        values[...] = np.arctan(values)
    elif np.dtype(p.dtype).kind == "f":
        flat[3::4] *= LARGE
    return values


def _swish(x: str, y: str) -> list[Any]:
    return [
        node("Mul", [x, "alpha"], "scaled"),
        node("Sigmoid", ["scaled"], "gate"),
        node("Mul", [x, "gate"], y),
    ]


def _halved(inside: list[Any], x: str, y: str) -> list[Any]:
    """x · (1 + gate) / 2."""
    behind = [node("Add", ["gate", "one"], "sum"), node("Mul", [x, "sum"], "twice")]
    return [*inside, *behind, node("Mul", ["twice", "half"], y)]


def _gelu(x: str, y: str) -> list[Any]:
    return _halved([node("Mul", [x, "root_half"], "scaled"), node("Erf", ["scaled"], "gate")], x, y)


def _gelu_tanh(x: str, y: str) -> list[Any]:
    inside = [
        node("Mul", [x, x], "square"),
        node("Mul", ["square", x], "third"),
        node("Mul", ["third", "cube"], "small"),
        node("Add", [x, "small"], "whole"),
        node("Mul", ["whole", "root_of_pi"], "scaled"),
        node("Tanh", ["scaled"], "gate"),
    ]
    return _halved(inside, x, y)


_COMPOSED: dict[str, _Made] = {
    "clip": lambda x, y: [node("Clip", [x, "alpha", "beta"], y)],
    "pow": lambda x, y: [node("Pow", [x, "alpha"], y)],
    "swish": _swish,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
}
