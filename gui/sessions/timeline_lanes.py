"""A profile's events as lanes of a timeline: the host's course, threads, calls into CUDA, streams, copies.
Nothing of Qt: lanes are made on a thread."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bench.results import api_calls as profile_api
from bench.results import parts as profile_parts
from bench.results.events import Activity, ApiCall, Event, Events, HostSpan, Mark
from bench.results.profile_records import CaseProfile

MOST_ROWS = 5  # of a lane: what overlaps more deeply lies in the last one
MARK, CALL = "mark:", "call:"
PROVIDERS = "ExecutionProvider"
# Intervals that are of no operator, by the part of the breakdown that they are.
_BY_KIND = {"overhead": "profiler", "staging": "staging", "run": "ort"}


@dataclass(frozen=True)
class LaneRow:
    """Intervals in order that do not overlap, but for those of a lane's last row (int64 ns of the profile's
    clock). reach: the latest end so far; colours: of each the place of its key in the lane's `keys`."""

    events: tuple[Event, ...]
    starts: np.ndarray
    ends: np.ndarray
    reach: np.ndarray
    colours: np.ndarray


@dataclass(frozen=True)
class Lane:
    """One line of work. rows: more than one where things overlap or lie in one another."""

    title: str
    rows: tuple[LaneRow, ...]
    keys: tuple[str, ...]

    @property
    def count(self) -> int:
        return sum(len(row.events) for row in self.rows)


@dataclass(frozen=True)
class Span:
    """A part of the profile that one may want to look at."""

    title: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class LaneGroup:
    """The lanes of one case, and the moments (ns) by which several cases can be laid under one another."""

    key: str
    title: str
    backend: str
    lanes: tuple[Lane, ...]
    spans: tuple[Span, ...] = ()
    anchors: tuple[tuple[str, int], ...] = ()

    @property
    def start(self) -> int:
        return min((int(row.starts[0]) for lane in self.lanes for row in lane.rows), default=0)

    @property
    def end(self) -> int:
        return max((int(row.ends.max()) for lane in self.lanes for row in lane.rows), default=1)

    def anchor(self, name: str) -> int:
        return dict(self.anchors).get(name, 0)


PASS = "profiled pass"
PROCESS, FIRST_PASS, STEADY = "the process starts", "the first pass starts", "the profiled passes start"


def group(measured: CaseProfile, events: Events, title: str) -> LaneGroup:
    """The lanes of a case, those without anything left out."""
    marks = [mark for mark in (*measured.cold, *events.marks) if mark.kind == "cold"]
    cold = list(dict.fromkeys(marks))  # in the record and among the events
    course = [mark for mark in events.marks if mark.kind != "cold"]
    lanes = [
        lane("cold start", cold),
        lane("passes", course),
        *_by((i for i in events.intervals if i.kind != "inside"), _interval_title),
        *_by(events.calls, lambda call: f"CUDA calls, thread {call.thread}"),
        *_by((*events.activities, *(i for i in events.intervals if i.kind == "inside")), _activity_title),
    ]
    passes = sorted((m for m in course if m.kind == "window" and m.name == "pass"), key=_start)
    warm = sorted((m for m in course if m.kind == "window" and m.name in ("pass", "warm-up")), key=_start)
    counted = [mark for mark in passes if mark.run is not None]
    return LaneGroup(
        key=measured.case.key,
        title=title,
        backend=measured.case.backend,
        lanes=tuple(made for made in lanes if made is not None),
        spans=_spans(cold, course, counted),
        anchors=(
            (PROCESS, 0),
            (FIRST_PASS, (warm or [Mark(name="", kind="window", start_ns=0, end_ns=0)])[0].start_ns),
            (STEADY, (counted or warm or [Mark(name="", kind="window", start_ns=0, end_ns=0)])[0].start_ns),
        ),
    )


