"""The CUDA engine as a backend: what it says where it cannot run, and on a GPU what a session promises."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from bench.measure.answers.accuracy import PROPAGATED_FACTOR
from engine.backend import Options
from engine.backends import engine_cuda
from engine.backends.engine_cuda import BACKEND
from engine.graph import importer
from engine.graph.graph import Graph
from engine.machine import driver as cuda_driver
from engine.planning import planner
from kernels import launch, nvrtc, registry
from kernels.errors import InputError, OutOfMemoryError, UnavailableError
from kernels.precision import NAMES, PRECISIONS

WIDTH = 28

# CuPy may be behind NumPy's newest.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def _model(extra: onnx.NodeProto | None = None) -> onnx.ModelProto:
    """A small net of every kind of step: grouped and depthwise Conv, Relu, LRN, MaxPool, Flatten, Gemm, Tanh,
    MatMul, Add, Softmax; a second output in the middle."""
    rng = np.random.default_rng(3)

    def tensor(name: str, *shape: int) -> onnx.TensorProto:
        scale = 1 / np.sqrt(np.prod(shape[1:]) or 1)
        return numpy_helper.from_array((rng.standard_normal(shape) * scale).astype(np.float32), name)

    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], "conv1", kernel_shape=[5, 5], pads=[2, 2, 2, 2]),
        helper.make_node("Relu", ["c1"], ["r1"], "relu1"),
        helper.make_node("LRN", ["r1"], ["n1"], "norm1", size=5),
        helper.make_node("MaxPool", ["n1"], ["p1"], "pool1", kernel_shape=[3, 3], strides=[2, 2]),
        helper.make_node("Conv", ["p1", "w2"], ["c2"], "conv2", kernel_shape=[3, 3], group=2),
        helper.make_node("Conv", ["c2", "wd"], ["d"], "depthwise", pads=[1, 1, 1, 1], group=12),
        helper.make_node("Flatten", ["d"], ["f"], "flatten"),
        helper.make_node("Gemm", ["f", "w3", "b3"], ["g"], "fc3", transB=1),
        helper.make_node("Tanh", ["g"], ["features"], "tanh3"),
        helper.make_node("MatMul", ["features", "w4"], ["m"], "fc4"),
        helper.make_node("Add", ["m", "b4"], ["scores"], "add4"),
        helper.make_node("Softmax", ["scores"], ["prob"], "prob", axis=1),
    ]
    weights = [tensor("w1", 8, 1, 5, 5), tensor("b1", 8), tensor("w2", 12, 4, 3, 3)]
    weights += [tensor("wd", 12, 1, 3, 3)]
    weights += [tensor("w3", 30, 12 * 11 * 11), tensor("b3", 30), tensor("w4", 30, 10), tensor("b4", 10)]
    graph = helper.make_graph(
        nodes + ([extra] if extra else []),
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 1, WIDTH, WIDTH])],
        [
            helper.make_tensor_value_info("prob", TensorProto.FLOAT, ["N", 10]),
            helper.make_tensor_value_info("features", TensorProto.FLOAT, ["N", 30]),
        ],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return importer.from_proto(_model(), "small")


CONV_RUNGS = [rung for rung in registry.rungs("cuda", "conv") if not rung.language]


def _taken(graph: Graph, rung: registry.Rung) -> list[str]:
    """The nodes of the net's convolutions that a rung takes."""
    steps = planner.plan(graph, 3, "cuda", rung.precision).steps
    return [
        step.name
        for step in steps
        if step.op == rung.op and not (rung.refusal(step.params) or launch.refusal(step.params, rung))
    ]


def _images(batch: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((batch, 1, WIDTH, WIDTH)).astype(np.float32)


# --- without a GPU ----------------------------------------------------------------------------------------


def test_a_machine_without_driver_is_refused_in_words(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_driver, "unavailable", lambda: "no NVIDIA driver is installed: get one")
    assert BACKEND.unavailable() == "no NVIDIA driver is installed: get one"
    with pytest.raises(UnavailableError, match="engine-cuda cannot run here: no NVIDIA driver"):
        BACKEND.prepare(graph, 1)


def test_a_driver_without_a_device_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_driver, "unavailable", lambda: None)
    monkeypatch.setattr(engine_cuda, "_no_device", lambda: "the NVIDIA driver finds no GPU in this machine")
    assert BACKEND.unavailable() == "the NVIDIA driver finds no GPU in this machine"


