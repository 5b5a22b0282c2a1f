"""Mistakes of a selection between two operands."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from bench.judge.mistakes import Mistake
from kernels.ops.where import Where


def mistakes(p: Where, c: np.ndarray, a: np.ndarray, b: np.ndarray) -> Iterator[Mistake]:
    yield "kind", "the operands are swapped", partial(made, p, c, b, a)
    yield "kind", "the first operand is given back, whatever the condition", partial(made, p, c, a, a)
    yield "kind", "the second operand is given back, whatever the condition", partial(made, p, c, b, b)
    yield "kind", "0 is given where the condition is false", partial(made, p, c, a, np.zeros_like(b))
    words = "is read in a row: its broadcast axes are not heeded"

    def in_a_row(operand: np.ndarray) -> np.ndarray:
        return np.resize(operand.reshape(-1), p.shape)

    yield "layout", f"the condition {words}", partial(made, p, in_a_row(c), a, b)
    yield "layout", f"the first operand {words}", partial(made, p, c, in_a_row(a), b)
    yield "layout", f"the second operand {words}", partial(made, p, c, a, in_a_row(b))


def made(p: Where, c: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.broadcast_to(np.where(c, a, b), p.shape)
