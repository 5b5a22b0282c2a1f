"""What holds an operator back, from figures that stand beside the sentence, and what a profile's parts say.

The roofline: an operator can go no faster than the arithmetic or the bytes that it needs at least (counted by
the plan) allow at the rates that this machine was measured to reach. S. Williams, A. Waterman and D.
Patterson, "Roofline", Communications of the ACM 52 (2009).
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace
from typing import Any

from bench import profile_names, profile_parts, profile_tables, units
from bench.ladder_records import Limits
from bench.profile_records import Activity, CaseProfile, Clock, Events, Interval, Operator
from bench.profile_tables import Column, Table

FAR = 0.05  # of the roof: below this share neither limit is what holds an operator back
REST = 0.05  # a larger share that nothing explains is put into words
DEVICE_PARTS = ("h2d", "d2h", "d2d", "memset")


@dataclass(frozen=True)
class Finding:
    """An operator in the profiled passes. time_ns, launches: a pass; launch_ns: the mean time of a call that
    started one of its kernels (None where a graph started them); blocks: of its smallest grid. Rates are of
    the least work and traffic possible; roof: the share of the most that they could be."""

    nodes: tuple[str, ...]
    op_type: str
    names: tuple[str, ...]
    launches: float
    time_ns: float
    flops: int = 0
    nbytes: int = 0
    flops_per_s: float | None = None
    bytes_per_s: float | None = None
    intensity: float | None = None
    roof: float | None = None
    bound: str = ""
    launch_ns: float | None = None
    blocks: int | None = None
    sentence: str = ""

    @property
    def label(self) -> str:
        return self.nodes[0] if len(self.nodes) == 1 else f"{self.nodes[0]} … {self.nodes[-1]}"


def findings(made: CaseProfile, events: Events, limits: Limits | None) -> list[Finding]:
    """One an operator that took time in the profiled passes, the longest first."""
    costs = {operator.nodes: operator for operator in made.operators}
    passes = len({m.run for m in events.marks if m.kind == "window" and m.run is not None}) or 1
    calls = {call.correlation: call for call in events.calls if call.correlation}
    members: dict[tuple[str, ...], list[Activity | Interval]] = {}
    for event in profile_tables.device_events(events):
        if event.run is not None and event.nodes:
            members.setdefault(event.nodes, []).append(event)
    found = []
    for nodes, its in members.items():
        kernels = [event for event in its if isinstance(event, Activity) and event.kind == "kernel"]
        launches = [
            calls[kernel.correlation].time_ns
            for kernel in kernels
            if not kernel.graph and kernel.correlation in calls
        ]
        blocks = [math.prod(kernel.grid) for kernel in kernels if kernel.grid]
        base = Finding(
            nodes=nodes,
            op_type=its[0].op_type,
            names=tuple(dict.fromkeys(_name(event) for event in its)),
            launches=len(its) / passes,
            time_ns=sum(event.time_ns for event in its) / passes,
            launch_ns=statistics.fmean(launches) if launches else None,
            blocks=min(blocks) if blocks else None,
        )
        found.append(_judged(base, costs.get(nodes), limits, made))
    return sorted(found, key=lambda finding: -finding.time_ns)


def _judged(base: Finding, cost: Operator | None, limits: Limits | None, made: CaseProfile) -> Finding:
    if cost is not None and base.time_ns > 0 and cost.nbytes:
        seconds = base.time_ns * 1e-9
        intensity = cost.flops / cost.nbytes
        base = replace(
            base,
            flops=cost.flops,
            nbytes=cost.nbytes,
            intensity=intensity,
            flops_per_s=cost.flops / seconds if cost.flops else None,
            bytes_per_s=cost.nbytes / seconds,
        )
        if limits is not None:
            needs = (cost.nbytes / limits.bytes_per_s, cost.flops / rate_of(limits, made))
            base = replace(
                base, roof=max(needs) / seconds, bound="memory" if needs[0] >= needs[1] else "arithmetic"
            )
    return replace(base, sentence=sentence(base, limits, made))


def rate_of(limits: Limits, made: CaseProfile) -> float:
    """Operations a second of the units that compute in the case's precision, as far as that is known."""
    return limits.rate(made.case.precision) or limits.flops_per_s


def sentence(finding: Finding, limits: Limits | None, made: CaseProfile) -> str:
    """What holds the operator back, in words, from the finding's own figures."""
    said = []
    each = finding.time_ns / finding.launches if finding.launches else 0.0
    if finding.launch_ns is not None and each < finding.launch_ns:
        count = f"{finding.launches:g} kernel{'s' if finding.launches != 1 else ''}"
        said.append(
            f"launch-bound: {count} of {units.duration(each)} on average, shorter than the "
            f"{units.duration(finding.launch_ns)} that the call takes to start one"
        )
    multiprocessors = made.gpu.multiprocessors if made.gpu else 0
    if finding.blocks is not None and finding.blocks < multiprocessors:
        idle = 1 - finding.blocks / multiprocessors
        said.append(
            f"the grid of {finding.blocks} block{'s' if finding.blocks != 1 else ''} is smaller than the "
            f"chip: at least {idle:.0%} of its {multiprocessors} multiprocessors have nothing to do"
        )
    if finding.roof is not None and limits is not None and finding.bytes_per_s is not None:
        if finding.roof > 1:
            said.append(
                f"{units.times(finding.roof)} what device memory alone allows: its data came out of a cache"
                if finding.bound == "memory"
                else f"{units.times(finding.roof)} the measured rate of arithmetic: it is done in fewer or "
                "cheaper operations than were counted"
            )
        elif finding.roof < FAR:
            said.append(
                f"at {finding.roof:.1%} of what its {finding.bound} allows: neither limit holds it back, its "
                "latency and the little there is to do are its time"
            )
        elif finding.bound == "memory":
            share = finding.bytes_per_s / limits.bytes_per_s
            said.append(f"memory-bound at {share:.0%} of the measured copy rate")
        else:
            said.append(f"arithmetic-bound at {finding.roof:.0%} of the measured multiply-add rate")
    return "; ".join(said)


