"""What is known of a thing, in headings and pairs of a name and words, to be read and copied."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QWidget

from gui.base.boxes import ScrollArea
from gui.widgets.labels import Label

Section = tuple[str, Sequence[tuple[str, str]]]
LONG = 24  # characters of a name that may take two lines
FAILED = "✕ "  # begins words that tell of a refusal


class FactsView(ScrollArea):
    """`show_facts` fills it."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(name, False, parent)
        self.text = ""
        self._shown: tuple[Section, ...] | None = None
        self.show_facts(())

    def show_facts(self, sections: Sequence[Section]) -> None:
        """Sections without a pair are left out."""
        sections = tuple((title, tuple(pairs)) for title, pairs in sections if pairs)
        if sections == self._shown:
            return
        self._shown = sections
        body = QWidget()
        grid = QGridLayout(body)
        grid.setContentsMargins(8, 6, 8, 6)
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(3)
        grid.setColumnStretch(1, 1)
        row, told = 0, []
        for title, pairs in sections:
            if row:
                grid.setRowMinimumHeight(row, 8)
                row += 1
            grid.addWidget(Label(title, role="heading"), row, 0, 1, 2)
            told.append(title)
            row += 1
            for name, words in pairs:
                long = len(name) > LONG
                left = Label(name, role="muted", wrap=long)
                if long:
                    left.setMaximumWidth(190)
                right = Label(words, role="failed" if words.startswith(FAILED) else "", wrap=True)
                right.setTextInteractionFlags(
                    Qt.TextInteractionFlag.TextSelectableByMouse
                    | Qt.TextInteractionFlag.TextSelectableByKeyboard
                )
                for place, label in enumerate((left, right)):
                    grid.addWidget(label, row, place, Qt.AlignmentFlag.AlignTop)
                told.append(f"{name}: {words}")
                row += 1
        grid.setRowStretch(row, 1)
        self.text = "\n".join(told)
        self.setWidget(body)
