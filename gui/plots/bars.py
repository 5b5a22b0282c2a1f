"""A plot of stacked bars, over batch sizes or over names. One item draws a category; only its data change."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QTextOption
from PySide6.QtWidgets import QWidget

from bench.views.charts.definitions import Bar, Baseline, Category
from gui.base.theme import Theming, resized
from gui.plots.base import HatchedBars, PanelPlot, failure_line, line_of, outlined, standing_out

THICK = 0.74  # of the distance between two bars
SQUASHED = 0.4  # of the plot's height, beyond which turned totals would take it from the bars
APART = 1.5  # of a text's height: nearer to each other turned totals are a hatching to the eye
SLANT = 90  # degrees by which totals are turned where they have no room
DASH = 4.0  # of a baseline, in widths of its line


class BarPlot(PanelPlot):
    """Stacked bars. categories: of the chart, in stacking order."""

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        self.categories: tuple[Category, ...] = ()
        self.ticks: tuple[float, ...] = ()
        self._stacks: dict[str, pg.BarGraphItem] = {}
        self._drawn: dict[str, object] = {}  # what they were made of
        self._totals: list[pg.TextItem] = []
        self._lines: list[pg.InfiniteLine] = []
        self.doubtful = HatchedBars()  # drawn over the parts of bars that are in doubt
        self._frame = pg.BarGraphItem(x=[], y0=[], height=[], width=THICK)
        self._intervals = pg.ErrorBarItem()
        super().__init__(theming, parent)
        self.doubtful.setZValue(2)
        self.addItem(self.doubtful, ignoreBounds=True)
        self.getPlotItem().showGrid(x=False, y=True, alpha=0.25)
        self.box.setMouseEnabled(x=False, y=False)
        for z, item in ((4, self._frame), (3, self._intervals)):
            item.setZValue(z)
            self.addItem(item, ignoreBounds=True)

    def draw(self) -> None:
        panel = self.panel
        assert panel is not None
        bars = panel.bars
        batches = sorted({b.x for b in bars} | set(panel.x.ticks) | set(self.ticks))
        self._places = {batch: float(i) for i, batch in enumerate(batches)}
        named = dict(zip(panel.x.ticks, panel.x.labels, strict=False))
        self.x_axis.names = {place: named.get(batch, f"{batch:.0f}") for batch, place in self._places.items()}
        self.x_axis.describe(panel.x, False)
        self.y_axis.describe(panel.y, False, fixed=panel.y.ticks)
        bases = {bar.x: 0.0 for bar in bars}
        hollow = []
        for category in self.categories:
            heights = {
                bar.x: sum(part.value for part in bar.parts if part.category == category.key) for bar in bars
            }
            self._fill(category, bars, bases, heights)
            if category.key not in self.hidden:
                for bar in bars:
                    height = heights[bar.x]
                    if bar.doubts and height and category.colour:
                        left = self._places[bar.x] - THICK / 2
                        seen = outlined(category.colour, self.theming.theme)
                        hollow.append((QRectF(left, bases[bar.x], THICK, height), seen))
                    bases[bar.x] += height
        for key in [k for k in self._stacks if k not in {c.key for c in self.categories}]:
            self.removeItem(self._stacks.pop(key))
            self._drawn.pop(key)
        self.doubtful.show_bars(hollow, self.theming.theme.paper)
        self._rule(panel.baselines)
        self._bound(bars)
        levels = [max(sum(p.value for p in bar.parts), bar.followed) for bar in bars]
        levels += [line.y for line in panel.baselines]
        highest = max(levels, default=1.0) or 1.0
        room = self._label(bars, bases, bool(panel.baselines))
        height = max(40.0, self.box.height())
        top = highest / (1 - min(0.6, room / height))
        self.fit(-0.6, max(1, len(batches)) - 0.4, 0.0, top)
        self.place_selection()

    def nearest(self, position: QPointF) -> float | None:
        return min(self._places.values(), key=lambda p: abs(p - position.x()), default=None)

    def words_at(self, x: float) -> str:
        bar = self._bar_at(x)
        if bar is None:
            return ""
        assert self.panel is not None
        named = dict(zip(self.panel.x.ticks, self.panel.x.labels, strict=False))
        head = escape(named.get(bar.x, f"batch {bar.x:,.0f}"))
        head = f"<div>{head}{', ' + escape(bar.total) if bar.total else ''}</div>"
        head += "".join(f"<div>! {escape(text)}</div>" for text in bar.doubts)
        if bar.mark is not None:
            return head + failure_line(self.theming.theme.failed, "", bar.mark.disposition, bar.mark.reason)
        total = sum(p.value for p in bar.parts) or 1.0
        known = {c.key: c for c in self.categories if c.colour}
        lines = [
            line_of(
                known[p.category].colour,
                known[p.category].label,
                f"{p.text} ({p.value / total:.0%})" if len(bar.parts) > 1 else p.text,
            )
            for p in reversed(bar.parts)
            if p.value > 0 and p.category in known
        ]
        return head + "".join(lines)

    def reach(self) -> float:
        (left, right), _ = self.box.viewRange()
        width = self.box.width()
        return 2.0 + 0.5 * THICK * width / max(1e-9, right - left)

    def pick(self, position: QPointF) -> tuple[str, float] | None:
        x = self.nearest(position)
        bar = self._bar_at(x) if x is not None else None
        assert self.panel is not None
        return (self.panel.title, bar.x) if bar is not None else None

    def place_selection(self) -> None:
        assert self.panel is not None
        label, x = self.selected or ("", 0.0)
        marked = [bar for bar in self.panel.bars if label == self.panel.title and bar.x == x]
        self._frame.setOpts(
            x=np.array([self._places[bar.x] for bar in marked]),
            y0=np.zeros(len(marked)),
            height=np.array([sum(p.value for p in b.parts if p.category not in self.hidden) for b in marked]),
            width=THICK + 0.08,
            brush=pg.mkBrush(None),
            pen=pg.mkPen(self.theming.theme.ink, width=self.pixels(2.4)),
        )

    # ------------------------------------------------------------------------------------------ the inside

    def _fill(
        self,
        category: Category,
        bars: tuple[Bar, ...],
        bases: dict[float, float],
        heights: dict[float, float],
    ) -> None:
        item = self._stacks.get(category.key)
        if item is None:
            item = self._stacks[category.key] = pg.BarGraphItem(x=[0], y0=[0], height=[0], width=THICK)
            self.addItem(item, ignoreBounds=True)
        theme, visible = self.theming.theme, category.key not in self.hidden
        placed = [(self._places[bar.x], bases[bar.x], heights[bar.x]) for bar in bars]
        drawn = category, visible, theme, placed
        if self._drawn.get(category.key) == drawn:
            return
        self._drawn[category.key] = drawn
        item.setVisible(visible)
        sinks = bool(category.colour) and outlined(category.colour, theme) == theme.muted
        edge = theme.muted if theme.dark or sinks else theme.paper
        x, y0, height = np.array(placed).reshape(-1, 3).T
        item.setOpts(
            x=x,
            y0=y0,
            height=height,
            width=THICK,
            brush=pg.mkBrush(category.colour or None),
            pen=pg.mkPen(edge, width=0.5) if category.colour else pg.mkPen(None),
        )

    def _bound(self, bars: tuple[Bar, ...]) -> None:
        """Set the intervals on top of the bars, if all parts of the bars are shown."""
        known = [] if self.hidden else [(bar, *bar.interval) for bar in bars if bar.interval is not None]
        tops = np.array([sum(part.value for part in bar.parts) for bar, _, _ in known])
        self._intervals.setData(
            x=np.array([self._places[bar.x] for bar, _, _ in known]),
            y=tops,
            top=np.array([high for _, _, high in known]) - tops,
            bottom=tops - np.array([low for _, low, _ in known]),
            beam=0.16,
            pen=pg.mkPen(self.theming.theme.ink, width=self.pixels(1.2)),
        )

    def _rule(self, baselines: Sequence[Baseline]) -> None:
        """Draw a dashed line for each baseline, the first on top; where two lie upon each other, the dashes
        of one stand in the gaps of the other. The legend names it."""
        while len(self._lines) < len(baselines):
            line = pg.InfiniteLine(angle=0, movable=False)
            line.setZValue(6 - len(self._lines) / 100)
            self.addItem(line, ignoreBounds=True)
            self._lines.append(line)
        for line in self._lines[len(baselines) :]:
            line.setVisible(False)
        for index, (line, baseline) in enumerate(zip(self._lines, baselines, strict=False)):
            line.setVisible(baseline.label not in self.hidden)
            line.setPos(baseline.y)
            colour = standing_out(baseline.colour, self.theming.theme)
            pen = pg.mkPen(colour, width=self.pixels(1.6), style=Qt.PenStyle.CustomDashLine)
            pen.setDashPattern([DASH, DASH])
            pen.setDashOffset(2 * DASH * index / len(baselines))
            line.setPen(pen)

    def _label(self, bars: tuple[Bar, ...], bases: dict[float, float], levels: bool) -> float:
        """Write the totals above the bars, and return their height in pixels. If they are too wide, the
        unit goes to a second line; then all are turned; then only the highest bar's is written, and the
        tooltip at the pointer has the others."""
        theme = self.theming.theme
        room = max(1.0, (self.width() - 70) / max(1, len(self._places)))
        font = resized(self.font(), more=-2, least=6.5)
        metrics = QFontMetricsF(font)

        def widest(texts: Sequence[str]) -> float:
            return max(
                (metrics.horizontalAdvance(line) for text in texts for line in text.split("\n")), default=0
            )

        totals = ["✕" if bar.mark is not None else bar.total for bar in bars]
        stacked = [total.replace(" ", "\n", 1) for total in totals]
        whole = self.box.height()
        upright = False
        height = metrics.height() + 10
        if widest(totals) + 6 > room:
            if widest(stacked) + 4 <= room:
                totals, height = stacked, 2 * metrics.height() + 10
            else:
                upright, height = True, widest(totals) + 10
                if height > SQUASHED * whole or APART * metrics.height() > room:
                    # Only above the highest bar, where none is in the way.
                    highest = max(bars, key=lambda bar: sum(part.value for part in bar.parts)).x
                    totals = [
                        total if total == "✕" or bar.x == highest else ""
                        for total, bar in zip(totals, bars, strict=True)
                    ]
                    upright, height = False, metrics.height() + 10
        while len(self._totals) < len(bars):
            text = pg.TextItem()
            self.addItem(text, ignoreBounds=True)
            self._totals.append(text)
        for text in self._totals[len(bars) :]:
            text.setVisible(False)
        for text, bar, total in zip(self._totals, bars, totals, strict=False):
            failed = bar.mark is not None
            text.setVisible(bool(total))
            # A baseline must not run through a total.
            document = text.textItem.document()
            document.setDocumentMargin(1 if levels else 4)
            document.setDefaultTextOption(QTextOption(Qt.AlignmentFlag.AlignHCenter))
            text.fill = pg.mkBrush(theme.paper if levels else None)
            text.setZValue(6 if levels else 0)
            text.setFont(font)
            text.setColor(QColor(theme.failed if failed else theme.ink))
            text.textItem.setTextWidth(-1)
            text.setPlainText(f" {total}" if upright and not failed else total)  # off the interval's end
            text.textItem.setTextWidth(document.idealWidth())
            text.setAnchor((0.0, 0.5) if upright and not failed else (0.5, 1.0))
            text.setAngle(SLANT if upright and not failed else 0)
            text.setPos(self._places[bar.x], max(bases[bar.x], 0.0 if self.hidden else bar.followed))
            text.updateTextPos()
        return height

    def _bar_at(self, x: float) -> Bar | None:
        assert self.panel is not None
        return next((bar for bar in self.panel.bars if self._places.get(bar.x) == x), None)
