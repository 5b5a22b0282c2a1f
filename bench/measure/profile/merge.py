"""What a profiled session left, put together: events on one clock, kernels given to nodes, notes on what is
missing."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.measure.profile import attribution as profile_attribution
from bench.measure.profile import ort as profile_ort
from bench.measure.profile.attribution import Launched
from bench.results.event_files import events_of
from bench.results.events import Activity, ApiCall, Events, HostSpan, Mark
from bench.results.profile_records import Clock, DeviceFacts, Operator
from engine.backend import Part
from engine.cuda import cupti
from engine.graph.graph import Graph
from engine.graph.plan import Step
from engine.ort import precision as ort_precision
from engine.ort import profile as ort_profile
from engine.planning import groups, submodel
from kernels.errors import KernelscopeError
from kernels.precision import FP32
from kernels.spans import Span


@dataclass
class Readings:
    """What was read while a session ran, times of perf_counter_ns. spans: (name, kind, run, start, end) of
    marks; steps: of our CPU engine, by pass; numbers: of the passes, None for those that warm up; ort_file,
    optimized: ONNX Runtime's profile and the model as it ran it; ort_zeros: when that profile may have
    begun; writing: how long it was written; staged: copies into page-locked memory and out of it; cpu_ns: by
    the beginning of a pass, how long its thread had a core in it. inside: the parts of a kernel that does
    several steps."""

    graph: Graph
    batch: int
    origin_ns: int
    precision: str = FP32
    spans: list[tuple[str, Any, int | None, int, int]] = field(default_factory=list)
    steps: list[tuple[int | None, Sequence[tuple[Step, int, int]]]] = field(default_factory=list)
    numbers: list[int | None] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    ort_file: Path | None = None
    ort_zeros: tuple[int, ...] = ()
    staged: Sequence[Span] = ()
    cpu_ns: dict[int, int] = field(default_factory=dict)
    optimized: Path | None = None
    writing: tuple[int, int] | None = None
    inside: Sequence[Part] = ()


@dataclass
class Profiling:
    """What came of a profiled session; see CaseProfile."""

    events: Events = field(default_factory=Events)
    pass_ns: tuple[float, ...] = ()
    operators: tuple[Operator, ...] = ()
    attributed: float | None = None
    dropped: int | None = None
    clocks: tuple[Clock, ...] = ()
    gpu: DeviceFacts | None = None
    facts: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def merged(taken: Readings, told: cupti.Recording | None, order: Sequence[tuple[Step, str]]) -> Profiling:
    """Everything of a session. told: the device's profiler; order: what a pass of our engine launches."""
    return _Merging(taken).result(told, order)


