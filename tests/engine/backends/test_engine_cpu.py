"""engine-cpu: sessions that keep their promises, steps divided among threads, errors in one sentence."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import helper

from engine.backend import Options
from engine.backends import all_backends, get
from engine.backends.engine_cpu import BACKEND
from engine.cpu import program
from engine.cpu import steps as cpu_steps
from engine.cpu.steps import Blas, Team, aligned, divide
from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from engine.graph.plan import Step
from engine.planning.planner import plan
from kernels import numba_support, registry
from kernels.cpu import load
from kernels.errors import InputError, KernelError, OutOfMemoryError, UnsupportedError
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from tests.engine.harness import in_numpy, make_model, random
from tests.kernels.drawn import DRAWN, inputs_for, output_shape

pytestmark = pytest.mark.slow

BATCH = 3


@pytest.fixture(scope="module")
def graph() -> Graph:
    """Convolution, pool and two dense layers; the last one's answer is also an output before the softmax."""
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c"], "conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], "relu"),
        helper.make_node("MaxPool", ["r"], ["p"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p"], ["f"], "flatten"),
        helper.make_node("Gemm", ["f", "w2", "b2"], ["logits"], "dense", transB=1),
        helper.make_node("Softmax", ["logits"], ["y"], "softmax"),
    ]
    constants = {
        "w1": random((4, 2, 3, 3), 1),
        "b1": random((4,), 2),
        "w2": random((5, 4 * 4 * 4), 3),
        "b2": random((5,), 4),
    }
    return from_proto(make_model(nodes, {"x": ("N", 2, 8, 8)}, ["y", "logits"], constants), "small")


@pytest.fixture
def every_step_is_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_steps, "WORTH_DIVIDING_S", 1e-15)
    monkeypatch.setattr(program, "WORTH_SHARING_S", 1e-15)


@pytest.fixture
def blas_as_it_was() -> Iterator[None]:
    libraries = cpu_steps._blas_libraries()
    before = [library.get_num_threads() for library in libraries]
    yield
    for library, threads in zip(libraries, before, strict=True):
        library.set_num_threads(threads)


def test_backends_are_found_by_folder_and_by_nearest_name() -> None:
    names = {path.stem for path in Path(cpu_steps.__file__).parents[1].joinpath("backends").glob("[a-z]*.py")}
    modules = {type(backend).__module__ for backend in all_backends().values()}
    assert {module.rpartition(".")[2] for module in modules} | {"ort_cuda_tuned_strict"} == names
    assert get("engine-cpu") is BACKEND
    with pytest.raises(InputError, match=r"no backend 'engine-cup' \(did you mean 'engine-cpu'"):
        get("engine-cup")
    with pytest.raises(InputError, match=r"no backend 'x'; there are .*engine-cpu"):
        get("x")


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_passes_repeat_and_follow_what_is_bound(
    graph: Graph, threads: int, every_step_is_divided: None, blas_as_it_was: None
) -> None:
    first, second = random((BATCH, 2, 8, 8), 5), random((BATCH, 2, 8, 8), 6)
    session = BACKEND.prepare(graph, BATCH, options=Options(threads=threads))
    session.bind({"x": first})
    session.run()
    once = session.fetch()
    assert set(once) == {"y", "logits"}
    assert {array.dtype for array in once.values()} == {np.dtype("float32")}
    assert np.allclose(once["y"].sum(axis=1), 1, atol=1e-6)
    assert session.time_runs(3) > 0
    session.run()
    again = session.fetch()
    session.bind({"x": second})
    assert session.time_runs(1, cold=True) > 0
    session.run()
    other = session.fetch()
    for name in once:
        np.testing.assert_array_equal(once[name], again[name])
        assert not np.array_equal(once[name], other[name])
    once["y"].fill(0)  # a copy: what is fetched later does not change with it
    session.bind({"x": first})
    session.run()
    np.testing.assert_allclose(session.fetch()["y"], again["y"], rtol=1e-6)
    reference = get("ort-cpu").prepare(graph, BATCH, options=Options(threads=1))
    reference.bind({"x": first})
    reference.run()
    for name, expected in reference.fetch().items():
        np.testing.assert_allclose(again[name], expected, rtol=1e-5, atol=1e-6)
    reference.close()
    session.close()


