"""Mistakes of a product and a sum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from bench.judge.mistakes import Mistake
from bench.judge.mistakes.values import activated, other_activations
from kernels.ops.multiply_add import MultiplyAdd


def mistakes(p: MultiplyAdd, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Iterator[Mistake]:
    yield "kind", "the sum is missing: the product alone is computed", partial(made, p, a, b, 0 * c)
    yield "kind", "the factor is missing: the sum alone is computed", partial(made, p, a, b**0, c)
    yield "kind", "the factor and the summand are swapped", partial(made, p, a, c, b)
    yield "kind", "the summand is added before the product, not behind it", lambda: made(p, a + c, b, 0 * c)
    yield "kind", "the summand is subtracted", partial(made, p, a, b, -c)
    yield from other_activations(p.activation, partial(made, replace(p, activation=None), a, b, c))
    words = "operand is read in a row: its broadcast axes are not heeded"
    for which, place in (("first", 0), ("second", 1), ("third", 2)):
        operands = [a, b, c]
        operands[place] = np.resize(operands[place].reshape(-1), p.shape)
        yield "layout", f"the {which} {words}", partial(made, p, *operands)


def made(p: MultiplyAdd, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return activated(np.broadcast_to(a * b + c, p.shape), p.activation)
