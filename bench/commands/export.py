"""`export`: the charts, and the numbers as CSV, of a saved run, ladder or profile."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from bench.charts import Chart, RunData

LARGEST_SCALE = 8.0


def export(
    run: Path = typer.Argument(metavar="RUN", help="A run's, a ladder's or a profile's folder."),
    charts: str = typer.Option("png,svg,pdf", metavar="F,F,…", help="Of png, svg, pdf, csv; or none."),
    chart: list[str] = typer.Option(
        [], metavar="NAME", help="Only this one, as op-time or lenet5-digits-op-time; may be repeated."
    ),
    csv: bool = typer.Option(
        False, "--csv", help="Also results.csv and, of a run, layers.csv; of a profile, its tables."
    ),
    out: Path | None = typer.Option(None, metavar="DIR", help="Where to; without it, charts/ in the run."),
    file: Path | None = typer.Option(
        None, metavar="FILE", help="One chart into this file, in the format of its ending."
    ),
    scale: float = typer.Option(1.0, metavar="N", help="Size of PNG: 2 gives twice the pixels a side."),
    over: Path | None = typer.Option(None, metavar="RUN", help="Lay this run over it, in thin lines."),
) -> None:
    """Draw the charts of a saved run, ladder or profile again."""
    from bench.commands import parsing
    from bench.ladder.store import is_ladder
    from bench.profile.store import is_profile
    from bench.show.draw import FORMATS
    from kernels.errors import InputError

    known = (*FORMATS, "csv")
    if not 0 < scale <= LARGEST_SCALE:
        raise InputError(f"--scale {scale:g} is not above 0 and at most {LARGEST_SCALE:g}")
    if file is not None:
        formats: tuple[str, ...] = (
            parsing.one_of(file.suffix.lower().lstrip("."), known, "format of a file's ending"),
        )
    else:
        formats = parsing.formats(charts, known)
    if not formats and not csv:
        raise InputError("nothing to export: name chart formats by --charts, or give --csv")
    read = _ladder if is_ladder(run) else _profile if is_profile(run) else _run
    everything, numbers = read(run, over)
    made = _named(everything(), chart) if formats else []
    if file is not None:
        if len(made) != 1:
            raise InputError(
                f"--file takes one chart and {len(made)} are meant: name it by --chart, of "
                f"{', '.join(c.name for c in made)}"
            )
        _write(made, formats, scale, file.parent, file)
        return
    target = out or run / "charts"
    _write(made, formats, scale, target)
    if is_profile(run) and not chart:
        _timeline(run, [name for name in formats if name != "csv"], target)
    if csv:
        for name, text in numbers().items():
            _save(target / name, text.encode())
    if formats and not made:
        print(f"{run} has no case with numbers to draw", file=sys.stderr)


# The charts of what was exported, and its numbers as CSV by the name of the file.
Parts = tuple[Callable[[], list["Chart"]], Callable[[], dict[str, str]]]


def _run(run: Path, over: Path | None) -> Parts:
    from bench.results.rows import rows
    from bench.show import tables
    from bench.show.table import to_csv

    data = _read(run)

    def numbers() -> dict[str, str]:
        return {
            "results.csv": to_csv(tables.table(rows(data[1]))),
            "layers.csv": to_csv(tables.layer_table(data[1])),
        }

    return lambda: _charts(data, over), numbers


def _ladder(path: Path, over: Path | None) -> Parts:
    from bench.charts import ladder as ladder_charts
    from bench.ladder.show import tables as ladder_tables
    from bench.ladder.show.rows import rows
    from bench.ladder.store import LadderFolder
    from bench.show.table import to_csv
    from kernels.errors import InputError

    if over is not None:
        raise InputError("--over lays one run over another; a ladder cannot be laid over one")
    folder = LadderFolder.open(path)
    measurements = folder.measurements()
    if not measurements:
        raise InputError(
            f"{path} holds no measurement yet; `python main.py ladder --resume {path}` takes them"
        )
    rungs = rows(folder.ladder, measurements)
    return lambda: ladder_charts.charts(folder.ladder, rungs), lambda: {
        "results.csv": to_csv(ladder_tables.table([*rungs, *rows(folder.ladder, measurements, "model")]))
    }


def _profile(path: Path, over: Path | None) -> Parts:
    from bench.charts import profile as profile_charts
    from bench.commands.profile import Shown, tables_of
    from bench.profile.store import ProfileFolder
    from bench.show.table import to_csv
    from kernels.errors import InputError

    if over is not None:
        raise InputError("--over lays one run over another; a profile cannot be laid over one")
    folder = ProfileFolder.open(path)
    fine = [made for made in folder.measurements() if made.disposition == "ok"]
    if not fine:
        raise InputError(f"{path} holds no profile of a case; `python main.py profile` takes one")

    def numbers() -> dict[str, str]:
        found: dict[str, str] = {}
        for name in ("breakdown", "cold", "process"):  # one of all cases; the others, one a case
            found |= {f"{name}.csv": to_csv(table) for table in tables_of(folder, fine, Shown(table=name))}
        for made in fine:
            for name in ("activities", "calls", "findings", "counters"):
                for table in tables_of(folder, [made], Shown(table=name)):
                    found[f"{made.case.key}-{name}.csv"] = to_csv(table)
        return found

    return lambda: profile_charts.charts(folder.profile, fine, folder.events), numbers


def _timeline(path: Path, formats: Sequence[str], target: Path) -> None:
    """The pictures of a profile's timeline, which are no charts."""
    from bench.profile.show import draw_timeline
    from bench.profile.store import ProfileFolder

    folder = ProfileFolder.open(path)
    fine = [made for made in folder.measurements() if made.disposition == "ok"]
    shown = [(made, folder.events(made)) for made in fine]
    for written in draw_timeline.write(folder.profile, shown, target, formats):
        print(written, flush=True)


