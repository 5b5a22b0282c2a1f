"""Values that lie half-way between two steps of QuantizeLinear, or next to that.

Exactly half-way it rounds to the even step. Next to that, the last bit of a sum in float32 decides, so that
one of two right answers is a whole step off. The distance by which an answer moves when every such value is
rounded the other way is what an answer may be off by, in every file.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import onnx

from bench.measure.answers import roundings
from engine.graph.graph import Graph

OTHER_WAY, OTHER_DYNAMIC = "OtherWay", "OtherDynamic"  # bench.measure.answers.operators.mended has them
QUANTIZING = ("QuantizeLinear", "DynamicQuantizeLinear")
# How near to half-way rounding decides: a part of a step, and of the value itself. A sum of n products in
# float32 is off by up to n/2 roundings of what the sizes of its terms add up to, a blocked one by far less.
NEAR, OF_VALUE = 2.0**-11, 2.0**-20
# Of the distance to the answer in which every such value is rounded the other way: what lies behind may
# double the part of some of them.
TIMES = 2.0


def quantizes(graph: Graph) -> bool:
    return any(node.op_type in QUANTIZING for node in graph.nodes)


def other_way(nodes: Iterable[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """The nodes, with every value that is rounded near to half-way moved to the other side of it."""
    found = []
    for node in nodes:
        if node.op_type not in QUANTIZING:
            found.append(node)
            continue
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        if node.op_type == "DynamicQuantizeLinear":
            copy.op_type, copy.domain = OTHER_DYNAMIC, roundings.DOMAIN
            found.append(copy)
            continue
        copy.input[0] = f"{node.output[0]}:other way"
        moved = onnx.helper.make_node(OTHER_WAY, [*node.input[:2]], [copy.input[0]], domain=roundings.DOMAIN)
        moved.attribute.extend(it for it in node.attribute if it.name in ("axis", "block_size"))
        found += [moved, copy]
    return found


def other_side(values: np.ndarray) -> np.ndarray:
    """Steps (float64), those near to half-way moved to the other side of it."""
    known = np.where(np.isfinite(values), values, 0.0)
    half = np.floor(known) + 0.5
    off = known - half
    near = np.abs(off) <= NEAR + OF_VALUE * np.abs(known)
    even = np.where(np.floor(known) % 2 == 0, 1.0, -1.0)  # half-way itself goes to the even step
    away = np.maximum(np.abs(off), NEAR)
    side = np.where(off == 0, even, -np.sign(off))
    return np.where(near & np.isfinite(values), half + side * away, values)


def rounded_otherwise(x: np.ndarray, scale: np.ndarray, axis: int, block: int) -> np.ndarray:
    """x with what QuantizeLinear rounds near to half-way on the other side of it. axis, block: the node's
    attributes."""
    scale = np.asarray(scale, np.float64)
    if scale.size == 1:
        scale = scale.reshape(())
    elif block:
        scale = np.take(np.repeat(scale, block, axis), np.arange(x.shape[axis]), axis)
    else:
        scale = scale.reshape([-1 if at == axis % x.ndim else 1 for at in range(x.ndim)])
    with np.errstate(all="ignore"):
        steps = np.asarray(x, np.float64) / scale
        moved = other_side(steps)
        return np.where(steps == moved, x, moved * scale)
