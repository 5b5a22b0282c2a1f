"""A small net on a GPU as one kernel, where that was timed to be faster, and as its steps where not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from engine.backend import Options
from engine.backends.engine_cuda import BACKEND
from engine.cuda.replays.one_kernel import READING, Trial
from engine.graph.graph import Graph
from kernels import registry
from kernels.net.text import OneKernel, Weights
from kernels.precision import PRECISIONS
from tests.engine.planning.test_runs import net

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
BATCH = 7


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    if reason := BACKEND.unavailable():
        pytest.skip(reason)
    monkeypatch.setattr("kernels.cache.Store.folder", lambda _: tmp_path_factory.mktemp("tuned"))


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is tried takes less time than the kernels one by one."""
    monkeypatch.setattr(Trial, "_times", lambda self, graphs: [9.0 - i for i in range(len(graphs))])


def spoil(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its weights from now on a hundredth too large."""
    right = OneKernel.parts

    def parts(self: OneKernel, given: Sequence[Weights | None]) -> list[np.ndarray]:
        return [(piece * np.float32(1.01)).astype(piece.dtype) for piece in right(self, given)]

    monkeypatch.setattr(OneKernel, "parts", parts)


def images(batch: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((batch, 1, 12, 12)).astype(np.float32)


def answers(graph: Graph, batch: int, precision: str = "fp32", **options: bool) -> tuple[np.ndarray, str]:
    session = BACKEND.prepare(graph, batch, precision, Options(**options))
    session.bind({"x": images(batch)})
    for _ in range(2):
        session.run()
    found = session.fetch()["y"]
    session.run()
    assert session.fetch()["y"].tobytes() == found.tobytes()
    said = session.facts["kernels"]
    session.close()
    return found, said


@pytest.mark.parametrize("batch", [1, 3, 7, 130, 1000])
def test_it_answers_as_its_steps_do(taken: None, batch: int) -> None:
    one, said = answers(net(), batch)
    assert "4 steps as one in fp32" in said
    apart, said = answers(net(), batch, one_kernel=False)
    assert "as one" not in said
    assert np.linalg.norm(one - apart) <= 1e-5 * np.linalg.norm(apart)


@pytest.mark.parametrize("precision", ["tf32", "fp16", "bf16"])
def test_a_coarser_precision_may_take_it_too(taken: None, precision: str) -> None:
    one, said = answers(net(), BATCH, precision)
    assert "4 steps as one in" in said
    apart, _ = answers(net(), BATCH, one_kernel=False)
    assert np.linalg.norm(one - apart) <= PRECISIONS[precision].bound * np.linalg.norm(apart)


def test_what_reads_on_behind_it_gets_its_answer(taken: None) -> None:
    graph = net(outputs=("y", "r"))
    session = BACKEND.prepare(graph, BATCH)
    assert "2 steps as one" in session.facts["kernels"]
    session.bind({"x": images(BATCH)})
    session.run()
    found = session.fetch()
    session.close()
    apart, _ = answers(graph, BATCH, one_kernel=False)
    assert np.linalg.norm(found["y"] - apart) <= 1e-5 * np.linalg.norm(apart)
    assert found["r"].any()


def test_its_steps_stay_where_it_is_no_faster_and_that_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("kernels.cache.Store.folder", lambda _: tmp_path)
    monkeypatch.setattr(Trial, "_times", lambda self, graphs: [9.0] * len(graphs))
    assert "as one" not in answers(net(), BATCH)[1]
    monkeypatch.setattr(Trial, "_ready", lambda *_: pytest.fail("tried again"))
    assert "as one" not in answers(net(), BATCH)[1]


def test_it_is_taken_though_it_is_no_faster_where_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("kernels.cache.Store.folder", lambda _: tmp_path)
    monkeypatch.setattr(Trial, "_times", lambda self, graphs: [9.0] * len(graphs))
    assert "as one" not in answers(net(), BATCH)[1]  # which is kept, and asked for in vain below
    for tuned in (True, False):
        one, said = answers(net(), BATCH, anyway=True, tuned=tuned)
        assert "4 steps as one in fp32" in said
    assert np.linalg.norm(one - answers(net(), BATCH)[0]) <= 1e-5 * np.linalg.norm(one)
    assert "as one" not in answers(net(), BATCH)[1]
    spoil(monkeypatch)
    session = BACKEND.prepare(net(), BATCH, "fp32", Options(anyway=True))
    assert session.facts["one_kernel"].startswith("no: as one kernel it does not give the answer")
    session.close()


def test_the_way_that_was_fastest_is_kept(
    taken: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("kernels.cache.Store.folder", lambda _: tmp_path)
    first = answers(net(), BATCH)[1]
    monkeypatch.setattr(Trial, "_times", lambda *_: pytest.fail("timed again"))
    assert answers(net(), BATCH)[1] == first


def test_a_wrong_answer_is_never_taken(taken: None, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(monkeypatch)
    assert "as one" not in answers(net(), BATCH)[1]


def test_an_unreal_image_spoils_its_own_answer_alone(taken: None) -> None:
    session = BACKEND.prepare(net(), BATCH)
    given = images(BATCH)
    given[2, 0, 5, 5] = np.nan
    session.bind({"x": given})
    session.run()
    found = session.fetch()["y"]
    session.close()
    assert np.isnan(found[2]).all()
    assert np.isfinite(np.delete(found, 2, axis=0)).all()


def test_its_steps_are_timed_and_named_and_a_named_kernel_is_kept(taken: None) -> None:
    session = BACKEND.prepare(net(), BATCH)
    session.bind({"x": images(BATCH)})
    session.run()
    kept = session.fetch()["y"]
    times = session.op_times(0.05)
    assert [time.nodes[0] for time in times] == ["conv", "fc", "scores", "prob"]
    assert all(time.time_ns > 0 for time in times)
    assert [time.clock for time in times] == ["stamps"] * 4
    reading, *parts = session.launch_parts()
    assert reading.name == READING
    assert [part.step.nodes for part in parts] == [time.nodes for time in times]
    assert all(part.time_ns > 0 for part in (reading, *parts))
    assert session.fetch()["y"].tobytes() == kept.tobytes()
    ((step, name),) = session.launch_order()
    assert (name, step.nodes) == ("net", tuple(node for time in times for node in time.nodes))
    assert session.time_runs(3) > 0
    session.close()
    rung = registry.rungs("cuda", "gemm")[0].name
    session = BACKEND.prepare(net(), BATCH, options=Options(rungs={"scores": rung, "fc": rung}))
    assert "as one" not in session.facts["kernels"]
    session.close()
