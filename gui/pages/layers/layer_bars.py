"""Each layer's time as bars: the backend in focus, and under it the reference it is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QHelpEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QScrollArea, QToolTip, QVBoxLayout, QWidget

from bench.results import doubt
from bench.results.records import Measurement
from bench.words import palette, units
from gui.base.boxes import filled
from gui.base.letters import write
from gui.base.scale import GAP, GRID, TIGHT, points
from gui.base.theme import Theming
from gui.pages.layers.layer_rows import LayerRow, contender, tip
from gui.widgets.labels import Label, as_tip

BAR = 3 * GRID  # pixels a bar is high
NAMES = 150  # pixels of the names at most


@dataclass(frozen=True)
class Side:
    """One of the bars of every layer. unsure: it carries a doubt, and is hatched."""

    name: str
    colour: str
    unsure: bool


def sides(measurements: Sequence[Measurement], focus: Measurement) -> list[Side]:
    """The one in focus and its reference; of a reference, all the others instead."""
    wanted = {focus.case.backend, focus.reference}
    others = [m for m in measurements if m.case.backend != focus.case.backend]
    if focus.reference in ("", focus.case.backend):
        wanted |= {m.case.backend for m in others}
    shown = [focus, *(m for m in others if m.case.backend in wanted)]
    return [Side(contender(m), palette.backend(m.case.backend), bool(doubt.own(m))) for m in shown]


class LayerBars(QWidget):
    """`picked` carries the output tensor of the layer that was clicked."""

    picked = Signal(str)

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("layer-bars")
        self.heading = Label()
        self.heading.setTextFormat(Qt.TextFormat.RichText)
        self.bars = _Bars(theming)
        self.bars.picked.connect(self.picked)
        scroll = QScrollArea()
        scroll.setWidget(self.bars)
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QScrollArea.Shape.NoFrame)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._scroll = scroll
        filled(QVBoxLayout(self), self.heading, (scroll, 1), margins=(0, GAP, 0, 0), spacing=TIGHT)

    def show_rows(self, rows: Sequence[LayerRow], shown: Sequence[Side]) -> None:
        rows = [row for row in rows if row.times_ns]
        if not rows:
            shown = ()
        names = [f'<span style="color:{side.colour}">■</span> {side.name}' for side in shown]
        names += [] if rows else ["no layer was timed"]
        hatched = ", hatched: doubtful" if any(side.unsure for side in shown) else ""
        self.heading.setText(f"<b>Time of each layer</b> &nbsp; {' &nbsp; '.join(names)}{hatched}")
        self.bars.show_rows(rows, shown)

    def follow(self, output: str) -> None:
        """Mark a layer selected elsewhere, and bring it into view."""
        at = self.bars.mark(output)
        if at is not None:
            self._scroll.ensureVisible(0, at.center().y(), 0, at.height())


class _Bars(QWidget):
    picked = Signal(str)

    def __init__(self, theming: Theming) -> None:
        super().__init__()
        self._theming = theming
        self._rows: Sequence[LayerRow] = ()
        self._sides: Sequence[Side] = ()
        self._marked = ""
        self._most = 1.0
        self.setAccessibleName("Time of each layer, a bar a backend")
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def sizeHint(self) -> QSize:
        return QSize(300, len(self._rows) * self._step())

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self.sizeHint().height())

    def show_rows(self, rows: Sequence[LayerRow], shown: Sequence[Side]) -> None:
        self._rows, self._sides = rows, shown
        times = [row.times_ns.get(side.name, 0.0) for row in rows for side in shown]
        self._most = max(times, default=1.0) or 1.0
        self.updateGeometry()
        self.update()

    def mark(self, output: str) -> QRect | None:
        """The row of a layer, if it has one; it is drawn as selected."""
        self._marked = output
        self.update()
        found = (i for i, row in enumerate(self._rows) if output and row.layer.output == output)
        at = next(found, None)
        return None if at is None else QRect(0, at * self._step(), self.width(), self._step())

    def bar(self, place: int, side: int) -> QRect:
        """Where a bar is drawn."""
        left, room = self._across()
        time_ns = self._rows[place].times_ns.get(self._sides[side].name, 0.0)
        top = place * self._step() + TIGHT + side * (BAR + 1)
        return QRect(left, top, max(1 if time_ns else 0, round(room * time_ns / self._most)), BAR)

    # ------------------------------------------------------------------------------------------ the inside

    def _step(self) -> int:
        return max(1, len(self._sides)) * (BAR + 1) + GAP

    def _across(self) -> tuple[int, int]:
        """Where bars begin, and how long the longest is; at its end there is room for its figure."""
        metrics = self.fontMetrics()
        # In whole pixels an advance may be less than the text takes, which would then be cut.
        names = min(NAMES, max((metrics.horizontalAdvance(row.name) for row in self._rows), default=0) + 2)
        left = names + GAP + TIGHT
        return left, max(20, self.width() - left - metrics.horizontalAdvance("000.0 ms !") - GAP)

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = self._theming.theme
        painter = QPainter(self)
        painter.fillRect(event.rect(), QColor(theme.paper))
        step, (left, _) = self._step(), self._across()
        first, last = event.rect().top() // step, event.rect().bottom() // step
        small = self.font()
        small.setPointSizeF(points("caption"))
        for place in range(first, min(last + 1, len(self._rows))):
            row = self._rows[place]
            if row.layer.output and row.layer.output == self._marked:
                painter.fillRect(QRect(0, place * step, self.width(), step), QColor(theme.alternate))
                painter.fillRect(QRect(0, place * step, 3, step), QColor(theme.accent))
            painter.setFont(self.font())
            write(painter, QRectF(GAP, place * step, left - GAP - TIGHT, step), row.name, theme.ink)
            painter.setFont(small)
            for number, side in enumerate(self._sides):
                time_ns = row.times_ns.get(side.name)
                if time_ns is None:
                    continue
                bar = self.bar(place, number)
                if side.unsure:
                    painter.setPen(QColor(side.colour))
                    painter.setBrush(QBrush(QColor(side.colour), Qt.BrushStyle.BDiagPattern))
                    painter.drawRect(bar.adjusted(0, 0, -1, -1))
                else:
                    painter.fillRect(bar, QColor(side.colour))
                painter.setPen(QColor(theme.muted))
                mark = doubt.MARK if side.unsure else ""
                at = QRect(bar.right() + GAP, bar.top() - 2, 200, BAR + 4)
                painter.drawText(at, int(Qt.AlignmentFlag.AlignVCenter), units.duration(time_ns) + mark)

    def _at(self, position: QPoint) -> LayerRow | None:
        place = position.y() // self._step()
        return self._rows[place] if 0 <= place < len(self._rows) else None

    def mousePressEvent(self, event: QMouseEvent) -> None:
        row = self._at(event.position().toPoint())
        if row is not None and row.layer.output:
            self.picked.emit(row.layer.output)

    def event(self, event: object) -> bool:
        if isinstance(event, QHelpEvent) and (row := self._at(event.pos())) is not None:
            QToolTip.showText(event.globalPos(), as_tip(tip(row)), self)
            return True
        return super().event(event)  # type: ignore[arg-type]
