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

from bench.results import kernel_names as profile_names
from bench.results.doubt import IMPOSSIBLE
from bench.results.events import Activity, Counters, Events, HostSpan, together
from bench.results.machine_limits import Beyond, MachineLimits
from bench.results.profile_records import CaseProfile, DeviceFacts, Operator
from bench.views.sentences import limits
from bench.views.tables import event_lines as profile_lines
from bench.views.tables import profile_columns as kinds
from bench.views.tables.profile_columns import ProfileColumn, ProfileTable
from bench.views.tables.profile_tables import COUNTED_NOTE
from bench.views.tables.table import Table
from bench.words import units
from kernels.precision import of_layer


@dataclass(frozen=True)
class OpFinding:
    """An operator in the profiled passes. time_ns, launches: a pass; launch_ns: the mean time of a call that
    started one of its kernels (None where a graph started them); blocks: of the smallest grid of the kernel
    that takes most of its time. Rates are of the least work and traffic possible; roof: the share of the most
    that they could be; bound: by "arithmetic", by "memory", or by the "cache" where a pass has room in the
    caches; beyond: whether its bytes came faster than the memory gives them. counters: what the hardware
    counted, of a pass (None: it did not). precision: what it computes in ("": not known). overhead_ns: of
    each of its kernels, the time beyond what the work needs that no kernel of the pass does without (None:
    not known)."""

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
    precision: str = ""
    overhead_ns: float | None = None
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
    whole = []  # those with kernels of their own
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
            counters=together(first),
        )
        inside = any(isinstance(event, HostSpan) and event.kind == "inside" for event in its)
        found.append(_judged(base, costs.get(nodes), limits, made, inside))
        if not inside:
            whole.append(found[-1])
    least = _overhead(whole)
    found = [replace(each, overhead_ns=least) if each in whole else each for each in found]
    found = [replace(each, sentence=sentence(each, made.gpu)) for each in found]
    return sorted(found, key=lambda finding: -finding.time_ns)


