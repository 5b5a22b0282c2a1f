"""What stands in an empty place: what fills it, one button that does, and quieter ways beside it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from gui.base.boxes import filled
from gui.base.scale import BROAD, GAP, WIDE
from gui.widgets.labels import Label

WIDEST = 620  # pixels of the words

Way = tuple[str, str]  # an action's name, and words for it


class Empty(QWidget):
    """`wanted` carries the name of the way that was chosen; the first one is the button."""

    wanted = Signal(str)

    def __init__(self, ways: Sequence[Way] = (), parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._words = Label()
        self._words.setProperty("role", "what-fills")
        self._words.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._words.setWordWrap(True)
        self._words.setMaximumWidth(WIDEST)
        self.buttons: dict[str, QPushButton] = {}
        row = filled(QHBoxLayout(), 1, spacing=WIDE)
        beside = filled(QHBoxLayout(), 1, spacing=GAP)
        for place, (name, words) in enumerate(ways):
            button = self.buttons[name] = QPushButton(words)
            button.clicked.connect(lambda _=False, name=name: self.wanted.emit(name))
            if place:
                button.setProperty("role", "link")
            (beside if place else row).addWidget(button)
        row.addStretch(1)
        beside.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(BROAD, BROAD, BROAD, BROAD)
        column.setSpacing(WIDE)
        column.addStretch(2)
        line = filled(QHBoxLayout(), 1)
        line.addWidget(self._words, 100)
        line.addStretch(1)
        column.addLayout(line)
        if self.buttons:
            column.addLayout(row)
        if len(self.buttons) > 1:
            column.addLayout(beside)
        column.addStretch(3)

    @property
    def main(self) -> QPushButton | None:
        """The one button."""
        return next(iter(self.buttons.values()), None)

    def text(self) -> str:
        return self._words.text()

    def setText(self, text: str) -> None:
        self._words.setText(text)
