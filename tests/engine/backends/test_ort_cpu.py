"""ONNX Runtime on the CPU: sessions, refusals and per-operator times told in terms of the ONNX nodes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from bench.measure.answers import accuracy, oracle
from engine.backend import Options
from engine.backends import get, ort_cpu
from engine.graph.importer import from_proto
from engine.machine import host
from engine.ort import profile as ort_profile
from engine.ort import sessions as ort
from kernels.errors import KernelError, OutOfMemoryError, UnavailableError, UnsupportedError
from tests.engine.backends.nets import small_net
from tests.engine.backends.shared import answers
from tests.engine.harness import make_model, one_node, random

BACKEND = get("ort-cpu")


@pytest.mark.parametrize("batch_axis", ["N", None, 3])
def test_a_session_answers_as_the_oracle_does(batch_axis: int | str | None) -> None:
    graph, x = small_net(batch_axis), random((3, 3, 12, 12))
    actual = answers(BACKEND, graph, {"x": x}, 3)
    assert list(actual) == ["y"]
    assert actual["y"].dtype == np.float32
    assert accuracy.error_stats(actual["y"], oracle.run(graph, {"x": x}, ["y"])["y"], "fp32").ok


def test_what_was_fetched_is_a_copy_and_inputs_are_copied_when_bound() -> None:
    session = BACKEND.prepare(one_node("Relu", (2, 3)), 2)
    x = np.ones((2, 3), np.float32)
    session.bind({"x": x})
    x[:] = 9.0
    session.run()
    first = session.fetch()["y"]
    session.bind({"x": np.full((2, 3), 5.0, np.float32)})
    session.run()
    assert first.max() == 1.0
    assert session.fetch()["y"].min() == 5.0
    session.close()


def test_a_session_says_what_it_used() -> None:
    session = BACKEND.prepare(small_net(), 2, options=Options(threads=1))
    assert session.facts["provider"] == "CPUExecutionProvider"
    assert session.facts["threads"] == "1"
    assert set(session.phases) == {"load", "alloc"}
    assert session.memory["weights"] == sum(a.nbytes for a in small_net().initializers.values())
    session.bind({"x": random((2, 3, 12, 12))})
    assert session.time_runs(3) > 0
    assert session.time_runs(1, cold=True) > 0
    session.close()


def test_every_node_is_timed_once_and_reorders_belong_to_none() -> None:
    graph = small_net()
    session = BACKEND.prepare(graph, 2, options=Options(threads=1))
    session.bind({"x": random((2, 3, 12, 12))})
    times = session.op_times(0.05)
    session.close()
    covered = [name for time in times for name in time.nodes]
    assert sorted(covered) == sorted(node.name for node in graph.nodes)
    assert {time.clock for time in times} == {"host"}
    assert all(time.time_ns >= 0 for time in times)
    assert ("conv1", "relu1") in [time.nodes for time in times]
    assert {time.op_type for time in times if not time.nodes} <= {"ReorderInput", "ReorderOutput"}


def test_without_the_optimised_model_times_have_no_nodes() -> None:
    assert ort_profile.covered_nodes(small_net(), None) == {}


def test_profiling_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    session = BACKEND.prepare(one_node("Tanh", (2, 3)), 2)
    session.op_times(0.01)
    session.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("batch_axis", "batch", "precision", "words"),
    [
        (1, 4, "fp32", "batch fixed at 1, so it cannot run at batch 4"),
        ("N", 0, "fp32", "batch 0 is not a batch size"),
        ("N", -1, "fp32", "batch -1 is not a batch size"),
        ("N", 1, "tf32", "ort-cpu does not offer tf32; it offers fp32"),
        ("N", 1, "fp16", "ort-cpu does not offer fp16; it offers fp32"),
    ],
)
def test_refusals_say_why(batch_axis: int | str, batch: int, precision: str, words: str) -> None:
    graph = small_net(batch_axis)
    reason = BACKEND.supports(graph, batch, precision)
    assert reason is not None
    assert words in reason
    with pytest.raises(UnsupportedError, match=words[:20]):
        BACKEND.prepare(graph, batch, precision)


def test_a_further_open_axis_is_refused_by_name() -> None:
    model = make_model([helper.make_node("Relu", ["x"], ["y"])], {"x": ("N", "width")}, ["y"])
    reason = BACKEND.supports(from_proto(model, "wide"), 2, "fp32")
    assert reason is not None
    assert "input x of model wide leaves axis 1 open (width)" in reason


def test_a_batch_beyond_memory_is_out_of_memory_before_anything_is_touched() -> None:
    with pytest.raises(OutOfMemoryError, match="take a smaller batch"):
        BACKEND.prepare(small_net(), 10**9)


def test_inputs_of_another_shape_or_name_are_refused() -> None:
    session = BACKEND.prepare(one_node("Relu", (2, 3)), 2)
    with pytest.raises(UnsupportedError, match=r"\(3, 3\)"):
        session.bind({"x": np.zeros((3, 3), np.float32)})
    with pytest.raises(UnsupportedError, match="inputs are x; given were z"):
        session.bind({"z": np.zeros((2, 3), np.float32)})
    session.close()


def test_a_pool_whose_shape_is_inferred_wrongly_still_runs() -> None:
    attributes = {"kernel_shape": [2, 1], "strides": [2, 1], "pads": [0, 0, 1, 0], "ceil_mode": 1}
    graph = one_node("MaxPool", (1, 1, 2, 1), opset=19, **attributes)
    assert answers(BACKEND, graph, {"x": random((1, 1, 2, 1))}, 1)["y"].shape == (1, 1, 1, 1)


class Fail(Exception):
    """Named like ONNX Runtime's own."""


