"""Chart definitions → PNG, SVG and PDF by matplotlib, the same bytes for the same chart.

With bench.show.draw_panels the only module that imports matplotlib, and only when it draws. Nothing is
computed here but places and sizes: the page is laid out in inches from the top (title, finding, legend,
panels, notes, footer), each text wrapped to the width it has, so that nothing is cut and nothing overlaps.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bench.charts.definitions import Chart
from bench.charts.doubts import LEGEND, has_doubts
from bench.show.draw_panels import HATCH, TICK_SIZE, bars, dash, dashes, lines, weight
from bench.words import palette

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")
DPI = 150
MARGIN = 0.35  # inches on every side
LINE = 1.35  # of the font size
PANEL = (4.6, 3.3)  # inches, width and height of one pair of axes with its labels
SINGLE = (8.4, 4.4)
NAMES = 0.75  # more below bars that have names, which stand at a slant
STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.edgecolor": palette.MUTED,
    "axes.linewidth": 0.6,
    "axes.labelcolor": palette.INK,
    "axes.titlesize": 9.5,
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
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}
# Nothing of the moment goes into a file: the date of the run is in the footer.
METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "ModDate": None, "Creator": None, "Producer": None},
}
_FINDING = {"png": "Description", "svg": "Description", "pdf": "Subject"}  # what each format calls it


def render(chart: Chart, formats: Sequence[str] = FORMATS, scale: float = 1.0) -> dict[str, bytes]:
    """The chart as bytes, by format. Title and finding stand in the file's own description too."""
    import matplotlib

    settings: Any = {**matplotlib.rcParamsDefault, **STYLE}  # whatever the user's own matplotlibrc says
    with matplotlib.rc_context(settings):
        drawn = figure(chart)
        found = {}
        for name in formats:
            buffer = io.BytesIO()
            described = {
                key: text for key, text in (("Title", chart.title), (_FINDING[name], chart.finding)) if text
            }
            drawn.savefig(buffer, format=name, dpi=DPI * scale, metadata=METADATA[name] | described)
            found[name] = buffer.getvalue()
    return found


def figure(chart: Chart) -> Figure:
    """The matplotlib figure of a chart, laid out and drawn with the Agg canvas."""
    import matplotlib

    matplotlib.use("agg", force=False)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    count = len(chart.panels)
    columns = 1 if count == 1 else 3 if count in (3, 5, 6) or count > 8 else 2
    rows = -(-count // columns)
    panel_w, panel_h = SINGLE if count == 1 else PANEL
    width = columns * panel_w + 2 * MARGIN
    canvas = Figure(figsize=(width, 1))
    FigureCanvasAgg(canvas)
    page = _Page(canvas, width)
    page.text(chart.title, 13, weight="bold")
    if chart.finding:
        page.text(chart.finding, 10, gap=0.06)
    page.legend(_legend(chart))
    slanted = NAMES if any(panel.bars and panel.x.labels for panel in chart.panels) else 0.0
    grid = [page.reserve(panel_h + slanted) for _ in range(rows)]
    for note in chart.notes:
        page.text(note, 8, colour=_ink(note), gap=0.03)
    for i, line in enumerate(chart.footer):
        page.text(line, 7, colour=palette.MUTED, gap=0.10 if i == 0 else 0.0, family="DejaVu Sans")
    height = page.finish()
    for index, panel in enumerate(chart.panels):
        row, column = divmod(index, columns)
        # Room for tick labels and the y label to the left, the x label below, the panel's title above.
        left, bottom, right, top = 0.72, 0.52, 0.12, 0.30 if panel.title else 0.12
        x0 = MARGIN + column * panel_w + left
        y0 = height - grid[row] - panel_h + bottom
        size = (panel_w - left - right, panel_h - bottom - top)
        axes = canvas.add_axes((x0 / width, y0 / height, size[0] / width, size[1] / height))
        (bars if panel.bars else lines)(axes, panel, chart, size[0])
    return canvas


class _Page:
    """Places text and boxes from the top down, in inches, then sets the page's height and moves all into
    place."""

    def __init__(self, canvas: Figure, width: float) -> None:
        self._canvas = canvas
        self._width = width
        self._y = MARGIN
        self._placed: list[tuple[Any, float]] = []

    def text(
        self,
        text: str,
        size: float,
        gap: float = 0.0,
        colour: str = palette.INK,
        weight: str = "normal",
        family: str = "DejaVu Sans",
    ) -> None:
        self._y += gap
        for line in self._wrap(text, size, weight):
            made = self._canvas.text(
                MARGIN / self._width, 0, line, size=size, color=colour, weight=weight, family=family, va="top"
            )
            self._placed.append((made, self._y))
            self._y += size * LINE / 72

    def legend(self, entries: Sequence[tuple[Any, str]]) -> None:
        """One line of entries, or several where they do not fit."""
        if not entries:
            return
        x, self._y = MARGIN, self._y + 0.10
        for handle, label in entries:
            need = 0.42 + self._measure(label, 9) + 0.22
            if x + need > self._width - MARGIN and x > MARGIN:
                x, self._y = MARGIN, self._y + 0.20
            made = self._canvas.legend(
                [handle],
                [label],
                loc="upper left",
                bbox_to_anchor=(x / self._width, 0),
                borderaxespad=0,
                borderpad=0,
                handlelength=2.2,
                handletextpad=0.6,
                fontsize=9,
            )
            self._placed.append((made, self._y))
            x += need
        self._y += 0.26

    def reserve(self, height: float) -> float:
        """Room for a row of panels; its top in inches from the page's top."""
        top = self._y
        self._y += height
        return top

    def finish(self) -> float:
        height = self._y + MARGIN * 0.8
        self._canvas.set_size_inches(self._width, height)
        for item, y in self._placed:
            if hasattr(item, "set_bbox_to_anchor"):
                x = item.get_bbox_to_anchor()._bbox.x0
                item.set_bbox_to_anchor((x, 1 - y / height), transform=self._canvas.transFigure)
            else:
                item.set_y(1 - y / height)
        return height

    def _wrap(self, text: str, size: float, weight: str) -> list[str]:
        # A number and its unit stay on one line.
        text = re.sub(r"(?<=\d) (?=%|[nµmkMG]?s\b|[kMG]\b|images\b)", "\u00a0", text)
        room = 0.98 * (self._width - 2 * MARGIN)  # hinting makes the drawn text a little wider
        whole = self._measure(text, size, weight)
        if whole <= room:
            return [text]
        columns = max(20, int(len(text) * room / whole * 0.97))
        while True:
            lines = textwrap.wrap(text, columns, break_long_words=True, break_on_hyphens=False)
            if columns <= 20 or all(self._measure(line, size, weight) <= room for line in lines):
                return lines
            columns -= 4

    def _measure(self, text: str, size: float, weight: str = "normal") -> float:
        """Width in inches."""
        from matplotlib.font_manager import FontProperties
        from matplotlib.textpath import text_to_path

        properties = FontProperties(family="DejaVu Sans", weight=weight, size=size)
        return float(text_to_path.get_text_width_height_descent(text, properties, False)[0]) / 72


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
            level.label: Line2D([], [], color=palette.INK, linestyle=dash(level.precision), linewidth=1.1)
            for level in levels
        }
        bars = [(Patch(color=c.colour), c.label) for c in reversed(chart.categories)][::-1]
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
