"""The reference on a GPU answers as ONNX Runtime does, wherever its nodes run: what is bound is where it is
read, what is captured is all on the GPU, and the first answer is that of a plain run, or the session is run
in another way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from engine.options import Options
from engine.ort import binding, cuda_session
from engine.ort import sessions as ort
from engine.ort.cuda_session import OrtCudaSession
from kernels.errors import UnsupportedError
from tests.engine.harness import make_model, run_ort
from tests.engine.ort import mixed, pretended
from tests.engine.ort.pretended import Runtime

BATCH = 3


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes a runtime with these faults the one that sessions find."""
    monkeypatch.setattr(cuda_session, "_agreed", {})
    monkeypatch.setattr(cuda_session.cuda_runtime, "import_cupy", pretended.cupy)
    monkeypatch.setattr(cuda_session.cuda_runtime, "Staging", pretended.Staging)
    monkeypatch.setattr(cuda_session.cuda_runtime, "lost", lambda cupy: False)

    def made(**faults: Any) -> Runtime:
        runtime = Runtime(**faults)
        monkeypatch.setattr(ort, "import_onnxruntime", lambda: runtime)
        return runtime

    return made


def opened(graph: Graph, cuda_graph: bool = True) -> OrtCudaSession:
    return OrtCudaSession(graph, graph.fixed_batch or BATCH, "fp32", Options(cuda_graph=cuda_graph))


