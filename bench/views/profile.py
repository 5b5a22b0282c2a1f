"""The view of a profile: what is printed, exported and told of it in a list; what goes when it is made
small."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from bench.results.event_files import events_in
from bench.results.profile_records import TIMELINE, CaseProfile, Profile
from bench.results.thin import keep
from bench.run.kinds.profile import ProfileFolder
from bench.words import units
from bench.words.called import CALLED
from kernels.errors import InputError

if TYPE_CHECKING:
    from bench.views.charts.definitions import Chart
    from bench.views.drawing.looks import Look
    from bench.views.tables.profile_columns import ProfileTable
    from bench.views.tables.table import Table

OUTPUT = "bench.views.tables.profile_tables:ProfileOutput"
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


def show(folder: ProfileFolder, format: str) -> None:
    show_chosen(folder, ShownProfile(format=format))


def below(folder: ProfileFolder) -> Sequence[str]:
    """What stands below its tables."""
    from bench.views.sentences.footer import machine

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


def show_chosen(folder: ProfileFolder, shown: ShownProfile) -> None:
    """The tables that were asked for; what went wrong is told beside."""
    from bench.views import show as views
    from bench.views.tables import profile_tables
    from bench.views.tables.table import with_headings

    measurements = folder.measurements()
    found = tables_of(folder, measurements, shown)
    said = _said(measurements, shown)
    told = []
    for sentence in dict.fromkeys(sentence for _, sentence in said):
        cases = [words for words, other in said if other == sentence]
        every = len(cases) == len(measurements) > 1
        told += [f"{words}{sentence}" for words in ([""] if every else [f"{case}: " for case in cases])]
    if found and shown.format == "table" and shown.chosen == MAIN:
        told.append(
            "every table, with kernels, calls and the cold start: "
            f"{CALLED} profile --load {folder.path} --table all"
        )
    heads = [profile_tables.heads(measurements)] if shown.chosen in (MAIN, "all") else []
    views.show(
        shown.format,
        csv=lambda: found,
        output=lambda: profile_tables.output(folder.header, measurements, found),
        paper=lambda: with_headings(found),
        drawn=lambda: [*heads, profile_tables.terminal(found, not shown.full_names)],
        page=lambda: (
            [],
            tables_of(folder, measurements, replace(shown, format="table")),
        ),
        told=told if shown.format != "html" else (),
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


def charts(folder: ProfileFolder) -> list[Chart]:
    from bench.views.charts import profile_charts

    return profile_charts.charts(folder.header, _fine(folder), partial(events_in, folder.path))


def numbers(folder: ProfileFolder) -> dict[str, Table[Any]]:
    """Its tables by the name of the file: some of all cases, the others one a case."""
    fine = _fine(folder)
    found: dict[str, Table[Any]] = {}
    for name in ("breakdown", "cold", "process"):
        found[name] = tables_of(folder, fine, ShownProfile(table=name))[0]
    for made in fine:
        for name in ("activities", "calls", "findings", "counters"):
            for table in tables_of(folder, [made], ShownProfile(table=name)):
                found[f"{made.case.key}-{name}"] = table
    return found


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
    """The cases that went well. Raises InputError where there is none."""
    fine = [made for made in folder.measurements() if made.disposition == "ok"]
    if not fine:
        raise InputError(f"{folder.path} holds no profile of a case; `{CALLED} profile` takes one")
    return fine


READS = ("breakdowns",)


def result(profile: Profile, lines: Sequence[Any]) -> str:
    """ "a profiled pass: engine-cpu 1.20 ms, ort-cpu 0.61 ms", as spans where there are several batch
    sizes."""
    passes: dict[str, list[float]] = {}
    for line in lines:
        found = next((part for part in line.breakdowns if part.window == "pass"), None)
        if found is not None:
            passes.setdefault(line.case.backend, []).append(found.wall)
    told = [
        f"{backend} {' – '.join(dict.fromkeys(units.duration(pick(walls)) for pick in (min, max)))}"
        for backend, walls in passes.items()
    ]
    return f"a profiled pass: {', '.join(told)}" if told else ""


LESS = "profile fewer cases"
WITHOUT = "its events were left out to make the profile small: it has no timeline, and no tables of them"


# Of how many batch sizes the events are kept, the largest and then the smallest ones (None: of all).
GRADES = (None, 3, 2, 1, 0)


def lines(
    folder: ProfileFolder, measurements: Sequence[CaseProfile], target: Path, batches: int | None
) -> Iterator[CaseProfile]:
    """The measurements of `folder`, made small; their events into `target`. What stands in the records
    (breakdown, cold start, process) stays of all."""
    with_events = _batches(measurements, batches)
    for m in measurements:
        if m.file and not (m.case.batch in with_events and keep(folder.path, m.file, target)):
            m = msgspec.structs.replace(m, file="", events={}, notes=(*m.notes, WITHOUT))
        yield m


def _batches(measurements: Sequence[CaseProfile], count: int | None) -> set[int]:
    sizes = sorted({m.case.batch for m in measurements if m.file}, reverse=True)
    # The largest first, then the smallest: where the work counts, and where starting it does.
    order = [*sizes[:1], *sizes[:0:-1]]
    return set(order if count is None else order[:count])
