"""ONNX Runtime on CUDA: why it is unavailable, and that a silent fall-back to the CPU is no result."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from bench.measure.answers import accuracy, oracle
from engine.backend import Options
from engine.backends import get, ort_cuda
from engine.graph.importer import from_proto
from engine.machine import driver as cuda_driver
from engine.ort import binding, sessions
from engine.ort import sessions as ort
from kernels.errors import UnavailableError, UnsupportedError
from tests.engine.backends.nets import small_net
from tests.engine.harness import make_model, random, run_ort
from tests.engine.ort import mixed

BACKEND = get("ort-cuda")


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a GPU with a driver for CUDA 13.0 were there."""
    monkeypatch.setattr(cuda_driver, "unavailable", lambda: None)
    monkeypatch.setattr(cuda_driver, "cuda_version", lambda: 13000)


@pytest.fixture
def gpu_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if onnxruntime-gpu for CUDA 13 were installed alone."""
    runtime = types.SimpleNamespace(
        __version__="1.31.1", get_available_providers=lambda: [ort_cuda.PROVIDER, "CPUExecutionProvider"]
    )
    monkeypatch.setattr(ort, "import_onnxruntime", lambda: runtime)
    monkeypatch.setattr(ort, "two_builds", lambda: None)
    monkeypatch.setattr(ort, "cuda_major", lambda: 13)


def test_without_a_driver_the_reason_is_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_driver, "cuda_version", lambda: None)
    assert "no NVIDIA driver is installed" in str(BACKEND.unavailable())
    with pytest.raises(UnavailableError, match="ort-cuda cannot run here: no NVIDIA driver"):
        BACKEND.prepare(small_net(), 1)


@pytest.mark.parametrize("hidden", ["", "-1"])
def test_hidden_gpus_are_told(monkeypatch: pytest.MonkeyPatch, hidden: str) -> None:
    monkeypatch.setattr(cuda_driver, "cuda_version", lambda: 13000)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    assert "hides every GPU" in str(cuda_driver.unavailable())


@pytest.mark.usefixtures("driver")
def test_a_cpu_build_beside_a_gpu_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = types.SimpleNamespace(
        __version__="1.31.1", get_available_providers=lambda: ["CPUExecutionProvider"]
    )
    monkeypatch.setattr(ort, "import_onnxruntime", lambda: runtime)
    monkeypatch.setattr(ort, "two_builds", lambda: None)
    assert "built for the CPU alone: install the extra cuda" in str(BACKEND.unavailable())


@pytest.mark.usefixtures("driver", "gpu_build")
def test_a_driver_too_old_for_the_build_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_driver, "cuda_version", lambda: 12080)
    assert "built for CUDA 13 and the driver speaks CUDA 12.8" in str(BACKEND.unavailable())


@pytest.mark.usefixtures("driver", "gpu_build")
def test_cupy_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ort_cuda.importlib.util.find_spec
    monkeypatch.setattr(
        ort_cuda.importlib.util, "find_spec", lambda name: None if name == "cupy" else found(name)
    )
    assert "CuPy, which times the device, is not installed" in str(BACKEND.unavailable())


def installed(folder: Path, name: str, version: str) -> None:
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def test_two_builds_in_one_folder_clash_and_in_two_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path / "a"), str(tmp_path / "b")])
    installed(tmp_path / "a", "onnxruntime", "1.31.1")
    assert ort.two_builds() is None
    installed(tmp_path / "b", "onnxruntime-gpu", "1.31.1")
    assert ort.two_builds() is None
    installed(tmp_path / "a", "onnxruntime-gpu", "1.31.1")
    assert "uninstall both" in str(ort.two_builds())


def test_a_session_that_fell_back_to_the_cpu_is_an_error() -> None:
    runtime = ort.import_onnxruntime()
    graph = small_net()
    session = ort.create_session(
        runtime, graph, 1, lambda: ort.session_options(runtime, 1), ["CPUExecutionProvider"]
    )
    with pytest.raises(
        UnavailableError, match="fell back from CUDAExecutionProvider to CPUExecutionProvider"
    ):
        sessions.check_placement(session, ort_cuda.PROVIDER, "small on ort-cuda at batch 1 in fp32", "")


def test_refusals_need_no_device() -> None:
    assert "does not offer fp32-tc; it offers fp32, tf32, fp16" in str(
        BACKEND.supports(small_net(), 1, "fp32-tc")
    )
    assert "batch fixed at 2" in str(BACKEND.supports(small_net(2), 1, "fp32"))
    with pytest.raises(UnsupportedError):
        BACKEND.prepare(small_net(2), 1)


# ------------------------------------------------------------------------------------------------ on a GPU


@pytest.fixture
def gpu() -> None:
    reason = BACKEND.unavailable()
    if reason is not None:
        pytest.skip(reason)


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("cuda_graph", [True, False])
@pytest.mark.parametrize("precision", ["fp32", "tf32", "fp16"])
def test_a_session_answers_as_the_oracle_does(precision: str, cuda_graph: bool) -> None:
    graph = small_net()
    session = BACKEND.prepare(graph, 3, precision, Options(cuda_graph=cuda_graph))
    assert session.facts["provider"] == ort_cuda.PROVIDER
    assert "nodes_on_cpu" not in session.facts
    assert session.facts["cuda_graph"] == ("yes" if cuda_graph else "no: not asked for")
    for seed in (0, 1):  # the second pass replays a captured graph over new inputs
        x = random((3, 3, 12, 12), seed)
        session.bind({"x": x})
        session.run()
        session.synchronize()
        expected = oracle.run(graph, {"x": x}, ["y"])["y"]
        stats = accuracy.error_stats(session.fetch()["y"], expected, precision, factor=10)
        assert stats.ok, stats.reason
    assert session.time_runs(10) > 0
    assert session.time_queued(10) > 0
    assert session.time_runs(1, cold=True) > 0
    assert session.op_times(0.1) == ()
    session.close()


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_a_train_of_runs_leaves_what_was_bound() -> None:
    session = BACKEND.prepare(small_net(), 2)
    x = random((2, 3, 12, 12))
    session.bind({"x": x})
    session.run()
    session.synchronize()
    first = session.fetch()["y"]
    session.time_runs(50)
    session.run()  # what timed passes answered was of inputs that they changed
    session.synchronize()
    np.testing.assert_array_equal(session.fetch()["y"], first)
    session.close()


@pytest.mark.gpu
@pytest.mark.real_gpu
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("place", [*mixed.PLACES, *mixed.EACH])
def test_answers_are_onnx_runtimes_wherever_its_nodes_run(place: str, seed: int) -> None:
    """Nodes on the CPU in front, in the middle, at the end and beside the others; at several batches, over
    inputs that change, after timing, too."""
    graph = mixed.net(place, seed)
    for batch in (1, 4):
        session = BACKEND.prepare(graph, batch)
        try:
            for again in range(3):
                given = mixed.inputs(10 * seed + again, batch)
                session.bind(given)
                session.run()
                session.synchronize()
                why = binding.differs(session.fetch(), run_ort(graph, given))
                assert why is None, (batch, again, why, session.facts)
                assert session.time_runs(3) > 0
                assert session.time_queued(2) > 0
            assert "binding" not in session.facts, session.facts
            on_cpu = any(node.op_type in mixed.ON_CPU for node in graph.nodes)
            assert ("nodes_on_cpu" in session.facts) == on_cpu
            assert (session.facts["cuda_graph"] == "yes") != on_cpu
        finally:
            session.close()


@pytest.mark.gpu
@pytest.mark.real_gpu
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("dtype", ["int16", "uint16"])
def test_quantisation_to_sixteen_bits_is_fed_as_it_should_be(dtype: str) -> None:
    """Nodes that the provider leaves to the CPU in front of a product, in the middle and at the end."""
    given = {"s": np.float32(1e-3), "z": np.array(0, dtype), "w": random((8, 8))}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], "q"),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], "d"),
        helper.make_node("MatMul", ["d", "w"], ["m"], "m"),
        helper.make_node("QuantizeLinear", ["m", "s", "z"], ["r"], "r"),
        helper.make_node("DequantizeLinear", ["r", "s", "z"], ["y"], "y"),
    ]
    graph = from_proto(make_model(nodes, {"x": ("N", 8)}, ["y"], given, 21), f"quantised to {dtype}")
    session = BACKEND.prepare(graph, 4)
    try:
        for seed in range(3):
            x = {"x": np.abs(random((4, 8), seed))}
            session.bind(x)
            session.run()
            session.synchronize()
            why = binding.differs(session.fetch(), run_ort(graph, x))
            assert why is None, (why, session.facts)
    finally:
        session.close()


@pytest.mark.gpu
@pytest.mark.real_gpu
@pytest.mark.usefixtures("gpu")
def test_an_output_that_is_an_input_and_one_whose_shape_hangs_on_values() -> None:
    echo = make_model([helper.make_node("Relu", ["x"], ["z"], "relu")], {"x": ("N", 8)}, ["x", "z"])
    places = make_model(
        [helper.make_node("NonZero", ["x"], ["p"], "p")], {"x": ("N", 8)}, ["p"], types={"p": 7}
    )
    for proto in (echo, places):
        graph = from_proto(proto, "outputs")
        session = BACKEND.prepare(graph, 3)
        try:
            for seed in range(3):
                x = {"x": np.maximum(random((3, 8), seed), 0)}
                session.bind(x)
                session.run()
                session.synchronize()
                why = binding.differs(session.fetch(), run_ort(graph, x))
                assert why is None, (why, session.facts)
                assert session.time_runs(2) > 0
        finally:
            session.close()
