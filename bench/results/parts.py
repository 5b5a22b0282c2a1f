"""A profiled window divided among what went on in it, so that the parts add up to its wall time.

A sweep over the host's clock gives every nanosecond of the window to one thing, the first of these that went
on then; of two alike, the one that began earlier:

1. the device at work: a kernel, by its operator ("op:Conv"; "op:" where the operator is not known), before a
   copy ("h2d", "d2h", "d2d") or a memset ("memset") beside it. On a CPU, a step of the model.
2. "profiler": work of the profiler's own that it tells of.
3. "launch": nothing runs though something was being launched or had been: from the beginning of the call that
   started a kernel or a copy to its own beginning on the device. The gaps between kernels are here.
4. "alloc": a call that gets or frees memory, of the device or pinned.
5. "sync": a call that waits, for what was none of the above.
6. "api": any other call into CUDA.
7. "staging": the host copies between pageable and page-locked memory.
8. "ort": inside a run of ONNX Runtime, or a node of its profile, and none of the above: its preparing of
   launches and what it does between nodes.
9. "host": the rest of a stage of a pass (bind, run, synchronize, fetch): our own code, Python, and what it
   calls. A stage counts only in a pass of which a call, an activity or a step was recorded: what nobody
   watched is not known to be the host's. Nor is time in which the host's thread had no core, as far as its
   CPU clock stood still for longer than the calls and steps lasted in which it may wait.
10. "rest": none of all this; what is not explained.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from bench.results import api_calls as profile_api
from bench.results.events import Activity, ApiCall, Events, HostSpan, Mark, each_apart
from bench.results.profile_records import Breakdown, Share

OP = "op:"
IDLE = "idle"
APART = "\x1f"  # between a part's key and what is kept apart in it
COPIES = {"HtoD": "h2d", "DtoH": "d2h"}
# What is shown after the operators, in this order.
OTHERS = (
    "h2d", "d2h", "d2d", "memset", "staging", "launch", "alloc", "sync", "api", "ort", "host", "profiler",
    "rest",
)  # fmt: skip
LABELS = {
    "h2d": "copy in",
    "d2h": "copy out",
    "d2d": "copy on the device",
    "memset": "memset",
    "staging": "staging",
    "launch": "launch gaps",
    "alloc": "allocation",
    "sync": "synchronisation",
    "api": "other CUDA calls",
    "ort": "ONNX Runtime",
    "host": "host",
    "profiler": "profiler",
    IDLE: "no core for the host's thread",
    "rest": "rest",
}
Event = Activity | ApiCall | HostSpan
WINDOWS = ("pass", "create", "close", "all")
_KERNEL, _COPY, _PROFILER, _LAUNCH, _ALLOC, _SYNC, _API, _STAGING, _ORT, _HOST = range(10)
_CALLS = {"alloc": (_ALLOC, "alloc"), "sync": (_SYNC, "sync")}
# What CUPTI tells of as overhead and is CUDA's own doing, with a profiler or without one.
CUDAS_OWN = frozenset(
    {"driver compiler", "lazy function loading", "runtime triggered module loading", "command buffer full"}
)


@dataclass(frozen=True, order=True)
class Ranked:
    """Something that went on from start to end and wants its time; a lower rank goes first. counts: whether
    it is an event, and not a further piece of one."""

    rank: int
    start: int
    end: int
    key: str
    counts: bool = field(default=True, compare=False)


def label(key: str) -> str:
    """A part's key as one reads it."""
    if key.startswith(OP):
        return key.removeprefix(OP) or "kernels of no known operator"
    return LABELS.get(key, key)


