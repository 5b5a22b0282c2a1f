"""The mouse moved over a widget by events alone: the pointer of a screen would arrive some time later."""

from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QApplication, QWidget


def move(widget: QWidget, at: QPoint, buttons: Qt.MouseButton = Qt.MouseButton.NoButton) -> None:
    """To a place of the widget that takes the events (of a view, its viewport), with these buttons held."""
    local, there = QPointF(at), QPointF(widget.mapToGlobal(at))
    none = Qt.MouseButton.NoButton
    moved = QMouseEvent(QEvent.Type.MouseMove, local, there, none, buttons, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(widget, moved)
