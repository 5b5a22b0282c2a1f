"""A profile shown in a terminal and exported, also one from before."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.profile.event_files import events_in
from bench.profile.kind import ProfileFolder
from bench.profile.records import TIMELINE, CaseProfile
from bench.profile.show.output import ProfileOutput
from kernels.errors import InputError

if TYPE_CHECKING:
    from bench.charts import Chart
    from bench.profile.show.columns import ProfileTable
    from bench.show.looks import Look

OUTPUT = ProfileOutput
PICTURE = TIMELINE  # by which `export --chart` names what `pictures` draws


@dataclass(frozen=True)
class ShownProfile:
    """What goes to standard output."""

    format: str = "table"
    table: str = "all"
    by: str = "name"
    window: str = "pass"
    match: str = ""
    full_names: bool = False


def show(folder: ProfileFolder, format: str, layers: bool = False) -> tuple[str, ...]:
    """Its tables on standard output; what stands below them."""
    from bench.charts.footer import machine

    print_tables(folder, folder.measurements(), ShownProfile(format=format))
    return (machine(folder.header),)


def tables_of(
    folder: ProfileFolder, measurements: Sequence[CaseProfile], shown: ShownProfile
) -> list[ProfileTable]:
    """The tables that were asked for, case by case those of events; none where no case went well."""
    from bench.profile.measure import counters as profile_counters
    from bench.profile.show import course as profile_course
    from bench.profile.show import findings as profile_findings
    from bench.profile.show import tables as profile_tables

    fine = [made for made in measurements if made.disposition == "ok"]
    found: list[ProfileTable] = []
    rows = []
    if not fine:
        return found
    for made in fine:
        events = events_in(folder.path, made)
        if shown.table in ("all", "activities"):
            found.append(profile_tables.activities(made, events, shown.by, shown.window, shown.match))  # type: ignore[arg-type]
        if shown.table in ("all", "calls") and events.calls:
            found.append(profile_tables.calls(made, events, shown.window, shown.match))
        if shown.table in ("all", "findings"):
            limits = folder.header.limits.get(made.device)
            found.append(profile_findings.table(made, events, limits))
        if shown.table in ("all", "counters") and (table := profile_counters.table(made, events)).rows:
            found.append(table)
        if shown.table == "report":
            rows.append(profile_course.row(made, events))
    if shown.table == "report":
        found.append(profile_course.table(rows, folder.header.job.runs, folder.header.job.copies))
    if shown.table in ("all", "breakdown", "report"):
        found.append(profile_tables.breakdown(fine, shown.window))
    if shown.table in ("all", "cold"):
        found.append(profile_tables.cold(fine, shown.table == "cold"))
    if shown.table in ("all", "process", "report"):
        found.append(profile_tables.process(fine))
    return found


def print_tables(folder: ProfileFolder, measurements: Sequence[CaseProfile], shown: ShownProfile) -> None:
    """The tables on standard output, and nothing else there; what went wrong, on standard error."""
    from bench.commands.terminal import console
    from bench.profile.show import output as profile_output
    from bench.profile.show import remarks as profile_remarks
    from bench.show.table import to_csv, with_headings

    found = tables_of(folder, measurements, shown)
    if shown.format == "csv":
        sys.stdout.write("\n".join(map(to_csv, found)))
    elif shown.format == "json":
        sys.stdout.write(profile_output.to_json(folder.header, measurements, found))
    elif shown.format == "md":
        sys.stdout.write(with_headings(found))
    else:
        out = console()
        out.print(profile_output.terminal(found, not shown.full_names))
    said = [
        (made.case.words, sentence) for made in measurements for sentence in profile_remarks.remarks(made)
    ]
    for sentence in dict.fromkeys(sentence for _, sentence in said):
        cases = [words for words, other in said if other == sentence]
        every = len(cases) == len(measurements) > 1
        for words in [""] if every else [f"{case}: " for case in cases]:
            print(f"{words}{sentence}", file=sys.stderr)


def export(
    folder: ProfileFolder, over: Sequence[Path] = ()
) -> tuple[Callable[[], list[Chart]], Callable[[], dict[str, str]]]:
    """Its charts, and its tables as CSV by the name of the file."""
    from bench.charts import profile as profile_charts
    from bench.show.table import to_csv

    fine = _fine(folder)
    if not fine:
        raise InputError(f"{folder.path} holds no profile of a case; `python main.py profile` takes one")

    def numbers() -> dict[str, str]:
        found: dict[str, str] = {}
        for name in ("breakdown", "cold", "process"):  # one of all cases; the others, one a case
            found |= {
                f"{name}.csv": to_csv(table) for table in tables_of(folder, fine, ShownProfile(table=name))
            }
        for made in fine:
            for name in ("activities", "calls", "findings", "counters"):
                for table in tables_of(folder, [made], ShownProfile(table=name)):
                    found[f"{made.case.key}-{name}.csv"] = to_csv(table)
        return found

    return lambda: profile_charts.charts(folder.header, fine, partial(events_in, folder.path)), numbers


def pictures(
    folder: ProfileFolder,
    formats: Sequence[str],
    target: Path,
    scale: float = 1.0,
    look: Look | None = None,
) -> list[Path]:
    """Draw its timeline, which is no chart; the files."""
    from bench.profile.show import draw_timeline
    from bench.show.looks import PAGE

    shown = [(made, events_in(folder.path, made)) for made in _fine(folder)]
    return list(draw_timeline.write(folder.header, shown, target, formats, scale, look or PAGE))


def _fine(folder: ProfileFolder) -> list[CaseProfile]:
    return [made for made in folder.measurements() if made.disposition == "ok"]
