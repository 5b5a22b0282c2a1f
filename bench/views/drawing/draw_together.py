"""Many charts drawn side by side, by processes of their own: matplotlib takes half a second for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bench.results.store import write_atomically
from bench.views.charts.definitions import Chart
from bench.views.drawing import draw, draw_pool
from bench.views.drawing.looks import PAGE, Look
from kernels.errors import InputError

FEW = 6  # charts, of one model and one more, that are drawn here about as soon as processes have started


def write(
    charts: Iterable[Chart],
    directory: Path,
    formats: Sequence[str] = draw.FORMATS,
    scale: float = 1.0,
    look: Look = PAGE,
) -> list[Path]:
    """Draw every chart into `directory` (made if need be), one file a format, whole or not at all.

    scale: of PNG, in pixels, over draw.DPI. Raises InputError on a format that is not in draw.FORMATS and
    where the folder cannot be written.
    """
    for name in formats:
        if name not in draw.FORMATS:
            raise InputError(f"{name!r} is not a chart format; there are {', '.join(draw.FORMATS)}")
    paths = []
    for chart, drawn in rendered(list(charts), formats, scale, look):
        for name, data in drawn.items():
            path = Path(directory) / f"{chart.name}.{name}"
            write_atomically(path, data)
            paths.append(path)
    return paths


def rendered(
    charts: Sequence[Chart], formats: Sequence[str], scale: float = 1.0, look: Look = PAGE
) -> Iterator[tuple[Chart, dict[str, bytes]]]:
    """Each chart, in order, with its bytes by format (bench.views.drawing.draw.render)."""
    each = [(chart, name) for chart in charts for name in formats]
    workers = min(len(each), draw_pool.cores())
    if workers <= 1 or (len(charts) <= FEW and not draw_pool.expected()):
        yield from ((chart, draw.render(chart, formats, scale, look)) for chart in charts)
        return
    with draw_pool.pool(workers) as pool:
        # Format by format: a PDF takes as long as the two others.
        made = pool.map(_one, each, [scale] * len(each), [look] * len(each))
        for chart in charts:
            yield chart, {name: next(made) for name in formats}


def _one(of: tuple[Chart, str], scale: float, look: Look) -> bytes:
    chart, name = of
    return draw.render(chart, (name,), scale, look)[name]
