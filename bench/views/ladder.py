"""The view of a ladder: what is printed, exported and told of it in a list; what goes when it is made
small."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from bench.results import doubt
from bench.results.ladder_records import Ladder, RungMeasurement
from bench.results.ladder_rows import RungRow, rows
from bench.results.records import LEFT_OUT
from bench.results.stats import SAME_BOUND
from bench.results.thin import keep
from bench.run.kinds.ladder import LadderFolder
from bench.views.sentences.ladder_story import leading
from bench.views.tables import ladder_tables
from bench.words import orders, units

if TYPE_CHECKING:
    from bench.views.charts.definitions import Chart
    from bench.views.tables.table import Table

OUTPUT = "bench.views.tables.ladder_tables:LadderOutput"


def show(folder: LadderFolder, format: str) -> None:
    from bench.views import show as views
    from bench.views.tables import ladder_report_tables as report_tables
    from bench.views.tables.table import pick, to_markdown

    ladder = folder.header
    rungs, models = _rows(ladder, folder.measurements())

    def paper() -> str:
        found = [report_tables.of_rungs(some) for some in (rungs, models) if some]
        why = pick(ladder_tables.COLUMNS, "reason")
        return "\n".join(to_markdown(replace(one, columns=(*one.columns, *why))) for one in found)

    views.show(
        format,
        csv=lambda: [ladder_tables.table([*rungs, *models])],
        output=lambda: ladder_tables.output(ladder, rungs, models),
        paper=paper,
        drawn=lambda: [ladder_tables.terminal(ladder, rungs, models)],
        page=lambda: (
            [ladder_tables.line(ladder, rungs)],
            [report_tables.of_rungs(some) for some in (rungs, models) if some],
        ),
    )


FAILURES = ("incorrect", "failed", "crashed", "timed_out")


def as_tests(folder: LadderFolder) -> str:
    """JUnit's XML, which CI servers show: a test a rung, which fails where the rung is wrong, crashed or hung
    and is skipped where it refuses the work."""
    from bench.views import junit
    from bench.views.sentences import ladder_story as story

    ladder, measurements = folder.header, folder.measurements()
    rungs, models = _rows(ladder, measurements)

    def test(row: RungRow) -> junit.Case:
        m = row.measurement
        why = m.reason or m.disposition.replace("_", " ")
        failed = m.disposition in FAILURES
        return junit.Case(
            of=f"ladder.{ladder.job.op}.{ladder.job.device}",
            name=row.case.words,
            time_s=row.time.value * 1e-9 if row.time is not None else 0.0,
            failure=why if failed else "",
            skipped="" if failed or m.disposition == "ok" else why,
            kind="wrong" if m.disposition == "incorrect" else m.disposition,
            text="" if row.case.is_reference or failed else story.sentence(ladder, row, rungs),
        )

    tests = [test(row) for row in (*rungs, *models)]
    return junit.to_xml(
        "ladder", ladder.job.title, tests, ladder.created_at, told=ladder_tables.line(ladder, rungs)
    )


def below(folder: LadderFolder) -> Sequence[str]:
    """What stands below its tables."""
    from bench.views.charts.ladder_charts import footer

    return footer(folder.header)


def charts(folder: LadderFolder) -> list[Chart]:
    from bench.views.charts import ladder_charts

    return ladder_charts.charts(folder.header, rows(folder.header, folder.measured()))


def numbers(folder: LadderFolder) -> dict[str, Table[Any]]:
    """Its table by the name of the file."""

    rungs, models = _rows(folder.header, folder.measured())
    return {"results": ladder_tables.table([*rungs, *models])}


def _rows(ladder: Ladder, measurements: Sequence[RungMeasurement]) -> tuple[list[RungRow], list[RungRow]]:
    """Of the rungs, and of the whole models with one in them."""
    return rows(ladder, measurements), rows(ladder, measurements, "model")


READS = ("samples_ns", "rounds", "instances", "quantile", "load", "validity", "notes", "nbytes")


def result(ladder: Ladder, lines: Sequence[Any]) -> str:
    """ "02 tiled 1.30× faster than the reference", or its time where there was no reference; where it is not
    decided which is the fastest, that."""
    timed = [row for row in rows(ladder, lines) if row.time is not None and not row.case.is_reference]
    lead = leading(timed)
    if lead is None:
        return f"{orders.NOT_DECIDED} from one sample" if timed else ""
    best = lead.best
    if not lead.decided:
        return orders.undecided_between([row.case.label for row in (best, *lead.undecided)])
    if best.speedup is not None:
        told = orders.order(
            best.verdict, best.speedup, best.case.label, "the reference", SAME_BOUND, ends=False
        )
        if not orders.decided(best.verdict):
            return told
        return doubt.marked(f"{best.case.label} {told}", best.speedup_doubts)
    assert best.time is not None
    return f"{best.case.label} {doubt.marked(units.duration(best.time.value), best.doubts)}"


LESS = "measure it with fewer rungs (--rung)"


GRADES = (True, False)  # whether a wrong answer keeps its error map
WITHOUT = "its error map was left out to make the ladder small"


def lines(
    folder: LadderFolder, measurements: Sequence[RungMeasurement], target: Path, maps: bool
) -> Iterator[RungMeasurement]:
    """The measurements of `folder`, made small; their error maps into `target`."""
    for m in measurements:
        finding = m.finding
        if finding is not None and finding.map and not (maps and keep(folder.path, finding.map, target)):
            m = msgspec.structs.replace(m, facts={**m.facts, LEFT_OUT: WITHOUT})
            finding = msgspec.structs.replace(finding, map="")
        yield msgspec.structs.replace(m, finding=finding)
