"""Mistakes of functions with parameters, comparisons, choices and joined tensors."""

from __future__ import annotations

import numpy as np

from kernels.ops.unary import Unary
from tests.bench.judge import right
from tests.bench.judge.planting import answers

answers(
    "unary",
    "unary: alpha left out",
    lambda p, x: np.maximum(x, 0),
    "first parameter|relu",
    params=Unary("leaky_relu", 100, alpha=0.25),
)
answers("compare", "compare: operands swapped", lambda p, a, b: b < a, "swapped|greater")
answers("compare", "compare: equal ones, too", lambda p, a, b: a <= b, "less_equal")
answers("where", "where: operands swapped", lambda p, c, a, b: np.where(c, b, a), "swapped")
answers("where", "where: first operand for all", lambda p, c, a, b: a + 0 * b, "first operand is given back")
answers(
    "multiply_add",
    "multiply_add: sum left out",
    lambda p, a, b, c: right.act(p, a * b + 0 * c),
    "sum is missing",
)
answers(
    "multiply_add",
    "multiply_add: added first",
    lambda p, a, b, c: right.act(p, (a + c) * b),
    "before the product",
)
answers("concat", "concat: reversed", lambda p, *x: np.concatenate(x[::-1], 1), "reverse")
answers(
    "concat",
    "concat: one behind the other",
    lambda p, *x: np.concatenate([each.reshape(-1) for each in x]).reshape(p.output_shape),
    "behind the other",
)