def claims(events: Events, finer: Callable[[Event], str] | None = None) -> list[Ranked]:
    """What every event wants. finer: by what an event's time is kept apart within its part ("" for by
    nothing): the key is then the part's, `APART` and that."""
    found: list[Ranked] = []

    def key(part: str, event: Event) -> str:
        more = finer(event) if finer is not None else ""
        return f"{part}{APART}{more}" if more else part

    watched = _watched(events)
    calls = profile_api.outermost(events.calls)
    started = {call.correlation: call.start_ns for call in events.calls if call.correlation}
    for call in calls:  # of a call inside a call the outer one's beginning
        if call.correlation:
            started[call.correlation] = min(call.start_ns, started[call.correlation])
    for pieces in each_apart(events):
        for number, piece in enumerate(pieces):
            rank = _COPY if isinstance(piece, Activity) and piece.kind != "kernel" else _KERNEL
            whose = key(part_of(piece), piece)
            found.append(Ranked(rank, piece.start_ns, piece.end_ns, whose, counts=number == 0))
    for activity in events.activities:
        begun = started.get(activity.correlation)
        if begun is not None and begun < activity.start_ns:
            found.append(Ranked(_LAUNCH, begun, activity.start_ns, "launch"))
    for call in calls:
        what = profile_api.purpose(call.name)
        if what in ("launch", "copy"):
            found.append(Ranked(_LAUNCH, call.start_ns, call.end_ns, "launch"))
        else:
            rank, part = _CALLS.get(what, (_API, "api"))
            found.append(Ranked(rank, call.start_ns, call.end_ns, key(part, call)))
    for interval in events.intervals:
        if interval.kind == "inside":
            continue
        claim = _interval(interval)
        found.append(replace(claim, key=key(claim.key, interval)))
    found += [
        Ranked(_HOST, mark.start_ns, mark.end_ns, "host")
        for mark in events.marks
        if mark.kind == "stage" and watched(mark.start_ns)
    ]
    return found


def _watched(events: Events) -> Callable[[int], bool]:
    """Tells of a moment whether anything that was recorded began in its pass: calls or what the device did,
    or on a CPU steps."""
    seen = sorted(event.start_ns for event in (*events.calls, *events.activities)) or sorted(
        interval.start_ns for interval in events.intervals if _on_cpu(interval)
    )
    passes = sorted((mark.start_ns, mark.end_ns) for mark in events.marks if mark.kind == "window")
    starts = [low for low, _ in passes]

    def watched(at: int) -> bool:
        index = bisect.bisect_right(starts, at) - 1
        if index < 0 or at >= passes[index][1]:
            return False
        return bisect.bisect_left(seen, passes[index][1]) > bisect.bisect_left(seen, passes[index][0])

    return watched


def part_of(event: Event) -> str:
    """The part that an event claims its own time for."""
    if isinstance(event, Activity):
        return activity_key(event)
    if isinstance(event, HostSpan):
        return _interval(event).key
    what = profile_api.purpose(event.name)
    return "launch" if what in ("launch", "copy") else _CALLS.get(what, (_API, "api"))[1]


def activity_key(activity: Activity) -> str:
    """The part that an activity belongs to."""
    if activity.kind == "kernel":
        return OP + activity.op_type
    if activity.kind == "memset":
        return "memset"
    return COPIES.get(activity.copy, "d2d")


def _interval(interval: HostSpan) -> Ranked:
    span = (interval.start_ns, interval.end_ns)
    if interval.kind == "overhead":
        return (
            Ranked(_API, *span, "api") if interval.name in CUDAS_OWN else Ranked(_PROFILER, *span, "profiler")
        )
    if interval.kind == "staging":
        return Ranked(_STAGING, *span, "staging")
    if _on_cpu(interval) or interval.kind == "inside":
        return Ranked(_KERNEL, *span, OP + interval.op_type)
    return Ranked(_ORT, *span, "ort")


def _on_cpu(interval: HostSpan) -> bool:
    """Whether it is a step of the model that a CPU computes."""
    return interval.kind == "step" or interval.provider.startswith("CPU")


def divide(claimed: Iterable[Ranked], windows: Sequence[tuple[int, int]]) -> dict[str, Share]:
    """Nanoseconds by key over all the windows (start, end), which do not overlap; "rest" is what nobody
    claimed. The sum is the sum of the windows. An event is counted where it got any time."""
    return _together(_divided(claimed, windows))


def _divided(
    claimed: Iterable[Ranked], windows: Sequence[tuple[int, int]]
) -> Iterator[tuple[Counter[str], Counter[str]]]:
    """Of each window the time and the events of every key."""
    by_start = sorted(claimed, key=lambda claim: claim.start)
    starts = [claim.start for claim in by_start]
    reach = list(itertools.accumulate((claim.end for claim in by_start), max))  # the latest end so far
    for low, high in windows:
        times: Counter[str] = Counter()
        counts: Counter[str] = Counter()
        near = by_start[bisect.bisect_right(reach, low) : bisect.bisect_left(starts, high)]
        waiting = [claim for claim in near if claim.end > low]
        active: list[Ranked] = []
        seen: set[int] = set()
        now, index = low, 0
        while now < high:
            while index < len(waiting) and waiting[index].start <= now:
                heapq.heappush(active, waiting[index])
                index += 1
            while active and active[0].end <= now:
                heapq.heappop(active)
            until = min(high, waiting[index].start if index < len(waiting) else high)
            if active:
                claim = active[0]
                until = min(until, claim.end)
                times[claim.key] += until - now
                if id(claim) not in seen:
                    seen.add(id(claim))
                    counts[claim.key] += claim.counts
            else:
                times["rest"] += until - now
            now = until
        yield times, counts


