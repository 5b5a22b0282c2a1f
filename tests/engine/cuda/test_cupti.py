"""CUPTI's records, as cupti-python hands them over, read on our clock; its refusals in words."""

from __future__ import annotations

import enum
import sys
import types
from types import SimpleNamespace as Record

import pytest

from engine.cuda import cupti
from kernels.errors import KernelError, UnavailableError
from tests.standin.modules.cupti import AHEAD_NS, FakeCupti, Kind


@pytest.fixture
def fake(monkeypatch):
    made = FakeCupti()
    package = types.ModuleType("cupti")
    monkeypatch.setitem(sys.modules, "cupti", package)
    monkeypatch.setitem(sys.modules, "cupti.cupti", made)
    monkeypatch.setattr(cupti, "device", lambda: {"name": "a GPU", "multiprocessors": 132, "warp": 32})
    return made


def on_device(kind, start, end, **fields):
    places = {"stream_id": 7, "device_id": 0, "context_id": 1, "correlation_id": 55, "graph_id": 0}
    return Record(
        kind=int(kind), start=AHEAD_NS + start, end=AHEAD_NS + end, **(places | {"graph_node_id": 0} | fields)
    )


def kernel(start, end, **fields):
    shape = dict(
        zip(
            ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"), (4, 2, 1, 128, 1, 1), strict=True
        )
    )
    rest = {
        "registers_per_thread": 40,
        "static_shared_memory": 0,
        "dynamic_shared_memory": 512,
        "name": "conv",
    }
    return on_device(Kind.CONCURRENT_KERNEL, start, end, **(shape | rest | fields))


def call(kind, number, start, end, code=0):
    span = {"start": AHEAD_NS + start, "end": AHEAD_NS + end}
    return Record(kind=int(kind), cbid=number, thread_id=3, correlation_id=55, return_value=code, **span)


def test_records_are_read_on_our_clock(fake):
    recorder = cupti.Recorder()
    recorder.start()
    assert len(fake.enabled) == len(cupti.KINDS)
    assert fake.threads == 1
    overhead = Record(
        kind=int(Kind.OVERHEAD), start=AHEAD_NS + 1, end=AHEAD_NS + 2, overhead_kind=65536, object_id=None
    )
    fake.hand_over = [
        [kernel(1000, 2000, graph_id=3, graph_node_id=77), call(Kind.RUNTIME, 7, 500, 600)],
        [
            on_device(Kind.MEMCPY, 10, 20, bytes=64, copy_kind=1, src_kind=2, dst_kind=3),
            on_device(Kind.MEMSET, 30, 40, bytes=16, memory_kind=6, value=0),
            call(Kind.DRIVER, 9, 1, 2, code=2),
            call(Kind.DRIVER, 1234, 3, 4),
            overhead,
            Record(kind=int(Kind.STREAM), start=1, end=1),
            kernel(-AHEAD_NS, 5),  # without a time
        ],
    ]
    told = recorder.stop()
    assert fake.enabled == []
    assert abs(told.offset_ns - AHEAD_NS) <= told.error_ns + 1
    moved = AHEAD_NS - told.offset_ns
    first, copied, written = told.activities
    assert (first["start_ns"], first["end_ns"]) == (1000 + moved, 2000 + moved)
    assert (first["name"], first["grid"], first["registers"]) == ("conv", (4, 2, 1), 40)
    assert (first["dynamic_shared_nbytes"], first["graph"], first["graph_node"]) == (512, 3, 77)
    assert (copied["copy"], copied["nbytes"]) == ("HtoD", 64)
    assert (copied["from_memory"], copied["to_memory"]) == ("pinned", "device")
    assert (written["kind"], written["to_memory"]) == ("memset", "device")
    assert [c["name"] for c in told.calls] == ["cudaLaunchKernel_v7000", "cuMemAlloc_v2", "cuCall1234"]
    assert [c["code"] for c in told.calls] == [0, 2, 0]
    assert told.overheads[0]["name"] == "cupti buffer flush"
    assert told.dropped == 0
    assert told.notes == ("1 records came without times and are left out",)