def test_a_missing_cupy_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_driver, "unavailable", lambda: None)
    monkeypatch.setattr(engine_cuda, "_no_device", lambda: None)
    monkeypatch.setattr(engine_cuda.importlib.util, "find_spec", lambda name: None)
    assert "CuPy" in (BACKEND.unavailable() or "")
    assert "extra cuda" in (BACKEND.unavailable() or "")


def test_a_driver_older_than_cupy_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_driver, "unavailable", lambda: None)
    monkeypatch.setattr(cuda_driver, "cuda_version", lambda: 12080)
    monkeypatch.setattr(engine_cuda, "_no_device", lambda: None)
    monkeypatch.setattr(engine_cuda.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(engine_cuda.importlib.metadata, "version", lambda name: "14.0")
    assert "CUDA 13 and the driver speaks CUDA 12" in (BACKEND.unavailable() or "")


@pytest.mark.parametrize("precision", NAMES)
@pytest.mark.parametrize("batch", [1, 16])
def test_products_of_every_precision_run_in_it(graph: Graph, precision: str, batch: int) -> None:
    assert precision in BACKEND.precisions
    assert BACKEND.supports(graph, batch, precision) is None
    chosen = planner.plan(graph, batch, "cuda", precision)
    found = {step.name: registry.find("cuda", step.op, step.rung) for step in chosen.steps}
    assert found["conv1"].precision == found["conv2"].precision == precision
    if batch == 16 or precision == "fp16":  # a few rows in float32 take no longer
        assert found["fc3"].precision == found["fc4"].precision == precision
    assert {rung.precision for rung in found.values()} <= {"fp32", precision}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("rung", CONV_RUNGS, ids=lambda rung: rung.name)
def test_every_rung_of_convolution_has_a_node_to_be_chosen_for(graph: Graph, rung: registry.Rung) -> None:
    nodes = _taken(graph, rung)
    of_any = ["conv2", "depthwise"] if "kernel" in rung.needs else ["conv1", "conv2", "depthwise"]
    if "depthwise" in rung.needs:
        of_any = ["depthwise"] if rung.needs["depthwise"] else ["conv1", "conv2"]
    if rung.needs.get("group") == 1:  # conv2 has two groups, depthwise as many as channels
        of_any = ["conv1"]
    assert nodes == of_any
    chosen = planner.plan(graph, 3, "cuda", rung.precision, Options(rungs=dict.fromkeys(nodes, rung.name)))
    assert {step.rung for step in chosen.steps if step.name in nodes} == {rung.name}


def test_supports_names_the_node_it_refuses(graph: Graph) -> None:
    assert BACKEND.supports(graph, 4, "fp32") is None
    node = helper.make_node(
        "LabelEncoder",
        ["scores"],
        ["extra"],
        "strange",
        domain="ai.onnx.ml",
        keys_floats=[0.5],
        values_floats=[1.0],
    )
    model = _model(node)
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 2))
    model.graph.output.append(helper.make_tensor_value_info("extra", TensorProto.FLOAT, ["N", 10]))
    reason = BACKEND.supports(importer.from_proto(model, "strange"), 4, "fp32")
    assert reason is not None
    assert "strange" in reason
    assert "LabelEncoder" in reason


# --- on a GPU ---------------------------------------------------------------------------------------------


@pytest.fixture
def gpu() -> Iterator[None]:
    if reason := BACKEND.unavailable():
        pytest.skip(reason)
    yield
    gc.collect()


def _expected(images: np.ndarray) -> dict[str, np.ndarray]:
    import onnxruntime

    session = onnxruntime.InferenceSession(_model().SerializeToString(), providers=["CPUExecutionProvider"])
    return dict(zip(("prob", "features"), session.run(["prob", "features"], {"x": images}), strict=True))


