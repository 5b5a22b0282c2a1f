"""Mistakes of operators whose elements depend on what comes before them, or on places that are computed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bench.measure.answers import one_node
from kernels.ops.cumulate import Cumulate
from kernels.ops.grid_sample import GridSample
from kernels.ops.recurrent import Recurrent
from kernels.ops.scatter import Scatter
from kernels.ops.top_k import TopK
from tests.bench.judge.planting import answers

Array = np.ndarray


def _put(p: Scatter, x: Array, places: Array, updates: Array) -> Array:
    y = x.copy()
    y[places % p.size] = updates
    return y


def _added_once(p: Scatter, x: Array, places: Array, updates: Array) -> Array:
    y = x.copy()
    y[places % p.size] += updates  # of a row that is named twice one addition is lost
    return y


answers("scatter", "scatter: put instead of added", _put, "stand in the place")
answers("scatter", "scatter: an addition lost", _added_once, "only the last counts")
answers("scatter", "scatter: nothing done", lambda p, x, places, updates: x, "left out|unchanged")


def _lifted(p: Scatter, x: Array, places: Array, updates: Array) -> Array:
    y = x.copy()
    np.add.at(y, places % p.size, updates * np.float32(1.01))
    return y


answers("scatter", "scatter: one in a hundred too much", _lifted)


def _running(name: str, wrong: Any, *says: str, params: Cumulate | None = None) -> None:
    answers("cumulate", f"cumulate: {name}", wrong, *says, params=params)


_running("from the end", lambda p, x: np.cumsum(x[:, ::-1], axis=1)[:, ::-1], "counted from the end")
_running("without itself", lambda p, x: np.cumsum(x, axis=1) - x, "itself is left out")
_running("product", lambda p, x: np.cumprod(x, axis=1), "products are given")
_running(
    "rows joined",
    lambda p, x: np.cumsum(x.reshape(-1, p.inner), axis=0).reshape(x.shape),
    "goes on from one row",
)


def _sorted(p: TopK, x: Array) -> Array:
    return np.argsort(-x, axis=1, kind="stable")


answers("top_k", "top_k: smallest", lambda p, x: np.argsort(x, axis=1, kind="stable")[:, : p.k], "smallest")
answers(
    "top_k", "top_k: as they lie", lambda p, x: np.sort(_sorted(p, x)[:, : p.k], axis=1), "in which they lie"
)
answers("top_k", "top_k: places from 1", lambda p, x: _sorted(p, x)[:, : p.k] + 1, "from 1")


def _read(name: str, *says: str, turned: bool = False, **changed: Any) -> None:
    def wrong(p: GridSample, x: Array, grid: Array) -> Array:
        return one_node.answer(replace(p, **changed), (x, grid[..., ::-1].copy() if turned else grid))

    answers("grid_sample", f"grid_sample: {name}", wrong, *says)


_read("corners for edges", "outer edges|middles", corners=True)
_read("nearest", "mode nearest", mode="nearest")
_read("border", "padding border", padding="border")
_read("axes turned", "reverse order", turned=True)


def _layer(name: str, *says: str, params: Recurrent | None = None, zero: int = -1, **changed: Any) -> None:
    def wrong(p: Recurrent, *inputs: Array) -> Array:
        given = [np.zeros_like(array) if i == zero else array for i, array in enumerate(inputs)]
        both = "direction" in changed and p.directions == 2
        return one_node.answer(p if both else replace(p, **changed), given)

    answers("recurrent", f"recurrent: {name}", wrong, *says, params=params)


_layer("no bias", "bias is missing", zero=2)
_layer("no first state", "before the first step", zero=4)
_layer("no peepholes", "peepholes", zero=6)
_layer("coupled", "1 less", coupled=True)
_layer("backwards", "steps are taken", direction="reverse", params=Recurrent("rnn", 5, 3, 6))
