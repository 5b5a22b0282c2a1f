"""A panel that is a table of tiles (charts.scoreboard): a row a contender, a column a batch size, each
tile its text on its colour."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from bench.views.charts.definitions import Chart, Panel
from bench.views.drawing.draw_panels import TICK_SIZE
from bench.views.drawing.page import measure
from bench.words import palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW, COLUMN = 0.27, 1.0  # inches of a tile on a page of its own
TWO_LINES = 1.45  # rows' heights that a row takes whose tiles have two lines
FONT = 8.5  # points of a tile's text
SMALL, LEAST = 6.8, 5.0  # points below which it is put on two lines; the smallest
ROOM, TALL = 0.92, 0.62  # of a tile's width that its text may fill, of its height a line's
BESIDE, AROUND = 0.12, 0.64  # inches right of the tiles; above and below them: batch sizes and their name
PLAIN = ("none", "reference")  # grades that are no news


def label_width(panel: Panel) -> float:
    """Inches left of the tiles."""
    return max((measure(name, FONT) for name in panel.y.labels), default=0.0) + 0.15


def split_tables(chart: Chart, room: float | None) -> Chart:
    """The chart with each table in as many parts, one below the other, as it takes for its texts to be read
    where there is `room`, in inches."""
    if room is None:
        return chart
    panels: list[Panel] = []
    for panel in chart.panels:
        if not panel.tiles:
            panels.append(panel)
            continue
        ticks = panel.x.ticks
        fit = max(1, int((room - label_width(panel) - BESIDE) / (_widest(panel, 2) * SMALL / FONT / ROOM)))
        each = -(-len(ticks) // -(-len(ticks) // fit))
        for some in (ticks[at : at + each] for at in range(0, len(ticks), each)):
            axis = msgspec.structs.replace(panel.x, ticks=some)
            among = tuple(tile for tile in panel.tiles if tile.x in some)
            panels.append(msgspec.structs.replace(panel, x=axis, tiles=among))
    return msgspec.structs.replace(chart, panels=tuple(panels))


def table_size(panel: Panel, room: float | None, least: float) -> tuple[float, float]:
    """Inches that a panel takes: as wide as it likes, but at least `least`, or as there is `room`."""
    left = label_width(panel) + BESIDE
    wide = max(least, left + COLUMN * len(panel.x.ticks)) if room is None else room
    lines = 1.0 if _points(panel, (wide - left) / len(panel.x.ticks), 1) >= SMALL else TWO_LINES
    return wide, AROUND + lines * ROW * len(panel.y.ticks)


def _widest(panel: Panel, lines: int) -> float:
    """Inches of the widest text of a tile, on one line or on two, or of a batch size."""
    texts = [part for tile in panel.tiles for part in ([tile.text] if lines == 1 else tile.text.split())]
    return max(measure(text, FONT) for text in (*texts, *map(_head, panel.x.ticks)))


def _points(panel: Panel, width: float, lines: int) -> float:
    """How large the text of tiles so wide may be, in inches, on one line or on two."""
    return FONT * min(1.0, ROOM * width / _widest(panel, lines))


def _head(batch: float) -> str:
    return f"{int(batch):,}"


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
    axes.xaxis.set_major_formatter(FixedFormatter(list(map(_head, panel.x.ticks))))
    axes.yaxis.set_major_locator(FixedLocator([row + 0.5 for row in range(rows)]))
    axes.yaxis.set_major_formatter(FixedFormatter(list(panel.y.labels)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
    axes.tick_params(length=0)
    axes.tick_params(axis="x", labelsize=min(TICK_SIZE, max(LEAST, _points(panel, width / columns, lines))))
    axes.tick_params(axis="y", labelsize=min(TICK_SIZE, max(LEAST, height * TALL)))
    axes.set_xlabel(panel.x.label)
