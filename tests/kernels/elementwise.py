"""Samples of element-wise operators and of what moves elements: every kind with parameters that mean
something, inputs for it, and its answer by onnx.reference in float64 (in the element type itself where that
is not floating point)."""

from __future__ import annotations

import math

import numpy as np

from bench.measure.answers import one_node, oracle
from kernels.ops import Params
from kernels.ops.binary import BINARY_KINDS, Binary
from kernels.ops.compare import COMPARE_KINDS, Compare
from kernels.ops.concat import Concat
from kernels.ops.multiply_add import MultiplyAdd
from kernels.ops.unary import UNARY_KINDS, Unary
from kernels.ops.where import Where

Shape = tuple[int, ...]
PARAMETERS: dict[str, tuple[float, float]] = {
    "clip": (-0.75, 1.5),
    "leaky_relu": (0.25, 0),
    "thresholded_relu": (0.5, 0),
    "hard_sigmoid": (0.3, 0.4),
    "shrink": (0.6, 0.25),
    "elu": (1.5, 0),
    "selu": (1.5, 1.25),
    "celu": (0.75, 0),
    "swish": (1.5, 0),
    "pow": (2.5, 0),
}
# Kinds that are of truth values.
LOGIC = {"not": "bool", **dict.fromkeys(("and", "or", "xor"), "bool")}
WHOLE = ("int32", "int64", "uint8", "int8")


def unary(kind: str, size: int, dtype: str = "") -> Unary:
    return Unary(kind, size, dtype or LOGIC.get(kind, "float32"), *PARAMETERS.get(kind, (0.0, 0.0)))


def binary(
    kind: str, shape: Shape, a: Shape, b: Shape, dtype: str = "", activation: str | None = None
) -> Binary:
    dtype = dtype or LOGIC.get(kind, "float32")
    activation = activation if dtype == "float32" else None
    return Binary(kind, shape, strides(a, shape), strides(b, shape), activation, dtype)


def strides(shape: Shape, out: Shape) -> Shape:
    """Elements a step along each axis of `out` for an operand of `shape`, 0 where it is broadcast."""
    padded = (1,) * (len(out) - len(shape)) + shape
    return tuple(0 if d == 1 else math.prod(padded[i + 1 :]) for i, d in enumerate(padded))


# Shapes of y and of two operands.
BROADCASTS: tuple[tuple[Shape, Shape, Shape], ...] = (
    ((5,), (5,), (5,)),
    ((7, 5), (7, 5), (5,)),
    ((2, 3, 4, 5), (2, 3, 4, 5), (3, 1, 1)),
    ((2, 3, 4), (2, 1, 4), (1, 3, 1)),
    ((2, 3, 2, 3, 2, 3), (2, 1, 2, 1, 2, 1), (1, 3, 1, 3, 1, 3)),
    ((4, 300), (), (4, 300)),
    ((1027,), (1027,), (1027,)),
    ((1027,), (1027,), (1,)),
    ((2, 3, 4, 8), (2, 3, 4, 8), (3, 1, 1)),  # rows of fours: a constant a channel, a row, a column
    ((6, 8), (6, 8), (8,)),
    ((5, 12), (5, 1), (5, 12)),
    ((3, 2, 8), (3, 1, 8), (2, 1)),
)
# Rows, and the widths of what is joined: of fours, odd, of pairs, one row, the most there may be, long ones.
JOINED: tuple[tuple[int, Shape], ...] = (
    (3, (4, 8, 12)),
    (5, (7, 1, 3)),
    (4, (2, 6)),
    (1, (5, 1030, 3)),
    (2, tuple(1 + i % 5 for i in range(32))),
    (3, (1500, 4, 700)),
)


def others() -> list[Params]:
    """Comparisons, choices and what is joined, of several types; products with sums."""
    found: list[Params] = []
    for i, (shape, a, b) in enumerate(BROADCASTS):
        steps = strides(a, shape), strides(b, shape)
        kind, dtype = COMPARE_KINDS[i % len(COMPARE_KINDS)], ("float32", "int64", "uint8", "bool")[i % 4]
        if dtype != "bool" or kind == "equal":
            found.append(Compare(kind, shape, *steps, dtype=dtype))
        found.append(Compare("equal", shape, *steps))
        found.append(MultiplyAdd(shape, *steps, steps[i % 2], (None, "relu", "relu6")[i % 3]))
        found.append(Where(shape, steps[i % 2], *steps, dtype=("float32", "int64", "float16", "bool")[i % 4]))
    found += [
        Concat(outer, widths, dtype) for outer, widths in JOINED for dtype in ("float32", "uint8", "float16")
    ]
    return [*found, Concat(3, (2, 5), "int64")]


def arithmetic() -> list[Binary]:
    """Every kind, and whole numbers."""
    shape, a, b = (3, 2, 8), (3, 1, 8), (2, 1)
    found = [binary(kind, shape, a, b) for kind in BINARY_KINDS]
    kinds = ("add", "sub", "mul", "div", "max", "min", "mod", "fmod")
    found += [binary(kind, shape, a, b, dtype) for dtype in ("int32", "int64", "int8") for kind in kinds]
    return [*found, binary("prelu", shape, a, b, "int64")]


def functions() -> list[Unary]:
    """Every kind, and whole numbers."""
    whole = [
        unary(kind, 37, dtype) for kind in ("relu", "abs", "neg", "sign") for dtype in ("int32", "int64")
    ]
    return [*(unary(kind, 37) for kind in UNARY_KINDS), *whole]


def inputs(p: Params, seed: int = 0) -> tuple[np.ndarray, ...]:
    return one_node.draw(p, np.random.default_rng([seed, *p.op.encode()]))


def answer(p: Params, given: tuple[np.ndarray, ...]) -> np.ndarray:
    """In the shape of the output."""
    feeds = {f"in{i}": array for i, array in enumerate(given)}
    with np.errstate(all="ignore"):
        y = oracle.run(one_node.graph(p, given), feeds, [one_node.OUTPUT])[one_node.OUTPUT]
    return np.asarray(y).reshape(p.output_shape)
