"""A ladder shown in a terminal and exported, also one from before."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.ladder.kind import LadderFolder
from bench.ladder.records import RungMeasurement
from bench.ladder.show import tables as ladder_tables
from bench.ladder.show.rows import rows

if TYPE_CHECKING:
    from bench.charts import Chart

OUTPUT = ladder_tables.LadderOutput


def show(folder: LadderFolder, format: str, layers: bool = False) -> tuple[str, ...]:
    """Its tables on standard output; what stands below them."""
    from bench.ladder.show.charts import footer

    print_tables(folder, folder.measurements(), format)
    return tuple(footer(folder.header))


def print_tables(folder: LadderFolder, measurements: Sequence[RungMeasurement], format: str) -> None:
    """The table, or CSV, JSON or Markdown, on standard output, and nothing else there."""
    from bench.commands.terminal import console
    from bench.ladder.show import report_tables
    from bench.show.table import pick, to_csv, to_markdown

    rungs = rows(folder.header, measurements)
    models = rows(folder.header, measurements, "model")
    if format == "csv":
        sys.stdout.write(to_csv(ladder_tables.table([*rungs, *models])))
    elif format == "json":
        sys.stdout.write(ladder_tables.as_json(folder.header, rungs, models))
    elif format == "md":
        found = [report_tables.of_rungs(some) for some in (rungs, models) if some]
        why = pick(ladder_tables.COLUMNS, "reason")
        whole = [replace(paper, columns=(*paper.columns, *why)) for paper in found]
        sys.stdout.write("\n".join(map(to_markdown, whole)))
    else:
        console().print(ladder_tables.terminal(folder.header, rungs, models))


def export(
    folder: LadderFolder, over: Sequence[Path] = ()
) -> tuple[Callable[[], list[Chart]], Callable[[], dict[str, str]]]:
    """Its charts, and its numbers as CSV by the name of the file."""
    from bench.ladder.show import charts as ladder_charts
    from bench.show.table import to_csv

    measurements = folder.measured()
    rungs = rows(folder.header, measurements)
    return lambda: ladder_charts.charts(folder.header, rungs), lambda: {
        "results.csv": to_csv(ladder_tables.table([*rungs, *rows(folder.header, measurements, "model")]))
    }
