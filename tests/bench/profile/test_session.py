"""A GPU session profiled, with the device and its profiler played: all comes onto one clock, kernels go to
their nodes, and what is missing is said."""

from __future__ import annotations

import itertools
import json
import time
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from bench.measure.profile import merge as profile_merge
from bench.measure.profile import process as profile_process
from bench.measure.profile import runner as profile_runner
from bench.measure.profile import session as profile_session
from bench.measure.profile.counters import Counted
from bench.measure.reporter import Reporter
from bench.measure.timing import Timing
from bench.results import event_files as profile_store
from bench.results import parts as profile_parts
from bench.results.events import Counters
from bench.results.messages import LimitsMeasured, Measured, Start
from bench.results.profile_records import ProfileJob, planned
from bench.results.records import Case
from bench.views.sentences import profile_findings
from engine import backends as backends_of
from engine.backend import Options
from engine.cuda import runtime as cuda_runtime
from engine.cuda.cupti import Recording
from engine.cuda.session import EngineCudaSession
from engine.graph import importer
from engine.planning import planner
from kernels import launch, registry
from kernels.errors import UnavailableError
from models import catalogue
from tests.bench.profile.profile_cases import LIMITS
from tests.engine.backends.nets import small_net

BATCH = 2


class Gpu:
    """Starts what it is told to, 2 µs after the call, one thing after the other, 5 µs each."""

    def __init__(self) -> None:
        self.activities: list[dict] = []
        self.calls: list[dict] = []
        self.lose = 0
        self._free_at = 0

    def start(self, name: str, count: int = 1, kind: str = "kernel", **fields: object) -> None:
        """One call that puts `count` activities (or, by a list of names, those) on the device."""
        now = time.perf_counter_ns()
        correlation = len(self.calls) + 1
        call = {"name": name, "domain": "runtime", "thread": 1, "correlation": correlation}
        self.calls.append({**call, "start_ns": now, "end_ns": now + 1000})
        names = fields.pop("names", [name] * count)
        for each in names:
            begins = max(now + 2000, self._free_at)
            self._free_at = begins + 5000
            its = "memcpy" if each == "memcpy" else kind
            self.activities.append(
                {
                    "name": "memcpy DtoD" if each == "memcpy" else each,
                    "kind": its,
                    "copy": "DtoD" if each == "memcpy" else "",
                    "start_ns": begins,
                    "end_ns": begins + 5000,
                    "correlation": correlation,
                    **fields,
                }
            )

    def wait(self) -> None:
        while time.perf_counter_ns() < self._free_at:
            pass

    def told(self) -> Recording:
        return Recording(
            activities=self.activities[self.lose :],
            calls=self.calls,
            overheads=[],
            offset_ns=123,
            error_ns=7,
            drift_ns=0,
            dropped=self.lose,
            device={"name": "a GPU", "multiprocessors": 132, "warp": 32},
            facts={"cupti": "13"},
        )


class Session:
    """What a CUDA session of our engine does to the device."""

    def __init__(self, gpu: Gpu, order: tuple) -> None:
        self._gpu, self._order = gpu, order
        gpu.start("cudaMalloc", 0)
        gpu.start("cudaGraphLaunch", names=self._names, graph=1)

    @property
    def _names(self) -> list[str]:
        return [name for _, name in self._order]

    def launch_order(self) -> tuple:
        return self._order

    def bind(self, inputs: dict) -> None:
        self._gpu.start("cudaMemcpyAsync", kind="memcpy", copy="HtoD", nbytes=10)
        self._gpu.activities[-1]["name"] = "memcpy HtoD"
        self._gpu.wait()

    def run(self) -> None:
        self._gpu.start("cudaGraphLaunch", names=self._names, graph=1)

    def synchronize(self) -> None:
        self._gpu.wait()

    def fetch(self) -> dict:
        return {}

    def close(self) -> None:
        self._gpu.start("cudaFreeHost", 0)


