"""What holds an operator back, from figures that stand beside the sentence.

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

from bench.profile.events import Activity, Counters, Events, HostSpan
from bench.profile.measure import counters as profile_counters
from bench.profile.records import CaseProfile, Operator
from bench.profile.show import columns as kinds
from bench.profile.show import lines as profile_lines
from bench.profile.show import names as profile_names
from bench.profile.show import sentences as profile_sentences
from bench.profile.show.columns import ProfileColumn, ProfileTable
from bench.results.machine_limits import Beyond, MachineLimits
from bench.show.table import Table
from bench.words import units


@dataclass(frozen=True)
class OpFinding:
    """An operator in the profiled passes. time_ns, launches: a pass; launch_ns: the mean time of a call that
    started one of its kernels (None where a graph started them); blocks: of the smallest grid of the kernel
    that takes most of its time. Rates are of the least work and traffic possible; roof: the share of the most
    that they could be; bound: by "arithmetic", by "memory", or by the "cache" where a pass has room in the
    caches; beyond: whether its bytes came faster than the memory gives them. counters: what the hardware
    counted, of a pass (None: it did not)."""

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
    beyond: Beyond = ""
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


def findings(made: CaseProfile, events: Events, limits: MachineLimits | None) -> list[OpFinding]:
    """One an operator that took time in the profiled passes, the longest first."""
    costs = {operator.nodes: operator for operator in made.operators}
    passes = len({m.run for m in events.marks if m.kind == "window" and m.run is not None}) or 1
    calls = {call.correlation: call for call in events.calls if call.correlation}
    members: dict[tuple[str, ...], list[Activity | HostSpan]] = {}
    for event in profile_lines.device_events(events):
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
        base = OpFinding(
            nodes=nodes,
            op_type=its[0].op_type,
            names=tuple(dict.fromkeys(_name(event) for event in its)),
            launches=_launches(its) / passes,
            time_ns=sum(event.time_ns for event in its) / passes,
            launch_ns=statistics.fmean(launches) if launches else None,
            blocks=_blocks(kernels),
            counters=profile_counters.together(first),
        )
        inside = any(isinstance(event, HostSpan) and event.kind == "inside" for event in its)
        found.append(_judged(base, costs.get(nodes), limits, made, inside))
    return sorted(found, key=lambda finding: -finding.time_ns)


def _launches(its: Sequence[Activity | HostSpan]) -> int:
    """A kernel that does several steps is one for each of them, whatever it does for it."""
    inside = [event for event in its if isinstance(event, HostSpan) and event.kind == "inside"]
    return len(its) - len(inside) + len({(event.run, event.correlation) for event in inside})


def _blocks(kernels: Sequence[Activity]) -> int | None:
    """Of the smallest grid of the kernel that takes most of the time: what only helps it may be small."""
    times: dict[str, int] = {}
    for kernel in kernels:
        times[kernel.name] = times.get(kernel.name, 0) + kernel.time_ns
    main = max(times, key=lambda name: times[name], default="")
    return min((math.prod(k.grid) for k in kernels if k.grid and k.name == main), default=None)


def _judged(
    base: OpFinding, cost: Operator | None, limits: MachineLimits | None, made: CaseProfile, inside: bool
) -> OpFinding:
    """inside: a step's share of the time of a kernel that does several."""
    if cost is not None and base.time_ns > 0:
        seconds = base.time_ns * 1e-9
        base = replace(
            base,
            flops=cost.flops,
            nbytes=cost.nbytes,
            intensity=cost.flops / cost.nbytes if cost.nbytes else None,
            flops_per_s=cost.flops / seconds if cost.flops else None,
            bytes_per_s=cost.nbytes / seconds if cost.nbytes else None,
        )
        if limits is not None and cost.nbytes:
            surely = max(0, cost.nbytes - cost.unread)
            needs = (cost.nbytes / limits.moved_per_s(of_a_pass(made)), cost.flops / rate_of(limits, made))
            moving = "cache" if limits.cached(of_a_pass(made)) else "memory"
            base = replace(
                base,
                roof=max(needs) / seconds,
                bound=moving if needs[0] >= needs[1] else "arithmetic",
                # Of what it writes nothing is known here, which leaves half of its bytes to come at once. A
                # share of a kernel's time need not be when its bytes came.
                beyond="" if inside else limits.beyond(surely, surely // 2, seconds),
            )
    return replace(base, sentence=profile_sentences.sentence(base, made.gpu))


def of_a_pass(made: CaseProfile) -> int:
    """Bytes that lie between one use of a weight and the next: the least of all operators together."""
    return sum(operator.nbytes for operator in made.operators)


def rate_of(limits: MachineLimits, made: CaseProfile) -> float:
    """Operations a second of the units that compute in the case's precision, as far as that is known."""
    return limits.rate(made.case.precision) or limits.flops_per_s


def moved_words(limits: MachineLimits, made: CaseProfile) -> str:
    """At most how fast a pass can move its bytes, and why that is known."""
    rate = units.si(limits.moved_per_s(of_a_pass(made)), "B/s")
    cached = limits.cached(of_a_pass(made))
    return f"{rate} ({'the caches, in which a pass has room' if cached else limits.copied_by})"


NODES = "of"  # of a row of the table the names of its nodes, beside what its columns show
COLUMNS = (
    kinds.words("nodes", "nodes"),
    kinds.words("op_type", "operator"),
    kinds.duration("time_ns", "a pass"),
    kinds.count("launches", "kernels"),
    kinds.duration("launch_ns", "launch call"),
    kinds.count("blocks", "blocks"),
    kinds.rate("flops_per_s", "FLOP/s"),
    kinds.rate("bytes_per_s", "B/s"),
    kinds.share("roof", "of the roof"),
    kinds.words("sentence", "diagnosis"),
)
# What the hardware counted, where it did.
COUNTED = (
    kinds.nbytes("nbytes", "bytes needed"),
    kinds.nbytes("dram_nbytes", "DRAM bytes"),
    kinds.factor("moved", "of needed"),
    kinds.factor("load_sectors", "sectors a load"),
    kinds.factor("scattered", "of side by side"),
    kinds.share("warps_share", "warps"),
)


def table(made: CaseProfile, events: Events, limits: MachineLimits | None) -> ProfileTable:
    """The findings of a case."""
    rows: list[dict[str, Any]] = []
    found = findings(made, events, limits)
    columns: tuple[ProfileColumn, ...] = COLUMNS
    if made.device == "cpu":
        columns = tuple(replace(c, title="steps") if c.name == "launches" else c for c in COLUMNS)
    if any(finding.counters is not None for finding in found):
        columns = (*columns[:-1], *COUNTED, columns[-1])
    for finding in found:
        row = {column.name: getattr(finding, column.name) for column in columns}
        launches = round(finding.launches)
        rows.append(row | {"nodes": finding.label, "launches": launches, NODES: finding.nodes})
    notes: tuple[str, ...] = ()
    if set(COUNTED) <= set(columns):
        notes = (profile_counters.NOTE,)
    if limits is not None:
        notes = (
            *notes,
            f"Measured here: {units.si(limits.flops_per_s, 'FLOP/s')} ({limits.multiplied_by}), "
            f"{moved_words(limits, made)}. Rates count the least work and traffic that the operator needs.",
        )
    return Table(columns, tuple(rows), f"What holds {made.case.words} back", notes, "findings")


def _name(event: Activity | HostSpan) -> str:
    return profile_names.demangled(event.name) if isinstance(event, Activity) else event.rung or event.name
