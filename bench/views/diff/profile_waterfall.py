"""Where the time between two profiles of a case went: from the wall of A's profiled pass to that of B's, in
steps that add up to the change.

Both are divided as every profiled pass is (bench.results.parts), kept apart by ONNX node, and for calls by
their name; what belongs to the same nodes in both is one step, also where one of them fuses what the other
does one after the other. Of two reasons it is known what they ask of every step, and what they do is a step
of its own:

- another batch size: what computes and copies has as much more or less to do. What a step takes beyond that
  stays with it: it makes better or worse use of the machine.
- another clock of the device: kernels take as much longer as it is slower, at most; one that waits for memory
  does not change with it, so that it is given no more than the kernel did change by.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from bench.results import api_calls as profile_api
from bench.results import parts
from bench.results.events import Activity, ApiCall, Events, HostSpan
from bench.results.kernel_names import short
from bench.results.profile_records import CaseProfile
from bench.results.stats import SAME_BOUND
from bench.results.stats.student import student
from bench.views.diff.records import Step, Waterfall
from bench.views.tables.event_lines import device_events, in_window
from bench.words import units

_NODES = "\x1e"  # between the nodes of a key
WORK = (parts.OP, "h2d", "d2h", "d2d", "staging")  # parts that have as much to do as there are images
TELL_TICK = 8  # spans
NAME = 36  # characters of a kernel's name
_CALLED = ("sync", "alloc", "api")


@dataclass
class _Case:
    """A profiled case, divided pass by pass. times: by key; counts: of events a pass, by key."""

    made: CaseProfile
    events: Events
    times: list[Counter[str]]
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def middle(self) -> list[Counter[str]]:
        """The passes that the figures are of: without the quickest and the slowest quarter."""
        ordered = sorted(self.times, key=lambda its: sum(its.values()))
        return ordered[len(ordered) // 4 : len(ordered) - len(ordered) // 4]

    @property
    def wall(self) -> float:
        return statistics.fmean(sum(its.values()) for its in self.middle)

    def mean(self, keys: Iterable[str]) -> float:
        keys = list(keys)
        return statistics.fmean(sum(its[key] for key in keys) for its in self.middle)

    def half(self, keys: Iterable[str]) -> float:
        """How far the mean of these keys may be off, at 95 %: by what all passes differ by, by what those
        differ by that it is of (they were chosen by their walls, not by these keys), or by what the clock
        can tell apart, the largest of the three."""
        keys = list(keys)
        every, kept = (
            [float(sum(its[key] for key in keys)) for its in of] for of in (self.times, self.middle)
        )
        return max(
            _trimmed_half(every), _half(kept), self._tick_ns if self._nodes.intersection(keys) else 0.0
        )

    @functools.cached_property
    def _nodes(self) -> set[str]:
        """Keys whose time a backend's own profile told."""
        seen = in_window(self.events)
        return {_key(i) for i in seen.intervals if i.kind == "node"} - {_key(a) for a in seen.activities}

    @functools.cached_property
    def _tick_ns(self) -> float:
        """What that profile's clock counts in (ONNX Runtime's: 1 µs), by what all of its lengths are
        multiples of; 0 where there are too few to tell."""
        lengths = [round(span.time_ns) for span in in_window(self.events).intervals if span.kind == "node"]
        return float(math.gcd(*lengths)) if len(lengths) >= TELL_TICK else 0.0

    def count(self, keys: Iterable[str]) -> float:
        return sum(self.counts[key] for key in keys) / max(1, len(self.times))


