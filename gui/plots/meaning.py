"""A chart's title, behind which stands what the chart means."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from gui.base.boxes import filled, fitting_height
from gui.widgets.labels import Elided, Label, Linked, as_tip

WIDTH = 400


class ChartTitle(Elided):
    """A click shows `meaning`, a text with marked words; without one the title is a title."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self._meaning = ""
        self.popup: Meaning | None = None

    @property
    def meaning(self) -> str:
        return self._meaning

    @meaning.setter
    def meaning(self, text: str) -> None:
        self._meaning = text
        if text:
            self.setCursor(Qt.CursorShape.WhatsThisCursor)
            self.setToolTip(as_tip(f"{self.text()}\n(a click says what it means)"))
        else:
            self.unsetCursor()
        self.setAccessibleDescription("A click says what the chart means" if text else "")

    def show_meaning(self) -> None:
        if self._meaning:
            self.popup = Meaning(self.text(), self._meaning, self.window())
            self.popup.move(self.mapToGlobal(QPoint(0, self.height() + 2)))
            self.popup.show()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self.show_meaning()
        super().mouseReleaseEvent(event)


class Meaning(QFrame):
    """Gone at the next click beside it, and by Esc."""

    def __init__(self, title: str, text: str, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setProperty("role", "card")
        heading = Label(title)
        heading.setProperty("role", "heading")
        heading.setWordWrap(True)
        self.words = Linked(text)
        self.words.linkActivated.connect(lambda _: self.close())
        filled(QVBoxLayout(self), heading, self.words, margins=(14, 10, 14, 12), spacing=6)
        self.setFixedWidth(WIDTH)
        self.setFixedHeight(fitting_height(self, WIDTH))