def _together(divided: Iterable[tuple[Counter[str], Counter[str]]]) -> dict[str, Share]:
    times: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for its, number in divided:
        times.update(its)
        counts.update(number)
    return {key: Share(key=key, time_ns=ns, count=counts[key]) for key, ns in times.items()}


def breakdown(events: Events, window: str, claimed: Sequence[Ranked] | None = None) -> Breakdown | None:
    """One of WINDOWS divided, None where the profile has no such window. claimed: `claims(events)`, where the
    caller has it already."""
    spans = [mark for mark in events.marks if mark.kind == "window" and _belongs(mark, window)]
    if not spans:
        return None
    windows = [(mark.start_ns, mark.end_ns) for mark in spans]
    if window == "all":
        windows = [(min(low for low, _ in windows), max(high for _, high in windows))]
    divided = list(_divided(claims(events) if claimed is None else claimed, windows))
    idle = _moved(events, spans, [times for times, _ in divided]) if window == "pass" else 0
    shares = _together(divided)
    return Breakdown(
        window=window,
        wall_ns=sum(high - low for low, high in windows),
        parts=tuple(sorted((s for s in shares.values() if s.time_ns or s.key == "rest"), key=_order)),
        passes=len(windows),
        idle_ns=idle,
        cpu_ns=_with_a_core(spans) if window == "pass" else None,
    )


def each_pass(events: Events, claimed: Sequence[Ranked]) -> list[Counter[str]]:
    """The time of every key in each profiled pass, apart, as `breakdown` has them together; of "rest" that in
    which the host's thread had no core has a key of its own, IDLE."""
    spans = [mark for mark in events.marks if mark.kind == "window" and _belongs(mark, "pass")]
    divided = _divided(claimed, [(mark.start_ns, mark.end_ns) for mark in spans])
    times = [times for times, _ in divided]
    _moved(events, spans, times, IDLE)
    return times


def _moved(events: Events, passes: Sequence[Mark], times: Sequence[Counter[str]], to: str = "rest") -> int:
    """What the host's thread had no core for goes from "host" to where it belongs; ns of all passes."""
    waits = _waits(events)
    idle = 0
    for mark, its in zip(passes, times, strict=True):
        if moved := min(its["host"], _without_a_core(mark, waits)):
            its["host"] -= moved
            its[to] += moved
            idle += moved
    return idle


def _waits(events: Events) -> list[tuple[int, int]]:
    """When the host's thread may wait without a core: in calls into CUDA, and in steps that other threads
    take part in. In order, without overlap."""
    found: list[tuple[int, int]] = []
    going = [(call.start_ns, call.end_ns) for call in events.calls]
    going += [(i.start_ns, i.end_ns) for i in events.intervals if _on_cpu(i)]
    for low, high in sorted(going):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return found


def _with_a_core(passes: Sequence[Mark]) -> int | None:
    """Nanoseconds of all passes in which their thread had a core; None where one does not tell."""
    known = [mark.cpu_ns for mark in passes if mark.cpu_ns is not None]
    return sum(known) if len(known) == len(passes) else None


def _without_a_core(mark: Mark, waits: Sequence[tuple[int, int]]) -> int:
    """Nanoseconds of a pass in which its thread had no core, beyond all that it may have waited; 0 where its
    CPU clock is not known."""
    if mark.cpu_ns is None:
        return 0
    low, high = mark.start_ns, mark.end_ns
    first = max(0, bisect.bisect_right(waits, (low, low)) - 1)
    last = bisect.bisect_left(waits, (high, high))
    waited = sum(max(0, min(end, high) - max(start, low)) for start, end in waits[first:last])
    return max(0, mark.time_ns - mark.cpu_ns - waited)


def breakdowns(events: Events) -> tuple[Breakdown, ...]:
    """Every window that there is."""
    claimed = claims(events)
    found = (breakdown(events, window, claimed) for window in WINDOWS)
    return tuple(made for made in found if made is not None)


def _belongs(mark: Mark, window: str) -> bool:
    return window == "all" or (mark.name == window and (window != "pass" or mark.run is not None))


def _order(share: Share) -> tuple[int, float]:
    if share.key.startswith(OP):
        return (0 if share.key != OP else 1, -share.time_ns)
    return (2 + OTHERS.index(share.key) if share.key in OTHERS else 2 + len(OTHERS), -share.time_ns)
