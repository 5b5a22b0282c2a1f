"""Mistakes of comparisons."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from bench.judge.mistakes import Mistake
from kernels.ops.compare import COMPARE_KINDS, Compare


def mistakes(p: Compare, a: np.ndarray, b: np.ndarray) -> Iterator[Mistake]:
    yield "kind", "the operands are swapped", partial(made, p, b, a)
    for other in COMPARE_KINDS:
        if other != p.kind:
            words = f"it is {other} that is computed, not {p.kind}"
            yield "kind", words, partial(made, replace(p, kind=other), a, b)
    yield "kind", "true and false are swapped", lambda: 1 - made(p, a, b)
    yield "kind", "fractions are cut off before it compares", lambda: made(p, np.trunc(a), np.trunc(b))
    words = "operand is read in a row: its broadcast axes are not heeded"
    yield "layout", f"the first {words}", partial(made, p, np.resize(a.reshape(-1), p.shape), b)
    yield "layout", f"the second {words}", partial(made, p, a, np.resize(b.reshape(-1), p.shape))


def made(p: Compare, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.broadcast_to(getattr(np, p.kind)(a, b), p.shape).astype(np.float64)
