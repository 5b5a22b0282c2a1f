"""Mistakes of reductions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from bench.judge.mistakes import Mistake
from kernels.ops.reduce import PLACES, REDUCE_KINDS, Reduce


def mistakes(p: Reduce, x: np.ndarray) -> Iterator[Mistake]:
    for other in REDUCE_KINDS:
        if other != p.kind and (other in PLACES) == (p.kind in PLACES):
            yield "kind", f"it is {other} that is computed", partial(reduced, x, other, p.last)
    if p.kind == "logsumexp":
        yield "kind", "the exponentials are missing: it is the maximum alone", partial(reduced, x, "max")
    yield "axis", "neighbours in memory are reduced, not the axis", lambda: _beside(p, x)
    if p.kind in PLACES:
        words = (
            "the first place is given, not the last" if p.last else "the last place is given, not the first"
        )
        yield "kind", words, partial(reduced, x, p.kind, not p.last)
        yield "layout", "places are counted from 1", lambda: reduced(x, p.kind, p.last) + 1
    if p.axis > 1:
        for words, part in (("last", slice(None, -1)), ("first", slice(1, None))):
            yield "left_out", f"the {words} element is left out", partial(reduced, x[:, part], p.kind, p.last)
        yield "left_out", "the first element alone is given", partial(reduced, x[:, :1], p.kind, p.last)
    for whole in (2, 4, 8, 16, 32):
        if p.axis % whole and (kept := p.axis // whole * whole):
            words = f"the elements beyond the last whole {whole} are left out"
            yield "left_out", words, partial(reduced, x[:, :kept], p.kind, p.last)


def reduced(x: np.ndarray, kind: str, last: bool = False) -> np.ndarray:
    """x (outer, axis, inner) along its axis."""
    with np.errstate(all="ignore"):
        if kind in PLACES:
            find = np.argmax if kind == "argmax" else np.argmin
            return np.asarray(x.shape[1] - 1 - find(x[:, ::-1], axis=1) if last else find(x, axis=1))
        if kind == "logsumexp":
            top = x.max(axis=1, keepdims=True)
            return np.asarray(np.log(np.exp(x - top).sum(axis=1)) + top[:, 0])
        if kind in ("max", "min", "mean", "prod"):
            return np.asarray(getattr(x, kind)(axis=1))
        total = (np.abs(x) if kind == "l1" else x * x if kind in ("l2", "sumsquare") else x).sum(axis=1)
        return np.asarray(np.sqrt(total) if kind == "l2" else np.log(total) if kind == "logsum" else total)


def _beside(p: Reduce, x: np.ndarray) -> np.ndarray:
    return reduced(x.reshape(-1, p.axis, 1), p.kind, p.last).reshape(p.outer, p.inner)
