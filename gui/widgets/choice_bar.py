"""The lists above a page by which it is chosen what the page shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QComboBox, QWidget

from gui.widgets.combo import Combo
from gui.widgets.flow_layout import FlowLayout
from gui.widgets.labels import labelled


class ChoiceBar(QWidget):
    """`chosen` carries the key of the list in which the user chose. `wanted`: by key, what a selection made
    elsewhere asks of a list when it is offered next."""

    chosen = Signal(str)

    def __init__(self, fields: Sequence[tuple[str, str]], parent: QWidget | None = None) -> None:
        """fields: a key and its label for each list, in their order."""
        super().__init__(parent)
        self.boxes: dict[str, QComboBox] = {}
        self.wanted: dict[str, object] = {}
        line = FlowLayout(self)
        for key, words in fields:
            line.addWidget(self._pair(key, words))

    def offer(self, key: str, items: Mapping, first: object = None) -> object:
        """Fill a list (data → words), keep its choice where it is still offered (else take `first`, or what
        comes first), and answer it."""
        box = self.boxes[key]
        chosen = self.wanted.pop(key, box.currentData())
        chosen = chosen if chosen in items else first
        if [(box.itemData(i), box.itemText(i)) for i in range(box.count())] != list(items.items()):
            box.clear()
            for data, words in items.items():
                box.addItem(words, data)
        box.setCurrentIndex(next((i for i in range(box.count()) if box.itemData(i) == chosen), 0))
        box.setEnabled(box.count() > 1)
        return box.currentData()

    def ask(self, wanted: Mapping[str, object]) -> bool:
        """Have the lists take these when they are offered next; False where they have them already."""
        if all(self.boxes[key].currentData() == value for key, value in wanted.items()):
            return False
        self.wanted = dict(wanted)
        return True

    def _pair(self, key: str, words: str) -> QWidget:
        box = Combo()
        box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        box.activated.connect(lambda _: self.chosen.emit(key))
        self.boxes[key] = box
        return labelled(box, words)
