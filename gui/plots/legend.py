"""A chart's legend: a button an entry, which shows or hides what it names."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QIcon, QPainter, QPen, QPixmap, QPolygonF, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QToolButton, QWidget

from bench.views.charts.definitions import Chart
from bench.views.charts.doubts import LEGEND, has_doubts
from gui.base.theme import Theming
from gui.plots.base import hatched
from gui.widgets.labels import as_tip

ICON = QSize(26, 14)
SHORT = QSize(18, 14)  # of a compact legend
SQUARE = QSize(14, 14)
SPACING = 2
PADDING = 9  # pixels beside icon and text of a compact one's entry
MANY = 6  # entries, beyond which a legend is compact
LINE = "-"  # a marker: none on the line
DOUBT = "doubt"  # a marker: a hatched square and no line, which explains and hides nothing


@dataclass(frozen=True)
class LegendEntry:
    """key: what is hidden; dashed, marker, overlay: as its line is drawn (marker "": a filled square). short:
    what stands on the button, where the entries before say the rest of the label."""

    key: str
    label: str
    colour: str
    dashed: bool = False
    marker: str = ""
    overlay: int = 0
    short: str = ""


def entries(chart: Chart) -> tuple[LegendEntry, ...]:
    """One a category of bars and a level they are held to, or one a series that has something to show."""
    doubtful = (LegendEntry(LEGEND, LEGEND, "", marker=DOUBT),) if has_doubts(chart) else ()
    if chart.categories or any(panel.baselines for panel in chart.panels):
        levels = {line.label: line for panel in chart.panels for line in panel.baselines}
        return (
            *(LegendEntry(c.key, c.label, c.colour) for c in chart.categories if c.colour),
            *(
                LegendEntry(b.label, b.label, b.colour, dashed=True, marker=LINE, short=short)
                for b, short in zip(levels.values(), _shortened(list(levels)), strict=True)
            ),
            *doubtful,
        )
    found: dict[str, LegendEntry] = {}
    for panel in chart.panels:
        for s in panel.series:
            if not s.named and (s.points or s.marks or s.provisional):
                found.setdefault(
                    s.label, LegendEntry(s.label, s.label, s.colour, s.dashed, s.marker, s.overlay)
                )
    return (*found.values(), *doubtful)


def _shortened(labels: Sequence[str]) -> list[str]:
    """Without the words that all begin with, from the second on: "A reference, 44 µs", "in tf32, 43 µs"."""
    words = [re.findall(r"[^\s,]+|,", label) for label in labels]
    shared = 0
    for column in zip(*words, strict=False):
        if len(set(column)) > 1:
            break
        shared += 1
    found = []
    for index, label in enumerate(labels):
        rest = label
        for word in words[index][:shared] if index else ():
            rest = rest.strip()[len(word) :]
        found.append(rest.strip(" ,") or label)
    return found


class Legend(QWidget):
    """`toggled` carries the frozenset of hidden keys. Of many entries, or of bars that are held to levels, it
    is compact: beside it the chart would have little room."""

    toggled = Signal(object)

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theming = theming
        theming.changed.connect(self._restyle)
        self._entries: tuple[LegendEntry, ...] = ()
        self._compact = False
        self._buttons: dict[str, QToolButton] = {}
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    @property
    def hidden(self) -> frozenset[str]:
        return frozenset(
            key for key, button in self._buttons.items() if button.isCheckable() and not button.isChecked()
        )

    @property
    def buttons(self) -> dict[str, QToolButton]:
        return self._buttons

    def show_entries(self, wanted: tuple[LegendEntry, ...]) -> None:
        if wanted == self._entries:
            return
        self._entries = wanted
        for key in [k for k in self._buttons if k not in {e.key for e in wanted}]:
            button = self._buttons.pop(key)
            button.hide()
            button.deleteLater()
        for entry in wanted:
            if entry.key not in self._buttons:
                self._buttons[entry.key] = self._make(entry)
        self._compact = any(entry.short for entry in wanted) or len(wanted) > MANY
        for entry in wanted:
            button = self._buttons[entry.key]
            if button.property("compact") is not self._compact:
                button.setProperty("compact", self._compact)
                button.style().polish(button)  # its size of text is the sheet's
            button.setIconSize((SHORT if self._compact else ICON) if entry.marker else SQUARE)
        self._restyle()
        self._arrange(self.width(), move=True)
        self.updateGeometry()

    # Buttons stand side by side and go on in a new line where they do not fit.

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._arrange(width, move=False)

    def sizeHint(self) -> QSize:
        return QSize(200, self._arrange(max(200, self.width()), move=False))

    def minimumSizeHint(self) -> QSize:
        widest = max((self._size(entry).width() for entry in self._entries), default=0)
        return QSize(widest, self._arrange(max(widest, self.width()), move=False))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange(self.width(), move=True)

    def _arrange(self, width: int, move: bool) -> int:
        """Place the buttons in the entries' order; the height they need. Levels begin a line of their own
        where that takes none more."""
        sizes = {entry.key: self._size(entry) for entry in self._entries}
        first = next((entry.key for entry in self._entries if entry.short), "")
        apart, height = self._flow(sizes, width, first)
        flowing, least = self._flow(sizes, width, "")
        if height > least:
            apart, height = flowing, least
        if move:
            for key, place in apart.items():
                self._buttons[key].setGeometry(place)
                self._buttons[key].show()
        return height

    @staticmethod
    def _flow(sizes: dict[str, QSize], width: int, begins: str) -> tuple[dict[str, QRect], int]:
        """Where each button stands, and the height of all; begins: the key that begins a line in any case."""
        made: dict[str, QRect] = {}
        x = y = line = 0
        for key, size in sizes.items():
            if x > 0 and (x + size.width() > width or key == begins):
                x, y, line = 0, y + line + SPACING, 0
            made[key] = QRect(x, y, size.width(), size.height())
            x += size.width() + SPACING
            line = max(line, size.height())
        return made, y + line

    def _size(self, entry: LegendEntry) -> QSize:
        button = self._buttons[entry.key]
        if not self._compact:
            return button.sizeHint()
        metrics = button.fontMetrics()
        width = metrics.horizontalAdvance(button.text()) + button.iconSize().width() + PADDING
        return QSize(width, max(metrics.height(), button.iconSize().height()) + 2)

    def _restyle(self) -> None:
        for entry in self._entries:
            self._buttons[entry.key].setIcon(self._icon(entry))

    def _make(self, entry: LegendEntry) -> QToolButton:
        button = QToolButton(self)
        button.setText(entry.short or entry.label)
        button.setAccessibleName(entry.label)
        explains = entry.marker == DOUBT
        button.setCheckable(not explains)
        button.setChecked(not explains)
        button.setProperty("role", "legend")
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        tip = (
            "Hollow and hatched: to be doubted, for the reasons in the notes"
            if explains
            else f"Show or hide {entry.label}"
        )
        button.setToolTip(as_tip(tip))
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.toggled.connect(self._on_toggled)
        return button

    def _on_toggled(self) -> None:
        self._restyle()
        self.toggled.emit(self.hidden)

    def _icon(self, entry: LegendEntry) -> QIcon:
        ratio = self.devicePixelRatioF()
        size = self._buttons[entry.key].iconSize()
        picture = QPixmap(size * ratio)
        picture.setDevicePixelRatio(ratio)
        picture.fill(Qt.GlobalColor.transparent)
        painter = QPainter(picture)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        shown = entry.marker == DOUBT or self._buttons[entry.key].isChecked()
        colour = QColor(entry.colour if shown else self._theming.theme.line)
        middle = QPointF(size.width() / 2, size.height() / 2)
        if entry.marker == DOUBT:
            theme = self._theming.theme
            painter.setPen(QPen(QColor(theme.ink), 1))
            painter.setBrush(hatched(theme.ink, theme.paper))
            painter.drawRect(QRectF(middle.x() - 6, middle.y() - 5, 12, 10))
        elif not entry.marker:
            painter.setPen(QPen(QColor(self._theming.theme.line), 1))
            painter.setBrush(colour)
            painter.drawRect(QRectF(middle.x() - 6, middle.y() - 5, 12, 10))
        else:
            style = Qt.PenStyle.DashLine if entry.dashed else Qt.PenStyle.SolidLine
            painter.setPen(QPen(colour, 0.8 if entry.overlay else 1.6, style))
            painter.drawLine(QPointF(1, middle.y()), QPointF(size.width() - 1, middle.y()))
            painter.setPen(QPen(colour, 0.8 if entry.overlay else 1.3))
            painter.setBrush(colour)
            if entry.marker != LINE:
                _marker(painter, entry.marker, middle, 2.6 if entry.overlay else 3.4)
        painter.end()
        return QIcon(picture)


def _star() -> list[tuple[float, float]]:
    turns = [(math.pi * k / 5 - math.pi / 2, 0.6 if k % 2 else 1.5) for k in range(10)]
    return [(r * math.cos(turn), r * math.sin(turn)) for turn, r in turns]


def _marker(painter: QPainter, marker: str, at: QPointF, r: float = 3.4) -> None:
    corners: dict[str, Sequence[tuple[float, float]]] = {
        "s": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
        "^": ((0, -1.2), (1.1, 0.9), (-1.1, 0.9)),
        "v": ((0, 1.2), (1.1, -0.9), (-1.1, -0.9)),
        "D": ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
        "<": ((-1.2, 0), (0.9, 1.1), (0.9, -1.1)),
        ">": ((1.2, 0), (-0.9, 1.1), (-0.9, -1.1)),
        "*": _star(),
    }
    if marker in corners:
        painter.drawPolygon(
            QPolygonF([QPointF(at.x() + dx * r, at.y() + dy * r) for dx, dy in corners[marker]])
        )
    else:
        painter.drawEllipse(at, r, r)
