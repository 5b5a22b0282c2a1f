"""A comparison from before: shown in a terminal, exported."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.comparison import output
from bench.comparison.kind import KIND, RunFolder
from bench.comparison.output import ComparisonOutput
from bench.kinds import note
from bench.words import plain

if TYPE_CHECKING:
    from bench.charts import Chart, RunData

OUTPUT = ComparisonOutput


def show(folder: RunFolder, format: str, layers: bool = False, bisect: bool = False) -> tuple[str, ...]:
    """Its tables on standard output; what stands below them."""
    from bench.charts.footer import footer

    measurements = folder.measurements()
    print_tables([(folder.header, measurements)], format, layers, bisect)
    return tuple(footer([folder.header], measurements))


def print_tables(found: Sequence[RunData], format: str, layers: bool = False, bisect: bool = False) -> None:
    """The verdicts and the table, or CSV, JSON or Markdown, on standard output, and nothing else there: the
    verdicts then stand on standard error. bisect: also where each case first leaves the reference."""
    from bench.charts.verdicts import verdicts
    from bench.commands.terminal import console
    from bench.diff import bisect as leaving
    from bench.results.rows import rows
    from bench.show import scoreboard, tables, terminal_tables
    from bench.show.outputs import head
    from bench.show.table import pick, records, to_csv, to_json, to_markdown

    runs = [run for run, _ in found]
    measurements = [m for _, measured in found for m in measured]
    shown = rows(measurements)
    table, of_layers = tables.table(shown), tables.layer_table(measurements)
    if format == "csv":
        sys.stdout.write(to_csv(table) + ("\n" + to_csv(of_layers) if layers else ""))
    elif format == "json":
        made = ComparisonOutput(
            **head(runs),
            cases=tuple(records(table)),
            layers=tuple(records(of_layers)) if layers else None,
            scoreboards=tuple(map(output.scoreboard, verdicts(shown, runs))),
        )
        sys.stdout.write(to_json(made))
    elif format == "md":
        boards = [scoreboard.table(verdict.board) for verdict in verdicts(shown, runs)]
        sys.stdout.write("".join(f"{to_markdown(board)}\n" for board in boards if board.rows))
        paper = tables.readable(shown)
        why = pick(tables.COLUMNS, "reason")
        sys.stdout.write(to_markdown(replace(paper, columns=(*paper.columns, *why))))
        if layers:
            sys.stdout.write("\n" + to_markdown(replace(of_layers, columns=tables.READABLE_LAYERS)))
    else:
        console().print(terminal_tables.terminal(shown, runs))
        if layers:
            console().print(terminal_tables.layers(measurements))
        for line in leaving.lines(shown) if bisect else ():
            console().print(line, markup=False)
        return
    sys.stdout.flush()  # where it cannot be written, that is all there is to say
    for verdict in verdicts(shown, runs):
        print(verdict.line, file=sys.stderr)
    for line in leaving.lines(shown) if bisect else ():
        print(plain.printable(line), file=sys.stderr)


def export(
    folder: RunFolder, over: Sequence[Path]
) -> tuple[Callable[[], list[Chart]], Callable[[], dict[str, str]]]:
    """Its charts, those of the runs in `over` laid over them; its numbers as CSV by the name of the file."""
    from bench.results.rows import rows
    from bench.show import tables
    from bench.show.table import to_csv

    data = folder.header, folder.measured()

    def numbers() -> dict[str, str]:
        return {
            "results.csv": to_csv(tables.table(rows(data[1]))),
            "layers.csv": to_csv(tables.layer_table(data[1])),
        }

    return lambda: _charts(data, over), numbers


def _charts(data: RunData, over: Sequence[Path]) -> list[Chart]:
    from bench.charts import charts, lay_over, short_name

    made = charts([data])
    for number, path in enumerate(over, start=1):
        name = note.read(path).name or short_name(path)
        run = KIND.open(path)
        made = lay_over(made, charts([(run.header, run.measured())]), name, number)
    return made
