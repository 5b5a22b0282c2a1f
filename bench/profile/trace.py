"""A profile as a trace in Chrome's format, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

Every case is a process of the trace, with a row a host thread, a row a stream and one for what ONNX Runtime
or our engine tells of its steps; an arrow leads from each launch to what it started. All fields of an event
are in its arguments, so that the file can be read back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.profile import names as profile_names
from bench.profile.records import Activity, AnyEvent, ApiCall, CaseProfile, Events, Interval, Mark
from bench.profile.store import events_of
from bench.store import write_atomically
from kernels.errors import InputError

COURSE, STEPS, THREADS, STREAMS = (
    1,
    2,
    100,
    10_000,
)  # tids: of the marks, of steps; threads and streams from there


def trace(cases: Sequence[tuple[CaseProfile, Events]]) -> dict[str, Any]:
    """The JSON object."""
    events: list[dict[str, Any]] = []
    for pid, (made, found) in enumerate(cases, 1):
        events += _case(pid, made, found)
    return {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {
            "program": "Kernelscope",
            "cases": [msgspec.to_builtins(made.case) for made, _ in cases],
        },
    }


def write(file: Path, cases: Sequence[tuple[CaseProfile, Events]]) -> None:
    """Raises InputError where the file cannot be written."""
    write_atomically(Path(file), json.dumps(trace(cases), separators=(",", ":")).encode())


def _case(pid: int, made: CaseProfile, found: Events) -> Iterable[dict[str, Any]]:
    threads = sorted({call.thread for call in found.calls})
    lanes, streams = _lanes(found.activities)
    rows = {COURSE: "cold start, passes, stages", STEPS: "steps and nodes"}
    rows |= {THREADS + i: f"CUDA calls, thread {thread}" for i, thread in enumerate(threads)}
    rows |= {STREAMS + i: f"GPU {device}, stream {stream}" for i, (device, stream, _) in enumerate(streams)}
    yield _meta(pid, 0, "process_name", made.case.words)
    yield {**_meta(pid, 0, "process_sort_index", ""), "args": {"sort_index": pid}}
    for tid, name in rows.items():
        yield _meta(pid, tid, "thread_name", name)
        yield {**_meta(pid, tid, "thread_sort_index", ""), "args": {"sort_index": tid}}
    for mark in (*made.cold, *found.marks):
        yield _slice(pid, COURSE, mark.name, mark.kind, mark)
    for interval in found.intervals:
        yield _slice(pid, STEPS, interval.name, interval.kind, interval)
    sources: dict[int, tuple[int, ApiCall]] = {}
    for call in found.calls:
        tid = THREADS + threads.index(call.thread)
        sources[call.correlation] = (tid, call)
        yield _slice(pid, tid, call.name, call.domain, call)
    for number, (activity, lane) in enumerate(zip(found.activities, lanes, strict=True)):
        tid = STREAMS + streams.index(lane)
        yield _slice(pid, tid, profile_names.short(activity.name, 80), activity.kind, activity)
        if activity.correlation in sources:
            of, call = sources[activity.correlation]
            # One arrow each: of a graph's launch there are many.
            arrow = {"cat": "launch", "name": "launch", "id": pid * 10_000_000 + number, "pid": pid}
            yield {**arrow, "ph": "s", "tid": of, "ts": _us(call.start_ns)}
            yield {**arrow, "ph": "f", "bp": "e", "tid": tid, "ts": _us(activity.start_ns)}


def _lanes(
    activities: Sequence[Activity],
) -> tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]]:
    """The lane (device, stream, number) of each activity, and all lanes in order. A stream has one lane, and
    more where its kernels overlap (one may begin before that in front has ended)."""
    ends: dict[tuple[int, int, int], int] = {}
    found = []
    for activity in activities:
        lane = (activity.device, activity.stream, 0)
        while ends.get(lane, activity.start_ns) > activity.start_ns:
            lane = (*lane[:2], lane[2] + 1)
        ends[lane] = activity.end_ns
        found.append(lane)
    return found, sorted(ends)


def _slice(pid: int, tid: int, name: str, category: str, event: AnyEvent) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": name,
        "cat": category,
        "pid": pid,
        "tid": tid,
        "ts": _us(event.start_ns),
        "dur": _us(event.time_ns),
        "args": msgspec.to_builtins(event),
    }


def _meta(pid: int, tid: int, what: str, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": {"name": name}}


def _us(ns: int) -> float:
    return ns / 1000


def read(file: Path) -> list[Events]:
    """The events of each case in a trace that `write` made; cold starts are among the marks. Raises
    InputError where it is missing, cut short or another program's."""
    try:
        data = json.loads(Path(file).read_bytes())
        found: dict[int, list[AnyEvent]] = {}
        for event in data["traceEvents"]:
            found.setdefault(int(event["pid"]), [])
            if event["ph"] == "X":
                found[int(event["pid"])].append(
                    msgspec.convert(event["args"], Activity | ApiCall | Interval | Mark)
                )
    except OSError as error:
        raise InputError(f"{file} cannot be read ({(error.strerror or str(error)).lower()})") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{file} is broken, cut short or no trace of ours ({type(error).__name__}: {error})"
        ) from error
    return [events_of(events) for _, events in sorted(found.items())]
