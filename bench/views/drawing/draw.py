"""Chart definitions → PNG, SVG and PDF by matplotlib, the same bytes for the same chart.

With draw_panels and draw_tiles the only module that imports matplotlib, and only when it draws.
Nothing is computed here but places and sizes: the page is laid out in inches from the top (title, finding,
legend, panels, notes, footer), each text wrapped to the width it has, so that nothing is cut and nothing
overlaps.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bench.views.charts.definitions import Chart
from bench.views.charts.doubts import LEGEND, has_doubts
from bench.views.drawing import looks
from bench.views.drawing.draw_panels import HATCH, TICK_SIZE, bars, dashes, lines, weight
from bench.views.drawing.draw_tiles import label_width, split_tables, table_size, tiles
from bench.views.drawing.looks import PAGE, Look
from bench.views.drawing.page import Page, measure
from bench.words import palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")
FIGURE = "pickle"  # matplotlib's own figure, for a Python program
DPI = 150
LEFT = 0.72  # inches left of a panel's axes, for its ticks and their name
NARROW, NARROWEST = 2.9, 1.9  # inches that a panel takes beside another; where a picture must not be high
FLAT, LOW, HIGH = 0.64, 1.5, 3.8  # of a panel's width its height, and the least and most of it in inches
PANEL = (4.6, 3.3)  # inches, width and height of one pair of axes with its labels
SINGLE = (8.4, 4.4)
LEAST = 6.8  # points of a text
EDGE = 0.03  # inches that stay white beside it all
NAMES = 0.75  # more below bars that have names, which stand at a slant
STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.edgecolor": palette.MUTED,
    "axes.linewidth": 0.6,
    "axes.labelcolor": palette.INK,
    "axes.titlesize": looks.TITLE,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": palette.GRID,
    "grid.linewidth": 0.6,
    "text.parse_math": False,
    "text.color": palette.INK,
    "xtick.labelsize": TICK_SIZE,
    "ytick.labelsize": TICK_SIZE,
    "xtick.color": palette.INK,
    "ytick.color": palette.INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.frameon": False,
    "svg.hashsalt": "kernelscope",
    "svg.fonttype": "none",  # text stays text
    "pdf.fonttype": 42,
}
# Nothing of the moment goes into a file: the date of the run is in the footer.
METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "ModDate": None, "Creator": None, "Producer": None},
}
_FINDING = {"png": "Description", "svg": "Description", "pdf": "Subject"}  # what each format calls it


def render(
    chart: Chart, formats: Sequence[str] = FORMATS, scale: float = 1.0, look: Look = PAGE
) -> dict[str, bytes]:
    """The chart as bytes, by format. Title and finding stand in the file's own description too."""
    if not formats:
        return {}
    import matplotlib

    settings: Any = {**matplotlib.rcParamsDefault, **STYLE}  # whatever the user's own matplotlibrc says
    with matplotlib.rc_context(settings):
        drawn = figure(chart, look)
        looks.grown(drawn, look.growth)
        return {name: saved(drawn, name, scale, chart.title, chart.finding) for name in formats}


def saved(drawn: Figure, name: str, scale: float, title: str, finding: str) -> bytes:
    """A figure in a format, described by its title and finding."""
    if name == FIGURE:
        return _pickled(drawn)
    buffer = io.BytesIO()
    described = {key: text for key, text in (("Title", title), (_FINDING[name], finding)) if text}
    drawn.savefig(buffer, format=name, dpi=DPI * scale, metadata=METADATA[name] | described)
    data = buffer.getvalue()
    # Where DejaVu Sans is not there, what is as wide stands in for it.
    return data.replace(b"'DejaVu Sans'", b"'DejaVu Sans', Verdana, sans-serif") if name == "svg" else data


def _pickled(drawn: Figure) -> bytes:
    """A figure for whoever has matplotlib and not this program: ticks keep the texts that they were drawn
    with, and nothing in it is of a class of ours."""
    import pickle

    from matplotlib.ticker import FixedFormatter, FixedLocator

    drawn.canvas.draw()
    for axes in drawn.axes:
        for axis in (axes.xaxis, axes.yaxis):
            places = [float(place) for place in axis.get_majorticklocs()]
            texts = axis.get_major_formatter().format_ticks(places)
            axis.set_major_locator(FixedLocator(places))
            axis.set_major_formatter(FixedFormatter(texts))
    return pickle.dumps(drawn)