def answers(session: OrtCudaSession, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    session.bind(given)
    session.run()
    session.synchronize()
    return session.fetch()


def right(session: OrtCudaSession, graph: Graph, given: dict[str, np.ndarray]) -> bool:
    expected = run_ort(graph, given)
    return (
        binding.differs(answers(session, given), {n: a.astype(np.float32) for n, a in expected.items()})
        is None
    )


@pytest.mark.sampled(8)
@pytest.mark.parametrize("tells", [True, False])
@pytest.mark.parametrize("place", [*mixed.PLACES, *mixed.EACH])
def test_answers_are_those_of_a_plain_run_wherever_nodes_run(pretend: Any, place: str, tells: bool) -> None:
    for seed in range(2):
        runtime = pretend(tells=tells)
        graph = mixed.net(place, seed)
        session = opened(graph)
        for again in range(3):
            assert right(session, graph, mixed.inputs(10 * seed + again, BATCH))
        off = bool(runtime.sessions[-1].off)
        assert session.facts["cuda_graph"].startswith("no: ") == off
        if tells:
            assert "binding" not in session.facts, "bound where it is read, nothing has to be copied"
            assert runtime.plain_runs == 1, "checked once"
        if off and tells:
            assert "cpu_" in session.facts["nodes_on_cpu"]
            with pytest.raises(UnsupportedError, match="on the CPU"):
                _ = session.on_device
        session.close()


def test_a_net_that_is_all_on_the_gpu_is_captured(pretend: Any) -> None:
    runtime = pretend(on_cpu=())
    graph = mixed.net("everywhere")
    session = opened(graph)
    assert right(session, graph, mixed.inputs(1, BATCH))
    assert session.facts["cuda_graph"] == "yes"
    assert session._trains.refusal is None
    assert len(runtime.sessions) == 1


@pytest.mark.parametrize("place", ["front", "beside", "everywhere"])
def test_a_pass_that_is_fed_wrongly_is_found_and_run_otherwise(pretend: Any, place: str) -> None:
    runtime = pretend(lies=True)  # an input is bound on the GPU, and a node on the CPU reads it
    graph = mixed.net(place)
    session = opened(graph)
    for seed in range(2):
        assert right(session, graph, mixed.inputs(seed, BATCH))
    assert "differs by" in session.facts["binding"]
    assert "plain run of the same session" in session.facts["binding"]
    plain, made = runtime.plain_runs, len(runtime.sessions)
    session.close()
    other = opened(graph)  # what is known of a model is not found out again
    assert right(other, graph, mixed.inputs(5, BATCH))
    assert len(runtime.sessions) == made + 1
    assert other.facts["binding"] == session.facts["binding"]
    assert runtime.plain_runs > plain, "each pass is one"


@pytest.mark.parametrize("fault", [{"stale": True, "on_cpu": ()}, {"refuses": False, "tells": False}])
def test_a_captured_graph_that_answers_for_other_inputs_is_not_replayed(pretend: Any, fault: Any) -> None:
    pretend(**fault)
    graph = mixed.net("middle")
    session = opened(graph)
    for seed in range(2):
        assert right(session, graph, mixed.inputs(seed, BATCH))
    assert session.facts["cuda_graph"].startswith("no: captured, it does not answer as a plain run")
    assert "binding" not in session.facts, "bound it answers as it should"


def test_without_the_check_a_wrongly_fed_pass_would_be_told(
    pretend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That the tests above would find a session that does not check."""
    pretend(lies=True)
    graph, given = mixed.net("front"), mixed.inputs(1, BATCH)
    with monkeypatch.context() as patched:
        patched.setattr(binding, "differs", lambda *_: None)
        found = answers(opened(graph), given)
    assert binding.differs(found, run_ort(graph, given)) is not None


def test_an_output_whose_shape_hangs_on_values_is_answered(pretend: Any) -> None:
    pretend(on_cpu=())
    nodes = [
        helper.make_node("NonZero", ["x"], ["places"], "places"),
        helper.make_node("Relu", ["x"], ["y"], "relu"),
    ]
    proto = make_model(nodes, {"x": ("N", 4)}, ["places", "y"], {})
    proto.graph.output[0].type.tensor_type.elem_type = 7
    graph = from_proto(proto, "places")
    session = opened(graph)
    x = np.array([[0, 1, 0, 2], [0, 0, 0, 3], [1, 1, 1, 1]], np.float32)
    for given in (x, 1 - np.minimum(x, 1)):
        found = answers(session, {"x": given})
        np.testing.assert_array_equal(found["places"], np.array(np.nonzero(given), np.float32))
    assert "binding" in session.facts


@pytest.mark.parametrize("unbound", [False, True])
def test_a_pool_whose_last_window_is_left_out_is_answered(pretend: Any, unbound: bool) -> None:
    """Below opset 22 its inferred shape is none that ONNX Runtime can fill: it is run as it allocates it."""
    pretend(on_cpu=(), unbound=unbound)
    pool = helper.make_node(
        "MaxPool", ["x"], ["y"], "pool", kernel_shape=[2], strides=[2], pads=[0, 1], ceil_mode=1
    )
    graph = from_proto(make_model([pool], {"x": ("N", 1, 4)}, ["y"], {}, 19, {"y": 3}), "left out")
    session = opened(graph)
    for seed in range(2):
        x = np.random.default_rng(seed).random((BATCH, 1, 4), np.float32)
        np.testing.assert_array_equal(answers(session, {"x": x})["y"], x.reshape(BATCH, 1, 2, 2).max(-1))
    assert unbound == ("binding" in session.facts)


def test_an_output_that_is_an_input_is_answered(pretend: Any) -> None:
    pretend(on_cpu=())
    proto = make_model([helper.make_node("Relu", ["x"], ["z"], "relu")], {"x": ("N", 4)}, ["x", "z"], {})
    graph = from_proto(proto, "echo")
    session = opened(graph)
    given = {"x": np.arange(12, dtype=np.float32).reshape(3, 4) - 5}
    found = answers(session, given)
    np.testing.assert_array_equal(found["x"], given["x"])
    np.testing.assert_array_equal(found["z"], np.maximum(given["x"], 0))


@pytest.mark.parametrize(
    ("got", "plain", "word"),
    [
        ([1.0, 2.0], [1.0, 2.0], None),
        ([1.0, np.nan], [1.0, np.nan], None),
        ([1.0, 2.0], [1.0, 2.001], None),
        ([1.0, 2.0], [1.0, 2.1], "differs by"),
        ([1.0, 2.0], [1.0, np.nan], "other places"),
        ([0.0, 1e-3], [0.0, 0.0], "from 0"),
        ([[1.0, 2.0]], [1.0, 2.0], "shape"),
    ],
)
def test_what_is_an_other_answer(got: Any, plain: Any, word: str | None) -> None:
    found = binding.differs({"y": np.array(got)}, {"y": np.array(plain)})
    assert found is None if word is None else word in str(found)
    assert "missing" in str(binding.differs({}, {"y": np.ones(1)}))