class _Merging:
    def __init__(self, taken: Readings) -> None:
        self._taken = taken
        self._notes = taken.notes
        self._origin = taken.origin_ns
        self._op_types = {node.name: node.op_type for node in taken.graph.nodes}
        self._intervals: list[HostSpan] = []

    def result(
        self,
        told: cupti.Recording | None,
        order: Sequence[tuple[Step, str]],
    ) -> Profiling:
        marks = self._marks()
        self._intervals += self._step_intervals() + self._staging() + self._own_work()
        made = Profiling(facts=dict(self._taken.facts) if told else {})
        clocks: list[Clock] = []
        activities: list[Activity] = []
        calls: list[ApiCall] = []
        if told is not None:
            clocks.append(
                Clock(name="CUPTI", offset_ns=told.offset_ns, error_ns=told.error_ns, drift_ns=told.drift_ns)
            )
            activities = [self._moved(fields, Activity) for fields in told.activities]
            calls = [self._moved(fields, ApiCall) for fields in told.calls]
            self._intervals += [self._moved(fields, HostSpan) for fields in told.overheads]
            made.dropped, made.gpu = told.dropped, DeviceFacts(**told.device)
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
        if self._taken.writing is not None:
            clocks += self._nodes(marks)
        steps = [step for step, _ in order] or [step for step, *_ in self._any_pass()]
        if order:
            launched = [
                Launched(name, step.nodes, self._op_type(step.nodes) or step.op) for step, name in order
            ]
            activities = list(profile_attribution.by_order(activities, calls, launched))
            if self._taken.inside:
                self._intervals += self._inside(activities)
                whole = self._whole()
                its = list({part.step.name: part.step for part in self._taken.inside}.values())
                steps = [one for step in steps for one in (its if step.nodes == whole else [step])]
        elif len(clocks) > 1 and activities:
            error = clocks[-1].error_ns
            activities = list(profile_attribution.by_nodes(activities, calls, self._intervals, error))
        events = events_of([*marks, *calls, *activities, *self._intervals])
        made.events = events = profile_attribution.with_runs(events)
        made.attributed = profile_attribution.attributed_share(events.activities)
        if made.attributed is not None and made.attributed < 1:
            self._notes.append(
                f"{1 - made.attributed:.1%} of the kernels' time could not be attributed to a node"
            )
        made.pass_ns = tuple(float(m.time_ns) for m in events.marks if m.name == "pass" and m.run is not None)
        covered = [interval.nodes for interval in self._intervals if interval.nodes]
        made.operators = self._operators_of(steps) if steps else self._operators_of_nodes(covered)
        made.clocks, made.notes = tuple(clocks), tuple(self._notes)
        return made

    def _marks(self) -> list[Mark]:
        origin = self._origin
        return [
            Mark(
                name=name,
                kind=kind,
                start_ns=started - origin,
                end_ns=ended - origin,
                run=run,
                cpu_ns=self._taken.cpu_ns.get(started) if kind == "window" else None,
            )
            for name, kind, run, started, ended in self._taken.spans
        ]

    def _step_intervals(self) -> list[HostSpan]:
        thread = threading.get_native_id()
        return [
            HostSpan(
                name=step.name,
                kind="step",
                start_ns=started - self._origin,
                end_ns=ended - self._origin,
                thread=thread,
                rung=step.rung,
                nodes=step.nodes,
                op_type=self._op_type(step.nodes) or step.op,
                run=number,
            )
            for number, steps in self._taken.steps
            for step, started, ended in steps
        ]

    def _staging(self) -> list[HostSpan]:
        thread = threading.get_native_id()
        return [
            HostSpan(
                name=call.name,
                kind="staging",
                start_ns=call.start_ns - self._origin,
                end_ns=call.end_ns - self._origin,
                thread=thread,
                nbytes=int(call.result or 0),
            )
            for call in self._taken.staged
        ]

    def _own_work(self) -> list[HostSpan]:
        if self._taken.writing is None:
            return []
        started, ended = self._taken.writing
        return [
            HostSpan(
                name="ONNX Runtime writes its profile",
                kind="overhead",
                start_ns=started - self._origin,
                end_ns=ended - self._origin,
                thread=threading.get_native_id(),
            )
        ]

    def _whole(self) -> tuple[str, ...]:
        """The nodes of the kernel that does several steps."""
        steps = {part.step.name: part.step for part in self._taken.inside}
        return tuple(node for step in steps.values() for node in step.nodes)

    def _inside(self, activities: Iterable[Activity]) -> list[HostSpan]:
        """The steps in each launch of that kernel in the passes, one behind the other, from its beginning:
        what a launch takes beyond them is the rest; one that is shorter than they are has them shortened."""
        whole, parts = self._whole(), self._taken.inside
        total = sum(part.time_ns for part in parts)
        found = []
        for launch in activities:
            if launch.kind != "kernel" or launch.nodes != whole:
                continue
            ratio = min(1.0, launch.time_ns / total)
            at = 0.0
            for part in parts:
                start, at = at, at + ratio * part.time_ns
                found.append(
                    HostSpan(
                        name=part.name,
                        kind="inside",
                        start_ns=launch.start_ns + round(start),
                        end_ns=min(launch.start_ns + round(at), launch.end_ns),
                        device=launch.device,
                        stream=launch.stream,
                        correlation=launch.correlation,
                        rung=part.step.rung,
                        nodes=part.step.nodes,
                        op_type=self._op_type(part.step.nodes) or part.step.op,
                    )
                )
        return found

    def _nodes(self, marks: Sequence[Mark]) -> list[Clock]:
        """Read ONNX Runtime's profile into the intervals; its clock, none where it cannot be read."""
        if self._taken.ort_file is None:
            self._notes.append("ONNX Runtime wrote no profile, so nothing is known of its nodes")
            return []
        try:
            runs = profile_ort.read(self._taken.ort_file)
            spans = profile_attribution.stage_spans(marks, "run")
            zeros = [zero - self._origin for zero in self._taken.ort_zeros]
            clock = profile_ort.align(runs, spans, zeros)
        except KernelscopeError as error:
            self._notes.append(str(error))
            return []
        covered = ort_profile.covered_nodes(self._taken.graph, self._taken.optimized)
        # Those before our passes belong to the creation: the first run, the search for algorithms.
        numbers = [*[None] * (len(runs) - len(self._taken.numbers)), *self._taken.numbers]
        self._intervals += profile_ort.intervals(runs, clock, numbers, covered, self._op_type)
        return [clock]

    def _operators_of_nodes(self, found: Iterable[tuple[str, ...]]) -> tuple[Operator, ...]:
        """Of sets of nodes that ONNX Runtime runs as one, with what each would cost our engine."""
        try:
            known = {g.nodes: g for g in groups.groups(self._taken.graph, self._taken.batch)}
        except KernelscopeError:
            known = {}
        made = []
        for nodes in dict.fromkeys(found):
            its = [known[nodes]] if nodes in known else self._alone(nodes)
            made.append(
                Operator(
                    nodes=nodes,
                    op_type=self._op_type(nodes),
                    flops=sum(group.flops for group in its),
                    unread=sum(p.unread for group in its for p in group.params),
                    nbytes=ort_precision.nbytes(
                        self._taken.graph,
                        nodes,
                        [p for group in its for p in group.params],
                        self._taken.precision,
                    ),
                )
            )
        return tuple(made)

    def _alone(self, nodes: tuple[str, ...]) -> tuple[groups.Group, ...]:
        try:
            return groups.groups(
                submodel.extract(self._taken.graph, nodes, self._taken.batch), self._taken.batch
            )
        except KernelscopeError:
            return ()

    def _any_pass(self) -> Sequence[tuple[Step, int, int]]:
        return self._taken.steps[0][1] if self._taken.steps else ()

    def _operators_of(self, steps: Sequence[Step]) -> tuple[Operator, ...]:
        found: dict[tuple[str, ...], Operator] = {}
        for step in {step.name: step for step in steps}.values():
            before = found.get(step.nodes)
            found[step.nodes] = Operator(
                nodes=step.nodes,
                op_type=self._op_type(step.nodes) or step.op,
                rung=step.rung,
                flops=step.params.flops + (before.flops if before else 0),
                nbytes=step.nbytes + (before.nbytes if before else 0),
                unread=step.params.unread + (before.unread if before else 0),
                precision=step.precision,
            )
        return tuple(found.values())

    def _op_type(self, nodes: Sequence[str]) -> str:
        """What nodes that run as one are called: their main operators ("LRN+MaxPool"), else the first's; ""
        for names that the model does not have."""
        return groups.together([self._op_types[name] for name in nodes if name in self._op_types])

    def _moved(self, fields: Mapping[str, Any], kind: type[Any]) -> Any:
        """An event from the device's profiler, whose times are perf_counter's, on the profile's clock."""
        shifted = {
            **fields,
            "start_ns": fields["start_ns"] - self._origin,
            "end_ns": fields["end_ns"] - self._origin,
        }
        return kind(**shifted)
