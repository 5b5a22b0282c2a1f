"""A session profiled from its creation to its close: its passes with marks round them, and what the profilers
of the device, of ONNX Runtime and of our own engine tell of them, on one clock.

The session is prepared anew for it. ONNX Runtime runs without a CUDA graph then, because the calls that start
its kernels have to fall into the intervals of its nodes; our engine runs as it does otherwise.
"""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import msgspec
import numpy as np

from bench import profile_attribution, profile_ort
from bench.material import Material
from bench.profile_attribution import Launched
from bench.profile_records import (
    Activity,
    ApiCall,
    Clock,
    Device,
    Events,
    Interval,
    Mark,
    Operator,
    ProfileJob,
)
from bench.profile_store import events_of
from bench.records import Case
from engine import cupti, groups, ort_profile
from engine.backend import Backend, Options, Session
from engine.cuda_runtime import import_cupy
from engine.graph import Graph
from engine.observe import Launching, OrtProfile, Stepped
from engine.ort import import_onnxruntime
from engine.plan import Step
from kernels.errors import KernelscopeError

NO_GPU = (
    "on a GPU the profile would also show every kernel, copy and call into CUDA, with the gaps between them"
)


@dataclass
class Recorded:
    """What came of a profiled session; see CaseProfile."""

    events: Events = field(default_factory=Events)
    pass_ns: tuple[float, ...] = ()
    operators: tuple[Operator, ...] = ()
    attributed: float | None = None
    dropped: int | None = None
    clocks: tuple[Clock, ...] = ()
    gpu: Device | None = None
    facts: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def is_ort(backend: Backend) -> bool:
    """Whether ONNX Runtime runs this backend's models."""
    return backend.name.startswith("ort")


def options_of(backend: Backend, options: Options) -> Options:
    """What the profiled session is prepared with."""
    return replace(options, cuda_graph=False) if is_ort(backend) and backend.device == "cuda" else options


def load_libraries(backend: Backend) -> None:
    """Import what runs this backend's sessions. Raises UnavailableError."""
    if is_ort(backend):
        import_onnxruntime()
    if backend.device == "cuda":
        import_cupy()


def start_device() -> None:
    """Create the CUDA context and wait for it."""
    cupy = import_cupy()
    cupy.cuda.runtime.free(0)
    cupy.cuda.Device().synchronize()


def record(
    backend: Backend,
    material: Material,
    case: Case,
    options: Options,
    inputs: Mapping[str, np.ndarray],
    job: ProfileJob,
    origin_ns: int,
) -> Recorded:
    """Profile a session of the case: `job.warm_up` passes, then `job.runs` that count. Raises what `prepare`
    and the passes raise; where the device's profiler cannot run, a note says so."""
    taking = _Taking(backend, material.graph, case, inputs, job, origin_ns)
    recorder = taking.recorder()
    with tempfile.TemporaryDirectory(prefix="kernelscope-") as folder:
        profile = OrtProfile(Path(folder)) if is_ort(backend) else None
        try:
            with profile.recording() if profile else contextlib.nullcontext():
                session = taking.create(options)
            try:
                taking.passes(session)
                taking.end_profile(profile)
                order = session.launch_order() if isinstance(session, Launching) else ()
            finally:
                taking.close(session)
        finally:
            told = recorder.stop() if recorder is not None else None
        return taking.result(told, profile, order)