def _assert_close(
    actual: dict[str, np.ndarray], expected: dict[str, np.ndarray], precision: str = "fp32"
) -> None:
    bound = PRECISIONS[precision].bound * (1 if precision == "fp32" else PROPAGATED_FACTOR)
    assert set(actual) == set(expected)
    for name, value in expected.items():
        assert actual[name].shape == value.shape
        assert actual[name].dtype == np.float32
        # Two right fp32 sums of these sizes differ by about 1e-6 of the largest value, also in elements that
        # cancel to nearly nothing: the bound is on the tensor, as it is everywhere in the program.
        scale = float(np.abs(value).max())
        np.testing.assert_allclose(actual[name], value, rtol=bound, atol=2 * bound * scale)
        assert np.linalg.norm(actual[name] - value) <= bound * np.linalg.norm(value)


@pytest.mark.gpu
@pytest.mark.parametrize("cuda_graph", [True, False])
@pytest.mark.parametrize("batch", [1, 2, 37])
def test_outputs_agree_with_onnxruntime(gpu: None, graph: Graph, batch: int, cuda_graph: bool) -> None:
    session = BACKEND.prepare(graph, batch, options=Options(cuda_graph=cuda_graph))
    assert session.facts["cuda_graph"].startswith("yes" if cuda_graph else "no: not asked for")
    for seed in range(3):  # new inputs each time: a graph that kept an old one would show
        images = _images(batch, seed)
        session.bind({"x": images})
        session.run()
        session.synchronize()
        _assert_close(session.fetch(), _expected(images))
    session.close()


@pytest.mark.gpu
def test_graph_and_plain_launches_give_the_same_bits(gpu: None, graph: Graph) -> None:
    images = _images(16)
    outcome = []
    for cuda_graph in (True, False):  # one kernel for several steps, which a graph alone has, sums otherwise
        session = BACKEND.prepare(graph, 16, options=Options(cuda_graph=cuda_graph, one_kernel=False))
        session.bind({"x": images})
        for _ in range(5):
            session.run()
        outcome.append(session.fetch())
        session.close()
    for name, value in outcome[0].items():
        assert value.tobytes() == outcome[1][name].tobytes()


@pytest.mark.gpu
def test_a_capture_that_fails_falls_back_and_says_why(gpu: None, graph: Graph) -> None:
    # Before either is tried: launches that may begin early keep their order within a graph alone.
    session = BACKEND.prepare(graph, 4, options=Options(early=False, one_kernel=False))
    call = session._calls[0]

    class Waits:
        """A step that synchronises the device, which no capture allows."""

        def start(self) -> None:
            call.start()
            session._cupy.cuda.runtime.streamSynchronize(session._stream.on.ptr)

    session._graph, reason = session._capture([Waits()])
    assert session._graph is None
    assert "capture failed" in reason
    images = _images(4)
    session.bind({"x": images})
    session.run()
    _assert_close(session.fetch(), _expected(images))
    session.close()


@pytest.mark.gpu
@pytest.mark.parametrize("rung", CONV_RUNGS, ids=lambda rung: rung.name)
def test_a_chosen_rung_is_the_one_that_runs(gpu: None, graph: Graph, rung: registry.Rung) -> None:
    chosen = dict.fromkeys(_taken(graph, rung), rung.name)
    session = BACKEND.prepare(graph, 3, rung.precision, Options(rungs=chosen))
    images = _images(3)
    session.bind({"x": images})
    session.run()
    _assert_close(session.fetch(), _expected(images), rung.precision)
    times = {time.nodes[0]: time for time in session.op_times(0.05)}
    assert {node: times[node].rung for node in chosen} == chosen
    session.close()


@pytest.mark.gpu
@pytest.mark.parametrize("precision", NAMES)
@pytest.mark.parametrize("batch", [1, 9, 40])
def test_every_precision_answers_within_its_bound(
    gpu: None, graph: Graph, precision: str, batch: int
) -> None:
    session = BACKEND.prepare(graph, batch, precision)
    for seed in range(2):
        images = _images(batch, seed)
        session.bind({"x": images})
        session.run()
        _assert_close(session.fetch(), _expected(images), precision)
    session.close()