def between(a: CaseProfile, a_events: Events, b: CaseProfile, b_events: Events) -> Waterfall | None:
    """None where one of them has no profiled pass."""
    one, other = _divided(a, a_events), _divided(b, b_events)
    if not one.times or not other.times:
        return None
    batch, clock = b.case.batch / a.case.batch, _clock(a, b)
    steps: list[Step] = []
    by_batch = by_clock = 0.0
    for part, label, ours, theirs in _aligned(one, other):
        from_ns, to_ns = one.mean(ours), other.mean(theirs)
        change = to_ns - from_ns
        scaled = batch if part.startswith(WORK) else 1.0
        asked = from_ns * (scaled - 1)
        by_batch += asked
        change -= asked
        if part.startswith(parts.OP) and clock != 1.0:
            most = from_ns * scaled * (clock - 1)
            its = min(max(change, min(most, 0.0)), max(most, 0.0))
            by_clock += its
            change -= its
        if change or from_ns != to_ns:
            steps.append(
                Step(
                    what="kernel" if part.startswith(parts.OP) else part,
                    label=label,
                    change_ns=change,
                    note=_note(part, one, ours, other, theirs),
                    a_ns=from_ns,
                    b_ns=to_ns,
                    margin_ns=_margin(one, ours, other, theirs, scaled),
                )
            )
    if by_batch:
        words = f"batch {a.case.batch:,} → {b.case.batch:,}"
        steps.append(Step("batch", words, by_batch, f"{units.times(batch)} the images"))
    if by_clock:
        steps.append(Step("clock", f"{'lower' if clock > 1 else 'higher'} clock", by_clock, _clocks(a, b)))
    steps.sort(key=lambda step: (not step.named, -abs(step.change_ns)))
    return Waterfall(
        key=b.case.key,
        words=b.case.words if a.case == b.case else f"{a.case.words} → {b.case.words}",
        a_ns=one.wall,
        b_ns=other.wall,
        steps=tuple(step for step in steps if step.change_ns),
        notes=_notes(one, other),
    )


def _divided(made: CaseProfile, events: Events) -> _Case:
    case = _Case(made, events, parts.each_pass(events, parts.claims(events, _finer)))
    seen = in_window(events)
    found: list[parts.Event] = [*seen.activities, *profile_api.outermost(seen.calls)]
    found += [interval for interval in seen.intervals if interval.kind != "inside"]
    for event in found:
        case.counts[_key(event)] += 1
    return case


def _finer(event: parts.Event) -> str:
    """What an event's time is kept apart by: its nodes, a kernel that has none by its name; a call's name."""
    if isinstance(event, ApiCall):
        return profile_api.bare(event.name)
    if isinstance(event, Activity) and event.kind != "kernel":
        return ""
    if isinstance(event, HostSpan) and not parts.part_of(event).startswith(parts.OP):
        return ""
    return _NODES.join(event.nodes) or f"{_NODES}{short(event.name)}"


def _key(event: parts.Event) -> str:
    """The key under which `parts.claims` keeps an event's time."""
    part, more = parts.part_of(event), _finer(event)
    return part if part == "launch" or not more else f"{part}{parts.APART}{more}"


# --------------------------------------------------------------------------------------------------- aligned


def _aligned(one: _Case, other: _Case) -> list[tuple[str, str, list[str], list[str]]]:
    """(part, label, A's keys, B's keys) of every step: keys that share a node belong together, whichever of
    the two has it; other keys are those of the same name."""
    keys = [sorted({key for its in case.times for key in its}) for case in (one, other)]
    leader: dict[str, str] = {}

    def find(node: str) -> str:
        while leader.setdefault(node, node) != node:
            node = leader[node]
        return node

    order: dict[str, None] = {}
    for each in keys:
        for key in each:
            nodes = _nodes(key)
            order |= dict.fromkeys(nodes)
            for node in nodes[1:]:
                leader[find(node)] = find(nodes[0])
    found: dict[str, tuple[list[str], list[str]]] = {}
    for which, each in enumerate(keys):
        for key in each:
            nodes = _nodes(key)
            name = f"{parts.OP}{parts.APART}{find(nodes[0])}" if nodes else _same(key)
            found.setdefault(name, ([], []))[which].append(key)
    return [
        (name.partition(parts.APART)[0], _label(ours + theirs), ours, theirs)
        for name, (ours, theirs) in found.items()
    ]


