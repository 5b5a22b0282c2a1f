"""What a profiled session left, put together: events on one clock, kernels given to nodes, notes on what is
missing."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from bench import profile_attribution, profile_ort
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
)
from bench.profile_store import events_of
from engine import cupti, groups, ort_profile
from engine.graph import Graph
from engine.plan import Step
from kernels.errors import KernelscopeError


@dataclass
class Taken:
    """What was read while a session ran, times of perf_counter_ns. spans: (name, kind, run, start, end) of
    marks; steps: of our CPU engine, by pass; numbers: of the passes, None for those that warm up; ort_file,
    optimized: ONNX Runtime's profile and the model as it ran it; ort_zeros: when that profile may have
    begun; writing: how long it was written."""

    graph: Graph
    batch: int
    origin_ns: int
    spans: list[tuple[str, Any, int | None, int, int]] = field(default_factory=list)
    steps: list[tuple[int | None, Sequence[tuple[Step, int, int]]]] = field(default_factory=list)
    numbers: list[int | None] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    ort_file: Path | None = None
    ort_zeros: tuple[int, ...] = ()
    optimized: Path | None = None
    writing: tuple[int, int] | None = None


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


def merged(taken: Taken, told: cupti.Told | None, order: Sequence[tuple[Step, str]]) -> Recorded:
    """Everything of a session. told: the device's profiler; order: what a pass of our engine launches."""
    return _Merging(taken).result(told, order)


class _Merging:
    def __init__(self, taken: Taken) -> None:
        self._taken = taken
        self._notes = taken.notes
        self._origin = taken.origin_ns
        self._op_types = {node.name: node.op_type for node in taken.graph.nodes}
        self._intervals: list[Interval] = []

    def result(
        self,
        told: cupti.Told | None,
        order: Sequence[tuple[Step, str]],
    ) -> Recorded:
        marks = self._marks()
        self._intervals += self._step_intervals() + self._own_work()
        made = Recorded(facts=dict(self._taken.facts) if told else {})
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
        if self._taken.writing is not None:
            clocks += self._nodes(marks)
        steps = [step for step, _ in order] or [step for step, *_ in self._any_pass()]
        # Our engine's steps are what runs; ONNX Runtime's nodes are told in the terms of our groups.
        groups_of = {} if steps else self._groups()
        if order:
            launched = [Launched(name, step.nodes, self._op_type(step)) for step, name in order]
            activities = list(profile_attribution.by_order(activities, calls, launched))
        elif len(clocks) > 1 and activities:
            error = clocks[-1].error_ns
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
            for name, kind, run, started, ended in self._taken.spans
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
            for number, steps in self._taken.steps
            for step, started, ended in steps
        ]

    def _own_work(self) -> list[Interval]:
        if self._taken.writing is None:
            return []
        started, ended = self._taken.writing
        return [
            Interval(
                name="ONNX Runtime writes its profile",
                kind="overhead",
                start_ns=started - self._origin,
                end_ns=ended - self._origin,
                thread=threading.get_native_id(),
            )
        ]

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
        self._intervals += profile_ort.intervals(runs, clock, numbers, covered, self._op_types)
        return [clock]

    def _groups(self) -> dict[str, groups.Group]:
        try:
            found = groups.groups(self._taken.graph, self._taken.batch)
        except KernelscopeError:
            return {}
        return {name: group for group in found for name in group.nodes}

    def _any_pass(self) -> Sequence[tuple[Step, int, int]]:
        return self._taken.steps[0][1] if self._taken.steps else ()

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
