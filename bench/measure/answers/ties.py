"""Ties: values half-way between two steps of QuantizeLinear, or so near to half-way that rounding errors
decide.

QuantizeLinear divides a value by its scale, and rounds to a whole number, the step. A value exactly half-way
goes to the even step. Near to half-way, the last bit of a float32 sum decides. So two correct programs can
differ by a whole step there. Therefore the model is computed again with every tie rounded the other way. An
answer may be off by as much as that moves the right answer; this holds for every model file.

If all ties are rounded the other way, their effects may cancel out before the last QuantizeLinear. A program
that rounds only some of them the other way is then a step off. So the model is also computed with some ties
rounded the other way, drawn at random.

The optimiser of ONNX Runtime may round any quantised value to the second nearest step, as its 8-bit Softmax
does. An answer of ONNX Runtime may be off by as much as the right answer moves if all values are rounded so.
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
# Operators of whole numbers that quantise what they have worked out; their nodes are told what to do with
# ties (bench.measure.answers.operators.quantized).
WITHIN = (
    *("QLinearConv", "QLinearMatMul", "QGemm", "QLinearAdd", "QLinearMul", "QLinearConcat"),
    *("QLinearAveragePool", "QLinearGlobalAveragePool"),
    *("QLinearSoftmax", "QLinearLeakyRelu", "QLinearSigmoid"),
)
# A value is a tie if it is this near to half-way: NEAR of a step, plus OF_VALUE of the value itself. A
# float32 sum of n products is off by up to n/2 roundings of the sum of their absolute values; a blocked sum
# by far less.
NEAR, OF_VALUE = 2.0**-11, 2.0**-20
SECOND = 0.5 - NEAR  # as `near`: every value is so near to half-way unless it lies on a step itself
# Factor for the distance to the answer with ties rounded the other way: layers behind may double the effect
# of some of them.
TIMES = 2.0
# How many random choices of ties are tried before an answer is called wrong, how many different shares of all
# ties they have, and for how many seconds they are tried at most.
DRAWS, PARTS, MOST_S = 60, 6, 2.0


def quantizes(graph: Graph) -> bool:
    """Whether the graph quantises values: it has one of QUANTIZING or WITHIN."""
    return any(node.op_type in (*QUANTIZING, *WITHIN) for node in graph.nodes)


def other_way(nodes: Iterable[onnx.NodeProto], near: float = NEAR, draw: int = 0) -> list[onnx.NodeProto]:
    """The same nodes, but with ties rounded the other way. A node that moves ties (operator OTHER_WAY) is put
    before each QuantizeLinear, OTHER_DYNAMIC replaces DynamicQuantizeLinear, and a node of WITHIN has the
    attributes `near` and `draw`; other nodes stay. near: how near to half-way a tie is, in steps. draw: 0:
    all ties; else the number of a random choice of them (see `drawn`)."""
    found = []
    for node in nodes:
        if node.op_type not in (*QUANTIZING, *WITHIN):
            found.append(node)
            continue
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        if node.op_type in WITHIN:
            moved = copy
        elif node.op_type == "DynamicQuantizeLinear":
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
    """Move values that are so near to half-way to the other side of it. values: float64, in steps (divided by
    the scale), any shape. near: in steps. where: boolean, the same shape: only these are moved. Returns
    float64 of the same shape; NaN and infinity stay."""
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
    """A random choice: which values of a node are moved if they are ties. name: of the node's output; the
    same name, draw and shape give the same choice. Returns booleans of this shape; None for draw 0: all. A
    kernel may round every second tie the other way, or one in fifty, so the share that is chosen depends on
    draw: 1/2, 1/4, …, 1/64, and again."""
    if draw == 0:
        return None
    random = np.random.default_rng((zlib.crc32(name.encode()), draw))
    return random.random(shape) < 0.5 ** (1 + (draw - 1) % PARTS)


def rounded_otherwise(
    x: np.ndarray, scale: np.ndarray, axis: int, block: int, near: float, where: np.ndarray | None
) -> np.ndarray:
    """x, with the values that QuantizeLinear rounds as ties moved to the other side of half-way. x: any
    shape, not divided by the scale yet. scale: one number, one for each place of `axis`, or one for each
    `block` places. axis, block: the attributes `axis` and `block_size` of QuantizeLinear. near, where: as in
    `other_side`. Returns an array of x's shape; float64, if x is no wider."""
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
