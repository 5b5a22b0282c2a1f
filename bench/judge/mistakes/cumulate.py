"""Mistakes of running sums and products."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from bench.judge.mistakes import Mistake
from kernels.ops.cumulate import Cumulate


def mistakes(p: Cumulate, x: np.ndarray) -> Iterator[Mistake]:
    other = "prod" if p.kind == "sum" else "sum"
    words = {"sum": "sums", "prod": "products"}
    yield "kind", f"{words[other]} are given, not {words[p.kind]}", partial(made, p, x, kind=other)
    own = "left out" if not p.exclusive else "counted"
    yield "kind", f"each element itself is {own}", partial(made, p, x, exclusive=not p.exclusive)
    way = "the beginning" if p.reverse else "the end"
    yield "layout", f"it is counted from {way}", partial(made, p, x, reverse=not p.reverse)
    both = partial(made, p, x, exclusive=not p.exclusive, reverse=not p.reverse)
    yield "kind", f"it is counted from {way}, and each element itself is {own}", both
    yield (
        "kind",
        "the whole row's answer stands at every place",
        lambda: np.broadcast_to(_whole(p, x), x.shape),
    )

    def in_memory() -> np.ndarray:
        flat = x.reshape(p.outer, p.inner, p.axis).swapaxes(1, 2)
        return made(p, flat).swapaxes(1, 2).reshape(x.shape)

    if p.inner > 1:
        yield "layout", "neighbours in memory are taken for a row", in_memory
    if p.outer > 1:
        whole = x.reshape(1, p.outer * p.axis, p.inner)
        yield "layout", "it goes on from one row to the next", lambda: made(p, whole).reshape(x.shape)


def _whole(p: Cumulate, x: np.ndarray) -> np.ndarray:
    return np.asarray(x.sum(axis=1, keepdims=True) if p.kind == "sum" else x.prod(axis=1, keepdims=True))


def made(
    p: Cumulate,
    x: np.ndarray,
    kind: str | None = None,
    exclusive: bool | None = None,
    reverse: bool | None = None,
) -> np.ndarray:
    kind = p.kind if kind is None else kind
    exclusive = p.exclusive if exclusive is None else exclusive
    reverse = p.reverse if reverse is None else reverse
    v = x[:, ::-1] if reverse else x
    y = np.cumsum(v, axis=1) if kind == "sum" else np.cumprod(v, axis=1)
    if exclusive:
        first = np.full_like(y[:, :1], 0 if kind == "sum" else 1)
        y = np.concatenate([first, y[:, :-1]], axis=1)
    return y[:, ::-1] if reverse else y
