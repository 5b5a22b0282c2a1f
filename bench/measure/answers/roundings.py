"""How far a model's answer moves in float64 if each tensor on the way moves by one rounding of the type in
which it is stored. Two right answers can differ by that much.

Moving only the inputs would not show it. If all weights are alike, every score moves in the same way as the
others; and scores so large that a rounding decides between equal ones (1e12 before a softmax) would look
certain.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

import ml_dtypes
import numpy as np
import onnx

from engine.graph.graph import Graph
from engine.ops import DEFAULT_DOMAINS
from engine.passes import known
from kernels import precision as precisions
from kernels.errors import KernelscopeError
from kernels.ops import WIDER

# bench.measure.answers.operators.mended has these.
DOMAIN, ROUNDING, STORED = "kernelscope.roundings", "OneRounding", "Stored"
# What adds many terms of its first input: some of these start from sums of squares, which have one sign.
SUMS = frozenset(
    ("ReduceSum", "ReduceMean", "ReduceSumSquare", "ReduceL1", "ReduceL2", "GlobalAveragePool", "AveragePool")
)
MOST_OF_SUM = 16  # roundings of float32: 1e-6 of the sum


def narrow(graph: Graph, batch: int) -> Mapping[str, str]:
    """The types of those tensors that are stored in less than float32: every kernel rounds what it gives to
    that (engine.passes.widen), and so does ONNX Runtime."""
    try:
        specs = known(graph, graph.fixed_batch or batch).specs
    except KernelscopeError:
        return {}
    return {name: spec.dtype for name, spec in specs.items() if WIDER.get(spec.dtype) == "float32"}


def coarsest(graph: Graph, batch: int) -> float:
    """The largest rounding of a tensor of less than float32; 0.0 where there is none."""
    return max(map(unit, set(narrow(graph, batch).values())), default=0.0)


def unit(dtype: str) -> float:
    """The largest relative error of one rounding to a type; of wider ones and whole numbers float32's."""
    return float(ml_dtypes.finfo(dtype if WIDER.get(dtype) == "float32" else "float32").eps) / 2


def one_rounding(
    array: np.ndarray, precision: str, random: np.random.Generator, dtype: str = "float32"
) -> np.ndarray:
    """Every element moved by one rounding of the format or of its type, the coarser, up or down at random;
    whole numbers as they are."""
    if "float" not in array.dtype.name:
        return array
    off = max(unit(dtype), unit(held) if (held := precisions.narrow(precision)) else 0.0)
    return array.astype(np.float64) * (1 + off * random.choice((-1.0, 1.0), array.shape))


def stored(nodes: Iterable[onnx.NodeProto], exact: Collection[str]) -> list[onnx.NodeProto]:
    """The nodes, with a Cast of what is exact (a model's input) to a type of 16 bits as a rounding. Others
    keep float64: of what was computed no two backends round the same numbers. But of what a model is fed they
    do, and pictures have few different values, whose errors do not cancel."""
    found = []
    for node in nodes:
        if node.op_type == "Cast" and node.domain in DEFAULT_DOMAINS and node.input[0] in exact:
            to = next((it.i for it in node.attribute if it.name == "to"), 0)
            if to in (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16):
                node = onnx.helper.make_node(STORED, node.input, node.output, node.name, domain=DOMAIN, to=to)
        found.append(node)
    return found


def of_sum(terms: float) -> float:
    """How many roundings a sum in float32 is off by, of terms of one sign that are added in a few lanes: each
    addition rounds by chance; no more than what sums in blocks are held to (1e-6)."""
    return float(np.clip(math.sqrt(terms) / 4, 1, MOST_OF_SUM))


def moving(
    nodes: Iterable[onnx.NodeProto], tensors: Mapping[str, str], draw: int = 0
) -> list[onnx.NodeProto]:
    """The nodes, with each of these tensors moved by one rounding of its type between who makes it and who
    reads it; a long sum by as many as its terms bring along (OneRounding is told what it is the sum of)."""
    found = []
    for node in nodes:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        found.append(copy)
        for index, name in enumerate(node.output):
            if name and name in tensors and node.op_type != STORED:
                copy.output[index] = f"{name}:unmoved"
                summed = [node.input[0]] if node.op_type in SUMS and node.domain in DEFAULT_DOMAINS else []
                made = onnx.helper.make_node(
                    ROUNDING,
                    [f"{name}:unmoved", *summed],
                    [name],
                    domain=DOMAIN,
                    dtype=tensors[name],
                    draw=draw,
                )
                found.append(made)
    return found
