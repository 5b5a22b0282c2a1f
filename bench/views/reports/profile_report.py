"""A report of saved profiles: every figure in it is derived from their records, and none is typed.

A profile that was taken for the course report's table (one pass, nothing warming up) is shown as that table;
any other with its parts, its cold start, what each process used, and case by case what took the time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from bench.results.event_files import events_in
from bench.results.events import Events
from bench.results.kernel_names import short
from bench.results.parts import label
from bench.results.profile_records import CaseProfile, Profile, ProfileJob
from bench.results.rows import title
from bench.run.kinds.profile import KIND as PROFILE
from bench.run.kinds.profile import ProfileFolder
from bench.views.charts import profile_charts
from bench.views.drawing import draw_timeline
from bench.views.drawing.looks import Look
from bench.views.reports import report_form
from bench.views.reports.report_form import Picture, ReportForm
from bench.views.sentences import profile_findings, profile_remarks
from bench.views.sentences.footer import devices
from bench.views.tables import course_report as profile_course
from bench.views.tables import event_lines as profile_lines
from bench.views.tables import profile_tables
from bench.views.tables.profile_columns import ProfileTable, named
from bench.words import units
from bench.words.called import CALLED
from kernels.errors import InputError

TEMPLATE = "profile"
MAX_CHART_NBYTES = 60_000
SHOWN = 12  # lines of a table of kernels or calls, where 90 % of the time takes fewer


@dataclass(frozen=True)
class ProfileCasePart:
    """One case. summary: its times in a sentence; remarks: sentences."""

    title: str
    summary: str
    tables: tuple[ProfileTable, ...]
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class ProfileSection:
    """One profile. headlines: for each batch size what it is of and what a pass takes; tables: of all its
    cases; failed: cases and reasons, and in a course report's table what passes wait for; devices: "cpu",
    "cuda"."""

    title: str
    command: str
    taken: str
    tables: tuple[ProfileTable, ...]
    charts: tuple[Picture, ...]
    parts: tuple[ProfileCasePart, ...]
    failed: tuple[str, ...]
    headlines: tuple[tuple[str, str], ...]
    devices: tuple[str, ...] = ()


def write(paths: Sequence[Path], out: Path, charts: Path | None = None, heading: str = "") -> list[Path]:
    """Write the report of the profiles in `paths` to `out`: HTML, or Markdown with its charts, PNG, in
    `charts` (without it, a folder beside the report, named after it). Returns what was written, the report
    first.

    Raises InputError where a profile cannot be read or holds nothing, and where a file cannot be written.
    """
    folders = [PROFILE.open(path) for path in paths]
    form = report_form.form_of(out, charts, MAX_CHART_NBYTES)
    sections = []
    for folder in folders:
        measurements = folder.measurements()
        if not measurements:
            raise InputError(f"there is no case in {folder.path}; `{CALLED} profile` takes them")
        charted = _draw_parts if is_table(folder.header) else _draw
        sections.append(section(folder, measurements, charted(folder, measurements, form)))
    return form.write(TEMPLATE, context([folder.header for folder in folders], sections, heading))


def is_table(profile: Profile) -> bool:
    """Whether a profile was taken for the course report's table."""
    return profile.job.warm_up == 0


def section(
    folder: ProfileFolder, measurements: Sequence[CaseProfile], charts: tuple[Picture, ...]
) -> ProfileSection:
    """One profile as the report shows it."""
    profile = folder.header
    fine = [made for made in measurements if made.disposition == "ok"]
    events = {made.case.key: events_in(folder.path, made) for made in fine}
    name = _subject(profile)
    found: list[ProfileTable] = []
    parts: tuple[ProfileCasePart, ...] = ()
    if is_table(profile):
        rows = [profile_course.row(made, events[made.case.key]) for made in fine]
        found.append(profile_course.table(rows, profile.job.runs, profile.job.copies))
        heading = f"{name}: time by batch size, from creation to close"
    else:
        parts = tuple(part(profile, made, events[made.case.key]) for made in fine)
        heading = f"{name}: where the time goes"
    found.append(profile_tables.breakdown(fine))
    found += [] if is_table(profile) else [profile_tables.cold(fine, all_batches=False)]
    found.append(profile_tables.process(fine))
    return ProfileSection(
        title=heading,
        command=profile.command,
        taken=taken(profile, fine),
        tables=tuple(found),
        charts=charts,
        parts=parts,
        devices=tuple({made.device: None for made in fine}),
        failed=tuple(
            f"{made.case.words}: {made.reason or made.disposition}"
            for made in measurements
            if made.disposition != "ok"
        )
        + tuple(
            f"{made.case.words}: {words}"
            for made in (fine if is_table(profile) else ())  # else each is told with its case
            for words in profile_remarks.waits(made)
        ),
        headlines=tuple(profile_remarks.headlines(fine)),
    )


def part(profile: Profile, made: CaseProfile, events: Events) -> ProfileCasePart:
    """One case: kernels by name, by node with a diagnosis, and calls."""
    limits = profile.limits.get(made.device)
    found = [
        _first(profile_tables.activities(made, events)),
        profile_findings.table(made, events, limits),
    ]
    if (counted := profile_tables.counters(made, events)).rows:
        found.append(counted)
    if events.calls:
        found += [
            _first(profile_tables.calls(made, events)),
            _first(profile_tables.calls(made, events, "all")),
        ]
    return ProfileCasePart(
        title=made.case.words,
        summary=summary(made),
        tables=tuple(named(table, _short) for table in found),
        remarks=tuple(profile_remarks.remarks(made)),
    )


