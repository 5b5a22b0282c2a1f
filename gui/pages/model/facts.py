"""What is known of a thing, in headings and pairs of a name and words, to be read and copied."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QScrollArea, QWidget

from gui.widgets.labels import Label

Section = tuple[str, Sequence[tuple[str, str]]]
LONG = 24  # characters of a name that may take two lines
FAILED = "✕ "  # begins words that tell of a refusal


class FactsView(QScrollArea):
    """`show_facts` fills it."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
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
            heading = Label(title)
            heading.setProperty("role", "heading")
            if row:
                grid.setRowMinimumHeight(row, 8)
                row += 1
            grid.addWidget(heading, row, 0, 1, 2)
            told.append(title)
            row += 1
            for name, words in pairs:
                left, right = Label(name), Label(words)
                left.setProperty("role", "muted")
                if len(name) > LONG:
                    left.setMaximumWidth(190)
                    left.setWordWrap(True)
                right.setWordWrap(True)
                if words.startswith(FAILED):
                    right.setProperty("role", "failed")
                right.setTextInteractionFlags(
                    Qt.TextInteractionFlag.TextSelectableByMouse
                    | Qt.TextInteractionFlag.TextSelectableByKeyboard
                )
                top = Qt.AlignmentFlag.AlignTop
                grid.addWidget(left, row, 0, top)
                grid.addWidget(right, row, 1, top)
                told.append(f"{name}: {words}")
                row += 1
        grid.setRowStretch(row, 1)
        self.text = "\n".join(told)
        self.setWidget(body)
