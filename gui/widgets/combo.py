"""A list to choose from, whose text is cut short by "…" where there is no room, and never inside a letter;
and the lists above a page by which it is chosen what the page shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QComboBox, QStyle, QStyleOptionComboBox, QStylePainter, QWidget

from gui.base.boxes import flowing
from gui.widgets.labels import as_tip, labelled

SPARE = QSize(4, 0)  # pixels: a style sheet's field is narrower than what Qt reckons with


class Combo(QComboBox):
    """name: for a screen reader; chosen: called with the place of what the user chose; grows: as wide as its
    widest text."""

    def __init__(
        self,
        name: str = "",
        chosen: Callable[..., object] | None = None,
        grows: bool = True,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        if grows:
            self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        if chosen is not None:
            self.activated.connect(chosen)

    def offer(self, items: Mapping[Any, str], chosen: Any = None) -> Any:
        """Have these (data → words) and no others, choose one of them, else the first, and answer it. Nothing
        is told of it."""
        before = self.blockSignals(True)
        if [(self.itemData(i), self.itemText(i)) for i in range(self.count())] != list(items.items()):
            self.clear()
            for data, words in items.items():
                self.addItem(words, data)
                self.setItemData(self.count() - 1, as_tip(words), Qt.ItemDataRole.ToolTipRole)
        self.setCurrentIndex(max(0, next((i for i, data in enumerate(items) if data == chosen), 0)))
        self.blockSignals(before)
        return self.currentData()

    @property
    def offered(self) -> list[Any]:
        """The data of all items, in their order."""
        return [self.itemData(i) for i in range(self.count())]

    def choose(self, data: Any) -> bool:
        """Choose the item of these data; False, and as before, where there is none."""
        if (at := self.findData(data)) >= 0:
            self.setCurrentIndex(at)
        return at >= 0

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


class ChoiceBar(QWidget):
    """`chosen` carries the key of the list in which the user chose. `wanted`: by key, what a selection made
    elsewhere asks of a list when it is offered next."""

    chosen = Signal(str)

    def __init__(self, fields: Sequence[tuple[str, str]], parent: QWidget | None = None) -> None:
        """fields: a key and its label for each list, in their order."""
        super().__init__(parent)
        self.wanted: dict[str, object] = {}
        self.boxes = {key: Combo(chosen=lambda _, key=key: self.chosen.emit(key)) for key, _ in fields}
        flowing(self, *(labelled(self.boxes[key], words) for key, words in fields))

    def offer(self, key: str, items: Mapping, first: object = None) -> object:
        """Fill a list (data → words), keep its choice where it is still offered (else take `first`, or what
        comes first), and answer it."""
        box = self.boxes[key]
        chosen = self.wanted.pop(key, box.currentData())
        chosen = chosen if chosen in items else first
        box.setEnabled(len(items) > 1)
        return box.offer(items, chosen)

    def ask(self, wanted: Mapping[str, object]) -> bool:
        """Have the lists take these when they are offered next; False where they have them already."""
        if all(self.boxes[key].currentData() == value for key, value in wanted.items()):
            return False
        self.wanted = dict(wanted)
        return True