@pytest.fixture
def gpu(monkeypatch):
    made = Gpu()
    recorder = SimpleNamespace(start=lambda: None, stop=made.told)
    monkeypatch.setattr(profile_session.cupti, "Recorder", lambda: recorder)
    return made


@pytest.fixture(scope="module")
def graph():
    return importer.load(catalogue.path("lenet5-digits"))


def recorded(gpu, graph, inside=lambda order: ()):
    plan = planner.plan(graph, BATCH, "cuda", "fp32")
    rungs = [registry.find("cuda", step.op, step.rung) for step in plan.steps]
    shapes = [(rung, launch.launch(step.params, rung)) for step, rung in zip(plan.steps, rungs, strict=True)]
    order = EngineCudaSession.launch_order(SimpleNamespace(_plan=plan, _shapes=shapes, _one=None))
    backend = SimpleNamespace(
        name="engine-cuda", device="cuda", prepare=lambda *arguments: Session(gpu, order)
    )
    case = Case(model="lenet5-digits", backend="engine-cuda", precision="fp32", batch=BATCH)
    job = ProfileJob(model="lenet5-digits", backends=("engine-cuda",), runs=2, warm_up=1)
    inputs = {"x": np.zeros(1, np.float32)}
    found = profile_session.record(
        backend,
        SimpleNamespace(graph=graph),
        case,
        Options(),
        inputs,
        job,
        time.perf_counter_ns(),
        inside(order),
    )
    return found, order


def fake_cupy(gpu):
    """What Staging needs of CuPy: pinned memory that is a bytearray, copies that take no time."""

    def copy(to, source, nbytes, kind, stream):
        gpu.start("cudaMemcpyAsync", kind="memcpy", copy="HtoD" if kind == 1 else "DtoH", nbytes=nbytes)

    class Event:
        def __init__(self, **named: object) -> None: ...

        def record(self, stream: object) -> None: ...

        def synchronize(self) -> None:
            gpu.wait()

    pinned = SimpleNamespace
    cuda = SimpleNamespace(
        runtime=SimpleNamespace(memcpyAsync=copy),
        PinnedMemory=lambda nbytes: pinned(ptr=64, nbytes=nbytes),
        PinnedMemoryPointer=lambda memory, at: bytearray(memory.nbytes),
        Event=Event,
    )
    return SimpleNamespace(cuda=cuda)


class StagedSession(Session):
    """One that copies through page-locked memory, as all of ours on a GPU do."""

    def __init__(self, gpu: Gpu, order: tuple) -> None:
        super().__init__(gpu, order)
        self._staging = cuda_runtime.Staging(fake_cupy(gpu), SimpleNamespace(ptr=0), 4096)

    def bind(self, inputs: dict) -> None:
        self._staging.upload(np.arange(5000, dtype=np.uint8), 1 << 20)

    def fetch(self) -> dict:
        self._staging.download(1 << 20, np.empty(100, np.uint8))
        return {}


def test_copies_through_page_locked_memory_have_a_part_of_their_own(gpu, graph, monkeypatch):
    monkeypatch.setitem(globals(), "Session", StagedSession)
    found, _ = recorded(gpu, graph)
    staged = [i for i in found.events.intervals if i.kind == "staging"]
    assert [(i.name.split()[0], i.nbytes) for i in staged] == [
        ("fill", 4096),
        ("fill", 904),
        ("empty", 100),
    ] * 3
    assert [i.run for i in staged] == [None] * 3 + [0] * 3 + [1] * 3
    (made,) = [part for part in profile_parts.breakdowns(found.events) if part.window == "pass"]
    assert made.part("staging") > 0
    assert sum(share.time_ns for share in made.parts) == made.wall_ns
    before = len(staged)
    StagedSession(gpu, ()).bind({})
    assert len(staged) == before  # nobody watches any more


