"""Shows the results of a run, of every kind: on standard output in one of several formats, or as chart files.

Standard output gets the results and nothing else. Additional lines go to standard error.
"""

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
    page: Callable[[], tuple[Iterable[str], Iterable[Table[Any]]]] | None = None,
    told: Iterable[str] = (),
) -> None:
    """Write the results to standard output in one format, then each line of `told` to standard error.

    Each format has an argument that produces it. Only the one for `format` is called, so the others cost
    nothing:

    - "table" draws with rich what `drawn` returns.
    - "csv" prints the tables that `csv` returns, with an empty line between them.
    - "json" prints the record that `output` returns.
    - "md" prints the Markdown text that `paper` returns.
    - "html" prints the sentences and tables that `page` returns, as a part of a page (a notebook shows it);
      only where the command has that format.
    """
    from bench.views.tables.table import to_csv, to_json
    from bench.words.terminal import console

    if format == "table":
        for one in drawn():
            console().print(one)
    elif format == "csv":
        sys.stdout.write("\n".join(map(to_csv, csv())))
    elif format == "html":
        from bench.views.reports import report_html

        assert page is not None
        sys.stdout.write(report_html.part(*page()))
    else:
        sys.stdout.write(to_json(output()) if format == "json" else paper())
    sys.stdout.flush()  # where it cannot be written, that is all there is to say
    for line in told:
        print(plain.printable(line), file=sys.stderr)


def charts(folder: Folder[Any, Any], over: Sequence[Path] = ()) -> list[Chart]:
    """The charts of a run. over: the folders of other runs of the same kind, whose results are drawn in the
    same charts. Raises InputError if a folder cannot be read, and if a run has nothing to draw."""
    from bench.views.charts.overlay import lay_over, short_name

    view = folder.kind.part("view")
    made: list[Chart] = view.charts(folder)
    for number, path in enumerate(over, start=1):
        name = note.read(path).name or short_name(path)
        made = lay_over(made, view.charts(folder.kind.open(path)), name, number)
    return made


def write_charts(folder: Folder[Any, Any], formats: Sequence[str]) -> list[Path]:
    """Draw all charts of a run, and its other pictures (see `pictures`), into the folder `charts` inside the
    run folder. formats: as in bench.views.drawing.draw.FORMATS ("png", "svg", "pdf"). Returns the files.
    Raises InputError as `charts` does, and if a format is unknown or a file cannot be written."""
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
    """Draw the pictures of a run that are not charts, such as the timeline of a profile, into the folder
    `target`. Returns the files; none if this kind of run has no such pictures. scale: of the pixel size of a
    PNG, 1 for the usual size. look: its width, and which of its texts stand on it; None for the usual
    ones."""
    draw = getattr(folder.kind.part("view"), "pictures", None)
    files: list[Path] = draw(folder, formats, target, scale, look) if draw is not None else []
    return files
