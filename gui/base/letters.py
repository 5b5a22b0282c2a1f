"""Letters of another size or weight, and a line of text that is painted into a place."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter

LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


def resized(
    font: QFont, times: float = 1.0, more: float = 0.0, bold: bool = False, least: float = 1.0
) -> QFont:
    """A font `times` as large and `more` points larger, of at least `least` points; bold, or as it was."""
    made = QFont(font)
    if (times, more) != (1.0, 0.0):
        made.setPointSizeF(max(least, times * font.pointSizeF() + more))
    if bold:
        made.setBold(True)
    return made


def write(
    painter: QPainter,
    place: QRectF,
    text: str,
    ink: QColor | str,
    where: Qt.AlignmentFlag = LEFT,
    cut: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
) -> None:
    """A line in the painter's font; what there is no room for is cut off and told by "…"."""
    painter.setPen(QColor(ink))
    painter.drawText(place, where, QFontMetricsF(painter.font()).elidedText(text, cut, place.width()))
