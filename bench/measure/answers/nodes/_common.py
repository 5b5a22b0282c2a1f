"""What the operators' nodes are made with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import helper

from kernels.ops import Params
from kernels.ops.conv import Conv
from kernels.ops.pool import Pool

ACTIVATIONS = {"relu": "Relu", "tanh": "Tanh", "sigmoid": "Sigmoid"}
LARGE = np.float32(100)  # exp(89) is float32's infinity
Nodes = tuple[list[Any], dict[str, np.ndarray]]
Taps = tuple[np.ndarray, np.ndarray]


def node(kind: str, inputs: Sequence[str], output: str, **attributes: Any) -> Any:
    """An ONNX node, named after what it is and what it gives."""
    return helper.make_node(kind, list(inputs), [output], name=f"{kind.lower()}_{output}", **attributes)


def activate(nodes: list[Any], kind: str | None, linear: str, output: str) -> None:
    """An activation behind the last of the nodes, whose output becomes `linear`; none for None."""
    if kind:
        nodes[-1].output[0] = linear
        if kind == "relu6":
            bounds = {f"{output}:lower": 0.0, f"{output}:upper": 6.0}
            nodes += [node("Constant", (), name, value_float=value) for name, value in bounds.items()]
            nodes.append(node("Clip", [linear, *bounds], output))
        else:
            nodes.append(node(ACTIVATIONS[kind], [linear], output))


def as_drawn(p: Params, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """The normal values themselves."""
    return values


def window(p: Conv | Pool) -> dict[str, Any]:
    """The attributes of a window."""
    return {
        "kernel_shape": [p.kh, p.kw],
        "strides": [p.stride_h, p.stride_w],
        "pads": [p.pad_top, p.pad_left, p.pad_bottom, p.pad_right],
        "dilations": [p.dilation_h, p.dilation_w],
    }


# ---------------------------------------------------------------------------------------- single elements


def activated(values: np.ndarray, kind: str | None) -> np.ndarray:
    """An activation of float64 values."""
    if kind is None:
        return values
    if kind == "tanh":
        return np.tanh(values)
    if kind == "sigmoid":
        return np.exp(-np.logaddexp(0.0, -values))
    return np.clip(values, 0.0, 6.0 if kind == "relu6" else None)


def reached(place: np.ndarray, size: int, kernel: int, stride: int, pad: int, dilation: int) -> Taps:
    """Of one axis: where the taps of the windows of these outputs lie, (count, kernel), and which of them lie
    within."""
    at = place[:, None] * stride - pad + np.arange(kernel) * dilation
    inside = (at >= 0) & (at < size)
    return np.where(inside, at, 0), inside
