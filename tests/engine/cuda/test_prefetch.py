"""Weights on their way from the start of a pass: whose, how much, and only where it is faster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import helper

from engine.backend import Options
from engine.cuda import session as cuda_session
from engine.cuda.replays import overlap, prefetch
from engine.cuda.session import EngineCudaSession
from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from kernels import nvrtc
from tests.engine.fake_cupy import FakeCupy
from tests.engine.harness import make_model
from tests.standin.settings import Settings

pytestmark = pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable()))
CACHE = Settings().l2_nbytes
WIDE = CACHE // 4 // 64  # columns of 64 weights that are as large as the cache


def network(large_first: bool = False) -> Graph:
    """Two products, of which one has weights as large as the stand-in's cache."""
    first, second = (WIDE, 64) if large_first else (64, WIDE)
    constants = {
        "w1": np.full((first, 64), 0.01, np.float32),
        "w2": np.full((second, first), 0.01, np.float32),
    }
    nodes = [
        helper.make_node("Gemm", ["x", "w1"], ["h"], "fc1", transB=1),
        helper.make_node("Relu", ["h"], ["r"], "relu"),
        helper.make_node("Gemm", ["r", "w2"], ["y"], "fc2", transB=1),
    ]
    return from_proto(make_model(nodes, {"x": ["N", 64]}, {"y": ["N", second]}, constants))


def prepared(
    monkeypatch: pytest.MonkeyPatch, times: Sequence[float], graph: Graph | None = None, **options: Any
) -> tuple[FakeCupy, EngineCudaSession, list[int]]:
    """times: of a replay without and of those with more and more of the weights. Returned as well: how many
    ways were tried at once."""
    tried: list[int] = []

    def beside(stream: object, graphs: Sequence[object]) -> list[float]:
        tried.append(len(graphs))
        return list(times[: len(graphs)])

    cupy = FakeCupy()
    monkeypatch.setattr(cuda_session, "import_cupy", lambda: cupy)
    monkeypatch.setattr(overlap, "beside", beside)
    how = Options(tuned=False, early=False, one_kernel=False, **options)
    return cupy, EngineCudaSession(graph or network(), 1, "fp32", how), tried


def test_the_fastest_share_of_the_first_large_weights_is_fetched_in_every_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cupy, session, tried = prepared(monkeypatch, [10.0, 9.0, 8.0, 9.5])
    assert tried == [1 + len(prefetch.SHARES)]
    assert session.facts["prefetch"].endswith("MiB of the weights of fc2, from the start of a pass")
    assert session._fetched is not None
    assert session._fetched.nbytes == CACHE // 2
    step, name = session.launch_order()[0]
    assert (step.name, name) == ("fc2", prefetch.NAME)
    cupy.ran.clear()
    session.run()
    session.synchronize()
    assert [launched.function for launched in cupy.ran] == [name for _, name in session.launch_order()]
    assert {time.nodes[0] for time in session.op_times(0.01)} == {"fc1", "fc2"}
    session.close()


def test_what_the_first_step_reads_is_too_late_to_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    _, session, tried = prepared(monkeypatch, [10.0, 1.0, 1.0, 1.0], network(large_first=True))
    assert tried == [4]
    assert "fc2" in session.facts["prefetch"]
    session.close()


@pytest.mark.parametrize(
    ("options", "tries"),
    [({}, 1), ({"prefetch": False}, 0), ({"cuda_graph": False}, 0)],
    ids=["no faster", "not asked for", "no graph"],
)
def test_nothing_is_fetched_where_it_gains_nothing(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, bool], tries: int
) -> None:
    _, session, tried = prepared(monkeypatch, [10.0, 9.99, 9.98, 11.0], **options)
    assert len(tried) == tries
    assert "prefetch" not in session.facts
    session.close()