@pytest.mark.gpu
def test_fetch_copies_and_timing_leaves_what_was_bound(gpu: None, graph: Graph) -> None:
    session = BACKEND.prepare(graph, 8)
    images = _images(8)
    session.bind({"x": images})
    session.run()
    first = session.fetch()
    kept = {name: value.copy() for name, value in first.items()}
    times = session.op_times(0.1)
    assert {t.clock for t in times} <= {"events", "stamps"}  # stamps: of steps that are one kernel
    assert all(t.time_ns > 0 for t in times)
    assert sorted(n for t in times for n in t.nodes) == sorted(
        n.name for n in graph.nodes if n.op_type != "Flatten"
    )
    _assert_close(session.fetch(), kept)
    assert session.time_runs(20) > session.time_runs(1) > 0
    assert session.time_runs(1, cold=True) > 0
    with pytest.raises(ValueError, match="cold"):
        session.time_runs(2, cold=True)
    session.run()  # what timed passes answered was of inputs that they changed
    _assert_close(session.fetch(), kept)
    session.bind({"x": _images(8, 9)})
    session.run()
    session.fetch()
    for name, value in kept.items():
        assert np.array_equal(first[name], value)
    session.close()


@pytest.mark.gpu
def test_bind_takes_what_it_can_and_refuses_the_rest(gpu: None, graph: Graph) -> None:
    session = BACKEND.prepare(graph, 2)
    wide = _images(2).astype(np.float64)
    session.bind({"x": np.asfortranarray(wide)})
    session.run()
    _assert_close(session.fetch(), _expected(wide.astype(np.float32)))
    for given in ({}, {"y": _images(2)}, {"x": _images(3)}, {"x": _images(2) + 1j}):
        with pytest.raises(InputError):
            session.bind(given)
    session.close()


@pytest.mark.gpu
def test_nan_reaches_the_outputs_of_its_image_alone(gpu: None, graph: Graph) -> None:
    session = BACKEND.prepare(graph, 3)
    images = _images(3)
    images[1, 0, 14, 14] = np.nan
    session.bind({"x": images})
    session.run()
    fetched = session.fetch()
    for value in fetched.values():
        assert np.isnan(value[1]).all()
        assert np.isfinite(value[[0, 2]]).all()
    session.close()


@pytest.mark.gpu
def test_close_frees_device_memory_and_ends_the_session(gpu: None, graph: Graph) -> None:
    import cupy

    def free() -> int:
        gc.collect()
        return int(cupy.cuda.runtime.memGetInfo()[0])

    BACKEND.prepare(graph, 512).close()  # whatever the driver takes once and keeps
    before = free()
    session = BACKEND.prepare(graph, 4096)
    assert before - free() >= session.memory["arena"] > 100 << 20
    session.close()
    session.close()
    assert before - free() < 8 << 20
    with pytest.raises(RuntimeError, match="closed"):
        session.run()


@pytest.mark.gpu
def test_too_large_a_batch_is_out_of_memory_in_words_and_keeps_nothing(gpu: None, graph: Graph) -> None:
    import cupy

    BACKEND.prepare(graph, 1).close()
    gc.collect()
    before = int(cupy.cuda.runtime.memGetInfo()[0])
    others = cupy.cuda.Memory(before - (1 << 30))  # who else uses the device leaves 1 GiB
    with pytest.raises(OutOfMemoryError, match="batch 200000"):
        BACKEND.prepare(graph, 200_000)  # 5 GB for the first layer's output alone
    del others
    gc.collect()
    assert before - int(cupy.cuda.runtime.memGetInfo()[0]) < 8 << 20
    session = BACKEND.prepare(graph, 1)  # and the next one works
    session.run()
    session.synchronize()
    session.close()


@pytest.mark.gpu
def test_large_tensors_pass_through_the_staging_in_pieces(gpu: None) -> None:
    batch = 12_345  # 39 MB each way, past one half of the staging memory
    shape = ["N", 1, WIDTH, WIDTH]
    made = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"], "relu")],
        "relu",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    session = BACKEND.prepare(importer.from_proto(model, "relu"), batch)
    images = _images(batch)
    session.bind({"x": images})
    session.run()
    assert np.array_equal(session.fetch()["y"], np.maximum(images, 0))
    assert session.memory["pinned"] <= 64 << 20
    session.close()


@pytest.mark.gpu
def test_a_second_session_compiles_nothing(gpu: None, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    BACKEND.prepare(graph, 4).close()
    monkeypatch.setattr(nvrtc, "_compile", lambda *_: pytest.fail("compiled although it lies in the cache"))
    session = BACKEND.prepare(graph, 4)
    assert set(session.phases) == {"load", "compile", "alloc", "upload"}
    session.close()