def _same(key: str) -> str:
    """Under which name a key without nodes is looked for in the other, a kernel's whatever its operator."""
    part, apart, more = key.partition(parts.APART)
    return f"{parts.OP}{apart}{more}" if part.startswith(parts.OP) else key


def _nodes(key: str) -> list[str]:
    part, _, more = key.partition(parts.APART)
    if not part.startswith(parts.OP) or not more or more.startswith(_NODES):
        return []
    return more.split(_NODES)


def _label(keys: Sequence[str]) -> str:
    """A step's nodes, the first and the last of several that ran as one; a call; a part."""
    nodes = [node for key in dict.fromkeys(keys) for node in _nodes(key)]
    if nodes:
        nodes = list(dict.fromkeys(nodes))
        return nodes[0] if len(nodes) == 1 else f"{nodes[0]} … {nodes[-1]}"
    part, _, more = keys[0].partition(parts.APART)
    if part in _CALLED and more:
        return f"{parts.label(part)}: {more}" if part != "api" else more
    return more.removeprefix(_NODES) or parts.label(part)


# ----------------------------------------------------------------------------------------------- what changed


def _note(part: str, one: _Case, ours: Sequence[str], other: _Case, theirs: Sequence[str]) -> str:
    if part.startswith(parts.OP):
        return _kernels(one, ours, other, theirs)
    if part in _CALLED:
        return _counted(one.count(ours), other.count(theirs), "a pass")
    if part in ("h2d", "d2h", "d2d", "memset", "staging"):
        told = [_counted(one.count(ours), other.count(theirs), "a pass")]
        sizes = [_nbytes(case, part) for case in (one, other)]
        if sizes[0] != sizes[1]:
            told.append(f"{units.nbytes(sizes[0])} → {units.nbytes(sizes[1])}")
        memories = [_memory(case, part) for case in (one, other)]
        if memories[0] != memories[1] and all(memories):
            told.append(f"{memories[0]} → {memories[1]}")
        return ", ".join(filter(None, told))
    if part == "launch":
        graphs = [
            case.made.facts.get("profiled_cuda_graph", case.made.facts.get("cuda_graph", ""))
            for case in (one, other)
        ]
        starts = [_launches(case) for case in (one, other)]
        told = [_counted(starts[0], starts[1], "launches a pass")]
        if graphs[0] != graphs[1]:
            told.append(f"CUDA graph: {graphs[0] or 'not said'} → {graphs[1] or 'not said'}")
        return ", ".join(filter(None, told))
    return ""


def _kernels(one: _Case, ours: Sequence[str], other: _Case, theirs: Sequence[str]) -> str:
    """The rung of each, where they differ, else the kernels' names; and how many where that changed."""
    told = []
    rungs = [_rungs(case, keys) for case, keys in ((one, ours), (other, theirs))]
    if rungs[0] != rungs[1] and (rungs[0] or rungs[1]):
        told.append(f"rung {', '.join(rungs[0]) or 'none'} → {', '.join(rungs[1]) or 'none'}")
    else:
        names = [_names(case, keys) for case, keys in ((one, ours), (other, theirs))]
        if names[0] != names[1] and names[0] and names[1]:
            told.append(f"{', '.join(names[0])} → {', '.join(names[1])}")
    told.append(_counted(one.count(ours), other.count(theirs), "kernels a pass"))
    return ", ".join(filter(None, told))


def _rungs(case: _Case, keys: Sequence[str]) -> list[str]:
    """Of the operators that these keys compute, by the plan; on a CPU by what ran."""
    nodes = {node for key in keys for node in _nodes(key)}
    ran = {
        i.rung for i in case.events.intervals if i.kind == "step" and i.rung and nodes.intersection(i.nodes)
    }
    planned = {op.rung for op in case.made.operators if op.rung and nodes.intersection(op.nodes)}
    return sorted(ran or planned)


