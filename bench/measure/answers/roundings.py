"""A model in float64 whose tensors move by one rounding of float32 on the way: how far its answer moves then
is what no two right answers in float32 can be held to.

Moving the inputs alone would not tell: with weights that are all alike every score moves as the others do,
and scores so large that a rounding decides between equal ones (1e12 before a softmax) seem firm.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np
import onnx

DOMAIN, ROUNDING = "kernelscope.roundings", "OneRounding"  # bench.measure.answers.operators.mended has it


def one_rounding(array: np.ndarray, precision: str, random: np.random.Generator) -> np.ndarray:
    """Every element moved by one rounding of the format, up or down at random; whole numbers as they are."""
    if array.dtype.kind != "f":
        return array
    unit = float(np.finfo(np.float16 if precision == "fp16" else np.float32).eps) / 2
    return array.astype(np.float64) * (1 + unit * random.choice((-1.0, 1.0), array.shape))


def moving(nodes: Iterable[onnx.NodeProto], tensors: Collection[str]) -> list[onnx.NodeProto]:
    """The nodes, with each of these tensors moved by one rounding between who makes it and who reads it."""
    found = []
    for node in nodes:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        found.append(copy)
        for index, name in enumerate(node.output):
            if name and name in tensors:
                copy.output[index] = f"{name}:unmoved"
                made = onnx.helper.make_node(ROUNDING, [f"{name}:unmoved"], [name], domain=DOMAIN)
                found.append(made)
    return found