def summary(made: CaseProfile) -> str:
    """A case's parts in a sentence."""
    found = made.breakdown()
    if found is None or not found.wall_ns:
        return ""
    largest = sorted(found.parts, key=lambda share: -share.time_ns)[:3]
    named = ", ".join(
        f"{label(share.key)} {units.percent(share.time_ns / found.wall_ns, 1)}" for share in largest
    )
    told = f"A profiled pass takes {units.duration(found.wall)}: {named}."
    if made.attributed is not None and made.attributed < 1:
        told += f" {units.percent(made.attributed, 1)} of the kernels' time is attributed to nodes."
    if made.dropped:
        told += f" Records dropped: {made.dropped}."
    return told


def taken(profile: Profile, fine: Sequence[CaseProfile]) -> str:
    """When and how a profile was taken."""
    job = profile.job
    clocks = [mhz for made in fine for mhz in made.telemetry.sm_clock_mhz]
    words = [
        f"{job.runs} profiled {'pass' if job.runs == 1 else 'passes'} a case, {_before(job)}",
        "each case in a process of its own",
        f"SM clock {sorted(clocks)[len(clocks) // 2]:.0f} MHz" if clocks else "",
        profile.created_at.replace("T", " ")[:16],
        f"{len(fine)} of {len(profile.cases)} cases",
    ]
    return "; ".join(filter(None, words))


def _before(job: ProfileJob) -> str:
    if job.warm_up:
        return f"{job.warm_up} before {'it' if job.runs == 1 else 'them'}"
    return "the first of its session" if job.runs == 1 else "the first of their session"


def context(
    profiles: Sequence[Profile], sections: Sequence[ProfileSection], heading: str = ""
) -> dict[str, Any]:
    """What the template tells."""
    machines = dict.fromkeys(line for profile in profiles for line in profile_charts.footer(profile)[:1])
    software = dict.fromkeys(
        ", ".join(f"{name} {version}" for name, version in profile.environment.packages.items())
        for profile in profiles
    )
    limits = dict.fromkeys(
        f"Limits measured: {units.si(found.flops_per_s, 'FLOP/s')} ({found.multiplied_by}), "
        f"{units.si(found.bytes_per_s, 'B/s')} ({found.copied_by})"
        for profile in profiles
        for found in profile.limits.values()
    )
    return {
        "heading": heading or f"Profiles on {devices(profiles)}",
        "count": len(profiles),
        "machines": [*machines, *software, *limits],
        "sections": sections,
        "meaning": profile_remarks.HEADLINE,
        "devices": {device for section in sections for device in section.devices},
    }


_short = partial(short, most=profile_tables.NAME_WIDTH)


def _first(table: ProfileTable) -> ProfileTable:
    """The lines that take 90 % of the time, and SHOWN at least; what is left is counted."""
    so_far, most = 0.0, 0
    for row in table.rows:
        if so_far >= profile_lines.MOST and most >= SHOWN:
            break
        so_far += row["share"]
        most += 1
    left = len(table.rows) - most
    notes = (*table.notes, *([f"{left} more lines take {units.percent(1 - so_far, 2)}."] if left else []))
    return replace(table, rows=table.rows[:most], notes=notes)


def _draw(
    folder: ProfileFolder, measurements: Sequence[CaseProfile], form: ReportForm
) -> tuple[Picture, ...]:
    """Its charts, the timelines of a batch size together."""
    profile = folder.header
    largest = max(made.case.batch for made in measurements)
    # The other batch sizes' roofs are in their tables.
    left_out = {f"profile-roofline-{m.case.key}" for m in measurements if m.case.batch != largest}
    made = [
        form.chart(chart, _stem(profile, chart.name))
        for chart in profile_charts.charts(profile, measurements, partial(events_in, folder.path))
        if chart.name not in left_out
    ]
    fine = [case for case in measurements if case.disposition == "ok"]
    for batch in dict.fromkeys(case.case.batch for case in fine):
        shown = [(case, events_in(folder.path, case)) for case in fine if case.case.batch == batch]

        def draw(kind: str, look: Look, shown: Sequence[tuple[CaseProfile, Events]] = shown) -> bytes:
            return draw_timeline.render(profile, shown, kind, fine, 1.0, look)

        stem = _stem(profile, f"profile-timeline-b{batch}")
        if (drawn := form.drawing(f"One pass at batch {batch:,}", stem, draw)) is not None:
            made.append(drawn)
    return tuple(made)


def _draw_parts(
    folder: ProfileFolder, measurements: Sequence[CaseProfile], form: ReportForm
) -> tuple[Picture, ...]:
    profile = folder.header
    made = (profile_charts.times(profile, measurements), profile_charts.breakdown(profile, measurements))
    return tuple(form.chart(chart, _stem(profile, f"{chart.name}-by-batch")) for chart in filter(None, made))


def _subject(profile: Profile) -> str:
    """The model, and the kernels that were chosen for it."""
    job = profile.job
    chosen = ", ".join(f"{node} {rung}" for node, rung in job.rungs.items())
    return title(job.model) + (f" with {chosen}" if chosen else "")


def _stem(profile: Profile, name: str) -> str:
    words = f"{_subject(profile)}-{name.removeprefix('profile-')}"
    return re.sub(r"[^\w.]+", "-", words).strip("-").lower()