def test_what_a_session_tells_of_itself(graph: Graph) -> None:
    session = BACKEND.prepare(graph, BATCH, options=Options(threads=2))
    assert (session.backend, session.precision, session.batch) == ("engine-cpu", "fp32", BATCH)
    assert set(session.phases) == {"load", "compile", "alloc", "upload"}
    assert all(nanoseconds > 0 for nanoseconds in session.phases.values())
    columns = 5 if numba_support.unavailable() else 16  # compiled, the dense layer's lie in panels of 16
    assert session.memory["weights"] == 4 * (4 * 2 * 9 + 4 + columns * 64 + columns)
    assert session.memory["arena"] >= 4 * BATCH * (2 * 64 + 4 * 64)
    assert session.memory["workspace"] > 0
    assert session.facts["threads"] == "2"
    assert "kernels" in session.facts["blas"]
    session.bind({"x": random((BATCH, 2, 8, 8))})
    times = session.op_times(0.01)
    assert [time.nodes for time in times] == [("conv", "relu"), ("pool",), ("dense",), ("softmax",)]
    assert [time.op_type for time in times] == ["Conv", "MaxPool", "Gemm", "Softmax"]
    assert [time.rung for time in times] == [step.rung for step in plan(graph, BATCH, "cpu").steps]
    assert all(time.time_ns > 0 and time.clock == "host" for time in times)
    session.close()
    with pytest.raises(KernelError, match=r"the session of small on engine-cpu at batch 3 is closed"):
        session.run()


def test_the_rung_of_a_node_is_the_callers_choice(graph: Graph) -> None:
    x = random((BATCH, 2, 8, 8))
    answers = []
    for rung in ("shift_and_add", "im2col", "batched_im2col"):
        session = BACKEND.prepare(graph, BATCH, options=Options(threads=1, rungs={"conv": rung}))
        session.bind({"x": x})
        assert session.op_times(0)[0].rung == rung
        answers.append(session.fetch()["logits"])
    np.testing.assert_allclose(answers[0], answers[1], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(answers[0], answers[2], rtol=1e-5, atol=1e-5)
    with pytest.raises(InputError, match="did you mean 'im2col'"):
        BACKEND.prepare(graph, BATCH, options=Options(rungs={"conv": "im2cool"}))


def test_nan_in_the_input_is_nan_in_the_answer_of_that_image(graph: Graph) -> None:
    x = random((BATCH, 2, 8, 8))
    x[1, 0, 3, 3] = np.nan
    session = BACKEND.prepare(graph, BATCH, options=Options(threads=1))
    session.bind({"x": x})
    session.run()
    assert np.isnan(session.fetch()["y"]).all(axis=1).tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"x": np.zeros((2, 2, 8, 8), np.float32)}, r"input x has shape \(2, 2, 8, 8\); the session expects"),
        ({"z": np.zeros((3, 2, 8, 8), np.float32)}, "the model's inputs are x; given were z"),
    ],
)
def test_inputs_that_do_not_fit(graph: Graph, inputs: dict[str, np.ndarray], message: str) -> None:
    session = BACKEND.prepare(graph, BATCH, options=Options(threads=1))
    with pytest.raises(UnsupportedError, match=message):
        session.bind(inputs)


def test_refusals_in_words(graph: Graph) -> None:
    assert BACKEND.unavailable() is None
    assert BACKEND.supports(graph, BATCH, "fp32") is None
    assert "precision tf32 is not offered by the engine on cpu" in str(BACKEND.supports(graph, 1, "tf32"))
    with pytest.raises(UnsupportedError, match="precision fp16 is not offered"):
        BACKEND.prepare(graph, 1, "fp16")
    assert BACKEND.supports(graph, 0, "fp32") is not None
    node = helper.make_node("Det", ["x"], ["y"], "determinant")
    strange = from_proto(make_model([node], {"x": ("N", 4, 4)}, ["y"], ranks={"y": 1}), "strange")
    assert "determinant" in str(BACKEND.supports(strange, 1, "fp32"))


def test_memory_that_does_not_suffice(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=1 << 30))
        with pytest.raises(OutOfMemoryError, match=r"at batch 1000000 needs \d+\.\d GiB .* 1\.0 GiB are"):
            BACKEND.prepare(graph, 10**6)

    def refuse(nbytes: int) -> np.ndarray:
        raise MemoryError

    monkeypatch.setattr("engine.cpu.session.aligned", refuse)
    with pytest.raises(OutOfMemoryError, match="memory did not suffice for preparing small on engine-cpu"):
        BACKEND.prepare_here(graph, 2)