class NotImplemented(Fail):
    pass


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Fail("[ONNXRuntimeError] : 1 : FAIL : something broke\nat line 3"), KernelError),
        (NotImplemented("[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : no such op"), UnsupportedError),
        (Fail("[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Failed to allocate memory"), OutOfMemoryError),
        (Fail("CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED"), OutOfMemoryError),
        (MemoryError("Unable to allocate 3 TiB"), OutOfMemoryError),
        (UnavailableError("ours stay as they are"), UnavailableError),
    ],
)
def test_foreign_errors_become_one_sentence(error: Exception, expected: type[Exception]) -> None:
    with pytest.raises(expected) as caught, ort.translated("model m at batch 2"):
        raise error
    assert "\n" not in str(caught.value)
    assert "ONNXRuntimeError" not in str(caught.value)


def test_the_host_tells_cores_and_cache() -> None:
    assert host.physical_cores() >= 1
    assert host.last_level_cache_nbytes() >= 1 << 18


def test_a_bound_pass_that_leaves_other_answers_than_a_plain_one_is_found_and_mended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ort_cpu, "_agreed", set())
    graph = one_node("Relu", (2, 3))
    for broken in (False, True):
        session = BACKEND.prepare_here(graph, 2)
        if broken:  # the arrays that are read are not those that are bound
            monkeypatch.setattr(ort_cpu, "_agreed", set())
            session._outputs = {name: np.zeros_like(array) for name, array in session._outputs.items()}
        for seed in range(2):
            x = random((2, 3), seed)
            session.bind({"x": x})
            session.run()
            np.testing.assert_array_equal(session.fetch()["y"], np.maximum(x, 0))
        assert ("binding" in session.notes()) == broken
        session.close()


def test_an_output_that_is_an_input_is_the_input() -> None:
    proto = make_model([helper.make_node("Relu", ["x"], ["z"], "relu")], {"x": ("N", 4)}, ["x", "z"])
    graph = from_proto(proto, "echo")
    session = BACKEND.prepare(graph, 3)
    for seed in range(2):
        x = random((3, 4), seed)
        session.bind({"x": x})
        session.run()
        found = session.fetch()
        np.testing.assert_array_equal(found["x"], x)
        np.testing.assert_array_equal(found["z"], np.maximum(x, 0))
        assert session.time_runs(5) > 0
    assert "binding" not in session.facts
    session.close()
