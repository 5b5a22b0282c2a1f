"""`export`: the charts, and the numbers as CSV, of a saved run."""

from __future__ import annotations

import sys
from pathlib import Path

import typer


def export(
    run: Path = typer.Argument(metavar="RUN", help="A run folder."),
    charts: str = typer.Option("png,svg,pdf", metavar="F,F,…", help="Of png, svg, pdf; or none."),
    csv: bool = typer.Option(False, "--csv", help="Also results.csv and layers.csv."),
    out: Path | None = typer.Option(None, metavar="DIR", help="Where to; without it, charts/ in the run."),
) -> None:
    """Draw the charts of a saved run again."""
    from bench import draw, tables
    from bench.charts import charts as make
    from bench.commands import parsing
    from bench.rows import in_order, rows
    from bench.store import RunFolder, write_atomically
    from kernels.errors import InputError

    formats = parsing.formats(charts)
    folder = RunFolder.open(run)
    measurements = in_order(folder.run, folder.measurements())
    if not measurements:
        raise InputError(
            f"{run} holds no measurement yet; `python main.py compare --resume {run}` takes them"
        )
    if not formats and not csv:
        raise InputError("nothing to export: name chart formats by --charts, or give --csv")
    target = out or folder.path / "charts"
    written = draw.write(make([(folder.run, measurements)]), target, formats) if formats else []
    if csv:
        texts = {
            "results.csv": tables.to_csv(tables.records(rows(measurements))),
            "layers.csv": tables.to_csv(tables.layer_records(measurements), tables.LAYER_COLUMNS),
        }
        for name, text in texts.items():
            write_atomically(target / name, text.encode())
            written.append(target / name)
    for path in written:
        print(path)
    if formats and not any(path.suffix != ".csv" for path in written):
        print(f"{run} has no case with numbers to draw", file=sys.stderr)