def lane(title: str, events: Iterable[Event]) -> Lane | None:
    """One lane of these events; None where there are none."""
    found = sorted(events, key=lambda event: (event.start_ns, -event.end_ns))
    if not found:
        return None
    keys: dict[str, int] = {}
    rows: list[list[Event]] = [[]]
    ends: list[int] = [-(1 << 62)]
    for event in found:
        keys.setdefault(colour_key(event), len(keys))
        level = next((i for i, end in enumerate(ends) if end <= event.start_ns), len(rows))
        level = min(level, MOST_ROWS - 1)
        if level == len(rows):
            rows.append([])
            ends.append(0)
        rows[level].append(event)
        ends[level] = max(ends[level], event.end_ns)
    return Lane(title, tuple(_row(row, keys) for row in rows), tuple(keys))


def colour_key(event: Event) -> str:
    """What an event's colour says: a part of the breakdown (bench.results.parts), what a call is for, or the
    name of a span."""
    if isinstance(event, Activity):
        return profile_parts.activity_key(event)
    if isinstance(event, ApiCall):
        return CALL + profile_api.purpose(event.name)
    if isinstance(event, HostSpan):
        return _BY_KIND.get(event.kind) or profile_parts.OP + event.op_type
    return MARK + event.name


def _row(events: Sequence[Event], keys: dict[str, int]) -> LaneRow:
    ends = np.array([event.end_ns for event in events], np.int64)
    return LaneRow(
        tuple(events),
        np.array([event.start_ns for event in events], np.int64),
        ends,
        np.maximum.accumulate(ends),
        np.array([keys[colour_key(event)] for event in events], np.int64),
    )


def _by(events: Iterable[Event], title: object) -> list[Lane | None]:
    """A lane for each title."""
    found: dict[tuple, list[Event]] = {}
    for event in events:
        found.setdefault(title(event), []).append(event)  # type: ignore[operator]  # one of those below
    return [lane(name if isinstance(name, str) else name[-1], found[name]) for name in sorted(found)]


def _interval_title(interval: HostSpan) -> tuple:
    """Runs before the nodes in them, then what copies, then the profiler's."""
    thread = f"thread {interval.thread}"
    match interval.kind:
        case "run":
            return (0, f"runs, {thread}, ORT")
        case "staging":
            return (2, f"staging, {thread}")
        case "overhead":
            return (3, "the profiler's own work")
    provider = interval.provider.removesuffix(PROVIDERS)
    words = f"{'steps' if interval.kind == 'step' else 'nodes'}, {thread}"
    return (1, f"{words}, {provider}" if provider else words)


def _activity_title(activity: Activity | HostSpan) -> tuple:
    """By device, then kernels before copies, then by stream or way; steps below the kernels that do them."""
    if isinstance(activity, HostSpan):
        order, words = 0, f"steps in them, stream {activity.stream}"
    elif activity.kind == "kernel":
        order, words = 0, f"kernels, stream {activity.stream}"
    elif activity.kind == "memset":
        order, words = 2, "memset"
    else:
        order, words = 1, f"copies {activity.copy or 'other'}"
    return (activity.device, order, activity.stream if order == 0 else 0, words)


def _spans(cold: Sequence[Mark], course: Sequence[Mark], passes: Sequence[Mark]) -> tuple[Span, ...]:
    found = []
    if cold:
        found.append(Span("cold start", min(map(_start, cold)), max(mark.end_ns for mark in cold)))
    found += [
        Span(f"{mark.name} of the session", mark.start_ns, mark.end_ns)
        for mark in course
        if mark.kind == "window" and mark.name in ("create", "close")
    ]
    if len(passes) > 1:
        found.append(Span("all profiled passes", passes[0].start_ns, passes[-1].end_ns))
    found += [Span(f"{PASS} {i}", mark.start_ns, mark.end_ns) for i, mark in enumerate(passes, 1)]
    return tuple(found)


def _start(event: Event) -> int:
    return event.start_ns
