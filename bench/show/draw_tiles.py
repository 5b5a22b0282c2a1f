"""A panel that is a table of tiles (bench.charts.scoreboard): a row a contender, a column a batch size, each
tile its text on its colour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.charts.definitions import Chart, Panel
from bench.show.draw_panels import TICK_SIZE
from bench.show.page import measure
from bench.words import palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW, COLUMN = 0.27, 1.0  # inches of a tile on a page of its own
TWO_LINES = 1.45  # rows' heights that a row takes whose tiles have two lines
FONT, SMALL, LEAST = (
    8.5,
    6.5,
    4.5,
)  # points of a tile's text; below which it is put on two lines; the smallest
ROOM, TALL = 0.92, 0.62  # of a tile's width that its text may fill, of its height a line's
AROUND = 0.64  # inches above and below the tiles: batch sizes and their name
PLAIN = ("none", "reference")  # grades that are no news


def names(panel: Panel) -> float:
    """Inches left of the tiles."""
    return max((measure(name, FONT) for name in panel.y.labels), default=0.0) + 0.15


def size(panel: Panel, room: float | None, least: float) -> tuple[float, float]:
    """Inches that a panel takes: as wide as it likes, but at least `least`, or as there is `room`."""
    left = names(panel) + 0.12
    wide = max(least, left + COLUMN * len(panel.x.ticks)) if room is None else room
    lines = 1.0 if _points(panel, (wide - left) / len(panel.x.ticks), 1) >= SMALL else TWO_LINES
    return wide, AROUND + lines * ROW * len(panel.y.ticks)


def _points(panel: Panel, width: float, lines: int) -> float:
    """How large the text of tiles so wide may be, in inches, on one line or on two."""
    texts = [part for tile in panel.tiles for part in ([tile.text] if lines == 1 else tile.text.split())]
    widest = max((measure(text, FONT) for text in texts), default=1.0)
    return FONT * min(1.0, ROOM * width / widest)


def tiles(axes: Axes, panel: Panel, chart: Chart, width: float) -> None:
    from matplotlib.patches import Rectangle
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    columns, rows = len(panel.x.ticks), len(panel.y.ticks)
    height = 72 * axes.get_window_extent().height / axes.figure.dpi / rows
    lines = 1 if _points(panel, width / columns, 1) >= SMALL else 2
    points = max(LEAST, min(height * TALL / lines, _points(panel, width / columns, lines)))
    places = {batch: place for place, batch in enumerate(panel.x.ticks)}
    for tile in panel.tiles:
        x, y = places[tile.x], tile.row
        if tile.colour:
            axes.add_patch(
                Rectangle((x, y), 1, 1, facecolor=tile.colour, edgecolor="white", linewidth=1.2, zorder=1)
            )
        ink = palette.ink_on(tile.colour) if tile.colour and tile.grade not in PLAIN else palette.MUTED
        if tile.grade == "wrong":
            ink = palette.FAILED
        text = tile.text if lines == 1 else tile.text.replace(" ", "\n")
        axes.text(
            x + 0.5,
            y + 0.5,
            text,
            ha="center",
            va="center_baseline" if lines == 1 else "center",
            size=points,
            color=ink,
            weight="bold" if tile.grade == "wrong" else "normal",
            zorder=2,
        )
    axes.set_xlim(0, columns)
    axes.set_ylim(rows, 0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.xaxis.set_major_locator(FixedLocator([place + 0.5 for place in places.values()]))
    axes.xaxis.set_major_formatter(FixedFormatter([f"{int(batch):,}" for batch in panel.x.ticks]))
    axes.yaxis.set_major_locator(FixedLocator([row + 0.5 for row in range(rows)]))
    axes.yaxis.set_major_formatter(FixedFormatter(list(panel.y.labels)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
    axes.tick_params(length=0)
    heads = max(measure(f"{int(batch):,}", FONT) for batch in panel.x.ticks)
    axes.tick_params(axis="x", labelsize=min(TICK_SIZE, max(LEAST, FONT * ROOM * width / columns / heads)))
    axes.tick_params(axis="y", labelsize=min(TICK_SIZE, max(LEAST, 72 * ROW * TALL, points)))
    axes.set_xlabel(panel.x.label)
