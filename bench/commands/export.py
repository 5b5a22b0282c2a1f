"""`export`: the charts, and the numbers as CSV, of a saved run, ladder or profile."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bench.commands.given import number
from bench.words.option import Number

if TYPE_CHECKING:
    from bench.views.charts.definitions import Chart, MissingPoint, Panel, Point
    from bench.views.drawing.looks import Look

LARGEST_SCALE = 8


def export(
    run: Path = typer.Argument(metavar="RUN", help="A run's, a ladder's or a profile's folder."),
    charts: str = typer.Option("png,svg,pdf", metavar="F,F,…", help="Of png, svg, pdf, csv; or none."),
    chart: list[str] = typer.Option(
        [],
        metavar="NAME",
        help="Only this chart, for example op-time or lenet5-digits-op-time, or of a profile its timeline; "
        "may be repeated.",
    ),
    csv: bool = typer.Option(
        False, "--csv", help="Also results.csv and, of a run, layers.csv; of a profile, its tables."
    ),
    out: Path | None = typer.Option(None, metavar="DIR", help="Target folder; default: charts/ in the run."),
    file: Path | None = typer.Option(
        None,
        "--file",
        metavar="FILE",
        help="Write one chart to this file, in the format of its suffix; .pickle: matplotlib's figure.",
    ),
    scale: float = number(
        1.0,
        "--scale",
        Number(kind=float, least=0.1, most=LARGEST_SCALE),
        "Size of PNG: 2 gives twice as many pixels per side.",
    ),
    width: str = typer.Option(
        "page",
        "--width",
        metavar="WIDTH",
        help="page, or for a paper one-column (89 mm) or two-columns (182 mm), or slide (16:9).",
    ),
    title: bool | None = typer.Option(None, "--title/--no-title", help="The title on the picture."),
    finding: bool | None = typer.Option(
        None, "--finding/--no-finding", help="The sentence that says what is found, on the picture."
    ),
    footer: bool | None = typer.Option(
        None, "--footer/--no-footer", help="Notes, machine and command on the picture; doubts stay on it."
    ),
    caption: bool | None = typer.Option(
        None,
        "--caption/--no-caption",
        help="A text file beside each picture with all of these; default: where one is left off.",
    ),
    names: bool = typer.Option(False, "--names", help="Draw nothing; print the names of its charts."),
    over: list[Path] = typer.Option(
        [], metavar="RUN", help="Draw this run over it, in thin lines; may be repeated."
    ),
) -> None:
    """Draw the charts of a saved run, ladder or profile again."""
    from bench.results.folders import open_folder
    from bench.views import show
    from bench.views.drawing.draw import FIGURE, FORMATS
    from bench.views.drawing.looks import look
    from bench.views.tables.table import to_csv
    from bench.words.option import Names, one_of
    from kernels.errors import InputError

    known = (*FORMATS, "csv")
    wanted = look(width, title, finding, footer, caption)
    if file is not None:
        formats: tuple[str, ...] = (
            one_of(file.suffix.lower().lstrip("."), (*known, FIGURE), "format of a file's ending"),
        )
    else:
        formats = Names(known=known, none="none").read([charts], "--charts")
    if not formats and not csv:
        raise InputError("nothing to export: name chart formats by --charts, or give --csv")
    folder = open_folder(run)
    if over and not folder.kind.layered:
        raise InputError(f"--over lays one run over another; {folder.kind.a} cannot be laid over one")
    view = folder.kind.part("view")
    if names:
        print("\n".join(made.name for made in show.charts(folder)))
        return
    numbers = view.numbers(folder)
    picture = getattr(view, "PICTURE", "")  # that is no chart
    alone = bool(picture) and picture in chart
    drawn = [name for name in formats if name != "csv"]
    if alone and (file is not None or not drawn):
        raise InputError(f"{picture} is drawn as png, svg or pdf, by --charts, into a folder, by --out")
    named = [name for name in chart if name != picture]
    made = _named(show.charts(folder, over), named, picture) if formats and (named or not alone) else []
    if file is not None:
        if len(made) != 1:
            raise InputError(
                f"--file takes one chart and {len(made)} are meant: name it by --chart, of "
                f"{', '.join(c.name for c in made)}"
            )
        _write(made, formats, scale, wanted, file.parent, file)
        return
    target = out or run / "charts"
    _write(made, formats, scale, wanted, target)
    if picture and (alone or not chart):
        for written in show.pictures(folder, drawn, target, scale, wanted):
            print(written, flush=True)
    if csv:
        for name, table in numbers.items():
            _save(target / f"{name}.csv", to_csv(table).encode())
    if formats and not made and not alone:
        print(f"{run} has no case with numbers to draw", file=sys.stderr)


def _named(made: Sequence[Chart], names: Sequence[str], picture: str = "") -> list[Chart]:
    """The charts meant by names: whole ones, or those of every model by what follows the model's name.
    picture: another name that there is."""
    from bench.words.option import one_of

    if not names:
        return list(made)
    kinds = {chart.name: chart.name.removeprefix(f"{_stem(chart)}-") for chart in made}
    known = tuple(dict.fromkeys([*kinds.values(), *(chart.name for chart in made), *filter(None, [picture])]))
    wanted = {one_of(name, known, "chart") for name in names}
    return [chart for chart in made if chart.name in wanted or kinds[chart.name] in wanted]


def _stem(chart: Chart) -> str:
    from bench.results.rows import title

    return title(chart.model)


def _write(
    charts: Sequence[Chart],
    formats: Sequence[str],
    scale: float,
    look: Look,
    folder: Path,
    file: Path | None = None,
) -> None:
    """Charts in every format, each path printed as soon as its file is whole. file: of the only one."""
    from bench.views.drawing import draw_together, looks
    from bench.views.tables.table import Column, Table, to_csv

    pictures = [name for name in formats if name != "csv"]
    columns: list[Column[dict[str, Any]]] = [Column(name) for name in COLUMNS]
    for chart, made in draw_together.rendered(charts, pictures, scale, look):
        if "csv" in formats:
            made["csv"] = to_csv(Table(columns, records(chart))).encode()
        for name in formats:
            _save(file or folder / f"{chart.name}.{name}", made[name])
        if look.caption and pictures:
            beside = file.with_suffix(looks.CAPTION) if file else folder / f"{chart.name}{looks.CAPTION}"
            _save(beside, looks.caption(chart).encode())


def _save(path: Path, data: bytes) -> None:
    from bench.results.store import write_atomically

    write_atomically(path, data)
    print(path, flush=True)


COLUMNS = (
    "panel",
    "series",
    "x",
    "batch",
    "value",
    "low",
    "high",
    "unit",
    "words",
    "doubts",
    "disposition",
    "reason",
)


def records(chart: Chart) -> list[dict[str, Any]]:
    """One dictionary a line, by COLUMNS. Values in the unit that stands beside them, "%" meaning fractions;
    words: how the chart writes it; doubts: what speaks against it. series: a backend, or the category of a
    slice, whose backend is the panel's title. x: the place on the x axis, or the name that stands there;
    batch: the same where that axis has batch sizes. A failure has no value but a disposition and a reason."""
    return [record for panel in chart.panels for record in _panel(panel, chart)]


def _panel(panel: Panel, chart: Chart) -> list[dict[str, Any]]:
    names = {category.key: category.label for category in chart.categories}
    found = []
    if lanes := dict(zip(panel.y.ticks, panel.y.labels, strict=False)) if panel.series else {}:
        return [
            _in_lane(lanes[p.y], s.label, p, panel) for s in panel.series for p in s.points if p.y in lanes
        ]
    for series in panel.series:
        found += [
            _record(
                panel, series.label, p.x, value=p.y, low=p.low, high=p.high, words=p.text, doubts=p.doubts
            )
            for p in series.points
        ]
        found += [_failure(panel, series.label, mark) for mark in series.marks]
    for bar in panel.bars:
        found += [
            _record(
                panel,
                names.get(p.category, p.category),
                bar.x,
                value=p.value,
                words=p.text,
                doubts=bar.doubts,
            )
            for p in bar.parts
        ]
        if bar.mark is not None:
            found.append(_failure(panel, "", bar.mark))
    for tile in panel.tiles:
        whose = panel.y.labels[tile.row]
        if tile.grade in ("none", "wrong"):
            found.append(_record(panel, whose, tile.x, disposition=tile.text, reason=tile.why))
        else:
            values = {"value": tile.value, "low": tile.low, "high": tile.high}
            found.append(_record(panel, whose, tile.x, words=tile.text, doubts=tile.doubts, **values))
    return found


def _record(panel: Panel, series: str, x: float, **values: Any) -> dict[str, Any]:
    number = int(x) if x == int(x) else x
    place = dict(zip(panel.x.ticks, panel.x.labels, strict=False)).get(x, number)
    batch = number if panel.x.label.startswith("batch") else None
    known = {"panel": panel.title, "series": series, "x": place, "batch": batch, "unit": panel.y.unit}
    known |= values
    known["doubts"] = "; ".join(values.get("doubts", ())) or None
    return {name: known.get(name) for name in COLUMNS}


def _in_lane(lane: str, series: str, point: Point, panel: Panel) -> dict[str, Any]:
    """Of a panel whose values go to the right, in lanes with names."""
    known = {"panel": lane, "series": series, "value": point.x, "unit": panel.x.unit, "words": point.text}
    known["doubts"] = "; ".join(point.doubts) or None
    return {name: known.get(name) for name in COLUMNS}


def _failure(panel: Panel, series: str, mark: MissingPoint) -> dict[str, Any]:
    return _record(panel, series, mark.x, disposition=mark.disposition, reason=mark.reason)
