"""What a GPU's hardware counted, brought to the kernels of a profile by the order of their launches, their
names and grids; and as a table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import msgspec

from bench.profile.events import Activity, Counters, Events
from bench.profile.records import CaseProfile
from bench.views.tables import kernel_names as profile_names
from bench.views.tables import profile_columns as kinds
from bench.views.tables.profile_columns import ProfileTable
from bench.views.tables.table import Table

SHARES = ("compute_share", "warps_share")
TOTALS = tuple(name for name in Counters.__struct_fields__ if name not in SHARES)


@dataclass(frozen=True)
class Counted:
    """A kernel in a pass in which the hardware counted: its name as compiled where the counting program says
    that, its grid (None where it says none)."""

    name: str
    grid: tuple[int, ...] | None
    counters: Counters


def attached(events: Events, counted: Sequence[Counted]) -> tuple[Events, str, str]:
    """The events with counters at the kernels of each profiled pass; how many of a pass have them, in words;
    and a note where not all do. Kernels are matched in the order of their launches; one that the other side
    does not have is left out, and those behind it are found again."""
    called = {call.correlation: call.start_ns for call in events.calls if call.correlation}
    passes: dict[int, list[int]] = {}
    for index, activity in enumerate(events.activities):
        if activity.kind == "kernel" and activity.run is not None:
            passes.setdefault(activity.run, []).append(index)
    theirs = [_key(kernel.name, kernel.grid) for kernel in counted]
    found = list(events.activities)
    shares = []
    for places in passes.values():
        places.sort(key=lambda i: (called.get(found[i].correlation, found[i].start_ns), found[i].start_ns))
        ours = [_key(found[i].name, found[i].grid) for i in places]
        matched = 0
        for block in SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks():
            for step in range(block.size):
                place, kernel = places[block.a + step], counted[block.b + step]
                found[place] = msgspec.structs.replace(found[place], counters=kernel.counters)
            matched += block.size
        shares.append((matched, len(places)))
    matched, of = min(shares, key=lambda share: share[0] / share[1], default=(0, 0))
    words = f"{matched} of the {of} kernels of a pass, {len(counted)} seen by ncu"
    note = (
        f"{of - matched} of the {of} kernels of a pass have no counters: with `ncu` watching, others ran"
        if matched < of
        else ""
    )
    return msgspec.structs.replace(events, activities=tuple(found)), words, note


def _key(name: str, grid: tuple[int, ...] | None) -> tuple[str, tuple[int, ...] | None]:
    """What both sides say of a kernel alike: ncu and CUPTI may write templates in ways of their own."""
    return profile_names.short(name), tuple(grid) if grid else None


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


COLUMNS = (
    kinds.count("launches", "kernels"),
    kinds.nbytes("dram_read_nbytes", "DRAM read"),
    kinds.nbytes("dram_write_nbytes", "DRAM written"),
    kinds.nbytes("l2_nbytes", "through L2"),
    kinds.factor("load_sectors", "sectors a load"),
    kinds.factor("store_sectors", "sectors a store"),
    kinds.factor("scattered", "of side by side"),
    kinds.share("compute_share", "SM busy"),
    kinds.share("warps_share", "warps"),
    kinds.words("name", "name"),
)
NOTE = (
    "Counted by ncu in one pass of its own, each kernel alone and with empty caches: bytes and accesses are "
    "those of the pass, times are not. A sector is 32 bytes; a load or store is one instruction of a warp: "
    "side by side its 32 threads' floats lie in 4 sectors."
)


def table(made: CaseProfile, events: Events) -> ProfileTable:
    """A line a kernel's name, of one pass: the longest first; no line where nothing was counted."""
    runs = {a.run for a in events.activities if a.counters is not None and a.run is not None}
    members: dict[str, list[Activity]] = {}
    for activity in events.activities:
        if runs and activity.kind == "kernel" and activity.run == min(runs):
            members.setdefault(profile_names.demangled(activity.name), []).append(activity)
    rows = [_row(name, its, found) for name, its in members.items() if (found := together(its)) is not None]
    rows.sort(key=lambda row: -sum(activity.time_ns for activity in members[row["name"]]))
    title = f"Counted by the hardware in one pass of {made.case.words}"
    return Table(COLUMNS, tuple(rows), title, (NOTE,), "counters")


def _row(name: str, its: Sequence[Activity], found: Counters) -> dict[str, Any]:
    return {
        "name": name,
        "launches": len(its),
        "dram_read_nbytes": found.dram_read_nbytes,
        "dram_write_nbytes": found.dram_write_nbytes,
        "l2_nbytes": found.l2_nbytes,
        "load_sectors": found.sectors_a_load,
        "store_sectors": found.sectors_a_store,
        "scattered": found.scattered,
        "compute_share": found.compute_share,
        "warps_share": found.warps_share,
    }