def test_a_pass_knows_how_long_its_thread_had_a_core(gpu, graph, monkeypatch):
    monkeypatch.setattr(profile_session, "thread_clock", lambda: time.perf_counter_ns)
    found, _ = recorded(gpu, graph)
    passes = [m for m in found.events.marks if m.kind == "window" and m.name in ("pass", "warm-up")]
    assert passes
    assert all(m.cpu_ns >= m.time_ns for m in passes)  # by a clock that goes on while it waits
    monkeypatch.setattr(profile_session, "thread_clock", lambda: None)
    found, _ = recorded(gpu, graph)
    assert all(m.cpu_ns is None for m in found.events.marks)


def test_a_clock_of_large_steps_tells_nothing_of_a_pass(monkeypatch):
    monkeypatch.setattr("time.thread_time_ns", lambda: time.perf_counter_ns() // 4_000_000 * 4_000_000)
    assert profile_process.thread_clock() is None
    monkeypatch.setattr("time.thread_time_ns", time.perf_counter_ns)
    assert profile_process.thread_clock() is time.perf_counter_ns


def test_a_thread_that_waits_for_a_core_finds_its_clock(monkeypatch):
    """A fine clock, and each of the first looks at it ends a second later: the thread was put aside."""
    waited = itertools.count()
    now = itertools.count(0, 1_000_000_000)
    monkeypatch.setattr(profile_process, "perf_counter_ns", lambda: next(now))
    ran_for = itertools.accumulate(50_000 if number < 10 else 100 for number in waited)
    monkeypatch.setattr("time.thread_time_ns", lambda: next(ran_for))
    assert profile_process.thread_clock() is time.thread_time_ns


def test_every_kernel_of_every_pass_is_given_to_its_nodes(gpu, graph):
    found, order = recorded(gpu, graph)
    activities = found.events.activities
    kernels = [a for a in activities if a.kind == "kernel"]
    expected = [step.nodes for step, name in order if name != "memcpy"]
    assert len(kernels) == 4 * len(expected)  # at creation, warming up, twice profiled
    for given, nodes in zip(kernels, expected * 4, strict=True):
        assert given.nodes == nodes
    assert found.attributed == 1
    assert {a.run for a in activities} == {None, 0, 1}
    assert [a.nodes for a in activities if a.copy == "HtoD"] == [()] * 3
    assert found.dropped == 0
    assert found.gpu.multiprocessors == 132
    assert found.clocks[0].error_ns == 7
    assert not any("no record" in note for note in found.notes)
    assert {operator.nodes for operator in found.operators} == {step.nodes for step, _ in order}
    assert all(operator.rung and operator.nbytes for operator in found.operators)


def test_the_passes_add_up(gpu, graph):
    found, _ = recorded(gpu, graph)
    made = {part.window: part for part in profile_parts.breakdowns(found.events)}
    assert set(made) == {"pass", "create", "close", "all"}
    for part in made.values():
        assert sum(share.time_ns for share in part.parts) == part.wall_ns
    convolutions = (s.time_ns for s in made["pass"].parts if s.key.startswith("op:Conv"))
    assert sum(convolutions) >= 10_000 * 0.99
    assert made["pass"].part("h2d") > 0
    assert made["pass"].part("launch") > 0


def test_records_that_are_missing_are_said(gpu, graph):
    gpu.lose = 6
    found, _ = recorded(gpu, graph)
    assert found.dropped == 6
    assert any("no room for 6 records" in note for note in found.notes)


def test_a_profiler_that_is_refused_costs_the_kernels_and_not_the_case(monkeypatch, gpu, graph):
    def refuse() -> None:
        raise UnavailableError("the GPU cannot be profiled: another profiler is attached")

    monkeypatch.setattr(profile_session.cupti, "Recorder", lambda: SimpleNamespace(start=refuse))
    found, _ = recorded(gpu, graph)
    assert len(found.pass_ns) == 2
    assert found.attributed is None
    assert any("another profiler is attached" in note for note in found.notes)


@pytest.mark.parametrize("warm_up", [3, 0])
def test_a_case_on_a_gpu_from_its_cold_start_to_its_profile(monkeypatch, gpu, graph, tmp_path, warm_up):
    """The whole worker but for its process: the backend and CuPy are played too."""
    plan = planner.plan(graph, BATCH, "cuda", "fp32")
    rungs = [registry.find("cuda", step.op, step.rung) for step in plan.steps]
    shapes = [(rung, launch.launch(step.params, rung)) for step, rung in zip(plan.steps, rungs, strict=True)]
    order = EngineCudaSession.launch_order(SimpleNamespace(_plan=plan, _shapes=shapes, _one=None))

    class Timed(Session):
        phases: ClassVar = {"load": 1000, "alloc": 1000, "upload": 1000, "compile": 1000}
        facts: ClassVar = {"gpu": "a GPU"}

        def time_runs(self, count: int, cold: bool = False) -> int:
            return 20_000 * count

    backend = SimpleNamespace(
        name="engine-cuda",
        device="cuda",
        unavailable=lambda: None,
        prepare=lambda *arguments: Timed(gpu, order),
    )
    device = SimpleNamespace(synchronize=lambda: None)
    cupy = SimpleNamespace(
        cuda=SimpleNamespace(runtime=SimpleNamespace(free=lambda pointer: None), Device=lambda: device)
    )
    monkeypatch.setattr(profile_runner.backends, "get", lambda name: backend)
    monkeypatch.setattr(profile_session, "import_cupy", lambda: cupy)
    monkeypatch.setattr(profile_runner.limits, "limits", lambda *arguments, **named: LIMITS)
    job = ProfileJob(
        model="lenet5-digits",
        backends=("engine-cuda",),
        batches=(BATCH,),
        runs=2,
        warm_up=warm_up,
        budget_s=0.02,
        counters=True,
    )
    kernels = [Counted(name, None, Counters(l2_nbytes=32.0)) for _, name in order if name != "memcpy"]
    monkeypatch.setattr(profile_runner.ncu, "take", lambda *arguments: tuple(kernels))
    said: list = []
    start = Start(job=job, cases=planned(job), folder=str(tmp_path), started_ns=time.perf_counter_ns() - 5000)
    profile_runner.ProfileRunner(start, said.append, lambda: False, time.perf_counter_ns()).run()
    (made,) = (message.measurement for message in said if isinstance(message, Measured))
    assert made.reason == ""
    assert made.disposition == "ok"
    assert made.attributed == 1
    phases = [mark.name for mark in made.cold]
    assert phases[:6] == ["interpreter", "program", "libraries", "model and images", "NVML", "CUDA context"]
    assert made.samples_ns[0] == 20_000
    # First passes of a session are held against first passes of another, warm ones against warm ones.
    assert len(made.pass_ns) == 2 if warm_up == 0 else len(made.pass_ns) >= 5
    assert len(made.profiled_ns) == 2
    assert made.facts["profiled_cuda_graph"] == "yes"
    assert any(isinstance(message, LimitsMeasured) for message in said)
    events = profile_store.read_events(tmp_path / made.file)
    assert made.events == {
        "activities": len(events.activities),
        "calls": len(events.calls),
        "intervals": len(events.intervals),
    }
    count = len(kernels)
    assert made.facts["counters"] == f"{count} of the {count} kernels of a pass, {count} seen by ncu"
    profiled = [a for a in events.activities if a.kind == "kernel" and a.run is not None]
    assert all(kernel.counters.l2_nbytes == 32 for kernel in profiled)
    found = {f.nodes for f in profile_findings.findings(made, events, LIMITS)}
    assert found == {step.nodes for step, _ in order}


def test_onnx_runtimes_kernels_come_together_with_its_own_profile(graph, tmp_path):
    zero, origin = 7_000_000, 5_000_000  # of ONNX Runtime's profile and of ours, on perf_counter
    taken = profile_merge.Readings(graph, BATCH, origin, writing=(zero + 900_000, zero + 950_000))
    events, activities, calls = [], [], []
    for number, run in enumerate((None, 0)):
        start = zero + 200_000 * (number + 1)
        taken.numbers.append(run)
        for name, kind, low, high in (("pass", "window", -9, 160), ("run", "stage", -5, 105)):
            taken.spans.append((name, kind, run, start + 1000 * low, start + 1000 * high))
        events.append(
            {"cat": "Session", "name": "model_run", "ts": (start - zero) // 1000, "dur": 100, "tid": 9}
        )
        for place, (node, op) in enumerate((("conv1", "Conv"), ("pool1", "MaxPool"))):
            at = start + 1000 * (10 + 40 * place)
            arguments = {"op_name": op, "provider": "CUDAExecutionProvider"}
            events.append(
                {
                    "cat": "Node",
                    "name": f"{node}_kernel_time",
                    "ts": (at - zero) // 1000,
                    "dur": 30,
                    "tid": 9,
                    "args": arguments,
                }
            )
            for each in range(2):  # two kernels a node, all of one name, late on the device
                correlation = len(calls) + 1
                call = {"name": "cudaLaunchKernel", "domain": "runtime", "thread": 9}
                began = at + 1000 * (5 + 10 * each)
                calls.append({**call, "correlation": correlation, "start_ns": began, "end_ns": began + 4000})
                activities.append(
                    {
                        "name": "cudnn",
                        "kind": "kernel",
                        "correlation": correlation,
                        "start_ns": began + 60_000,
                        "end_ns": began + 65_000,
                    }
                )
    taken.ort_file = tmp_path / "ort.json"
    taken.ort_file.write_text(json.dumps(events))
    taken.ort_zeros = (3, zero)
    told = Recording(activities, calls, [], 0, 5, 0, 0, {"name": "a GPU", "multiprocessors": 132, "warp": 32})
    found = profile_merge.merged(taken, told, ())
    assert found.attributed == 1
    assert [clock.name for clock in found.clocks] == ["CUPTI", "ONNX Runtime's profile"]
    assert found.clocks[1].offset_ns == -(zero - origin)
    by_run = [(a.run, a.op_type) for a in found.events.activities]
    assert by_run == [(run, op) for run in (None, 0) for op in ("Conv", "Conv", "MaxPool", "MaxPool")]
    assert all("conv1" in a.nodes for a in found.events.activities if a.op_type == "Conv")
    costs = {operator.nodes: operator.flops for operator in found.operators}
    assert set(costs) == {("conv1",), ("pool1",)}
    assert all(costs.values())
    taken.ort_file.write_text(json.dumps(events)[:-30])
    again = profile_merge.merged(profile_merge.Readings(**vars(taken) | {"notes": []}), told, ())
    assert again.attributed == 0
    assert any("broken or cut short" in note for note in again.notes)
    assert any("100.0% of the kernels' time could not be attributed" in note for note in again.notes)


def test_counters_that_cannot_be_read_cost_a_sentence_and_not_the_case(monkeypatch):
    def refuse(*arguments):
        raise UnavailableError("hardware counters are not read: there is no `ncu` here")

    monkeypatch.setattr(profile_runner.ncu, "take", refuse)
    job = ProfileJob(model="lenet5-digits", backends=("engine-cuda",), counters=True)
    net: Any = SimpleNamespace(device="cuda", job=job, case=planned(job)[0], notes=["before"])
    profile_runner.counted(net, Timing(), "", Reporter(lambda message: None, lambda: False))
    assert net.notes == ["before", "hardware counters are not read: there is no `ncu` here"]


@pytest.mark.parametrize(
    ("backends", "told"), [(("engine-cpu", "ort-cpu"), True), (("engine-cpu", "engine-cuda"), False)]
)
def test_what_a_gpu_would_show_is_told_where_none_is_in_the_profile(
    backends: tuple[str, ...], told: bool
) -> None:
    graph, job = small_net(), ProfileJob(model="small", backends=backends)
    case = Case(model="small", backend="engine-cpu", precision="fp32", batch=1)
    taking = profile_session._Taking(backends_of.get("engine-cpu"), graph, case, {}, job, 0)
    assert taking.recorder() is None
    assert (profile_session.NO_GPU in taking.taken.notes) == told
