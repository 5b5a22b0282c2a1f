"""Operator by operator: errors isolated and carried along, times by group, predictions over a data set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench.measure.answers import accuracy, layer_errors, layers, oracle
from bench.measure.answers.oracle import Golden
from bench.measure.images import predictions
from bench.measure.images.image_feed import ImageFeed
from bench.measure.loaded_model import LoadedModel
from bench.results.records import Job
from engine.backend import OpTime, Options
from engine.backends import get
from engine.graph.graph import Graph, TensorInfo
from engine.machine import host
from engine.ort import precision as ort_precision
from engine.ort.precision import to_fp16
from engine.planning import groups as grouping
from kernels.errors import DataError, UnsupportedError
from kernels.precision import PRECISIONS
from models.datasets import Dataset
from tests.engine.backends.nets import small_net
from tests.engine.harness import one_node, random

ONE_THREAD = Options(threads=1)
NO_ERRORS = layer_errors.Errors({}, {})


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(layer_errors, "_known", type(layer_errors._known)())


@pytest.fixture
def graph() -> Graph:
    return small_net()


@pytest.fixture
def golden(graph: Graph) -> Golden:
    return oracle.golden(graph, {"x": random((4, 3, 12, 12))})


@dataclass
class Crooked:
    """ort-cpu, but its sessions get every tensor named in `wrong` wrong by `factor`, and time as told."""

    wrong: tuple[str, ...] = ()
    factor: float = 1.01
    times: tuple[OpTime, ...] = ()
    name: str = "crooked"
    reference: str = "ort-cpu"
    precisions: tuple[str, ...] = ("fp32",)
    prepared: int = 0

    def prepare(self, graph: Graph, batch: int, precision: str = "fp32", options: Any = None) -> Any:
        self.prepared += 1
        session = get("ort-cpu").prepare(graph, batch, precision, options)
        fetch = session.fetch

        def crooked() -> Mapping[str, np.ndarray]:
            return {k: v * self.factor if k in self.wrong else v for k, v in fetch().items()}

        session.fetch = crooked  # type: ignore[method-assign, assignment]
        session.op_times = lambda seconds: self.times  # type: ignore[method-assign]
        return session


@pytest.mark.parametrize("name", ["ort-cpu", "engine-cpu"])
@pytest.mark.parametrize("batch", [2, 4, 9])
def test_every_group_is_measured_in_order(graph: Graph, golden: Golden, name: str, batch: int) -> None:
    backend = get(name)
    session = backend.prepare(graph, batch, "fp32", ONE_THREAD)
    session.bind(accuracy.place(golden.inputs, batch).inputs)
    measured = layers.measure(
        graph, backend, "fp32", ONE_THREAD, golden, batch, session=session, seconds=0.02,
        reference=get("ort-cpu"),
    )  # fmt: skip
    session.close()
    parts = grouping.groups(graph, batch)
    own = [layer for layer in measured if layer.nodes]
    assert [layer.nodes for layer in own] == [part.nodes for part in parts]
    assert [layer.shape for layer in own] == [part.shape for part in parts]
    for layer in own:
        assert layer.isolated is not None
        assert layer.propagated is not None
        assert layer.isolated.ok
        assert layer.propagated.ok
        assert layer.propagated.bound == pytest.approx(10 * layer.isolated.bound)
        assert (layer.isolated.ratio is None) or name != "ort-cpu"
    assert sum(layer.time_ns or 0 for layer in own) > 0
    assert {layer.clock for layer in own if layer.time_ns is not None} == {"host"}


def test_a_layer_that_is_wrong_fails_alone_when_isolated(graph: Graph, golden: Golden) -> None:
    backend = Crooked(wrong=("p1",))
    measured = layers.measure(graph, backend, "fp32", ONE_THREAD, golden, 4, times=False)  # type: ignore[arg-type]
    failed = {layer.output for layer in measured if layer.isolated and not layer.isolated.ok}
    assert failed == {"p1"}
    assert all(layer.time_ns is None for layer in measured)


def test_errors_of_a_batch_are_shared_by_larger_ones_but_never_those_of_own_kernels(
    graph: Graph, golden: Golden, tmp_path: Path
) -> None:
    backend = Crooked()
    measure = layers.measure
    measure(graph, backend, "fp32", ONE_THREAD, golden, 4, times=False)  # type: ignore[arg-type]
    once = backend.prepared
    measure(graph, backend, "fp32", ONE_THREAD, golden, 64, times=False)  # type: ignore[arg-type]
    assert backend.prepared == once
    own = replace(ONE_THREAD, kernel_dirs=(tmp_path,))
    measure(graph, backend, "fp32", own, golden, 64, times=False)  # type: ignore[arg-type]
    measure(graph, backend, "fp32", own, golden, 64, times=False)  # type: ignore[arg-type]
    assert backend.prepared == 3 * once


def test_the_ratio_is_ours_over_the_references_own(graph: Graph, golden: Golden) -> None:
    backend = Crooked(wrong=("r3",), factor=1 + 1e-6)
    measured = layers.measure(
        graph, backend, "fp32", ONE_THREAD, golden, 4, times=False, reference=get("ort-cpu")  # type: ignore[arg-type]
    )  # fmt: skip
    ratios = {layer.output: layer.isolated.ratio for layer in measured if layer.isolated}
    assert ratios["r3"] is not None
    assert ratios["r3"] > 2
    assert ratios["g4"] == pytest.approx(1.0)
    assert ratios["f"] is None  # Flatten is exact in both


def test_times_are_gathered_by_group(graph: Graph, golden: Golden) -> None:
    told = (
        OpTime(("conv1",), "Conv", 100.0, "host", "naive"),
        OpTime(("relu1",), "Relu", 10.0, "host"),  # one group, two kernels
        OpTime((), "ReorderInput", 5.0, "host"),
        OpTime((), "ReorderInput", 6.0, "host"),  # what the backend adds itself
        OpTime(("pool1", "conv2"), "Fused", 40.0, "host"),  # one kernel, two groups
    )
    backend = Crooked(times=told)
    session = backend.prepare(graph, 4, "fp32", ONE_THREAD)
    measured = layers.measure(
        graph, backend, "fp32", ONE_THREAD, golden, 4, session=session, found=NO_ERRORS  # type: ignore[arg-type]
    )  # fmt: skip
    times = {layer.output or layer.op_type: layer.time_ns for layer in measured}
    assert times["r1"] == 110.0
    assert times["p1"] is None
    assert times["t2"] == 40.0
    assert times["ReorderInput"] == 11.0
    assert next(layer.rung for layer in measured if layer.output == "r1") == "naive"
    assert all(layer.isolated is None for layer in measured)


@pytest.mark.parametrize(
    ("told", "precision", "expected"),
    [
        ((100, 20), "fp32", 120),
        ((100, 20), "fp16", 120),
        ((100, None), "fp32", None),  # as the model has them, where all is in float32
        ((None, None), "fp16", 0),  # of how another backend keeps its tensors nothing is known
        ((None, None), "tf32", 0),
    ],
)
def test_bytes_are_those_that_the_backend_tells(
    graph: Graph, told: tuple[int | None, ...], precision: str, expected: int | None
) -> None:
    part = next(part for part in grouping.groups(graph, 4) if "conv1" in part.nodes)
    times = [OpTime(("conv1",), "Conv", 1.0, "host", nbytes=nbytes) for nbytes in told]
    found = layers._nbytes(graph, part, times, Crooked(), precision)  # type: ignore[arg-type]
    assert found == (part.nbytes if expected is None else expected)


def test_onnx_runtime_has_the_tensors_of_the_model_that_it_is_given(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = next(part for part in grouping.groups(graph, 4) if "conv1" in part.nodes)

    def nbytes(precision: str) -> int:
        return layers._nbytes(graph, part, [], get("ort-cuda"), precision)

    assert nbytes("fp32") == nbytes("tf32") == part.nbytes
    assert nbytes("fp16") == part.nbytes // 2
    wide = to_fp16(graph)
    first = next(node for node in wide.nodes if node.name == "conv1")
    nodes = [replace(node, inputs=("x:fp32",)) if node is first else node for node in wide.nodes]
    kept = replace(wide, nodes=tuple(nodes))
    monkeypatch.setattr(ort_precision, "to_fp16", lambda _: kept)
    assert nbytes("fp16") == 0, "what stayed in float32 is not told apart"


def test_our_engine_tells_bytes_and_every_layer_the_least(graph: Graph, golden: Golden) -> None:
    session = get("engine-cpu").prepare(graph, 4, "fp32", ONE_THREAD)
    session.bind(accuracy.place(golden.inputs, 4).inputs)
    found = layers.measure(
        graph,
        get("engine-cpu"),
        "fp32",
        ONE_THREAD,
        golden,
        4,
        session=session,
        found=NO_ERRORS,
        seconds=0.05,
    )
    session.close()
    parts = {part.output: part for part in grouping.groups(graph, 4)}
    for layer in found:
        assert layer.nbytes >= (layer.least_nbytes or 0)
        assert layer.least_nbytes == sum(p.least_nbytes("fp32") for p in parts[layer.output].params)


def test_a_backend_without_operator_times_is_timed_group_by_group(graph: Graph, golden: Golden) -> None:
    backend = Crooked()
    session = backend.prepare(graph, 9, "fp32", ONE_THREAD)
    measured = layers.measure(
        graph, backend, "fp32", ONE_THREAD, golden, 9, session=session, found=NO_ERRORS, seconds=0.05  # type: ignore[arg-type]
    )  # fmt: skip
    assert [layer.nodes for layer in measured] == [part.nodes for part in grouping.groups(graph, 9)]
    timed = [layer for layer in measured if layer.time_ns]  # all, but for those too short on a busy machine
    assert 2 * len(timed) > len(measured)
    assert {layer.clock for layer in timed} == {"isolated"}


class Ticking:
    """A session on a clock of its own, a run of which takes `run_ns`."""

    def __init__(self, run_ns: float) -> None:
        self.run_ns = run_ns
        self.now = 0.0
        self.runs: list[int] = []

    def time_runs(self, count: int, cold: bool = False) -> int:
        self.runs.append(count)
        self.now += count * self.run_ns / 1e9
        return round(count * self.run_ns)


@pytest.mark.parametrize("seconds", [0.06 / 11, 0.5 / 11, 0.5])
@pytest.mark.parametrize("run_ns", [900.0, 50_000.0, 1_000_000.0, 20_000_000.0, 3e9])
def test_a_layer_alone_takes_no_longer_than_it_is_given(
    monkeypatch: pytest.MonkeyPatch, run_ns: float, seconds: float
) -> None:
    session = Ticking(run_ns)
    monkeypatch.setattr(layers, "perf_counter", lambda: session.now)
    assert layers._median_ns(session, seconds) == pytest.approx(run_ns, rel=1e-3)  # type: ignore[arg-type]
    assert session.now <= max(seconds, 2 * run_ns / 1e9), "one run to see how long it takes, and one timed"
    if run_ns < seconds * 1e9 / 50:
        assert len(session.runs) >= 5, "trains to take the median of, behind a warm one"


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_inputs_of_a_large_batch_are_the_golden_images_over_and_over(golden: Golden, dtype: str) -> None:
    name = "p1"
    array = golden.tensors[name]
    info = TensorInfo(name, dtype, (11, *array.shape[1:]))
    filled = layers._filled(golden, info, 11)
    assert filled.dtype == dtype
    np.testing.assert_array_equal(filled, array.astype(dtype)[np.arange(11) % golden.images])
    unknown = layers._filled(golden, TensorInfo("unknown", dtype, (40, 3, 5)), 40)
    assert (unknown.shape, unknown.dtype) == ((40, 3, 5), dtype)
    assert unknown.std() == pytest.approx(1, rel=0.2)
    assert layers._filled(golden, TensorInfo("scalar", dtype, ()), 40).shape == ()


def test_tensors_that_the_judge_does_not_know_have_no_errors(graph: Graph, golden: Golden) -> None:
    ends = replace(golden, tensors={name: golden.tensors[name] for name in ("x", "y")})
    backend = Crooked()
    session = backend.prepare(graph, 4, "fp32", ONE_THREAD)
    measured = layers.measure(graph, backend, "fp32", ONE_THREAD, ends, 4, session=session, seconds=0.02)  # type: ignore[arg-type]
    judged = {layer.output: (layer.isolated, layer.propagated) for layer in measured}
    assert judged["p1"] == (None, None)
    assert judged["r1"][0] is not None
    assert judged["y"][1] is not None
    assert all(layer.time_ns for layer in measured)


# ------------------------------------------------------------------------------------------- predictions


class Echo:
    """A session whose scores are one-hot in the first pixel; it remembers its batches."""

    def __init__(self, batch: int) -> None:
        self.batch = batch
        self.bound: list[np.ndarray] = []

    def bind(self, inputs: Mapping[str, np.ndarray]) -> None:
        assert inputs["x"].shape == (self.batch, 1, 2, 2)
        self.bound.append(inputs["x"][:, 0, 0, 0].astype(int))

    def run(self) -> None: ...

    def synchronize(self) -> None: ...

    def fetch(self) -> dict[str, np.ndarray]:
        return {"y": np.eye(10, dtype=np.float32)[self.bound[-1]] * 3}


@pytest.fixture
def dataset() -> Dataset:
    images = np.zeros((7, 2, 2), np.uint8)
    images[:, 0, 0] = [0, 1, 2, 3, 4, 5, 6]
    return Dataset("made", images, np.array([0, 1, 2, 3, 4, 9, 9]), tuple("0123456789"))


def fed(graph: Graph) -> ImageFeed:
    return ImageFeed(graph, Job(models=("m",), backends=()), "raw", tuple("0123456789"), "made")


@pytest.mark.parametrize("batch", [1, 2, 7, 20])
def test_the_last_batch_is_filled_and_its_extra_answers_dropped(dataset: Dataset, batch: int) -> None:
    graph, session = one_node("Relu", (1, 1, 2, 2)), Echo(batch)
    found = predictions.run(session, fed(graph), dataset)  # type: ignore[arg-type]
    np.testing.assert_array_equal(found.predicted, range(7))
    assert len(session.bound) == -(-7 // batch)
    np.testing.assert_array_equal(np.concatenate(session.bound)[:7], range(7))
    np.testing.assert_allclose(found.confidence, np.exp(3) / (np.exp(3) + 9), rtol=1e-6)
    record = predictions.summary(found)
    assert (record.images, record.labelled) == (7, True)
    assert record.top1 == pytest.approx(5 / 7)
    assert found.wall_ns >= found.compute_ns > 0


def test_fewer_images_and_no_labels(dataset: Dataset) -> None:
    unlabelled = Dataset("random", dataset.images, None, ())
    found = predictions.run(Echo(2), fed(one_node("Relu", (1, 1, 2, 2))), unlabelled, images=3)  # type: ignore[arg-type]
    record = predictions.summary(found, found, "ort-cpu")
    assert (record.images, record.labelled, record.top1, record.top5) == (3, False, None, None)
    assert (record.agreement, record.reference) == (1.0, "ort-cpu")


def test_agreement_needs_the_same_images(dataset: Dataset) -> None:
    graph = one_node("Relu", (1, 1, 2, 2))
    all_of_them = predictions.run(Echo(2), fed(graph), dataset)  # type: ignore[arg-type]
    few = predictions.run(Echo(2), fed(graph), dataset, images=3)  # type: ignore[arg-type]
    assert predictions.summary(all_of_them, few, "ort-cpu").agreement is None
    other = replace(all_of_them, predicted=np.array([0, 1, 2, 3, 4, 5, 0]))
    assert predictions.summary(all_of_them, other, "ort-cpu").agreement == pytest.approx(6 / 7)


def test_probabilities_are_left_alone_and_scores_are_not() -> None:
    already = np.array([[0.25, 0.75]])
    np.testing.assert_array_equal(predictions.probabilities(already), already)
    np.testing.assert_allclose(predictions.probabilities(np.array([[1000.0, 1000.0]])), [[0.5, 0.5]])
    assert np.isnan(predictions.probabilities(np.array([[np.nan, 1.0]]))).all()


def test_predictions_survive_their_file(dataset: Dataset, tmp_path: Path) -> None:
    found = predictions.run(Echo(2), fed(one_node("Relu", (1, 1, 2, 2))), dataset)  # type: ignore[arg-type]
    file = tmp_path / "predictions" / "case.npz"
    predictions.save(file, found)
    again = predictions.load(file)
    for field in ("label", "predicted", "confidence", "top5"):
        np.testing.assert_array_equal(getattr(again, field), getattr(found, field))
    assert (again.wall_ns, again.compute_ns) == (found.wall_ns, found.compute_ns)
    file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(DataError, match="run the comparison again"):
        predictions.load(file)


def test_an_output_that_is_no_class_scores_is_refused(dataset: Dataset) -> None:
    session = Echo(2)
    session.fetch = lambda: {"y": np.zeros((2, 1), np.float32)}  # type: ignore[method-assign]
    with pytest.raises(UnsupportedError, match=r"no output .* is a row of class scores"):
        predictions.run(session, fed(one_node("Relu", (1, 1, 2, 2))), dataset)  # type: ignore[arg-type]


def test_layers_name_the_layers_they_read(graph: Graph, golden: Golden) -> None:
    backend = get("ort-cpu")
    measured = layers.measure(graph, backend, "fp32", ONE_THREAD, golden, 4, found=NO_ERRORS, times=False)
    assert measured[0].inputs == ("x",)
    assert [layer.inputs for layer in measured[1:]] == [(layer.output,) for layer in measured[:-1]]


def test_a_layer_read_at_another_tensor_than_its_last_is_named_all_the_same() -> None:
    part = grouping.Group(("a", "b"), "Conv", ("x",), "b", (), 0, 0, 0)
    reader = grouping.Group(("c",), "Add", ("a", "b", "y"), "c", (), 0, 0, 0)
    nodes = [SimpleNamespace(name=name, outputs=(name,)) for name in "abc"]
    read = layers._read(SimpleNamespace(nodes=nodes), (part, reader))  # type: ignore[arg-type]
    assert read == {"b": ("x",), "c": ("b", "y")}


def test_a_pool_has_a_row_of_its_own_where_no_gpu_is_compared() -> None:
    def rows(*names: str) -> list[tuple[str, ...]]:
        job = Job(models=("lenet5-digits",), backends=names, batches=(1,))
        graph = LoadedModel("lenet5-digits", job, (1,), lambda *_: None).graph
        return [group.nodes for group in grouping.groups(graph, 1)][:2]

    assert rows("engine-cpu", "ort-cpu") == [("conv1", "tanh1"), ("pool1",)]
    assert rows("engine-cpu", "engine-cuda")[0] == ("conv1", "tanh1", "pool1")


def test_a_references_errors_are_taken_once_a_machine_and_ours_every_time(
    graph: Graph, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken(name: str) -> tuple[int, layer_errors.Errors]:
        """In a new process, as it were: the sessions that were prepared, and what came of them."""
        monkeypatch.setattr(layer_errors, "_known", type(layer_errors._known)())
        made: list[str] = []
        backend = get(name)
        prepare = type(backend).prepare

        def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
            made.append(self.name)
            return prepare(self, *args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(type(backend), "prepare", counted)
            found = layer_errors.errors_of(graph, backend, "fp32", ONE_THREAD, golden)
        return len(made), found

    first, second = taken("ort-cpu"), taken("ort-cpu")
    assert first[0] > 1
    assert second == (0, first[1])
    assert taken("engine-cpu")[0] == taken("engine-cpu")[0] > 1
    monkeypatch.setattr(host, "cpu_name", lambda: "another")
    assert taken("ort-cpu")[0] == first[0]
    # What is beyond its bound may have been of this one session.
    monkeypatch.setitem(PRECISIONS, "fp32", replace(PRECISIONS["fp32"], bound=1e-12))
    beyond = taken("ort-cpu")
    assert not all(stats.ok for stats in beyond[1].isolated.values())
    assert taken("ort-cpu")[0] > 0
