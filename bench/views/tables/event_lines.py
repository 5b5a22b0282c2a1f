"""Events put together into lines, as nvprof has them: which events count, by what, and what takes most of the
time."""

from __future__ import annotations

import bisect
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bench.results import kernel_names as profile_names
from bench.results.events import Activity, Events, HostSpan, steps_apart
from bench.words import units

By = Literal["name", "operator", "node"]
OVERLAP = 1.05  # times the time in which anything went on: from there on it is told
MOST = 0.9  # the lines that take this share of the time come first, and are told


@dataclass(frozen=True)
class EventLine:
    """Events of one name together; times in ns. std: of the population, as nvprof has it."""

    name: str
    share: float
    time_ns: int
    calls: int
    mean_ns: float
    min_ns: int
    median_ns: float
    max_ns: int
    std_ns: float
    nbytes: int = 0


def lines(events: Iterable[Any], key: Callable[[Any], str]) -> list[EventLine]:
    """One line a key, the longest time first; the shares are of all of them together and add up to 1."""
    found: dict[str, list[Any]] = {}
    for event in events:
        found.setdefault(key(event), []).append(event)
    total = sum(event.time_ns for members in found.values() for event in members)
    made = []
    for name, members in found.items():
        times = [event.time_ns for event in members]
        made.append(
            EventLine(
                name=name,
                share=sum(times) / total if total else 0.0,
                time_ns=sum(times),
                calls=len(times),
                mean_ns=statistics.fmean(times),
                min_ns=min(times),
                median_ns=statistics.median(times),
                max_ns=max(times),
                std_ns=statistics.pstdev(times),
                nbytes=sum(getattr(event, "nbytes", 0) for event in members),
            )
        )
    return sorted(made, key=lambda line: (-line.time_ns, line.name))


def most(found: Sequence[EventLine], share: float = MOST) -> list[EventLine]:
    """The fewest of the lines, from the top, that take at least this share of the time."""
    taken: list[EventLine] = []
    so_far = 0.0
    for line in found:
        if so_far >= share:
            break
        taken.append(line)
        so_far += line.share
    return taken


def most_words(found: Sequence[EventLine], what: str) -> str:
    """ "conv 61.2 %, memcpy HtoD 30.1 %: 91.3 % of the kernels' time"."""
    taken = most(found)
    if not taken:
        return ""
    named = ", ".join(
        f"{profile_names.short(line.name, 40)} {units.percent(line.share, 1)}" for line in taken
    )
    return f"{units.percent(sum(line.share for line in taken), 1)} of the time of {what}: {named}"


def overlap_words(found: Sequence[Activity | HostSpan], what: str) -> str:
    """What a reader of times that add up to more than went by must know; "" where they do not."""
    total = sum(event.time_ns for event in found)
    busy, until = 0, 0
    for event in sorted(found, key=lambda event: event.start_ns):
        busy += max(0, event.end_ns - max(event.start_ns, until))
        until = max(until, event.end_ns)
    if total <= OVERLAP * busy:
        return ""
    early = "; a kernel that begins early waits, in its own time, for those in front of it"
    return (
        f"{what} overlap: their times add up to {units.duration(total)}, in {units.duration(busy)} of which "
        f"at least one of them went on{early if isinstance(found[0], Activity) else ''}."
    )


def inside_words(found: Sequence[Activity | HostSpan]) -> str:
    """What a reader of steps that one kernel does must know; "" where there is none."""
    if not any(isinstance(event, HostSpan) and event.kind == "inside" for event in found):
        return ""
    return (
        "Steps that one kernel does together are told apart by clock stamps, in launches of their own: they "
        "lie in its time from its beginning, and what of it is no step's stands under the kernel's own."
    )


def in_window(events: Events, window: str = "pass") -> Events:
    """The events that began in the profiled passes ("pass"), in "create" or "close"; or all from creation to
    close ("all"). An activity belongs where it was started."""
    if window == "pass":
        spans = [(m.start_ns, m.end_ns) for m in events.marks if m.kind == "window" and m.run is not None]
    else:
        named = [m for m in events.marks if m.kind == "window" and window in ("all", m.name)]
        spans = [(m.start_ns, m.end_ns) for m in named]
        if window == "all" and spans:
            spans = [(min(low for low, _ in spans), max(high for _, high in spans))]
    called = {call.correlation: call.start_ns for call in events.calls if call.correlation}
    spans.sort()  # none overlaps another
    starts = [low for low, _ in spans]

    def inside(at: int) -> bool:
        index = bisect.bisect_right(starts, at) - 1
        return index >= 0 and at < spans[index][1]

    return Events(
        activities=tuple(a for a in events.activities if inside(called.get(a.correlation, a.start_ns))),
        calls=tuple(c for c in events.calls if inside(c.start_ns)),
        intervals=tuple(i for i in events.intervals if inside(i.start_ns)),
        marks=events.marks,
    )


def device_events(events: Events, by: By = "operator") -> tuple[Activity | HostSpan, ...]:
    """What computes and copies: a GPU's activities, or on a CPU the steps of the model. A kernel that does
    several steps is these, but where its name counts."""
    if by != "name" and events.activities:
        return steps_apart(events)
    return events.activities or tuple(i for i in events.intervals if i.kind in ("step", "node"))


def key_of(by: By) -> Callable[[Activity | HostSpan], str]:
    """How events are put together: by the kernel's name, the operator or the nodes."""

    def name(event: Activity | HostSpan) -> str:
        if isinstance(event, HostSpan):
            return f"{event.op_type} {event.rung}".strip() if event.kind == "step" else event.name
        return profile_names.demangled(event.name)

    def operator(event: Activity | HostSpan) -> str:
        if isinstance(event, Activity) and event.kind != "kernel" and not event.nodes:
            return event.name
        return event.op_type or "(no node)"

    def node(event: Activity | HostSpan) -> str:
        if isinstance(event, Activity) and event.kind != "kernel" and not event.nodes:
            return event.name
        return " + ".join(event.nodes) or "(no node)"

    return {"name": name, "operator": operator, "node": node}[by]