COLUMNS = (
    Column("nodes", "nodes"),
    Column("op_type", "operator"),
    Column("time_ns", "a pass", "ns"),
    Column("launches", "kernels", "count"),
    Column("launch_ns", "launch call", "ns"),
    Column("blocks", "blocks", "count"),
    Column("flops_per_s", "FLOP/s", "rate"),
    Column("bytes_per_s", "B/s", "rate"),
    Column("roof", "of the roof", "share"),
    Column("sentence", "diagnosis"),
)


def table(made: CaseProfile, events: Events, limits: Limits | None) -> Table:
    """The findings of a case."""
    rows: list[dict[str, Any]] = []
    for finding in findings(made, events, limits):
        row = {column.name: getattr(finding, column.name, None) for column in COLUMNS}
        rows.append(row | {"nodes": finding.label, "launches": round(finding.launches)})
    notes: tuple[str, ...] = ()
    if limits is not None:
        notes = (
            f"Measured here: {units.si(limits.flops_per_s, 'FLOP/s')} ({limits.multiplied_by}), "
            f"{units.si(limits.bytes_per_s, 'B/s')} ({limits.copied_by}). Rates count the least work and "
            "traffic that the operator needs.",
        )
    return Table("findings", f"What holds {made.case.words} back", COLUMNS, tuple(rows), notes)


# --------------------------------------------------------------------------------------------- the whole case


def remarks(made: CaseProfile) -> list[str]:
    """What a reader must know of a case, in sentences: what failed, what is missing, what the rest is."""
    said = [made.reason] if made.reason else []
    said += made.notes
    found = made.breakdown()
    if found is not None and found.wall_ns:
        if explained := rest(made):
            said.append(explained)
        if made.pass_ns and made.profiled_ns:
            plain, profiled = statistics.median(made.pass_ns), statistics.median(made.profiled_ns)
            more = profiled - plain
            words = f"{units.duration(abs(more))} {'more' if more >= 0 else 'less'}"
            said.append(
                f"in the median a profiled pass took {units.duration(profiled)} and one without the profiler "
                f"{units.duration(plain)}: {words}, the profiler's"
            )
    said += [clock_words(clock) for clock in made.clocks]
    return said


def clock_words(clock: Clock) -> str:
    """How a foreign clock was brought onto ours."""
    way = "ahead of" if clock.offset_ns >= 0 else "behind"
    words = (
        f"the clock of {clock.name} is {abs(clock.offset_ns):,} ns {way} the profile's, "
        f"± {units.duration(clock.error_ns)}"
    )
    moved = f", and moved by {units.duration(abs(clock.drift_ns))} during the session"
    return words + (moved if clock.drift_ns else "")


def rest(made: CaseProfile) -> str:
    """Why so much of a profiled pass is explained by nothing, from its parts; "" where it is not much."""
    found = made.breakdown()
    if found is None or not found.wall_ns or found.part("rest") <= REST * found.wall:
        return ""
    share = found.part("rest") / found.wall
    ops = [part for part in found.parts if part.key.startswith(profile_parts.OP)]
    count = sum(part.count for part in ops) / found.passes
    computing = sum(part.time_ns for part in ops) / found.passes
    copying = found.part(*DEVICE_PARTS)
    each = units.duration(computing / count) if count else ""
    head = f"{share:.1%} of a profiled pass is explained by nothing that was recorded"
    if not count:
        return f"{head}: no kernel and no step of it was recorded"
    if made.device == "cpu":
        return (
            f"{head}: its {count:g} steps take {each} on average, and what calls them one after the other, "
            "with the clock that is read round each, takes the rest"
        )
    gaps = found.part("launch", "api", "sync", "host")
    if copying > max(computing, gaps):
        return (
            f"{head}: the pass is copy-bound ({copying / found.wall:.0%} of it are copies), and the host "
            "works on what it copies meanwhile"
        )
    if computing < found.wall / 2:
        return (
            f"{head}: the pass is launch-bound, the device computes for {computing / found.wall:.0%} of it "
            f"in {count:g} kernels of {each} on average, and the host's code between its calls is the rest"
        )
    return f"{head}: the device was idle then and the host made no call into CUDA"


def _name(event: Activity | Interval) -> str:
    return profile_names.demangled(event.name) if isinstance(event, Activity) else event.rung or event.name