def _read(run: Path) -> RunData:
    from bench.results.rows import in_order
    from bench.results.store import RunFolder
    from kernels.errors import InputError

    folder = RunFolder.open(run)
    measurements = in_order(folder.run, folder.measurements())
    if not measurements:
        raise InputError(
            f"{run} holds no measurement yet; `python main.py compare --resume {run}` takes them"
        )
    return folder.run, measurements


def _charts(data: RunData, over: Path | None) -> list[Chart]:
    from bench.charts import charts, lay_over, short_name

    made = charts([data])
    return made if over is None else lay_over(made, charts([_read(over)]), short_name(over))


def _named(made: Sequence[Chart], names: Sequence[str]) -> list[Chart]:
    """The charts meant by names: whole ones, or those of every model by what follows the model's name."""
    from bench.commands import parsing

    if not names:
        return list(made)
    kinds = {chart.name: chart.name.removeprefix(f"{_stem(chart)}-") for chart in made}
    known = tuple(dict.fromkeys([*kinds.values(), *(chart.name for chart in made)]))
    wanted = {parsing.one_of(name, known, "chart") for name in names}
    return [chart for chart in made if chart.name in wanted or kinds[chart.name] in wanted]


def _stem(chart: Chart) -> str:
    from bench.results.rows import title

    return title(chart.model)


def _write(
    charts: Sequence[Chart], formats: Sequence[str], scale: float, folder: Path, file: Path | None = None
) -> None:
    """Charts in every format, each path printed as soon as its file is whole. file: of the only one."""
    from bench.charts import table as chart_table
    from bench.show import draw_together
    from bench.show.table import Column, Table, to_csv

    pictures = [name for name in formats if name != "csv"]
    columns: list[Column[dict[str, Any]]] = [Column(name) for name in chart_table.COLUMNS]
    for chart, made in draw_together.rendered(charts, pictures, scale):
        if "csv" in formats:
            made["csv"] = to_csv(Table(columns, chart_table.records(chart))).encode()
        for name in formats:
            _save(file or folder / f"{chart.name}.{name}", made[name])


def _save(path: Path, data: bytes) -> None:
    from bench.results.store import write_atomically

    write_atomically(path, data)
    print(path, flush=True)
