"""A profile as a trace: Chrome's format by its letter, rows that Perfetto takes whole, and back again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.results import parts as profile_parts
from bench.results.event_files import events_in
from bench.results.events import Activity, ApiCall, Events, HostSpan, Mark
from bench.run.kinds.profile import KIND as PROFILE
from bench.views import trace as profile_trace
from kernels.errors import InputError
from tests.bench.profile import profile_cases
from tests.bench.profile.profile_cases import profile

EVENTS = profile_cases.events()
FOLDER = PROFILE.open(Path(__file__).parents[2] / "data" / "lenet_on_h200")
RECORDED = [(made, events_in(FOLDER.path, made)) for made in FOLDER.measurements()]


class Entry(msgspec.Struct, tag_field="ph", forbid_unknown_fields=True, kw_only=True):
    name: str
    pid: int
    tid: int
    ts: float


class Complete(Entry, tag="X"):
    cat: str
    dur: float
    args: dict[str, Any]


class Metadata(Entry, tag="M"):
    name: Literal["process_name", "process_sort_index", "thread_name", "thread_sort_index"]
    args: dict[Literal["name", "sort_index"], str | int]


class ArrowFrom(Entry, tag="s"):
    cat: str
    id: int


class ArrowTo(Entry, tag="f"):
    cat: str
    id: int
    bp: Literal["e"]


class Trace(msgspec.Struct, forbid_unknown_fields=True):
    traceEvents: list[Complete | Metadata | ArrowFrom | ArrowTo]
    displayTimeUnit: Literal["ms", "ns"]
    otherData: dict[str, Any]


def taken_by_perfetto(found):
    """The slices of each row as Perfetto's importer stacks them: in order of their times, cut to whole
    nanoseconds, each inside what is open or behind it; fails where it would drop one."""
    rows: dict[tuple[int, int], list[tuple[int, int, Complete]]] = {}
    slices = [entry for entry in found.traceEvents if isinstance(entry, Complete)]
    for entry in sorted(slices, key=lambda entry: int(entry.ts * 1000.0)):  # of one time, in the file's order
        start = int(entry.ts * 1000.0)
        rows.setdefault((entry.pid, entry.tid), []).append((start, start + int(entry.dur * 1000.0), entry))
    for row in rows.values():
        open_until: list[int] = []
        for start, end, entry in row:
            while open_until and open_until[-1] <= start:
                open_until.pop()
            assert not open_until or end <= open_until[-1], f"{entry.name} is dropped"
            open_until.append(end)
    return rows


def checked(cases, tmp_path):
    file = tmp_path / "trace.json"
    profile_trace.write(file, cases)
    found = msgspec.json.decode(file.read_bytes(), type=Trace, strict=True)
    rows = taken_by_perfetto(found)
    named = {(e.pid, e.tid): e.args["name"] for e in found.traceEvents if e.name == "thread_name"}
    assert set(rows) == set(named)
    assert len({tid for _, tid in rows}) == len(rows)  # a thread is of one process alone
    assert not {tid for _, tid in rows} & {pid for pid, _ in rows}  # none is a process's main thread
    return file, found, rows, named


@pytest.mark.parametrize("cases", [RECORDED, [(profile(), EVENTS), (profile(), EVENTS)]])
def test_a_trace_is_of_chromes_format_and_reads_back_to_the_same_sums(cases, tmp_path):
    file, found, rows, _ = checked(cases, tmp_path)
    again = profile_trace.read(file)
    for (made, events), read in zip(cases, again, strict=True):
        assert (read.activities, read.calls, read.intervals) == (
            events.activities,
            events.calls,
            events.intervals,
        )
        assert set(read.marks) == {*events.marks, *made.cold}
        assert profile_parts.breakdowns(read) == profile_parts.breakdowns(events)
    shown = sum(entry[2].args["type"] == "activity" for row in rows.values() for entry in row)
    assert shown == sum(len(events.activities) for _, events in cases)
    starts = {e.id: e for e in found.traceEvents if isinstance(e, ArrowFrom)}
    ends = {e.id: e for e in found.traceEvents if isinstance(e, ArrowTo)}
    assert starts.keys() == ends.keys()
    for number, start in starts.items():
        end = ends[number]
        assert start.ts <= end.ts
        for at, kind in ((start, "call"), (end, "activity")):  # each lies in a slice, or it is not drawn
            row = rows[at.pid, at.tid]
            now = int(at.ts * 1000.0)
            assert any(low <= now <= high and e.args["type"] == kind for low, high, e in row)


def test_every_launch_has_its_arrow(tmp_path):
    _, found, _, _ = checked([(profile(), EVENTS)], tmp_path)
    assert sum(isinstance(entry, ArrowTo) for entry in found.traceEvents) == len(EVENTS.activities)


def test_what_overlaps_has_a_further_row(tmp_path):
    def interval(name, kind, start, end, thread=5):
        return HostSpan(name=name, kind=kind, start_ns=start, end_ns=end, thread=thread)

    def kernel(start, end):
        return Activity(name="k", kind="kernel", start_ns=start, end_ns=end, stream=7)

    events = Events(
        activities=(kernel(10, 40), kernel(20, 30), kernel(30, 50)),
        calls=(
            ApiCall(name="a", domain="runtime", start_ns=0, end_ns=9, thread=1),
            ApiCall(name="b", domain="driver", start_ns=3, end_ns=9, thread=1),
            ApiCall(name="late", domain="driver", start_ns=8, end_ns=12, thread=1),
        ),
        intervals=(
            interval("run", "run", 0, 100),
            interval("node", "node", 0, 50),
            interval("over the edge", "node", 90, 101),
            interval("other thread", "node", 10, 20, 6),
            interval("fill", "staging", 5, 20),
            interval("buffer", "overhead", 15, 60),
            interval("flush", "overhead", 16, 70),
        ),
        marks=(Mark(name="pass", kind="window", start_ns=0, end_ns=1, run=0),),
    )
    _, _, rows, named = checked([(profile(cold=()), events)], tmp_path)
    held = {named[key]: [e.name for _, _, e in row] for key, row in rows.items()}
    assert held == {
        "cold start, passes, stages": ["pass"],
        "ONNX Runtime, thread 5": ["run", "node"],
        "ONNX Runtime, thread 5 (2)": ["over the edge"],
        "ONNX Runtime, thread 6": ["other thread"],
        "staging, thread 5": ["fill"],
        "the profiler's own work": ["buffer"],
        "the profiler's own work (2)": ["flush"],
        "CUDA calls, thread 1": ["a", "b"],
        "CUDA calls, thread 1 (2)": ["late"],
        "GPU 0, stream 7": ["k"],
        "GPU 0, stream 7 (2)": ["k", "k"],  # a kernel inside another's time is no part of it
    }


@given(st.integers(0, 10**15))
def test_nanoseconds_come_back(ns):
    assert int(json.loads(json.dumps(profile_trace._us(ns))) * 1000.0) == ns


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "3",
        '{"traceEvents": 3}',
        '{"traceEvents": [3]}',
        '{"traceEvents": [{"ph": "X", "pid": 1}]}',
        '{"traceEvents": [{"ph": "X", "pid": 1, "tid": 1, "ts": 0, "dur": 1, "args": {}}]}',
        '{"traceEvents": [{"ph": "X", "pid": 1, "args": {"type": "mark", "name": "a"}}]}',
        "[" * 100_000,
    ],
)
def test_a_broken_trace_is_told_in_one_sentence(tmp_path, text):
    file = tmp_path / "trace.json"
    file.write_text(text)
    with pytest.raises(InputError, match=r"broken, cut short or no trace of ours"):
        profile_trace.read(file)


def test_a_trace_that_was_cut_or_is_missing_is_told(tmp_path):
    file = tmp_path / "trace.json"
    profile_trace.write(file, RECORDED)
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="broken, cut short or no trace of ours"):
        profile_trace.read(file)
    with pytest.raises(InputError, match="cannot be read"):
        profile_trace.read(tmp_path / "missing.json")