def _names(case: _Case, keys: Sequence[str]) -> list[str]:
    wanted = set(keys)
    found = (event for event in device_events(in_window(case.events)) if _key(event) in wanted)
    return sorted({short(event.name, NAME) for event in found if isinstance(event, Activity)})


def _copies(case: _Case, part: str) -> list[Activity | HostSpan]:
    seen = in_window(case.events)
    if part == "staging":
        return [interval for interval in seen.intervals if interval.kind == "staging"]
    return [a for a in seen.activities if a.kind != "kernel" and parts.activity_key(a) == part]


def _nbytes(case: _Case, part: str) -> float:
    return sum(event.nbytes for event in _copies(case, part)) / max(1, len(case.times))


def _memory(case: _Case, part: str) -> str:
    """Between what kinds of memory."""
    found = {
        f"{event.from_memory} to {event.to_memory}"
        for event in _copies(case, part)
        if isinstance(event, Activity) and event.from_memory and event.to_memory
    }
    return ", ".join(sorted(found))


def _launches(case: _Case) -> float:
    seen = profile_api.outermost(in_window(case.events).calls)
    return sum(profile_api.purpose(call.name) == "launch" for call in seen) / max(1, len(case.times))


def _counted(before: float, after: float, what: str) -> str:
    return "" if before == after else f"{before:.3g} → {after:.3g} {what}"


# ------------------------------------------------------------------------------------------ clocks, margins


def _clock(a: CaseProfile, b: CaseProfile) -> float:
    """How many times as long a kernel may take by the clock alone; 1 where it is the same or not known."""
    read = [made.telemetry.sm_clock_mhz for made in (a, b)]
    if not all(read):
        return 1.0
    ratio = statistics.median(read[0]) / statistics.median(read[1])
    return ratio if abs(ratio - 1) > SAME_BOUND else 1.0


def _clocks(a: CaseProfile, b: CaseProfile) -> str:
    one, other = (statistics.median(made.telemetry.sm_clock_mhz) for made in (a, b))
    return f"{one:,.0f} → {other:,.0f} MHz"


def _margin(
    one: _Case, ours: Sequence[str], other: _Case, theirs: Sequence[str], scaled: float
) -> float | None:
    """How far the change of a step may be off; None of a single pass."""
    if min(len(one.times), len(other.times)) < 2:
        return None
    return math.hypot(scaled * one.half(ours), other.half(theirs))


def _half(values: Sequence[float]) -> float:
    """Of a mean; 0 of one value, which does not tell."""
    if len(values) < 2:
        return 0.0
    return student(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))


def _trimmed_half(values: Sequence[float]) -> float:
    """Of a mean without the outer quarters, by the variance of all with these moved to the ends of what is
    kept (J. W. Tukey and D. H. McLaughlin, "Less vulnerable confidence and significance procedures for
    location based on a single sample", Sankhyā A 25, 1963)."""
    count, cut = len(values), len(values) // 4
    ordered = sorted(values)
    low, high = ordered[cut], ordered[count - cut - 1]
    spread = statistics.stdev(min(max(value, low), high) for value in values)
    return student(count - 2 * cut - 1) * spread / ((1 - 2 * cut / count) * math.sqrt(count))


def _notes(one: _Case, other: _Case) -> tuple[str, ...]:
    told = []
    plain = [statistics.median(case.made.pass_ns) if case.made.pass_ns else None for case in (one, other)]
    if plain[0] and plain[1]:
        told.append(
            f"Without a profiler a pass takes {units.duration(plain[0])} in A and "
            f"{units.duration(plain[1])} in B."
        )
    counts = [len(case.times) for case in (one, other)]
    told.append(
        f"Of {_of(counts[0])} in A and {_of(counts[1])} in B, the mean without the quickest and the slowest "
        "quarter; ± is what passes differ by, at 95 %."
    )
    return tuple(told)


def _of(count: int) -> str:
    return "1 profiled pass" if count == 1 else f"{count} profiled passes"
