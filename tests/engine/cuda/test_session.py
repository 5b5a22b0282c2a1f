"""What a CUDA session puts on the device and when, with a stand-in for the device."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from engine.backend import Options
from engine.cuda import session as cuda_session
from engine.cuda import stages as cuda_stages
from engine.cuda.session import EngineCudaSession
from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from engine.machine import driver as cuda_driver
from engine.stirring import NEW, Renewable
from kernels import nvrtc
from tests.engine.backends.nets import small_net
from tests.engine.fake_cupy import FakeCupy, Launched
from tests.engine.harness import make_model

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable())),
]
UNTIMED = Options(tuned=False)


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> Callable[..., EngineCudaSession]:
    def prepare(cupy: FakeCupy, options: Options = UNTIMED, graph: Graph | None = None) -> EngineCudaSession:
        def early(_: object, kernel: object, stage: object, arguments: object) -> Callable[[], None]:
            return lambda: cupy.put(Launched(stage.function, early=True))  # type: ignore[attr-defined]

        monkeypatch.setattr(cuda_session, "import_cupy", lambda: cupy)
        monkeypatch.setattr(cuda_stages, "overlapping", early)
        return EngineCudaSession(graph or small_net(), 2, "fp32", options)

    return prepare


def last_pass(cupy: FakeCupy, session: EngineCudaSession) -> list[Launched]:
    cupy.ran.clear()
    session.run()
    session.synchronize()
    return list(cupy.ran)


@pytest.mark.sampled(4, "long")
def test_a_pass_is_what_its_plan_says_and_allocates_nothing(prepared) -> None:
    cupy = FakeCupy()
    session = prepared(cupy)
    expected = [name for _, name in session.launch_order()]
    assert [launched.function for launched in last_pass(cupy, session)] == expected
    before = cupy.allocations
    for _ in range(3):
        session.bind({"x": np.ones((2, 3, 12, 12), np.float32)})
        session.run()
        fetched = session.fetch()
    assert cupy.allocations == before, "steady state"
    assert {name: array.shape for name, array in fetched.items()} == {"y": (2, 5)}
    session.close()


def test_a_capture_that_fails_leaves_a_session_that_launches_one_by_one(prepared) -> None:
    cupy = FakeCupy(broken="operation not permitted when stream is capturing")
    session = prepared(cupy)
    assert session.facts["cuda_graph"].startswith("no: the capture failed (operation not permitted")
    assert [launched.function for launched in last_pass(cupy, session)] == [
        name for _, name in session.launch_order()
    ]
    assert not any(launched.early for launched in cupy.ran)
    session.close()
    with pytest.raises(RuntimeError, match="closed"):
        session.run()


def test_only_kernels_that_make_the_pass_faster_begin_early(prepared) -> None:
    def cost(launches: list[Launched], index: int) -> float:
        if not launches[index].early:
            return 10.0
        return 15.0 if launches[index].function == "conv" else 7.0

    def functions(found: list[Launched]) -> set[str]:
        return {launched.function for launched in found if launched.early}

    plain = FakeCupy()
    assert not functions(last_pass(plain, prepared(plain))), "where nothing is gained, none does"
    gains = FakeCupy(cost_us=lambda launches, i: 5.0 if launches[i].early else 10.0)
    could = functions(last_pass(gains, prepared(gains)))
    assert "conv" in could
    assert len(could) > 1
    mixed = FakeCupy(cost_us=cost)
    session = prepared(mixed)
    assert functions(last_pass(mixed, session)) == could - {"conv"}
    assert "begin early" in session.facts["cuda_graph"]
    told = FakeCupy(cost_us=cost)
    session = prepared(told, Options(tuned=False, early=False))
    assert not functions(last_pass(told, session))
    assert session.facts["cuda_graph"] == "yes"


@pytest.mark.sampled(4, "long")
def test_which_begin_early_is_tried_once_and_kept_for_the_same_plan(
    prepared, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(cuda_driver, "device", lambda: cuda_driver.CudaDevice("a GPU", (9, 0)))

    def early(costs_us: float, **options: bool) -> list[str]:
        cupy = FakeCupy(cost_us=lambda launches, i: costs_us if launches[i].early else 10.0)
        session = prepared(cupy, Options(one_kernel=False, **options))
        return [launched.function for launched in last_pass(cupy, session) if launched.early]

    found = early(5.0)
    assert found
    assert early(15.0) == found, "as was timed before"
    assert not early(15.0, tuned=False), "which is not asked here"
    other = FakeCupy(cost_us=lambda launches, i: 15.0 if launches[i].early else 10.0)
    session = prepared(other, Options(one_kernel=False, rungs={"conv1": "naive"}))
    assert not any(launched.early for launched in last_pass(other, session)), "another plan is tried itself"


@pytest.mark.parametrize("computed", [False, True])
def test_a_kernel_whose_weights_are_computed_waits_for_the_one_in_front(prepared, computed: bool) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="front"),
        helper.make_node("Gemm", ["a", "b" if computed else "w"], ["y"], name="product", transB=1),
    ]
    if computed:
        nodes.insert(1, helper.make_node("Tanh", ["w"], ["b"], name="weights"))
    inputs = {"x": (2, 8)} | ({"w": (6, 8)} if computed else {})
    constants = {} if computed else {"w": np.ones((6, 8), np.float32)}
    graph = from_proto(make_model(nodes, inputs, ["y"], constants), "net")
    cupy = FakeCupy(cost_us=lambda launches, i: 5.0 if launches[i].early else 10.0)
    session = prepared(cupy, Options(tuned=False, rungs={"product": "warp_columns"}), graph)
    early = {launched.function for launched in last_pass(cupy, session) if launched.early}
    assert ("gemm" in early) is not computed
    session.close()


def test_steps_are_timed_each_on_its_own(prepared) -> None:
    cupy = FakeCupy(cost_us=lambda launches, i: 20.0 if launches[i].function == "softmax" else 5.0)
    session = prepared(cupy)
    times = {step.op_type: step.time_ns for step in session.op_times(0.01)}
    assert times["Softmax"] == pytest.approx(20_000)
    assert times["Conv"] == pytest.approx(5_000)
    assert session.time_runs(4) == pytest.approx(4 * session.time_runs(1))


def test_what_was_bound_lies_there_again_after_passes_over_new_inputs(prepared) -> None:
    session = prepared(FakeCupy())
    assert isinstance(session, Renewable)
    assert not session.users
    bound = {"x": np.random.default_rng(0).random((2, 3, 12, 12), np.float32)}
    session.bind(bound)
    session.time_runs(2)
    put: list[np.ndarray] = []
    upload = session._staging.upload
    session._staging.upload = lambda array, pointer: put.append(array) or upload(array, pointer)
    session.renew(4, NEW)
    assert session.time_renewed(4) > 0
    (last,) = session.renewed()
    assert last[0]["x"].shape == bound["x"].shape
    assert (last[0]["x"] != bound["x"]).mean() > 0.9
    put.clear()
    session.run()
    assert any(array.shape == bound["x"].shape and (array == bound["x"]).all() for array in put)
    put.clear()
    session.run()
    session.time_runs(2)
    assert not any(array.shape == bound["x"].shape for array in put)
