"""A chart's legend: a button an entry, which shows or hides what it names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QIcon, QPainter, QPen, QPixmap, QPolygonF, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QToolButton, QWidget

from bench.charts import Chart
from gui.theme import Theming

ICON = QSize(26, 14)
SQUARE = QSize(14, 14)
SPACING = 2
LINE = "-"  # a marker: none on the line


@dataclass(frozen=True)
class Entry:
    """key: what is hidden; dashed, marker, overlay: as its line is drawn (marker "": a filled square)."""

    key: str
    label: str
    colour: str
    dashed: bool = False
    marker: str = ""
    overlay: bool = False


def entries(chart: Chart) -> tuple[Entry, ...]:
    """One a category of bars and a level they are held to, or one a series that has something to show."""
    if chart.categories or any(panel.baselines for panel in chart.panels):
        levels = {line.label: line for panel in chart.panels for line in panel.baselines}
        return (
            *(Entry(c.key, c.label, c.colour) for c in chart.categories),
            *(Entry(b.label, b.label, b.colour, dashed=True, marker=LINE) for b in levels.values()),
        )
    found: dict[str, Entry] = {}
    for panel in chart.panels:
        for s in panel.series:
            if not s.named and (s.points or s.marks or s.provisional):
                found.setdefault(s.label, Entry(s.label, s.label, s.colour, s.dashed, s.marker, s.overlay))
    return tuple(found.values())


class Legend(QWidget):
    """`toggled` carries the frozenset of hidden keys."""

    toggled = Signal(object)

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theming = theming
        self._entries: tuple[Entry, ...] = ()
        self._buttons: dict[str, QToolButton] = {}
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    @property
    def hidden(self) -> frozenset[str]:
        return frozenset(key for key, button in self._buttons.items() if not button.isChecked())

    @property
    def buttons(self) -> dict[str, QToolButton]:
        return self._buttons

    def show_entries(self, wanted: tuple[Entry, ...]) -> None:
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
        self.restyle()
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
        widest = max((b.sizeHint().width() for b in self._buttons.values()), default=0)
        return QSize(widest, self._arrange(max(widest, self.width()), move=False))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange(self.width(), move=True)

    def _arrange(self, width: int, move: bool) -> int:
        """Place the buttons in the entries' order; the height they need."""
        x = y = line = 0
        for entry in self._entries:
            button = self._buttons[entry.key]
            size = button.sizeHint()
            if x + size.width() > width and x > 0:
                x, y, line = 0, y + line + SPACING, 0
            if move:
                button.setGeometry(QRect(x, y, size.width(), size.height()))
                button.show()
            x += size.width() + SPACING
            line = max(line, size.height())
        return y + line

    def restyle(self) -> None:
        for entry in self._entries:
            self._buttons[entry.key].setIcon(self._icon(entry))

    def _make(self, entry: Entry) -> QToolButton:
        button = QToolButton(self)
        button.setText(entry.label)
        button.setCheckable(True)
        button.setChecked(True)
        button.setProperty("role", "legend")
        button.setIconSize(ICON if entry.marker else SQUARE)
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        button.setToolTip(f"Show or hide {entry.label}")
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.toggled.connect(self._on_toggled)
        return button

    def _on_toggled(self) -> None:
        self.restyle()
        self.toggled.emit(self.hidden)

    def _icon(self, entry: Entry) -> QIcon:
        ratio = self.devicePixelRatioF()
        size = ICON if entry.marker else SQUARE
        picture = QPixmap(size * ratio)
        picture.setDevicePixelRatio(ratio)
        picture.fill(Qt.GlobalColor.transparent)
        painter = QPainter(picture)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        shown = self._buttons[entry.key].isChecked()
        colour = QColor(entry.colour if shown else self._theming.theme.line)
        middle = QPointF(size.width() / 2, size.height() / 2)
        if not entry.marker:
            painter.setPen(QPen(QColor(self._theming.theme.line), 1))
            painter.setBrush(colour)
            painter.drawRect(QRectF(middle.x() - 6, middle.y() - 5, 12, 10))
        else:
            style = Qt.PenStyle.DashLine if entry.dashed else Qt.PenStyle.SolidLine
            painter.setPen(QPen(colour, 0.8 if entry.overlay else 1.6, style))
            painter.drawLine(QPointF(1, middle.y()), QPointF(ICON.width() - 1, middle.y()))
            painter.setPen(QPen(colour, 0.8 if entry.overlay else 1.3))
            hollow = entry.dashed or entry.overlay
            painter.setBrush(QColor(self._theming.theme.paper) if hollow else colour)
            if entry.marker != LINE:
                _marker(painter, entry.marker, middle, 2.6 if entry.overlay else 3.4)
        painter.end()
        return QIcon(picture)


def _marker(painter: QPainter, marker: str, at: QPointF, r: float = 3.4) -> None:
    corners: dict[str, Sequence[tuple[float, float]]] = {
        "s": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
        "^": ((0, -1.2), (1.1, 0.9), (-1.1, 0.9)),
        "v": ((0, 1.2), (1.1, -0.9), (-1.1, -0.9)),
        "D": ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    }
    if marker in corners:
        painter.drawPolygon(
            QPolygonF([QPointF(at.x() + dx * r, at.y() + dy * r) for dx, dy in corners[marker]])
        )
    else:
        painter.drawEllipse(at, r, r)
