"""What holds an operator back, from figures that stand beside the sentence, and what a profile's parts say.

The roofline: an operator can go no faster than the arithmetic or the bytes that it needs at least (counted by
the plan) allow at the rates that this machine was measured to reach. S. Williams, A. Waterman and D.
Patterson, "Roofline", Communications of the ACM 52 (2009).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from bench import units
from bench.ladder.records import Limits
from bench.profile import counters as profile_counters
from bench.profile import names as profile_names
from bench.profile import parts as profile_parts
from bench.profile import sentences as profile_sentences
from bench.profile import tables as profile_tables
from bench.profile.records import Activity, CaseProfile, Clock, Counters, Events, Interval, Operator
from bench.profile.tables import Column, Table

REST = 0.05  # of a pass: a larger share of what nothing explains, or of the host's, is put into words
DEVICE_PARTS = ("h2d", "d2h", "d2d", "memset")


@dataclass(frozen=True)
class Finding:
    """An operator in the profiled passes. time_ns, launches: a pass; launch_ns: the mean time of a call that
    started one of its kernels (None where a graph started them); blocks: of the smallest grid of the kernel
    that takes most of its time. Rates are of the least work and traffic possible; roof: the share of the most
    that they could be. counters: what the hardware counted, of a pass (None: it did not)."""

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
    counters: Counters | None = None
    sentence: str = ""

    @property
    def dram_nbytes(self) -> float | None:
        """Bytes that went to and from device memory, as counted."""
        return self.counters.dram_nbytes if self.counters else None

    @property
    def moved(self) -> float | None:
        """Those bytes for each that it needs at least."""
        return self.dram_nbytes / self.nbytes if self.dram_nbytes is not None and self.nbytes else None

    @property
    def load_sectors(self) -> float | None:
        """Pieces of 32 bytes that one load of a warp takes."""
        return self.counters.sectors_a_load if self.counters else None

    @property
    def scattered(self) -> float | None:
        """Pieces of 32 bytes for each that accesses side by side would take."""
        return self.counters.scattered if self.counters else None

    @property
    def warps_share(self) -> float | None:
        """Of the warps that a multiprocessor has room for, those that were there."""
        return self.counters.warps_share if self.counters else None

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
        first = [kernel for kernel in kernels if kernel.run == min(k.run or 0 for k in kernels)]
        base = Finding(
            nodes=nodes,
            op_type=its[0].op_type,
            names=tuple(dict.fromkeys(_name(event) for event in its)),
            launches=len(its) / passes,
            time_ns=sum(event.time_ns for event in its) / passes,
            launch_ns=statistics.fmean(launches) if launches else None,
            blocks=_blocks(kernels),
            counters=profile_counters.together(first),
        )
        found.append(_judged(base, costs.get(nodes), limits, made))
    return sorted(found, key=lambda finding: -finding.time_ns)


def _blocks(kernels: Sequence[Activity]) -> int | None:
    """Of the smallest grid of the kernel that takes most of the time: what only helps it may be small."""
    times: dict[str, int] = {}
    for kernel in kernels:
        times[kernel.name] = times.get(kernel.name, 0) + kernel.time_ns
    main = max(times, key=lambda name: times[name], default="")
    return min((math.prod(k.grid) for k in kernels if k.grid and k.name == main), default=None)


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
    return replace(base, sentence=profile_sentences.sentence(base, made.gpu))


def rate_of(limits: Limits, made: CaseProfile) -> float:
    """Operations a second of the units that compute in the case's precision, as far as that is known."""
    return limits.rate(made.case.precision) or limits.flops_per_s


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
# What the hardware counted, where it did.
COUNTED = (
    Column("nbytes", "bytes needed", "nbytes"),
    Column("dram_nbytes", "DRAM bytes", "nbytes"),
    Column("moved", "of needed", "factor"),
    Column("load_sectors", "sectors a load", "factor"),
    Column("scattered", "of side by side", "factor"),
    Column("warps_share", "warps", "share"),
)


def table(made: CaseProfile, events: Events, limits: Limits | None) -> Table:
    """The findings of a case."""
    rows: list[dict[str, Any]] = []
    found = findings(made, events, limits)
    columns: tuple[Column, ...] = COLUMNS
    if any(finding.counters is not None for finding in found):
        columns = (*COLUMNS[:-1], *COUNTED, COLUMNS[-1])
    for finding in found:
        row = {column.name: getattr(finding, column.name) for column in columns}
        rows.append(row | {"nodes": finding.label, "launches": round(finding.launches)})
    notes: tuple[str, ...] = ()
    if columns != COLUMNS:
        notes = (profile_counters.NOTE,)
    if limits is not None:
        notes = (
            *notes,
            f"Measured here: {units.si(limits.flops_per_s, 'FLOP/s')} ({limits.multiplied_by}), "
            f"{units.si(limits.bytes_per_s, 'B/s')} ({limits.copied_by}). Rates count the least work and "
            "traffic that the operator needs.",
        )
    return Table("findings", f"What holds {made.case.words} back", columns, tuple(rows), notes)


# --------------------------------------------------------------------------------------------- the whole case


def remarks(made: CaseProfile) -> list[str]:
    """What a reader must know of a case, in sentences: what failed, what is missing, what the rest is."""
    said = [made.reason] if made.reason else []
    said += made.notes
    found = made.breakdown()
    if found is not None and found.wall_ns:
        said += waits(made)
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
        f"the clock of {clock.name} is {_seconds(abs(clock.offset_ns))} s {way} the profile's, "
        f"± {units.duration(clock.error_ns)}"
    )
    moved = f", and moved by {units.duration(abs(clock.drift_ns))} during the session"
    return words + (moved if clock.drift_ns else "")


def _seconds(ns: int) -> str:
    """To the nanosecond, which a float does not hold of a clock that counts from 1970."""
    return f"{ns // 10**9:,}.{ns % 10**9:09d}"


def waits(made: CaseProfile) -> list[str]:
    """What a profiled pass waits for rather than for the device's computing, and what of it is not explained:
    a sentence each, from its parts, where they are much."""
    found = made.breakdown()
    if found is None or not found.wall_ns:
        return []
    ops = [part for part in found.parts if part.key.startswith(profile_parts.OP)]
    count = sum(part.count for part in ops) / found.passes
    computing = sum(part.time_ns for part in ops) / found.passes
    share = {key: found.part(key) / found.wall for key in ("host", "rest")}
    each = units.duration(computing / count) if count else ""
    said = []
    if made.device == "cpu":
        if count and share["host"] > REST:
            said.append(
                f"{share['host']:.1%} of a profiled pass is the host's own code round its {count:g} steps of "
                f"{each} on average: what calls them one after the other, with the clock that is read round "
                "each, and copies"
            )
    else:
        copying, waiting = found.part(*DEVICE_PARTS), found.part("launch", "api", "sync", "host", "rest")
        if copying > max(computing, waiting):
            said.append(f"a profiled pass is copy-bound: {copying / found.wall:.0%} of it are copies")
        elif count and waiting > max(computing, copying):
            said.append(
                f"a profiled pass is launch-bound: the device computes {computing / found.wall:.0%} of it, "
                f"in {count:g} kernels of {each} on average, and {share['host']:.0%} of it is the host's own "
                "code between calls into CUDA"
            )
    if share["rest"] > REST:
        head = f"{share['rest']:.1%} of a profiled pass is explained by nothing that was recorded"
        said.append(head if count else f"{head}: no kernel and no step of it was recorded")
    return said


def _name(event: Activity | Interval) -> str:
    return profile_names.demangled(event.name) if isinstance(event, Activity) else event.rung or event.name
