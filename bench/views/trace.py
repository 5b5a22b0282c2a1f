"""A profile as a trace in Chrome's format, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

Every case is a process of the trace, with a row a host thread, a row a stream and rows for what ONNX Runtime
or our engine tells of its steps; an arrow leads from each launch to what it started. All fields of an event
are in its arguments, so that the file can be read back.

Perfetto drops a slice that begins inside another of its row and ends outside, and cuts what is behind the
decimal point of 1000 × ts and 1000 × dur: what would overlap goes to a further row, and times are written so
that the nanosecond comes back.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.results import kernel_names as profile_names
from bench.results import reading
from bench.results.event_files import events_of
from bench.results.events import Activity, AnyEvent, ApiCall, Events, HostSpan
from bench.results.profile_records import CaseProfile
from bench.results.store import write_atomically
from kernels.errors import InputError

# A row's number is unique in the trace and no process's, or it would be taken for the process's main thread.
ROWS_A_CASE = 100_000
ARROWS_A_CASE = 10_000_000
_STEPS = {"step": "steps", "node": "ONNX Runtime", "run": "ONNX Runtime", "staging": "staging"}
_INSIDE = "steps in its kernels"


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
    write_atomically(Path(file), json.dumps(trace(cases), separators=(",", ":"), allow_nan=False).encode())


def _case(pid: int, made: CaseProfile, found: Events) -> Iterator[dict[str, Any]]:
    marks = dict.fromkeys((*made.cold, *found.marks))  # cold starts may be among both
    placed = [
        *_rows(marks, lambda _: "cold start, passes, stages"),
        *_rows(found.intervals, _interval_row),
        *_rows(found.calls, lambda call: f"CUDA calls, thread {call.thread}"),
        *_rows(found.activities, lambda a: f"GPU {a.device}, stream {a.stream}", nested=False),
    ]
    yield _meta(pid, pid * ROWS_A_CASE, "process_name", name=made.case.words)
    yield _meta(pid, pid * ROWS_A_CASE, "process_sort_index", sort_index=pid)
    sources: dict[int, tuple[int, ApiCall]] = {}
    number = 0
    for tid, (title, events) in enumerate(placed, pid * ROWS_A_CASE):
        yield _meta(pid, tid, "thread_name", name=title)
        yield _meta(pid, tid, "thread_sort_index", sort_index=tid)
        for event in events:
            yield _slice(pid, tid, event)
            if isinstance(event, ApiCall) and event.correlation:
                sources[event.correlation] = (tid, event)
            if not isinstance(event, Activity) or event.correlation not in sources:
                continue
            of, call = sources[event.correlation]
            if call.start_ns <= event.start_ns:  # one arrow each: of a graph's launch there are many
                arrow = {"cat": "launch", "name": "launch", "id": pid * ARROWS_A_CASE + number, "pid": pid}
                yield {**arrow, "ph": "s", "tid": of, "ts": _us(call.start_ns)}
                yield {**arrow, "ph": "f", "bp": "e", "tid": tid, "ts": _us(event.start_ns)}
                number += 1


def _interval_row(interval: HostSpan) -> str:
    if interval.kind == "overhead":
        return "the profiler's own work"
    if interval.kind == "inside":
        return f"GPU {interval.device}, stream {interval.stream}, {_INSIDE}"
    return f"{_STEPS[interval.kind]}, thread {interval.thread}"


def _rows(
    events: Iterable[Any], title_of: Callable[[Any], str], nested: bool = True
) -> list[tuple[str, list[Any]]]:
    """Rows with their events in order, by their titles; a title has several rows where its events overlap
    (kernels may begin before that in front has ended). nested: what lies in another whole may stay in its
    row."""
    rows: dict[tuple[str, int], list[Any]] = {}
    open_until: dict[Hashable, list[int]] = {}  # the ends of what is going on in a row, the innermost last
    for event in sorted(events, key=lambda event: (event.start_ns, -event.end_ns)):
        title, number = title_of(event), 1
        while True:
            ends = open_until.setdefault((title, number), [])
            while ends and ends[-1] <= event.start_ns:
                ends.pop()
            if not ends or (nested and event.end_ns <= ends[-1]):
                break
            number += 1
        ends.append(event.end_ns)
        rows.setdefault((title, number), []).append(event)
    return [
        (title if number == 1 else f"{title} ({number})", rows[title, number])
        for title, number in sorted(rows)
    ]


def _slice(pid: int, tid: int, event: AnyEvent) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": profile_names.short(event.name, 80) if isinstance(event, Activity) else event.name,
        "cat": event.domain if isinstance(event, ApiCall) else event.kind,
        "pid": pid,
        "tid": tid,
        "ts": _us(event.start_ns),
        "dur": _us(event.time_ns),
        "args": msgspec.to_builtins(event),
    }


def _meta(pid: int, tid: int, what: str, **arguments: str | int) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": arguments}


def _us(ns: int) -> float:
    """Microseconds of which 1000 times, cut off, are the nanoseconds again."""
    us = ns / 1000
    return us if int(us * 1000.0) == ns else math.nextafter(us, math.copysign(math.inf, ns))


def read(file: Path) -> list[Events]:
    """The events of each case in a trace that `write` made; cold starts are among the marks. Raises
    InputError where it is missing, cut short or another program's."""
    try:
        data = reading.decoded(reading.whole(Path(file), reading.TRACE_NBYTES), dict)
        found: dict[int, list[AnyEvent]] = {}
        for event in data["traceEvents"]:
            found.setdefault(int(event["pid"]), [])
            if event["ph"] == "X":
                found[int(event["pid"])].append(msgspec.convert(event["args"], AnyEvent))
    except OSError as error:
        raise InputError(f"{file} cannot be read ({reading.words(error)})") from error
    except (ValueError, KeyError, TypeError, RecursionError, msgspec.MsgspecError) as error:
        raise InputError(
            f"{file} is broken, cut short or no trace of ours ({type(error).__name__}: {error})"
        ) from error
    return [events_of(events) for _, events in sorted(found.items())]
