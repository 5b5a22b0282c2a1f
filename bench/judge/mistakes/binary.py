"""Mistakes of element-wise arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from bench.judge.mistakes import Mistake
from bench.judge.mistakes.values import activated, other_activations
from kernels.ops.binary import Binary

_FUNCTIONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "pow": np.power,
    "max": np.maximum,
    "min": np.minimum,
    "mod": np.remainder,
    "fmod": np.fmod,
    "prelu": lambda a, b: np.where(a < 0, a * b, a),
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}


def mistakes(p: Binary, a: np.ndarray, b: np.ndarray) -> Iterator[Mistake]:
    yield "kind", "the operands are swapped", partial(made, p, b, a)
    for other in _FUNCTIONS:
        if other != p.kind:
            words = f"it is {other} that is computed, not {p.kind}"
            yield "kind", words, partial(made, replace(p, kind=other), a, b)
    yield from other_activations(p.activation, partial(made, replace(p, activation=None), a, b))
    for which, first, second in (("first", True, False), ("second", False, True), ("other", True, True)):
        words = f"the {which} operand's first element is taken for all of it"
        if which != "other":
            yield "layout", words, partial(made, p, _one(a) if first else a, _one(b) if second else b)
    words = "operand is read in a row: its broadcast axes are not heeded"
    yield "layout", f"the first {words}", partial(made, p, np.resize(a.reshape(-1), p.shape), b)
    yield "layout", f"the second {words}", partial(made, p, a, np.resize(b.reshape(-1), p.shape))
    yield "kind", "the first operand is given back unchanged", lambda: np.broadcast_to(a, p.shape)
    yield "kind", "the second operand is given back unchanged", lambda: np.broadcast_to(b, p.shape)


def _one(a: np.ndarray) -> np.ndarray:
    return np.full_like(a, a.flat[0])


def made(p: Binary, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return activated(np.broadcast_to(_FUNCTIONS[p.kind](a, b), p.shape), p.activation)
