"""As tests.kernels.drawn, of operators whose elements depend on what comes before them or on places that are
computed. Their inputs and nodes are those that the judge draws and writes; their answers are the oracle's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from bench.measure.answers import one_node
from bench.measure.answers.nodes import nodes
from kernels.ops import Params
from kernels.ops.cumulate import CUMULATE_KINDS, Cumulate
from kernels.ops.grid_sample import GRID_MODES, GRID_PADDINGS, GridSample
from kernels.ops.recurrent import DIRECTIONS, GATE_ACTIVATIONS, RECURRENT_KINDS, Recurrent
from kernels.ops.scatter import SCATTER_KINDS, Scatter
from kernels.ops.top_k import TopK

small = st.integers(1, 7)
Made = tuple[Params, tuple[np.ndarray, ...], np.ndarray]


@st.composite
def scatter(draw) -> Scatter:
    size, kind = draw(st.integers(1, 12)), draw(st.sampled_from(SCATTER_KINDS))
    count = draw(st.integers(1, size if kind == "put" else 20))
    return Scatter(kind, size, draw(small), count, draw(st.sampled_from(["float32", "int64"])))


@st.composite
def cumulate(draw) -> Cumulate:
    return Cumulate(
        draw(st.sampled_from(CUMULATE_KINDS)),
        draw(small),
        draw(st.integers(1, 40)),
        draw(st.sampled_from([1, 1, 2, 9])),
        draw(st.booleans()),
        draw(st.booleans()),
    )


@st.composite
def top_k(draw) -> TopK:
    axis = draw(st.integers(1, 40))
    return TopK(
        draw(small), axis, draw(st.sampled_from([1, 1, 3])), draw(st.integers(1, axis)), draw(st.booleans())
    )


@st.composite
def grid_sample(draw) -> GridSample:
    dims = draw(st.sampled_from([2, 2, 3]))
    size, out = ([draw(st.integers(1, 6)) for _ in range(dims)] for _ in range(2))
    ones = (1,) * (3 - dims)
    return GridSample(
        draw(st.integers(1, 3)),
        draw(st.integers(1, 3)),
        (*ones, *size),  # type: ignore[arg-type]
        (*ones, *out),  # type: ignore[arg-type]
        dims,
        draw(st.sampled_from(GRID_MODES)),
        draw(st.sampled_from(GRID_PADDINGS)),
        draw(st.booleans()),
    )


@st.composite
def recurrent(draw) -> Recurrent:
    kind = draw(st.sampled_from(RECURRENT_KINDS))
    functions = [draw(st.sampled_from(GATE_ACTIVATIONS)) for _ in range(3)]
    used = {"rnn": ("candidate",), "gru": ("gate", "candidate"), "lstm": ("gate", "candidate", "last")}[kind]
    return Recurrent(
        kind,
        draw(st.integers(1, 6)),
        draw(st.integers(1, 4)),
        draw(st.integers(1, 9)),
        draw(st.sampled_from(DIRECTIONS)),
        linear_before_reset=kind == "gru" and draw(st.booleans()),
        coupled=kind == "lstm" and draw(st.booleans()),
        clip=draw(st.sampled_from([0.0, 0.5])),
        **dict(zip(used, functions, strict=False)),
    )


DRAWN: dict[str, Any] = {s.__name__: s() for s in (scatter, cumulate, top_k, grid_sample, recurrent)}
PLAIN: dict[str, Params] = {
    "scatter": Scatter("add", 6, 5, 9),
    "cumulate": Cumulate("sum", 3, 12, 4),
    "top_k": TopK(3, 12, 4, 5),
    "grid_sample": GridSample(3, 2, (1, 6, 7), (1, 5, 8)),
    "recurrent": Recurrent("lstm", 5, 3, 6),
}


def fitting(p: Params, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Inputs as the judge draws them, by what was drawn already."""
    seed = np.frombuffer(arrays[0].tobytes()[:8].ljust(8, b"\0"), np.uint64)
    return list(one_node.draw(p, np.random.default_rng(seed)))


def written(p: Params, names: list[str]) -> tuple[list[Any], dict[str, np.ndarray]]:
    return nodes(p, names, "y")


def _variants(op: str) -> Iterator[Params]:
    """The shapes that the judge tries, of each kind and mode."""
    p = PLAIN[op]
    every: list[Params] = [p]
    if isinstance(p, Scatter):
        every = [replace(p, kind=kind) for kind in SCATTER_KINDS] + [replace(p, dtype="int64")]
    elif isinstance(p, Cumulate):
        ways = [(e, r) for e in (False, True) for r in (False, True)]
        every = [replace(p, kind=k, exclusive=e, reverse=r) for k in CUMULATE_KINDS for e, r in ways]
        every.append(replace(p, dtype="int32"))
    elif isinstance(p, TopK):
        every = [replace(p, largest=largest) for largest in (True, False)] + [replace(p, dtype="int64")]
    elif isinstance(p, GridSample):
        every = [
            replace(p, mode=m, padding=b, corners=c)
            for m in GRID_MODES
            for b in GRID_PADDINGS
            for c in (False, True)
        ]
    elif isinstance(p, Recurrent):
        every = [replace(p, kind=kind) for kind in ("rnn", "gru", "lstm")]
        every += [
            replace(p, kind="gru", linear_before_reset=True, clip=0.3),
            replace(p, coupled=True, gate="relu"),
        ]
        every.append(replace(p, direction="bidirectional", gate="hard_sigmoid"))
    for each in every:
        yield each
        yield from (shape.params for shape in each.small_shapes())


def cases(op: str) -> Callable[[np.random.Generator], Iterator[Made]]:
    """As tests.kernels.row_cases.MAKERS."""

    def made(rng: np.random.Generator) -> Iterator[Made]:
        for p in dict.fromkeys(_variants(op)):
            inputs = one_node.draw(p, rng)
            yield p, inputs, one_node.answer(p, inputs)

    return made
