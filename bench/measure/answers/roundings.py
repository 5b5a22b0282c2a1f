"""A model in float64 whose tensors move by one rounding of float32 on the way: how far its answer moves then
is what no two right answers in float32 can be held to.

Moving the inputs alone would not tell: with weights that are all alike every score moves as the others do,
and scores so large that a rounding decides between equal ones (1e12 before a softmax) seem firm.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable

import numpy as np
import onnx
from onnx.reference.op_run import OpRun

DOMAIN = "kernelscope.roundings"


def one_rounding(array: np.ndarray, precision: str, random: np.random.Generator) -> np.ndarray:
    """Every element moved by one rounding of the format, up or down at random; whole numbers as they are."""
    if array.dtype.kind != "f":
        return array
    unit = float(np.finfo(np.float16 if precision == "fp16" else np.float32).eps) / 2
    return array.astype(np.float64) * (1 + unit * random.choice((-1.0, 1.0), array.shape))


class OneRounding(OpRun):
    """Every element moved by half a rounding of float32 to a whole one, the same in every run: were all moved
    by as much, equal scores would stay equal in two halves."""

    op_domain = DOMAIN

    def _run(self, x):
        random = np.random.default_rng(zlib.crc32(self.onnx_node.output[0].encode()))
        array = np.asarray(x)
        moved = one_rounding(array, "fp32", random)
        if array.dtype.kind != "f":
            return (moved,)
        return (np.asarray(array + (moved - array) * random.uniform(0.5, 1.0, array.shape)),)


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
                made = onnx.helper.make_node(OneRounding.__name__, [f"{name}:unmoved"], [name], domain=DOMAIN)
                found.append(made)
    return found
