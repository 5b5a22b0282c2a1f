"""Values that lie half-way between two steps of QuantizeLinear, or next to that.

Exactly half-way it rounds to the even step. Next to that, the last bit of a sum in float32 decides, so that
one of two right answers is a whole step off. The distance by which an answer moves when every such value is
rounded the other way is what an answer may be off by, in every file. If all are, their effects may cancel out
before the last QuantizeLinear, where an answer in which only some are is a step off. So some are, too, drawn
by chance.

What ONNX Runtime's optimiser makes of quantised operators may take the second nearest step of any value, as
its Softmax of eight bits does. How far an answer moves where all values do that is what its own answer may be
off by.
"""

from __future__ import annotations

import zlib
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
SECOND = 0.5 - NEAR  # so near every value is that does not lie on a step itself
# Of the distance to the answer in which every such value is rounded the other way: what lies behind may
# double the part of some of them.
TIMES = 2.0
# How often it is drawn which of them are, in how many different shares of all, and for how many seconds,
# before an answer is called wrong.
DRAWS, PARTS, MOST_S = 60, 6, 2.0


def quantizes(graph: Graph) -> bool:
    return any(node.op_type in QUANTIZING for node in graph.nodes)


def other_way(nodes: Iterable[onnx.NodeProto], near: float = NEAR, draw: int = 0) -> list[onnx.NodeProto]:
    """The nodes, with every value that is rounded so near to half-way (a part of a step) moved to the other
    side of it; draw: of these some (`drawn`)."""
    found = []
    for node in nodes:
        if node.op_type not in QUANTIZING:
            found.append(node)
            continue
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        if node.op_type == "DynamicQuantizeLinear":
            moved = copy
            copy.op_type, copy.domain = OTHER_DYNAMIC, roundings.DOMAIN
        else:
            copy.input[0] = f"{node.output[0]}:other way"
            read = [*node.input[:2]]
            moved = onnx.helper.make_node(OTHER_WAY, read, [copy.input[0]], domain=roundings.DOMAIN)
            moved.attribute.extend(it for it in node.attribute if it.name in ("axis", "block_size"))
            found.append(moved)
        given = {"near": near, "draw": draw}
        moved.attribute.extend(onnx.helper.make_attribute(name, value) for name, value in given.items())
        found.append(copy)
    return found


def other_side(values: np.ndarray, near: float = NEAR, where: np.ndarray | None = None) -> np.ndarray:
    """Steps (float64), those so near to half-way moved to the other side of it. where: of these alone."""
    known = np.where(np.isfinite(values), values, 0.0)
    half = np.floor(known) + 0.5
    off = known - half
    close = np.abs(off) <= near + OF_VALUE * np.abs(known)
    if where is not None:
        close &= where
    even = np.where(np.floor(known) % 2 == 0, 1.0, -1.0)  # half-way itself goes to the even step
    away = np.maximum(np.abs(off), NEAR)
    side = np.where(off == 0, even, -np.sign(off))
    return np.where(close & np.isfinite(values), half + side * away, values)


def drawn(name: str, draw: int, shape: tuple[int, ...]) -> np.ndarray | None:
    """Which values of a node a draw moves, if they are near to half-way; None: all. A kernel may round one in
    two of them otherwise, or one in fifty: each draw has another part."""
    if draw == 0:
        return None
    random = np.random.default_rng((zlib.crc32(name.encode()), draw))
    return random.random(shape) < 0.5 ** (1 + (draw - 1) % PARTS)


def rounded_otherwise(
    x: np.ndarray, scale: np.ndarray, axis: int, block: int, near: float, where: np.ndarray | None
) -> np.ndarray:
    """x with what QuantizeLinear rounds near to half-way on the other side of it, as `other_side`. axis,
    block: the node's attributes."""
    scale = np.asarray(scale, np.float64)
    if scale.size == 1:
        scale = scale.reshape(())
    elif block:
        scale = np.take(np.repeat(scale, block, axis), np.arange(x.shape[axis]), axis)
    else:
        scale = scale.reshape([-1 if at == axis % x.ndim else 1 for at in range(x.ndim)])
    with np.errstate(all="ignore"):
        steps = np.asarray(x, np.float64) / scale
        moved = other_side(steps, near, where)
        return np.where(steps == moved, x, moved * scale)
