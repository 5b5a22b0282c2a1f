"""Recorded profiles with one thing changed in each: time runs slower or stands still somewhere in every pass,
all that comes after is later by as much, and what was planted fills the gap."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.results.event_files import events_in
from bench.results.events import Activity, ApiCall, Events, HostSpan, Mark
from bench.results.profile_records import CaseProfile
from bench.run.kinds.profile import KIND

Recorded = tuple[CaseProfile, Events]
Span = tuple[int, int, int]  # from, to, and by how much longer it takes
H200 = Path("tests/data/lenet_on_h200")
CPU = Path("tests/data/lenet_on_two_cores")


def recorded(folder: Path, backend: str, batch: int = 16) -> Recorded:
    held = KIND.open(folder)
    made = next(m for m in held.measurements() if (m.case.backend, m.case.batch) == (backend, batch))
    return made, events_in(folder, made)


def passes(events: Events) -> list[Mark]:
    return [mark for mark in events.marks if mark.kind == "window" and mark.run is not None]


def stage(events: Events, run: int | None, name: str) -> Mark:
    """Of a profiled pass."""
    whole = next(mark for mark in passes(events) if mark.run == run)
    return next(
        mark
        for mark in events.marks
        if mark.kind == "stage" and mark.name == name and whole.start_ns <= mark.start_ns < whole.end_ns
    )


def within(events: Iterable[Any], mark: Mark) -> list[Any]:
    return [event for event in events if mark.start_ns <= event.start_ns < mark.end_ns]


def slowed(events: Events, spans: Sequence[Span]) -> Events:
    """Time as it runs where each span takes longer. What begins at an instant at which time stands still is
    later; what ends there is not."""

    def later(at: int, ends: bool) -> int:
        moved = 0.0
        for low, high, more in spans:
            if low == high:
                moved += more * (at > low if ends else at >= low)
            else:
                moved += more * min(1.0, max(0.0, (at - low) / (high - low)))
        return at + round(moved)

    def each(found: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(
            msgspec.structs.replace(
                event, start_ns=later(event.start_ns, False), end_ns=later(event.end_ns, True)
            )
            for event in found
        )

    return Events(
        activities=each(events.activities),
        calls=each(events.calls),
        intervals=each(events.intervals),
        marks=each(events.marks),
    )


def inserted(
    events: Events, at: Callable[[Mark], int], lasts: int, make: Callable[[int, int, int], Sequence[Any]]
) -> Events:
    """In each pass something new: `make(start, end, number of the pass)` → events."""
    starts = [at(mark) for mark in passes(events)]
    moved = slowed(events, [(start, start, lasts) for start in starts])
    added = []
    for number, start in enumerate(starts):
        begins = start + number * lasts
        added += make(begins, begins + lasts, number)
    return with_more(moved, added)


def with_more(events: Events, added: Sequence[Any]) -> Events:
    def all_of(field: str, kind: type) -> tuple[Any, ...]:
        mine = [event for event in added if isinstance(event, kind)]
        return tuple(sorted((*getattr(events, field), *mine), key=lambda event: event.start_ns))

    return Events(
        activities=all_of("activities", Activity),
        calls=all_of("calls", ApiCall),
        intervals=all_of("intervals", HostSpan),
        marks=events.marks,
    )


def call(name: str, start: int, end: int, correlation: int = 0) -> ApiCall:
    return ApiCall(
        name=name, domain="runtime", start_ns=start, end_ns=end, thread=2679, correlation=correlation
    )


def busy(events: Events, more: int) -> Events:
    """Profiled passes in which the host's thread had a core for so much longer."""
    wanted = {id(mark) for mark in passes(events)}
    marks = tuple(
        msgspec.structs.replace(mark, cpu_ns=mark.cpu_ns + more)
        if id(mark) in wanted and mark.cpu_ns is not None
        else mark
        for mark in events.marks
    )
    return msgspec.structs.replace(events, marks=marks)


def of_node(events: Events, node: str) -> list[Any]:
    """What computes a node in the profiled passes."""
    found = [event for event in (*events.activities, *events.intervals) if node in event.nodes]
    return [event for mark in passes(events) for event in within(found, mark)]


def alone(events: Events, event: Any) -> tuple[int, int]:
    """From where what began before it has ended: until then a kernel that begins early waits for these."""
    others = (*events.activities, *events.intervals)
    before = [other.end_ns for other in others if other.start_ns < event.start_ns and other.nodes]
    return max([event.start_ns, *(end for end in before if end < event.end_ns)]), event.end_ns


def changed(events: Events, wanted: Callable[[Any], bool], **fields: Any) -> Events:
    def each(found: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(msgspec.structs.replace(e, **fields) if wanted(e) else e for e in found)

    return msgspec.structs.replace(
        events, activities=each(events.activities), intervals=each(events.intervals)
    )
