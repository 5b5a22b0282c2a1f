"""Results shown, of whichever kind of run: on standard output in one of the formats, and nothing else there;
what is told beside goes to standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.results import note
from bench.results.folder import Folder
from bench.words import plain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from bench.views.charts.definitions import Chart
    from bench.views.drawing.looks import Look
    from bench.views.tables.table import Table


def show(
    format: str,
    csv: Callable[[], Iterable[Table[Any]]],
    output: Callable[[], object],
    paper: Callable[[], str],
    drawn: Callable[[], Iterable[RenderableType]],
    told: Iterable[str] = (),
) -> None:
    """format: "csv" prints the tables of `csv`, "json" the record that `output` makes, "md" the Markdown of
    `paper`, "table" what `drawn` gives, as rich draws it. told: lines for standard error."""
    from bench.views.tables.table import to_csv, to_json
    from bench.words.terminal import console

    if format == "table":
        for one in drawn():
            console().print(one)
    elif format == "csv":
        sys.stdout.write("\n".join(map(to_csv, csv())))
    else:
        sys.stdout.write(to_json(output()) if format == "json" else paper())
    sys.stdout.flush()  # where it cannot be written, that is all there is to say
    for line in told:
        print(plain.printable(line), file=sys.stderr)


def charts(folder: Folder[Any, Any], over: Sequence[Path] = ()) -> list[Chart]:
    """The charts of a run, with those of the runs in `over`, of the same kind, laid over them. Raises
    InputError where one of them has nothing to draw."""
    from bench.views.charts.overlay import lay_over, short_name

    view = folder.kind.part("view")
    made: list[Chart] = view.charts(folder)
    for number, path in enumerate(over, start=1):
        name = note.read(path).name or short_name(path)
        made = lay_over(made, view.charts(folder.kind.open(path)), name, number)
    return made


def write_charts(folder: Folder[Any, Any], formats: Sequence[str]) -> list[Path]:
    """Draw the charts of a run into its folder, and what else is drawn of its kind; the files."""
    from bench.views.drawing import draw_together

    target = folder.path / "charts"
    return [*draw_together.write(charts(folder), target, formats), *pictures(folder, formats, target)]


def pictures(
    folder: Folder[Any, Any],
    formats: Sequence[str],
    target: Path,
    scale: float = 1.0,
    look: Look | None = None,
) -> list[Path]:
    """Draw what of a run is no chart, where its kind has that; the files."""
    draw = getattr(folder.kind.part("view"), "pictures", None)
    files: list[Path] = draw(folder, formats, target, scale, look) if draw is not None else []
    return files