def _overhead(found: Sequence[OpFinding]) -> float | None:
    """What a kernel takes beyond what its work needs under the limits, of the kernels that take the least
    beyond it: to start, to end and to wait, which all of them do. None where too few are known."""
    spare = [
        each.time_ns * (1 - each.roof) / each.launches
        for each in found
        if each.roof is not None and each.roof < 1 and each.launches
    ]
    return min(spare) if len(spare) >= SEVERAL else None


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
            precision=cost.precision,
            intensity=cost.flops / cost.nbytes if cost.nbytes else None,
            flops_per_s=cost.flops / seconds if cost.flops else None,
            bytes_per_s=cost.nbytes / seconds if cost.nbytes else None,
        )
        if limits is not None and cost.nbytes:
            surely = max(0, cost.nbytes - cost.unread)
            rate = rate_of(limits, of_layer(made.case.precision, cost.precision))
            needs = (cost.nbytes / limits.moved_per_s(of_a_pass(made)), cost.flops / rate)
            moving = "cache" if limits.cached(of_a_pass(made)) else "memory"
            base = replace(
                base,
                roof=max(needs) / seconds,
                bound=moving if needs[0] >= needs[1] else "arithmetic",
                # Of what it writes nothing is known here, which leaves half of its bytes to come at once. A
                # share of a kernel's time need not be when its bytes came.
                beyond="" if inside else limits.beyond(surely, surely // 2, seconds),
            )
    return base


def of_a_pass(made: CaseProfile) -> int:
    """Bytes that lie between one use of a weight and the next: the least of all operators together."""
    return sum(operator.nbytes for operator in made.operators)


def rate_of(limits: MachineLimits, precision: str) -> float:
    """Operations a second of the units that compute in this precision, as far as that is known."""
    return limits.rate(precision) or limits.flops_per_s


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
COMPUTED_IN = kinds.words("precision", "in")  # where operators differ in it from what was asked for
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
    if any(finding.precision not in ("", made.case.precision) for finding in found):
        columns = (*columns[:2], COMPUTED_IN, *columns[2:])
    if any(finding.counters is not None for finding in found):
        columns = (*columns[:-1], *COUNTED, columns[-1])
    for finding in found:
        row = {column.name: getattr(finding, column.name) for column in columns}
        launches = round(finding.launches)
        rows.append(row | {"nodes": finding.label, "launches": launches, NODES: finding.nodes})
    notes: tuple[str, ...] = ()
    if set(COUNTED) <= set(columns):
        notes = (COUNTED_NOTE,)
    if limits is not None:
        notes = (
            *notes,
            f"Measured here: {units.si(limits.flops_per_s, 'FLOP/s')} ({limits.multiplied_by}), "
            f"{moved_words(limits, made)}. Rates count the least work and traffic that the operator needs.",
        )
    return Table(columns, tuple(rows), f"What holds {made.case.words} back", notes, "findings")


def _name(event: Activity | HostSpan) -> str:
    return profile_names.demangled(event.name) if isinstance(event, Activity) else event.rung or event.name


SCATTERED, MOVED = 1.25, 1.5  # as many sectors or bytes as needed: above, it is put into words
WIDEST = 16  # sectors of a warp's widest access, 16 bytes a thread, side by side
MOST = 2  # things said of one operator
# What is said of one that is beyond its limit.
_BEYOND = {
    "arithmetic": "the measured rate of arithmetic: it is done in fewer or cheaper operations "
    "than were counted",
    "memory": "what memory alone allows: its data came out of a cache",
    "cache": "the measured rate of the caches: its data lay nearer to the cores",
}
SEVERAL = 3  # operators, from which on what all of them have is called the overhead of a kernel
MOSTLY = 0.5  # of a kernel's time: overhead from which on it is named
IDLE = 0.5  # of a multiprocessor's warps: fewer are told where the roof is far


def sentence(finding: OpFinding, gpu: DeviceFacts | None) -> str:
    """What holds the operator back, in words, from the finding's own figures: what matters most, and at most
    one thing more.

    Only what a figure shows is said: an operator is bound by a limit by the one rule that there is
    (bench.views.sentences.limits), else it is far from every limit, with what else is known of it; what
    counters did not count is not guessed.
    """
    said = []
    each = finding.time_ns / finding.launches if finding.launches else 0.0
    launch_bound = finding.launch_ns is not None and each < finding.launch_ns
    if launch_bound and finding.launch_ns is not None:
        count = f"{finding.launches:g} kernel{'s' if finding.launches != 1 else ''}"
        said.append(
            f"launch-bound: {count} of {units.duration(each)} on average, shorter than the "
            f"{units.duration(finding.launch_ns)} that the call takes to start one"
        )
    idles = finding.overhead_ns is not None and finding.overhead_ns >= MOSTLY * each > 0
    if idles and not launch_bound and finding.overhead_ns is not None:
        said.append(
            f"mostly overhead: {units.duration(finding.overhead_ns)} of its {units.duration(each)} is what "
            "every kernel of this pass takes beyond its work"
        )
    if counted := _counted(finding):
        said.append(", and ".join(counted[:MOST]))
    multiprocessors = gpu.multiprocessors if gpu else 0
    # So short a kernel is small in any case: that its grid is, too, says nothing more.
    if not (launch_bound or idles) and finding.blocks is not None and finding.blocks < multiprocessors:
        idle = 1 - finding.blocks / multiprocessors
        said.append(
            f"the grid of {finding.blocks} block{'s' if finding.blocks != 1 else ''} is smaller than the "
            f"chip: at least {units.percent(idle, 0)} of its {multiprocessors} multiprocessors have nothing "
            "to do"
        )
    if finding.beyond == "impossible":
        return "; ".join([IMPOSSIBLE, *said[: MOST - 1]])
    if finding.roof is None:
        return "; ".join(said[:MOST])
    if finding.roof > limits.OVER:
        return "; ".join([f"{units.times(finding.roof)} {_BEYOND[finding.bound]}", *said[: MOST - 1]])
    if limits.binds(finding.roof):
        return "; ".join([limits.standing(finding.roof, finding.bound), *said[: MOST - 1]])
    return limits.standing(finding.roof, finding.bound, said[:MOST])


def _counted(finding: OpFinding) -> list[str]:
    """What the hardware's counters show, where it is much."""
    said = []
    if finding.scattered is not None and finding.scattered > SCATTERED:
        said.append(
            f"uncoalesced: its accesses to global memory take {units.times(finding.scattered)} the sectors "
            "of 32 bytes that they would if the threads of a warp accessed neighbouring bytes"
        )
    elif finding.load_sectors is not None and finding.load_sectors > WIDEST:
        said.append(
            f"uncoalesced: a load of a warp takes {finding.load_sectors:.1f} sectors of 32 bytes, and never "
            f"more than {WIDEST} where its threads access neighbouring bytes"
        )
    if finding.moved is not None and finding.dram_nbytes is not None and finding.moved > MOVED:
        said.append(
            f"device memory moves {units.times(finding.moved)} the bytes needed "
            f"({units.nbytes(finding.dram_nbytes)} for {units.nbytes(finding.nbytes)})"
        )
    if finding.warps_share is not None and finding.warps_share < IDLE and (finding.roof or 1) < limits.BOUND:
        said.append(
            f"{units.percent(finding.warps_share, 0)} of the warps that a multiprocessor has room for are "
            "there"
        )
    return said
