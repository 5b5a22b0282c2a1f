"""Mistakes of replacing rows, or joining them with others."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from bench.judge.mistakes import Mistake
from kernels.ops.scatter import Scatter

_JOINS = {"put": None, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def mistakes(p: Scatter, x: np.ndarray, places: np.ndarray, updates: np.ndarray) -> Iterator[Mistake]:
    rows = np.where(places < 0, places + p.size, places)
    last = dict(zip(rows.tolist(), range(p.count), strict=True))
    first = dict(zip(rows[::-1].tolist(), reversed(range(p.count)), strict=True))

    def of(
        at: np.ndarray, with_: np.ndarray = updates, kind: str = p.kind, into: np.ndarray = x
    ) -> Callable[[], np.ndarray]:
        def made() -> np.ndarray:
            y = into.copy()
            kept = (at >= 0) & (at < p.size)
            if kind == "put":
                y[at[kept]] = with_[kept]
            else:
                _JOINS[kind].at(y, at[kept], with_[kept])  # type: ignore[union-attr]
            return y

        return made

    yield "kind", "the updates are left out", lambda: x
    if p.kind != "put":
        yield (
            "kind",
            "the updates stand in the place of what they should be joined with",
            of(rows, kind="put"),
        )
        for which, chosen in (("last", last), ("first", first)):
            some = np.array(list(chosen))
            words = f"of several updates of one row only the {which} counts"
            yield "kind", words, of(some, updates[list(chosen.values())])
    for kind in _JOINS:
        if kind not in ("put", p.kind):
            yield "kind", f"the updates are joined by {kind}", of(rows, kind=kind)
    yield "kind", "the rest of the tensor is 0", of(rows, into=np.zeros_like(x))
    yield "layout", "negative places are left out", of(places)
    yield "layout", "negative places are taken as the first", of(np.maximum(places, 0))
    yield "layout", "places are counted from 1", of(rows - 1)
    yield "layout", "places are off by one further along", of(rows + 1)
    yield "layout", "the updates come in reverse order", of(rows, updates[::-1])
    if p.kind == "put":
        some = np.array(list(first))
        words = "of several updates of one row the first stays, not the last"
        yield "kind", words, of(some, updates[list(first.values())])
