"""A histogram of values in bins of one width: bars over an axis from the lowest value to the highest."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QHelpEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from gui.base.theme import Theme

EDGE = 10


class Histogram(QWidget):
    """Empty until it is shown counts."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.theme = theme
        self._counts: tuple[int, ...] = ()
        self._low = self._high = 0.0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName("Histogram")

    def sizeHint(self) -> QSize:
        return QSize(320, 150)

    def minimumSizeHint(self) -> QSize:
        return QSize(160, 90)

    def show_counts(self, counts: Sequence[int], low: float, high: float) -> None:
        self._counts, self._low, self._high = tuple(counts), low, high
        most = max(self._counts, default=0)
        self.setAccessibleDescription(
            f"{sum(self._counts):,} values from {low:.4g} to {high:.4g}, at most {most:,} a bin"
        )
        self.update()

    def words_at(self, x: float) -> str:
        """What stands in the bin at this place of the widget."""
        counts, room = self._counts, self._room()
        if not counts or not room.left() <= x <= room.right():
            return ""
        place = min(len(counts) - 1, int((x - room.left()) / room.width() * len(counts)))
        each = self._high / len(counts) - self._low / len(counts)
        if len(counts) == 1:
            return f"{self._low:.4g}: {counts[0]:,} of {counts[0]:,} values"
        span = f"{self._low + place * each:.4g} to {self._low + (place + 1) * each:.4g}"
        return f"{span}: {counts[place]:,} of {sum(counts):,} values"

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), self.words_at(event.pos().x()), self)
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(self.theme.paper))
        if not self._counts:
            return
        room, most, theme = self._room(), max(self._counts), self.theme
        wide = room.width() / len(self._counts)
        painter.setPen(QPen(QColor(theme.line)))
        painter.drawLine(room.bottomLeft(), room.bottomRight())
        bar = QColor(theme.accent)
        for place, count in enumerate(self._counts):
            height = room.height() * count / most if most else 0.0
            if count:
                height = max(1.0, height)  # one value among a million is there, too
            left = room.left() + place * wide
            gap = 1.0 if wide > 3 else 0.0
            painter.fillRect(QRectF(left, room.bottom() - height, wide - gap, height), bar)
        painter.setPen(QColor(theme.muted))
        foot = QRectF(room.left(), room.bottom() + 2, room.width(), self.fontMetrics().height())
        one = len(self._counts) == 1
        marks = [(self._low, Qt.AlignmentFlag.AlignHCenter if one else Qt.AlignmentFlag.AlignLeft)]
        if not one:
            marks.append((self._high, Qt.AlignmentFlag.AlignRight))
            if self._low < 0 < self._high:
                at = room.left() - self._low / (self._high - self._low) * room.width()
                painter.drawLine(int(at), int(room.bottom()), int(at), int(room.bottom()) + 4)
                if room.left() + 70 < at < room.right() - 70:
                    zero = QRectF(at - 30, foot.top(), 60, foot.height())
                    painter.drawText(zero, int(Qt.AlignmentFlag.AlignHCenter), "0")
        for value, side in marks:
            painter.drawText(foot, int(side), f"{value:.4g}")

    def _room(self) -> QRectF:
        foot = self.fontMetrics().height() + 4
        return QRectF(self.rect()).adjusted(EDGE, 6, -EDGE, -foot)