def figure(chart: Chart, look: Look = PAGE) -> Figure:
    """The matplotlib figure of a chart, laid out and drawn with the Agg canvas, before it grows."""
    import matplotlib

    matplotlib.use("agg", force=False)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    margin = look.margin
    room = None if look.inches is None else look.inches - 2 * margin
    chart = split_tables(chart, room)
    columns, panel_w, panel_h = _grid(chart, look, room)
    rows = -(-len(chart.panels) // columns)
    width = columns * panel_w + 2 * margin
    canvas = Figure(figsize=(width, 1))
    FigureCanvasAgg(canvas)
    page = Page(canvas, width, margin)
    if look.title:
        page.text(chart.title, 13, weight="bold")
    if look.finding and chart.finding:
        page.text(chart.finding, 10, gap=0.06)
    page.legend(_legend(chart))
    slanted = NAMES if any(panel.bars and panel.x.labels for panel in chart.panels) else 0.0
    notes = looks.notes(chart, look)
    if look.height is not None:
        below = sum(page.height_of(note, 8) + 0.03 for note in notes) + 2 * margin
        panel_h = max(LOW, min(panel_h, (look.height - page.used - below) / rows - slanted))
    grid = [page.reserve(panel_h + slanted) for _ in range(rows)]
    for note in notes:
        page.text(note, 8, colour=_ink(note), gap=0.03)
    if look.footer:
        small_print(page, chart.footer)
    height = page.finish()
    places = [
        (margin + column * panel_w, height - grid[row] - panel_h)
        for row, column in (divmod(index, columns) for index in range(len(chart.panels)))
    ]
    left = max([LEFT, *(label_width(panel) for panel in chart.panels if panel.tiles)])
    drawn = _panels(canvas, chart, places, (panel_w, panel_h), left)
    # Ticks may need more than what is usual; then all are drawn again, with as much more for each.
    if (over := _over(canvas, drawn, places, EDGE - margin)) > 0:
        for axes in drawn:
            axes.remove()
        _panels(canvas, chart, places, (panel_w, panel_h), left + over)
    return canvas


def _panels(
    canvas: Figure,
    chart: Chart,
    places: Sequence[tuple[float, float]],
    size: tuple[float, float],
    left: float,
) -> list[Axes]:
    """The panels, of one size each, at these places of the page, in inches."""
    width, height = canvas.get_size_inches()
    found = []
    for panel, (x, y) in zip(chart.panels, places, strict=True):
        # Room for tick labels and the y label to the left, the x label below, the panel's title above.
        bottom, right, top = 0.52, 0.12, 0.30 if panel.title else 0.12
        if panel.tiles:  # whose x label is above
            bottom, top = top, bottom
        inner = (size[0] - left - right, size[1] - bottom - top)
        x0, y0 = x + left, y + bottom
        axes = canvas.add_axes((x0 / width, y0 / height, inner[0] / width, inner[1] / height))
        (bars if panel.bars else tiles if panel.tiles else lines)(axes, panel, chart, inner[0])
        # A title that is wider than its panel is made smaller.
        wide = measure(panel.title, looks.TITLE) if panel.title else 0.0
        if wide > inner[0] + right:
            axes.set_title(panel.title, fontsize=max(LEAST, looks.TITLE * (inner[0] + right) / wide))
        found.append(axes)
    return found


def _over(canvas: Figure, drawn: Sequence[Axes], places: Sequence[tuple[float, float]], edge: float) -> float:
    """How many inches any of them reaches to the left beyond its place; edge: how far it may."""
    over = 0.0
    for axes, (x, _) in zip(drawn, places, strict=True):
        box = axes.get_tightbbox()
        over = max(over, x + edge - box.x0 / canvas.dpi if box is not None else 0.0)
    return over


def small_print(page: Page, lines: Sequence[str]) -> None:
    """On what machine, by which command."""
    for i, line in enumerate(lines):
        page.text(line, 7, colour=palette.MUTED, gap=0.10 if i == 0 else 0.0, family="DejaVu Sans")


def _grid(chart: Chart, look: Look, room: float | None) -> tuple[int, float, float]:
    """How many panels stand beside each other, and their width and height in inches. room: inches that all of
    them have beside each other (None: as they like)."""
    count, panel = len(chart.panels), chart.panels[0]
    if panel.tiles:
        sizes = [table_size(each, room, SINGLE[0]) for each in chart.panels]
        return 1, max(wide for wide, _ in sizes), max(high for _, high in sizes)
    if room is None:
        columns = 1 if count == 1 else 3 if count in (3, 5, 6, 7) or count > 8 else 2
        return columns, *(SINGLE if count == 1 else PANEL)
    columns = max(1, min(count, int(room / (NARROW if look.height is None else NARROWEST))))
    return columns, room / columns, HIGH if look.height is not None else min(HIGH, FLAT * room / columns)


def _ink(note: str) -> str:
    """What failed and what is to be doubted is told in a colour of its own."""
    return {"✕": palette.FAILED, "!": palette.DOUBT}.get(note[:1], palette.MUTED)


def _legend(chart: Chart) -> list[tuple[Any, str]]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    entries: dict[str, Any] = {}
    hollow = Patch(facecolor="white", edgecolor=palette.INK, hatch=HATCH, linewidth=0.8)
    doubtful = [(hollow, LEGEND)] if has_doubts(chart) else []
    if chart.categories:
        levels = [level for panel in chart.panels for level in panel.baselines]
        entries = {
            level.label: Line2D(
                [], [], color=palette.INK, linestyle=palette.dash(level.precision), linewidth=1.1
            )
            for level in levels
        }
        bars = [
            (Patch(facecolor=c.colour, edgecolor=palette.edge(c.colour), linewidth=0.3), c.label)
            for c in reversed(chart.categories)
            if c.colour
        ][::-1]
        return bars + [(handle, label) for label, handle in entries.items()] + doubtful
    for panel in chart.panels:
        for series in panel.series:
            if series.named or series.label in entries or not (series.points or series.marks):
                continue
            entries[series.label] = Line2D(
                [],
                [],
                color=series.colour,
                linestyle=dashes(series),
                **weight(series),
            )
    return [(handle, label) for label, handle in entries.items()] + doubtful
