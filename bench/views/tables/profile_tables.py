"""A profile as tables: what the device did and what was called, in nvprof's form, and the parts of the wall.

A table is data (bench.views.tables.table), whose rows hold plain numbers in base units by the columns' names.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from bench.results import api_calls as profile_api
from bench.results import kernel_names as profile_names
from bench.results import parts as profile_parts
from bench.results.events import Activity, Counters, Events, together
from bench.results.machine_limits import MachineLimits
from bench.results.profile_records import CaseProfile, Profile, ProfileJob
from bench.views.sentences import profile_remarks as remarks
from bench.views.tables import grid
from bench.views.tables import profile_columns as kinds
from bench.views.tables.event_lines import (
    By,
    EventLine,
    device_events,
    in_window,
    inside_words,
    key_of,
    lines,
    most_words,
    overlap_words,
)
from bench.views.tables.profile_columns import ProfileColumn, ProfileTable, named, short_name
from bench.views.tables.table import Output, Table, head

if TYPE_CHECKING:
    from rich.console import RenderableType

LINE_COLUMNS = (
    kinds.share("share", "time %"),
    kinds.duration("time_ns", "time"),
    kinds.count("calls", "calls"),
    kinds.duration("mean_ns", "avg"),
    kinds.duration("min_ns", "min"),
    kinds.duration("median_ns", "med"),
    kinds.duration("max_ns", "max"),
    kinds.duration("std_ns", "std"),
    kinds.words("name", "name"),
)


def activities(
    made: CaseProfile, events: Events, by: By = "name", window: str = "pass", match: str = ""
) -> ProfileTable:
    """What the device did (on a CPU: the model's steps), in nvprof's form. match: only names that hold it."""
    what = "GPU activities" if events.activities else "Steps"
    shown = device_events(in_window(events, window), by)
    found = lines(shown, key_of(by))
    rows = _rows(found, match)
    notes = [
        most_words(found, what if events.activities else "steps"),
        overlap_words(shown, what),
        inside_words(shown),
    ]
    notes.append("" if rows else _nothing(match))
    return Table(
        key=f"activities-{by}",
        title=f"{what} of {made.case.words}, {WINDOW_WORDS[window]}, by {by}",
        columns=LINE_COLUMNS,
        rows=rows,
        notes=tuple(filter(None, notes)),
    )


def calls(made: CaseProfile, events: Events, window: str = "pass", match: str = "") -> ProfileTable:
    """Calls into CUDA, in nvprof's form: those that the program made itself, each variant by its own name."""
    found = lines(
        profile_api.outermost(in_window(events, window).calls), lambda call: profile_api.bare(call.name)
    )
    rows = _rows(found, match)
    return Table(
        key="calls",
        title=f"API calls of {made.case.words}, {WINDOW_WORDS[window]}",
        columns=LINE_COLUMNS,
        rows=rows,
        notes=tuple(filter(None, [most_words(found, "API calls"), "" if rows else _nothing(match)])),
    )


WINDOW_WORDS = {
    "pass": "the profiled passes",
    "create": "creation",
    "close": "closing",
    "all": "from creation to close",
}


def breakdown(profiles: Sequence[CaseProfile], window: str = "pass") -> ProfileTable:
    """One line a case: the wall of a profiled pass in parts that add up to it, and the unprofiled median."""
    shown = [(made, found) for made in profiles if (found := made.breakdown(window)) is not None]
    keys: dict[str, None] = {}
    for _, found in shown:
        keys |= dict.fromkeys(share.key for share in found.parts)
    ordered = [key for key in keys if key.startswith(profile_parts.OP)]
    ordered += [key for key in profile_parts.OTHERS if key in keys]
    rows = []
    for made, found in shown:
        plain = statistics.median(made.pass_ns) if made.pass_ns and window == "pass" else None
        profiled = statistics.median(made.profiled_ns) if made.profiled_ns else found.wall
        rows.append(
            {
                "backend": made.case.backend,
                "batch": made.case.batch,
                "wall_ns": found.wall,
                **{f"{column_name(key)}_ns": found.part(key) for key in ordered},
                "rest_share": found.part("rest") / found.wall if found.wall else 0.0,
                "unprofiled_ns": plain,
                "profiled_ns": profiled if plain is not None else None,
                "profilers_ns": profiled - plain if plain is not None else None,
            }
        )
    columns = (
        kinds.words("backend", "backend"),
        kinds.count("batch", "batch"),
        kinds.duration("wall_ns", "wall", idle=True),
        kinds.duration("profiled_ns", "median", idle=True),
        kinds.duration("unprofiled_ns", "unprofiled", idle=True),
        kinds.duration("profilers_ns", "profiler's", idle=True),
        kinds.share("rest_share", "rest %"),
        *(kinds.duration(f"{column_name(key)}_ns", profile_parts.label(key), idle=True) for key in ordered),
    )
    title = (
        "A profiled pass in parts" if window == "pass" else f"{WINDOW_WORDS[window].capitalize()} in parts"
    )
    notes = (
        "The parts add up to the wall, the mean of the profiled passes. Beside it the medians of profiled "
        "and of unprofiled passes; their difference is the profiler's, and where it is negative, passes "
        "differ by more than the profiler costs.",
    )
    return Table(columns, tuple(rows), title, notes if window == "pass" else (), "breakdown")


def column_name(key: str) -> str:
    """A part's key as the name of a column."""
    if key.startswith(profile_parts.OP):
        return key.removeprefix(profile_parts.OP) or "unattributed"
    return profile_parts.label(key).replace(" ", "_")


def cold(profiles: Sequence[CaseProfile], all_batches: bool = True) -> ProfileTable:
    """The phases of each case's cold start, in order; or of each backend's at its smallest batch alone."""
    if not all_batches:
        least = {made.case.backend: made for made in sorted(profiles, key=lambda m: -m.case.batch)}
        profiles = [made for made in profiles if least[made.case.backend] is made]
    rows = [
        {
            "backend": made.case.backend,
            "batch": made.case.batch,
            "phase": mark.name,
            "start_ns": mark.start_ns,
            "time_ns": mark.time_ns,
            "text": mark.text or None,
        }
        for made in profiles
        for mark in made.cold
    ]
    columns = (
        kinds.words("backend", "backend"),
        kinds.count("batch", "batch"),
        kinds.words("phase", "phase"),
        kinds.duration("start_ns", "from"),
        kinds.duration("time_ns", "time"),
        kinds.words("text", ""),
    )
    return Table(columns, tuple(rows), "Cold start, from the start of the process", key="cold")


def process(profiles: Sequence[CaseProfile]) -> ProfileTable:
    """What each case's process used, as /usr/bin/time tells it."""
    rows = []
    for made in profiles:
        if (used := made.process) is None:
            continue
        rows.append(
            {
                "backend": made.case.backend,
                "batch": made.case.batch,
                "real_s": used.real_s,
                "user_s": used.user_s,
                "system_s": used.system_s,
                "max_rss_nbytes": used.max_rss_nbytes,
                "minor_faults": used.minor_faults,
                "major_faults": used.major_faults,
                "gpu_peak_nbytes": used.gpu_peak_nbytes,
            }
            | {name: getattr(used, name) for name in _AS_TIME}
        )
        rows[-1]["cpu"] = (used.user_s + used.system_s) / used.real_s if used.real_s else None
    told = [name for name in _AS_TIME if any(row[name] is not None for row in rows)]
    columns: tuple[ProfileColumn, ...] = (
        kinds.words("backend", "backend"),
        kinds.count("batch", "batch"),
        kinds.seconds("real_s", "real"),
        kinds.seconds("user_s", "user"),
        kinds.seconds("system_s", "sys"),
        kinds.nbytes("max_rss_nbytes", "peak resident"),
        kinds.count("minor_faults", "minor faults"),
        kinds.count("major_faults", "major faults"),
        kinds.nbytes("gpu_peak_nbytes", "GPU peak"),
    )
    if told:  # records of before have none of it
        columns += (
            kinds.share("cpu", "CPU"),
            *(kinds.count(name, _AS_TIME[name]) for name in told),
        )
    notes = "Of the whole worker: the unprofiled timing and the profiler are in it."
    if any(row["gpu_peak_nbytes"] is not None for row in rows):
        notes += " The GPU's peak is how far its used memory rose."
    return Table(columns, tuple(rows), "Whole program", (notes,), "process")


# What /usr/bin/time -v tells further, and its heading.
_AS_TIME = {
    "inputs": "blocks read",
    "outputs": "blocks written",
    "swaps": "swaps",
    "voluntary_switches": "switches (waited)",
    "involuntary_switches": "switches (taken off)",
}


def _nothing(match: str) -> str:
    """Why a table of lines is empty."""
    return f"No name here holds {match!r}." if match else "Nothing was recorded here."


def _rows(found: Sequence[EventLine], match: str) -> tuple[dict[str, Any], ...]:
    wanted = match.lower()
    return tuple(
        {column.name: getattr(line, column.name) for column in LINE_COLUMNS}
        for line in found
        if wanted in line.name.lower()
    )


COUNTED = (
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
COUNTED_NOTE = (
    "Counted by ncu in one pass of its own, each kernel alone and with empty caches: bytes and accesses are "
    "those of the pass, times are not. A sector is 32 bytes; a load or store is one instruction of a warp: "
    "side by side its 32 threads' floats lie in 4 sectors."
)


def counters(made: CaseProfile, events: Events) -> ProfileTable:
    """A line a kernel's name, of one pass: the longest first; no line where nothing was counted."""
    runs = {a.run for a in events.activities if a.counters is not None and a.run is not None}
    members: dict[str, list[Activity]] = {}
    for activity in events.activities:
        if runs and activity.kind == "kernel" and activity.run == min(runs):
            members.setdefault(profile_names.demangled(activity.name), []).append(activity)
    found = ((name, its, together(its)) for name, its in members.items())
    rows = [_counted(name, its, sums) for name, its, sums in found if sums is not None]
    rows.sort(key=lambda row: -sum(activity.time_ns for activity in members[row["name"]]))
    title = f"Counted by the hardware in one pass of {made.case.words}"
    return Table(COUNTED, tuple(rows), title, (COUNTED_NOTE,), "counters")


def _counted(name: str, its: Sequence[Activity], found: Counters) -> dict[str, Any]:
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


NAME_WIDTH = 60
# Of what holds an operator back, what a narrow terminal does without, so that the sentence can be read.
SPARED = ("blocks", "launch_ns", "launches", "bytes_per_s", "flops_per_s")


def terminal(found: Sequence[ProfileTable], short: bool = True) -> RenderableType:
    """The tables for people. short: long names of kernels without their templates and parameters."""
    text = partial(short_name, most=NAME_WIDTH) if short else str
    return grid.stacked([named(one, text) for one in found], SPARED)


def heads(profiles: Sequence[CaseProfile]) -> RenderableType:
    """What a pass takes, a line a batch size, above the tables."""
    from rich.console import Group
    from rich.text import Text

    found = [Text.assemble((about, "bold"), f": {told}.") for about, told in remarks.headlines(profiles)]
    return Group(*found, *([Text(remarks.HEADLINE, style="dim"), Text()] if found else []))


class ShownTable(msgspec.Struct, frozen=True):
    """A table. rows: by the names of its columns, as CSV has them, and what a row is of."""

    key: str
    title: str
    rows: tuple[dict[str, str | float | int | bool | tuple[str, ...] | None], ...]
    notes: tuple[str, ...]


class ProfileOutput(Output, frozen=True, kw_only=True):
    """`profile --format json`: what profile.json holds, its cases as results.jsonl has them, and the tables
    that were asked for."""

    job: ProfileJob
    limits: dict[str, MachineLimits]
    cases: tuple[CaseProfile, ...]
    tables: tuple[ShownTable, ...]


def output(profile: Profile, profiles: Sequence[CaseProfile], found: Sequence[ProfileTable]) -> ProfileOutput:
    """The profile, its cases, and the tables' rows by their titles."""
    return ProfileOutput(
        **head([profile]),
        job=profile.job,
        limits=profile.limits,
        cases=tuple(profiles),
        tables=tuple(ShownTable(one.key, one.title, tuple(one.rows), tuple(one.notes)) for one in found),
    )
