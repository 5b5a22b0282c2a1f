"""A list to choose from whose text is cut short by "…" where there is no room, and never inside a letter."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QComboBox, QStyle, QStyleOptionComboBox, QStylePainter

SPARE = QSize(4, 0)  # pixels: a style sheet's field is narrower than what Qt reckons with


class Combo(QComboBox):
    """All of the text that is cut is its tooltip, where nobody gave it one."""

    def sizeHint(self) -> QSize:
        return super().sizeHint() + SPARE

    def minimumSizeHint(self) -> QSize:
        return super().minimumSizeHint() + SPARE

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QStylePainter(self)
        painter.setPen(self.palette().text().color())
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        painter.drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option)
        option.currentText = self.shown_text()
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)

    def shown_text(self) -> str:
        """The text as it is drawn."""
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        field = self.style().subControlRect(
            QStyle.ComplexControl.CC_ComboBox, option, QStyle.SubControl.SC_ComboBoxEditField, self
        )
        icon = self.iconSize().width() + 4 if not self.itemIcon(self.currentIndex()).isNull() else 0
        return self.fontMetrics().elidedText(
            self.currentText(), Qt.TextElideMode.ElideRight, field.width() - icon
        )
