"""What happened in a profiled session, as frozen records: what the GPU did, calls into CUDA, what the host
did, marks of its course. All times are nanoseconds of the profile's clock (bench.results.profile_records).
Reaches nothing but msgspec and bench.results.records."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from bench.results.records import Record

ActivityKind = Literal["kernel", "memcpy", "memset"]
CopyKind = Literal["", "HtoD", "DtoH", "DtoD", "HtoH", "PtoP", "other"]
Domain = Literal["runtime", "driver"]
IntervalKind = Literal["step", "node", "run", "staging", "overhead", "inside"]
MarkKind = Literal["cold", "window", "stage"]


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    """Base of what has a start and an end on the profile's clock."""

    name: str
    start_ns: int
    end_ns: int

    @property
    def time_ns(self) -> int:
        return self.end_ns - self.start_ns


class Counters(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the hardware counted while one kernel ran alone, its caches empty before it; None for what it did
    not count. dram: what went between device memory and the L2 cache; l2: what went through that cache.
    sectors: pieces of 32 bytes that L1 looked up, of global memory, for so many requests (a warp's loads or
    stores by one instruction). global_sectors: those of all its instructions on global memory;
    ideal_sectors: what they would be if the threads of a warp accessed neighbouring bytes. compute_share:
    of the most that its multiprocessors could do; warps_share: warps that were there, of the most there is
    room for."""

    dram_read_nbytes: float | None = None
    dram_write_nbytes: float | None = None
    l2_nbytes: float | None = None
    load_requests: float | None = None
    load_sectors: float | None = None
    store_requests: float | None = None
    store_sectors: float | None = None
    global_sectors: float | None = None
    ideal_sectors: float | None = None
    compute_share: float | None = None
    warps_share: float | None = None

    @property
    def dram_nbytes(self) -> float | None:
        """Bytes between device memory and the L2 cache, both ways."""
        if self.dram_read_nbytes is None or self.dram_write_nbytes is None:
            return None
        return self.dram_read_nbytes + self.dram_write_nbytes

    @property
    def sectors_a_load(self) -> float | None:
        return _ratio(self.load_sectors, self.load_requests)

    @property
    def sectors_a_store(self) -> float | None:
        return _ratio(self.store_sectors, self.store_requests)

    @property
    def scattered(self) -> float | None:
        """global_sectors for each of ideal_sectors."""
        return _ratio(self.global_sectors, self.ideal_sectors)


def _ratio(over: float | None, under: float | None) -> float | None:
    return over / under if over is not None and under else None


class Activity(Event, frozen=True, tag="activity"):
    """Something that the GPU did. name: a kernel's as compiled (mangled where it is), "memcpy HtoD" or
    "memset". correlation: that of the API call which started it. graph, graph_node: ids where it ran in a
    CUDA graph, else 0. from_memory, to_memory: "pageable", "pinned", "device", "array", "managed" or "".
    nodes: the ONNX nodes it computes, () where not known; op_type: their main operators ("Conv",
    "LRN+MaxPool"). run: the number of the profiled pass it belongs to, None outside. counters: of the same
    kernel in a pass in which the hardware counted."""

    kind: ActivityKind
    stream: int = 0
    device: int = 0
    context: int = 0
    correlation: int = 0
    graph: int = 0
    graph_node: int = 0
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    registers: int = 0
    static_shared_nbytes: int = 0
    dynamic_shared_nbytes: int = 0
    nbytes: int = 0
    copy: CopyKind = ""
    from_memory: str = ""
    to_memory: str = ""
    nodes: tuple[str, ...] = ()
    op_type: str = ""
    run: int | None = None
    counters: Counters | None = None

    @property
    def bytes_per_s(self) -> float | None:
        """Of a copy or a memset."""
        return _rate(self)


class ApiCall(Event, frozen=True, tag="call"):
    """A call into CUDA. code: what it returned (0 is success). nbytes, memory: of memory that it got or
    released ("device", "pinned", …); waited_for: "stream 13", "an event", …, where it waited."""

    domain: Domain
    thread: int = 0
    correlation: int = 0
    code: int = 0
    nbytes: int = 0
    memory: str = ""
    waited_for: str = ""


class HostSpan(Event, frozen=True, tag="interval"):
    """A host step: a step of our CPU engine, a node or a whole run in ONNX Runtime's own profile, a copy into
    page-locked memory or out of it ("staging"), or the profiler's own work ("overhead"). nbytes: copied.
    provider: ONNX Runtime's. nodes, op_type, run as in Activity.

    "inside" is no host step: a step inside a kernel that does several, as clock stamps in it tell its length;
    they lie one behind the other from the kernel's beginning. correlation, device, stream: of that kernel.
    """

    kind: IntervalKind
    thread: int = 0
    device: int = 0
    stream: int = 0
    correlation: int = 0
    nbytes: int = 0
    provider: str = ""
    rung: str = ""
    nodes: tuple[str, ...] = ()
    op_type: str = ""
    run: int | None = None

    @property
    def bytes_per_s(self) -> float | None:
        """Of a copy."""
        return _rate(self)


def _rate(event: Activity | HostSpan) -> float | None:
    return event.nbytes / event.time_ns * 1e9 if event.nbytes and event.time_ns > 0 else None


class Mark(Event, frozen=True, tag="mark"):
    """A span of the host's course. kind "cold": a phase of the cold start; "window": "create", "warm-up",
    "pass" or "close" of the profiled session; "stage": "bind", "run", "synchronize", "fetch" inside a pass.
    run: the number of the pass, None for one that warms up. text: what a reader should know of it ("3 of 8
    from the cache"). cpu_ns: how long of a pass the host's thread had a core (None: not known)."""

    kind: MarkKind
    run: int | None = None
    text: str = ""
    cpu_ns: int | None = None


AnyEvent = Activity | ApiCall | HostSpan | Mark


class Events(Record, frozen=True):
    """All events of one case, each kind in order of its start."""

    activities: tuple[Activity, ...] = ()
    calls: tuple[ApiCall, ...] = ()
    intervals: tuple[HostSpan, ...] = ()
    marks: tuple[Mark, ...] = ()


def steps_apart(events: Events) -> tuple[Activity | HostSpan, ...]:
    """A GPU's activities; a kernel that does several steps as these, and what of it is no step's."""
    return tuple(piece for pieces in each_apart(events) for piece in pieces)


def each_apart(events: Events) -> Iterator[tuple[Activity | HostSpan, ...]]:
    """As `steps_apart`, the pieces of each activity together."""
    inside: dict[tuple[int, int, int], list[HostSpan]] = {}
    for interval in events.intervals:
        if interval.kind == "inside":
            key = (interval.device, interval.stream, interval.correlation)
            inside.setdefault(key, []).append(interval)
    for activity in events.activities:
        among = inside.get((activity.device, activity.stream, activity.correlation), ())
        its = [i for i in among if activity.start_ns <= i.start_ns and i.end_ns <= activity.end_ns]
        if activity.kind != "kernel" or not its:
            yield (activity,)
            continue
        end = max(i.end_ns for i in its)
        rest = msgspec.structs.replace(activity, start_ns=end)
        yield (*its, rest) if end < activity.end_ns else tuple(its)


# What the hardware counted in kernels: which counters are shares, and which are sums.
SHARES = ("compute_share", "warps_share")
TOTALS = tuple(name for name in Counters.__struct_fields__ if name not in SHARES)


def together(kernels: Iterable[Activity]) -> Counters | None:
    """What was counted in several kernels as if they were one: sums, and shares weighted by time. None where
    one of them was not counted, and for a counter that one of them lacks."""
    its = list(kernels)
    found = [kernel.counters for kernel in its if kernel.counters is not None]
    if not its or len(found) < len(its):
        return None
    told: dict[str, float | None] = {}
    for name in TOTALS:
        values = [getattr(counters, name) for counters in found]
        told[name] = None if None in values else math.fsum(values)
    time_ns = sum(kernel.time_ns for kernel in its)
    for name in SHARES:
        values = [getattr(counters, name) for counters in found]
        weighed = [
            value * kernel.time_ns for value, kernel in zip(values, its, strict=True) if value is not None
        ]
        told[name] = math.fsum(weighed) / time_ns if time_ns > 0 and len(weighed) == len(its) else None
    return Counters(**told)
