"""Mistakes of finding the largest or smallest."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bench.judge.mistakes import Mistake
from kernels.ops.top_k import TopK


def mistakes(p: TopK, x: np.ndarray) -> Iterator[Mistake]:
    right, other = (order(p, x, largest) for largest in (p.largest, not p.largest))
    wanted, given = ("largest", "smallest") if p.largest else ("smallest", "largest")
    yield "kind", f"the {given} are given, not the {wanted}", lambda: other[:, : p.k]
    yield "layout", "they come in reverse order", lambda: right[:, : p.k][:, ::-1]
    yield "layout", "they come in the order in which they lie", lambda: np.sort(right[:, : p.k], axis=1)
    last = p.axis - 1 - order(p, x[:, ::-1], p.largest)
    yield "kind", "of equal ones the last comes first", lambda: last[:, : p.k]
    yield "layout", "places are counted from 1", lambda: right[:, : p.k] + 1
    yield (
        "kind",
        f"the {wanted} absolute values are looked for",
        lambda: order(p, np.abs(x), p.largest)[:, : p.k],
    )
    yield "kind", "the first places are given, whatever stands there", lambda: _first(p, x)


def order(p: TopK, x: np.ndarray, largest: bool) -> np.ndarray:
    """All places of each row, in order."""
    return np.argsort(-x.astype(np.float64) if largest else x, axis=1, kind="stable")


def _first(p: TopK, x: np.ndarray) -> np.ndarray:
    return np.broadcast_to(np.arange(p.k)[None, :, None], (p.outer, p.k, p.inner))