def test_a_rung_of_the_users_that_breaks_is_named(graph: Graph, tmp_path: Path) -> None:
    header = '# op = "softmax"\n# rung = 9\n# name = "mine"\n# idea = "Breaks."\n'
    file = tmp_path / "09_mine.py"
    options = Options(threads=1, rungs={"softmax": "mine"}, kernel_dirs=(tmp_path,))
    file.write_text(header + "def bind(p, inputs, output, workspace):\n    return output.no_such_method()\n")
    with pytest.raises(KernelError, match=r"preparing failed in .*09_mine.py:6: AttributeError"):
        BACKEND.prepare(graph, BATCH, options=options)
    file.write_text(
        header + "def bind(p, inputs, output, workspace):\n    def run():\n        1 / 0\n    return run\n"
    )
    session = BACKEND.prepare(graph, BATCH, options=options)
    with pytest.raises(KernelError, match=r"running failed in .*09_mine.py:7: ZeroDivisionError"):
        session.run()


@pytest.mark.sampled(12)
@pytest.mark.parametrize("op", list(DRAWN))
@given(data=st.data())
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_divided_step_does_what_the_whole_one_does(
    op: str, data: st.DataObject, every_step_is_divided: None
) -> None:
    p = data.draw(DRAWN[op])
    threads = data.draw(st.integers(2, 4))
    rung = data.draw(st.sampled_from([registry.default("cpu", p), in_numpy(p)]))
    kernel = load(rung)
    inputs = inputs_for(p)
    dtype = p.out_dtype
    names = tuple(f"in{i}" for i in range(len(inputs)))
    answers = []
    for count in (1, threads):
        made = divide(Step("s", ("s",), p, names, "y", rung.name), rung, kernel, [None] * len(inputs), count)
        output = np.full(output_shape(p), 99, dtype)
        workspace = aligned(made.workspace_nbytes).view(np.float32)
        workspace.fill(np.nan)
        with np.errstate(all="ignore"):
            made.bind(inputs, output, workspace, count)()
        answers.append(output)
        written = [part.output for part in made.parts]
        assert all(before[1] == after[0] for before, after in pairwise(written))
    np.testing.assert_allclose(answers[0], answers[1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("params", "threads", "count"),
    [
        (Conv(64, 6, 32, 32, 16, 5, 5, 28, 28), 2, 4),
        (Conv(1, 96, 27, 27, 256, 5, 5, 23, 23, group=2), 2, 2),
        (Conv(1, 96, 27, 27, 256, 5, 5, 23, 23), 2, 2),
        (Gemm(16, 4096, 9216, trans_b=True, bias=True), 2, 4),
        (Gemm(4096, 64, 64, trans_b=True), 2, 4),
        (Conv(64, 6, 32, 32, 16, 5, 5, 28, 28), 1, 1),
        (Gemm(1, 10, 84, trans_b=True), 2, 1),
        (Conv(64, 1, 28, 28, 6, 5, 5, 24, 24), 64, 6),  # about 0.3 ms: three threads, not 64
    ],
)
def test_what_is_worth_dividing_is_divided(params: Conv | Gemm, threads: int, count: int) -> None:
    rung = in_numpy(params)
    step = Step("s", ("s",), params, (), "y", rung.name)
    made = divide(step, rung, load(rung), (), threads)
    assert len(made.parts) == count
    assert made.blas_threads == 1  # parts side by side, or too small for a second thread


def test_a_team_does_every_task_once_and_raises_what_one_raised() -> None:
    done: list[int] = []
    lock = threading.Lock()

    def task(index: int) -> None:
        with lock:
            done.append(index)

    crew = Team(3)
    for _ in range(200):
        done.clear()
        crew.run([lambda i=i: task(i) for i in range(7)])  # type: ignore[misc]
        assert sorted(done) == list(range(7))

    def fail() -> None:
        raise ValueError("mine")

    done.clear()
    with pytest.raises(ValueError, match="mine"):
        crew.run([fail, lambda: task(1), lambda: task(2)])
    assert sorted(done) == [1, 2]


def test_blas_takes_as_many_threads_as_it_is_told(blas_as_it_was: None) -> None:
    blas = Blas()
    for threads in (1, 2, 1):
        blas.limit(threads)
        assert [library.get_num_threads() for library in cpu_steps._blas_libraries()] == [threads]