class _Taking:
    """One profiled session in the making."""

    def __init__(
        self,
        backend: Backend,
        graph: Graph,
        case: Case,
        inputs: Mapping[str, np.ndarray],
        job: ProfileJob,
        origin_ns: int,
    ) -> None:
        self._backend, self._graph, self._case = backend, graph, case
        self._inputs, self._job, self._origin = inputs, job, origin_ns
        self._spans: list[tuple[str, Any, int | None, int, int]] = []
        self._steps: list[tuple[int | None, Sequence[tuple[Step, int, int]]]] = []
        self._intervals: list[Interval] = []
        self._numbers: list[int | None] = []
        self._ort_file: Path | None = None
        self._notes: list[str] = []
        self._op_types = {node.name: node.op_type for node in graph.nodes}

    # ------------------------------------------------------------------------------------------- what is run

    def recorder(self) -> cupti.Recorder | None:
        """The device's profiler, started; None on a CPU, and where it cannot run, which is noted."""
        if self._backend.device != "cuda":
            self._notes.append(NO_GPU)
            return None
        made = cupti.Recorder()
        try:
            made.start()
        except KernelscopeError as error:
            self._notes.append(f"no kernel, copy or call is recorded: {error}")
            return None
        return made

    def create(self, options: Options) -> Session:
        with self._mark("create", "window"):
            return self._backend.prepare(self._graph, self._case.batch, self._case.precision, options)

    def passes(self, session: Session) -> None:
        numbers = [*[None] * self._job.warm_up, *range(self._job.runs)]
        for number in numbers:
            self._numbers.append(number)
            with self._mark("warm-up" if number is None else "pass", "window", number):
                with self._mark("bind", "stage", number):
                    session.bind(self._inputs)
                with self._mark("run", "stage", number):
                    self._run(session, number)
                with self._mark("synchronize", "stage", number):
                    session.synchronize()
                with self._mark("fetch", "stage", number):
                    session.fetch()

    def _run(self, session: Session, number: int | None) -> None:
        if not isinstance(session, Stepped):
            session.run()
            return
        # Made into records when the pass is over, which is not to wait for that.
        self._steps.append((number, session.run_timed()))

    def end_profile(self, profile: OrtProfile | None) -> None:
        if profile is None:
            return
        started = perf_counter_ns()
        self._ort_file = profile.end()
        self._intervals.append(
            Interval(
                name="ONNX Runtime writes its profile",
                kind="overhead",
                start_ns=started - self._origin,
                end_ns=perf_counter_ns() - self._origin,
                thread=threading.get_native_id(),
            )
        )

    def close(self, session: Session) -> None:
        with self._mark("close", "window"):
            session.close()

    @contextlib.contextmanager
    def _mark(self, name: str, kind: Any, run: int | None = None) -> Iterator[None]:
        started = perf_counter_ns()
        yield
        ended = perf_counter_ns()
        self._spans.append((name, kind, run, started, ended))

    # ---------------------------------------------------------------------------------------- what came of it

    def result(
        self,
        told: cupti.Told | None,
        profile: OrtProfile | None,
        order: Sequence[tuple[Step, str]],
    ) -> Recorded:
        marks = self._marks()
        self._intervals += self._step_intervals()
        made = Recorded(facts={"profiled_cuda_graph": self._graph_words()} if told else {})
        clocks: list[Clock] = []
        activities: list[Activity] = []
        calls: list[ApiCall] = []
        if told is not None:
            clocks.append(
                Clock(name="CUPTI", offset_ns=told.offset_ns, error_ns=told.error_ns, drift_ns=told.drift_ns)
            )
            activities = [self._moved(fields, Activity) for fields in told.activities]
            calls = [self._moved(fields, ApiCall) for fields in told.calls]
            self._intervals += [self._moved(fields, Interval) for fields in told.overheads]
            made.dropped, made.gpu = told.dropped, Device(**told.device)
            made.facts |= told.facts
            self._notes += told.notes
            if missing := profile_attribution.unrecorded(calls, activities):
                self._notes.append(
                    f"{missing} calls that start something on the device have no record of it: the sums are "
                    "short"
                )
            if told.dropped:
                self._notes.append(
                    f"the profiler had no room for {told.dropped} records: what they tell is missing here"
                )
        if profile is not None:
            clocks += self._nodes(profile, marks)
        steps = [step for step, _ in order] or [step for step, *_ in self._any_pass()]
        # Our engine's steps are what runs; ONNX Runtime's nodes are told in the terms of our groups.
        groups_of = {} if steps else self._groups()
        if order:
            launched = [Launched(name, step.nodes, self._op_type(step)) for step, name in order]
            activities = list(profile_attribution.by_order(activities, calls, launched))
        elif profile is not None and activities:
            error = clocks[-1].error_ns if len(clocks) > 1 else 0
            activities = list(profile_attribution.by_nodes(activities, calls, self._intervals, error))
        events = events_of(
            [
                *marks,
                *calls,
                *[_in_group(a, groups_of) for a in activities],
                *[_in_group(i, groups_of) for i in self._intervals],
            ]
        )
        made.events = events = profile_attribution.with_runs(events)
        made.attributed = profile_attribution.attributed_share(events.activities)
        if made.attributed is not None and made.attributed < 1:
            self._notes.append(
                f"{1 - made.attributed:.1%} of the kernels' time could not be attributed to a node"
            )
        made.pass_ns = tuple(float(m.time_ns) for m in events.marks if m.name == "pass" and m.run is not None)
        made.operators = self._operators_of(steps) if steps else _operators_of_groups(groups_of)
        made.clocks, made.notes = tuple(clocks), tuple(self._notes)
        return made

    def _marks(self) -> list[Mark]:
        origin = self._origin
        return [
            Mark(name=name, kind=kind, start_ns=started - origin, end_ns=ended - origin, run=run)
            for name, kind, run, started, ended in self._spans
        ]

    def _step_intervals(self) -> list[Interval]:
        thread = threading.get_native_id()
        return [
            Interval(
                name=step.name,
                kind="step",
                start_ns=started - self._origin,
                end_ns=ended - self._origin,
                thread=thread,
                rung=step.rung,
                nodes=step.nodes,
                op_type=self._op_type(step),
                run=number,
            )
            for number, steps in self._steps
            for step, started, ended in steps
        ]

    def _nodes(self, profile: OrtProfile, marks: Sequence[Mark]) -> list[Clock]:
        """Read ONNX Runtime's profile into the intervals; its clock, none where it cannot be read."""
        if self._ort_file is None:
            self._notes.append("ONNX Runtime wrote no profile, so nothing is known of its nodes")
            return []
        try:
            runs = profile_ort.read(self._ort_file)
            spans = profile_attribution.stage_spans(marks, "run")
            clock = profile_ort.align(runs, spans)
        except KernelscopeError as error:
            self._notes.append(str(error))
            return []
        covered = ort_profile.covered_nodes(self._graph, profile.optimized)
        # Those before our passes belong to the creation: the first run, the search for algorithms.
        numbers = [*[None] * (len(runs) - len(self._numbers)), *self._numbers]
        self._intervals += profile_ort.intervals(runs, clock, numbers, covered, self._op_types)
        return [clock]

    def _groups(self) -> dict[str, groups.Group]:
        try:
            found = groups.groups(self._graph, self._case.batch)
        except KernelscopeError:
            return {}
        return {name: group for group in found for name in group.nodes}

    def _any_pass(self) -> Sequence[tuple[Step, int, int]]:
        return self._steps[0][1] if self._steps else ()

    def _operators_of(self, steps: Sequence[Step]) -> tuple[Operator, ...]:
        found: dict[tuple[str, ...], Operator] = {}
        for step in {step.name: step for step in steps}.values():
            before = found.get(step.nodes)
            found[step.nodes] = Operator(
                nodes=step.nodes,
                op_type=self._op_type(step),
                rung=step.rung,
                flops=step.params.flops + (before.flops if before else 0),
                nbytes=step.params.nbytes + (before.nbytes if before else 0),
            )
        return tuple(found.values())

    def _op_type(self, step: Step) -> str:
        return self._op_types.get(step.nodes[0], step.op)

    def _graph_words(self) -> str:
        if is_ort(self._backend):
            return "no: the calls that start its kernels have to be seen one by one"
        return "yes" if self._job.cuda_graph else "no: not asked for"

    def _moved(self, fields: Mapping[str, Any], kind: type[Any]) -> Any:
        """An event from the device's profiler, whose times are perf_counter's, on the profile's clock."""
        shifted = {
            **fields,
            "start_ns": fields["start_ns"] - self._origin,
            "end_ns": fields["end_ns"] - self._origin,
        }
        return kind(**shifted)


def _operators_of_groups(groups_of: Mapping[str, groups.Group]) -> tuple[Operator, ...]:
    return tuple(
        Operator(nodes=group.nodes, op_type=group.op_type, flops=group.flops, nbytes=group.nbytes)
        for group in dict.fromkeys(groups_of.values())
    )


def _in_group(event: Any, groups_of: Mapping[str, groups.Group]) -> Any:
    """The event with all nodes of the group that its nodes lie in, so that two backends' are of the same
    nodes."""
    group = groups_of.get(event.nodes[0]) if event.nodes else None
    if group is None or not set(event.nodes) <= set(group.nodes):
        return event
    return msgspec.structs.replace(event, nodes=group.nodes, op_type=group.op_type)
