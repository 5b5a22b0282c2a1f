"""A profile shown in a terminal and exported, also one from before."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.results.event_files import events_in
from bench.results.profile_records import TIMELINE, CaseProfile
from bench.run.kinds.profile import ProfileFolder
from bench.views.profile_output import ProfileOutput
from kernels.errors import InputError

if TYPE_CHECKING:
    from bench.views.charts.definitions import Chart
    from bench.views.drawing.looks import Look
    from bench.views.tables.profile_columns import ProfileTable

OUTPUT = ProfileOutput
MAIN = "main"  # of tables those of a first look: what holds operators back, and the parts of a pass
CLOSELY = 4  # cases whose operators are shown at a first look; of more those of the largest batch size
PICTURE = TIMELINE  # by which `export --chart` names what `pictures` draws


@dataclass(frozen=True)
class ShownProfile:
    """What goes to standard output."""

    format: str = "table"
    table: str = ""
    by: str = "name"
    window: str = "pass"
    match: str = ""
    full_names: bool = False

    @property
    def chosen(self) -> str:
        """The table that was asked for; else in a terminal what matters most, elsewhere all of them."""
        narrowed = (self.by, self.window, self.match, self.full_names) != ("name", "pass", "", False)
        return self.table or (MAIN if self.format == "table" and not narrowed else "all")


def show(folder: ProfileFolder, format: str, layers: bool = False) -> tuple[str, ...]:
    """Its tables on standard output; what stands below them."""
    from bench.views.sentences.footer import machine

    print_tables(folder, folder.measurements(), ShownProfile(format=format))
    return (machine(folder.header),)


def tables_of(
    folder: ProfileFolder, measurements: Sequence[CaseProfile], shown: ShownProfile
) -> list[ProfileTable]:
    """The tables that were asked for, case by case those of events; none where no case went well."""
    from bench.views.sentences import profile_findings
    from bench.views.tables import course_report as profile_course
    from bench.views.tables import profile_tables

    fine = [made for made in measurements if made.disposition == "ok"]
    found: list[ProfileTable] = []
    rows = []
    if not fine:
        return found
    chosen = shown.chosen
    for made in _closely(fine, chosen):
        events = events_in(folder.path, made)
        if chosen in ("all", "activities"):
            found.append(profile_tables.activities(made, events, shown.by, shown.window, shown.match))  # type: ignore[arg-type]
        if chosen in ("all", "calls") and events.calls:
            found.append(profile_tables.calls(made, events, shown.window, shown.match))
        if chosen in ("all", MAIN, "findings"):
            limits = folder.header.limits.get(made.device)
            found.append(profile_findings.table(made, events, limits))
        if chosen in ("all", MAIN, "counters") and (table := profile_tables.counters(made, events)).rows:
            found.append(table)
        if chosen == "report":
            rows.append(profile_course.row(made, events))
    if chosen == "report":
        found.append(profile_course.table(rows, folder.header.job.runs, folder.header.job.copies))
    if chosen in ("all", MAIN, "breakdown", "report"):
        found.append(profile_tables.breakdown(fine, shown.window))
    if chosen in ("all", "cold"):
        found.append(profile_tables.cold(fine, chosen == "cold"))
    if chosen in ("all", "process", "report"):
        found.append(profile_tables.process(fine))
    return found


def _closely(fine: Sequence[CaseProfile], chosen: str) -> Sequence[CaseProfile]:
    """The cases that are shown one by one: at a first look of many those of the largest batch size."""
    if chosen != MAIN or len(fine) <= CLOSELY:
        return fine
    largest = max(made.case.batch for made in fine)
    return [made for made in fine if made.case.batch == largest]


def print_tables(folder: ProfileFolder, measurements: Sequence[CaseProfile], shown: ShownProfile) -> None:
    """The tables on standard output, and nothing else there; what went wrong, on standard error."""
    from bench.views import profile_output
    from bench.views.tables.table import to_csv, with_headings
    from bench.words.terminal import console

    found = tables_of(folder, measurements, shown)
    if shown.format == "csv":
        sys.stdout.write("\n".join(map(to_csv, found)))
    elif shown.format == "json":
        sys.stdout.write(profile_output.to_json(folder.header, measurements, found))
    elif shown.format == "md":
        sys.stdout.write(with_headings(found))
    else:
        out = console()
        if shown.chosen in (MAIN, "all"):
            out.print(profile_output.heads(measurements))
        out.print(profile_output.terminal(found, not shown.full_names))
    said = _said(measurements, shown)
    for sentence in dict.fromkeys(sentence for _, sentence in said):
        cases = [words for words, other in said if other == sentence]
        every = len(cases) == len(measurements) > 1
        for words in [""] if every else [f"{case}: " for case in cases]:
            print(f"{words}{sentence}", file=sys.stderr)
    if found and shown.format == "table" and shown.chosen == MAIN:
        print(
            "every table, with kernels, calls and the cold start: "
            f"python main.py profile --load {folder.path} --table all",
            file=sys.stderr,
        )


def _said(measurements: Sequence[CaseProfile], shown: ShownProfile) -> list[tuple[str, str]]:
    """What is told beside the tables, with the case that it is of. At a first look, and beside the table of a
    course report, what the table of parts shows and how clocks were joined is left out; what passes wait for
    is told of the cases that are shown one by one."""
    from bench.views.sentences import profile_remarks

    if shown.chosen not in (MAIN, "report"):
        return [(made.case.words, words) for made in measurements for words in profile_remarks.remarks(made)]
    fine = [made for made in measurements if made.disposition == "ok"]
    closely = _closely(fine, MAIN) if shown.chosen == MAIN else ()
    said = []
    for made in measurements:
        told = [*filter(None, [made.reason]), *made.notes]
        told += profile_remarks.waits(made) if made in closely else []
        said += [(made.case.words, words) for words in told]
    return said


def export(
    folder: ProfileFolder, over: Sequence[Path] = ()
) -> tuple[Callable[[], list[Chart]], Callable[[], dict[str, str]]]:
    """Its charts, and its tables as CSV by the name of the file."""
    from bench.views.charts import profile_charts
    from bench.views.tables.table import to_csv

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
    from bench.views.drawing import draw_timeline
    from bench.views.drawing.looks import PAGE

    shown = [(made, events_in(folder.path, made)) for made in _fine(folder)]
    return list(draw_timeline.write(folder.header, shown, target, formats, scale, look or PAGE))


def _fine(folder: ProfileFolder) -> list[CaseProfile]:
    return [made for made in folder.measurements() if made.disposition == "ok"]
