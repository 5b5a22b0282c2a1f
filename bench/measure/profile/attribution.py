"""Which nodes of the model a GPU's activity computes, and in which pass it was started.

Our engine starts the same kernels in the same order in every pass, whether one by one or as nodes of a CUDA
graph, so its activities are matched with that order. ONNX Runtime's kernels are those whose launch call falls
into a node's interval of its own profile. What neither explains stays unattributed, and its share is told.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from bench.results import api_calls as profile_api
from bench.results.events import Activity, ApiCall, Events, HostSpan, Mark

LIBRARY = "cuBLAS"  # stands for kernels whose names are the library's own
MOST_OF_A_LIBRARY = 4


@dataclass(frozen=True)
class Launched:
    """One thing that a pass puts on the device: a kernel by its name, "memcpy" or LIBRARY, and its nodes."""

    name: str
    nodes: tuple[str, ...]
    op_type: str


def with_runs(events: Events) -> Events:
    """Activities and intervals with the number of the pass in which they were started."""
    passes = [mark for mark in events.marks if mark.kind == "window" and mark.run is not None]
    passes.sort(key=lambda mark: mark.start_ns)
    starts = [mark.start_ns for mark in passes]
    called = _call_starts(events.calls)

    def number(at: int) -> int | None:
        index = bisect.bisect_right(starts, at) - 1
        return passes[index].run if index >= 0 and at < passes[index].end_ns else None

    replace = msgspec.structs.replace
    activities = [
        replace(made, run=number(called.get(made.correlation, made.start_ns))) for made in events.activities
    ]
    intervals = [
        made if made.run is not None else replace(made, run=number(made.start_ns))
        for made in events.intervals
    ]
    return replace(events, activities=tuple(activities), intervals=tuple(intervals))


def by_order(
    activities: Sequence[Activity], calls: Sequence[ApiCall], order: Sequence[Launched]
) -> tuple[Activity, ...]:
    """Activities with their nodes, wherever the whole order of a pass is found among them without a gap.
    Copies between host and device, and memsets, are of no node."""
    called = _call_starts(calls)
    placed = sorted(
        (index for index, activity in enumerate(activities) if _of_a_step(activity)),
        # Of one call (a graph's) the device's order, else that of the calls: streams may overlap.
        key=lambda i: (called.get(activities[i].correlation, activities[i].start_ns), activities[i].start_ns),
    )
    names = [activities[i].name if activities[i].kind == "kernel" else "memcpy" for i in placed]
    if "memcpy" not in names:  # copies of constants that the graph made part of their kernels
        order = [step for step in order if step.name != "memcpy"]
    found = list(activities)
    index = 0
    while order and index < len(names):
        steps = _matched(names, index, order)
        for place, step in zip(placed[index:], steps, strict=False):
            found[place] = msgspec.structs.replace(found[place], nodes=step.nodes, op_type=step.op_type)
        index += len(steps) or 1
    return tuple(found)


def _matched(names: Sequence[str], start: int, order: Sequence[Launched]) -> list[Launched]:
    """The step of each of the names from `start` on, as far as one whole pass goes; [] where it is none. A
    library's step takes one name or several, up to the next step's."""
    found: list[Launched] = []
    index = start
    for step, follower in zip(order, [*order[1:], order[0]], strict=True):
        if index == len(names) or step.name not in (names[index], LIBRARY):
            return []
        found.append(step)
        index += 1
        while step.name == LIBRARY and index < len(names) and index - start < MOST_OF_A_LIBRARY * len(order):
            if follower.name in (names[index], LIBRARY):
                break
            found.append(step)
            index += 1
    return found


def by_nodes(
    activities: Sequence[Activity], calls: Sequence[ApiCall], intervals: Sequence[HostSpan], error_ns: int = 0
) -> tuple[Activity, ...]:
    """Kernels, and copies and memsets on the device, with the nodes in whose interval they were launched: by
    the beginning of the launch call, on the node's thread where threads are known, give or take error_ns."""
    nodes = sorted((i for i in intervals if i.kind == "node"), key=lambda i: i.start_ns)
    starts = [node.start_ns for node in nodes]
    called = {call.correlation: call for call in profile_api.outermost(calls) if call.correlation}
    inner = {call.correlation: call for call in calls if call.correlation}
    threads = {node.thread for node in nodes}
    found = []
    for activity in activities:
        call = called.get(activity.correlation) or inner.get(activity.correlation)
        home = None
        if call is not None and (activity.kind == "memset" or _of_a_step(activity)):
            wanted = call.thread if call.thread in threads else None
            home = _home(nodes, starts, call.start_ns, wanted, error_ns)
        if home is not None:
            activity = msgspec.structs.replace(activity, nodes=home.nodes, op_type=home.op_type)
        found.append(activity)
    return tuple(found)


def attributed_share(activities: Sequence[Activity]) -> float | None:
    """Of the time of kernels in the profiled passes, that of kernels with nodes; None without kernels."""
    kernels = [a for a in activities if a.kind == "kernel" and a.run is not None]
    total = sum(kernel.time_ns for kernel in kernels)
    return sum(kernel.time_ns for kernel in kernels if kernel.nodes) / total if total else None


def unrecorded(calls: Sequence[ApiCall], activities: Sequence[Activity]) -> int:
    """How many calls that start a kernel, a copy or a memset have no activity. What is launched while a graph
    is captured only becomes a part of it."""
    recorded = {activity.correlation for activity in activities}
    capturing: set[int] = set()
    missing = 0
    for call in profile_api.outermost(calls):
        name = profile_api.bare(call.name)
        if "StreamBeginCapture" in name:
            capturing.add(call.thread)
        elif "StreamEndCapture" in name:
            capturing.discard(call.thread)
        elif call.thread not in capturing and not call.code and profile_api.starts_activity(name):
            missing += call.correlation not in recorded
    return missing


def stage_spans(marks: Sequence[Mark], stage: str) -> list[tuple[int, int]]:
    """Start and end of each such stage, in order."""
    return [(m.start_ns, m.end_ns) for m in marks if m.kind == "stage" and m.name == stage]


def _home(
    nodes: Sequence[HostSpan], starts: Sequence[int], at: int, thread: int | None, error_ns: int
) -> HostSpan | None:
    """The node that was going on at a moment, else one that is no further from it than the error."""
    index = bisect.bisect_right(starts, at + error_ns)
    near: HostSpan | None = None
    for node in reversed(nodes[max(0, index - 4) : index]):
        if thread is not None and node.thread != thread:
            continue
        if node.start_ns <= at < node.end_ns:
            return node
        if near is None and node.start_ns - error_ns <= at < node.end_ns + error_ns:
            near = node
    return near


def _of_a_step(activity: Activity) -> bool:
    return activity.kind == "kernel" or (activity.kind == "memcpy" and activity.copy == "DtoD")


def _call_starts(calls: Sequence[ApiCall]) -> dict[int, int]:
    return {call.correlation: call.start_ns for call in calls if call.correlation}