def test_a_clock_that_drifts_is_followed(fake, monkeypatch):
    recorder = cupti.Recorder()
    recorder.start()
    began = recorder._began
    now = iter([began + 1_000_000_000] * 1000)
    monkeypatch.setattr(cupti, "perf_counter_ns", lambda: next(now))
    offset = recorder._offset
    # A second later, CUPTI's clock has gained 2 µs.
    fake.get_timestamp = lambda: began + 1_000_000_000 + offset + 2000
    fake.hand_over = [
        [kernel(began - AHEAD_NS + offset + 500_001_000, began - AHEAD_NS + offset + 500_002_000)]
    ]
    told = recorder.stop()
    assert told.drift_ns == 2000
    assert abs(told.activities[0]["start_ns"] - (began + 500_000_000)) <= 1


def test_calls_are_told_what_they_waited_for_and_what_memory_they_got(fake):
    recorder = cupti.Recorder()
    recorder.start()
    named = {"cbid": 7, "thread_id": 3, "return_value": 0}
    calls = [
        Record(kind=int(Kind.RUNTIME), start=AHEAD_NS + 10, end=AHEAD_NS + 90, correlation_id=1, **named),
        Record(kind=int(Kind.DRIVER), start=AHEAD_NS + 20, end=AHEAD_NS + 80, correlation_id=2, **named),
        Record(kind=int(Kind.RUNTIME), start=AHEAD_NS + 100, end=AHEAD_NS + 200, correlation_id=3, **named),
        Record(kind=int(Kind.RUNTIME), start=AHEAD_NS + 300, end=AHEAD_NS + 400, correlation_id=4, **named),
    ]
    memory = Record(kind=int(Kind.MEMORY2), correlation_id=2, bytes=4096, memory_kind=3, timestamp=30)
    waited = Record(kind=int(Kind.SYNCHRONIZATION), correlation_id=3, type=3, stream_id=13, start=0, end=0)
    broken = Record(kind=int(Kind.MEMORY2), correlation_id=4)
    fake.hand_over = [[memory, waited, broken, *calls]]
    outer, inner, waiting, plain = recorder.stop().calls
    for one in (outer, inner):
        assert (one["nbytes"], one["memory"]) == (4096, "device")
    assert waiting["waited_for"] == "stream 13"
    assert "waited_for" not in outer
    assert not {"nbytes", "memory", "waited_for"} & set(plain)


def test_kinds_that_this_cupti_does_not_offer_are_done_without(fake):
    fake.ActivityKind = enum.IntEnum(
        "Kind", {kind.name: kind.value for kind in Kind if kind not in (Kind.SYNCHRONIZATION, Kind.MEMORY2)}
    )
    recorder = cupti.Recorder()
    recorder.start()
    assert len(fake.enabled) == len(cupti.KINDS) - 2
    recorder.stop()


def test_dropped_records_are_counted_and_a_record_that_cannot_be_read_is_told(fake):
    recorder = cupti.Recorder()
    recorder.start()
    fake.dropped = 17
    assert recorder.stop().dropped == 17
    broken = cupti.Recorder()
    broken.start()
    fake.hand_over = [[Record(kind=int(Kind.MEMCPY), start=1, end=2)]]
    with pytest.raises(KernelError, match="a record of CUPTI cannot be read"):
        broken.stop()
    assert fake.enabled == []


@pytest.mark.parametrize(("status", "words"), [(39, "another profiler"), (35, "administrators alone")])
def test_a_refusal_is_told_in_words_and_nothing_stays_enabled(fake, status, words):
    fake.refuse = status
    with pytest.raises(UnavailableError, match=words):
        cupti.Recorder().start()
    assert fake.enabled == []


def test_without_cupti_python_it_is_said_what_would_help(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupti", None)
    monkeypatch.setitem(sys.modules, "cupti.cupti", None)
    assert "install the extra cuda" in cupti.unavailable()
    with pytest.raises(UnavailableError, match="CUPTI"):
        cupti.Recorder().start()
