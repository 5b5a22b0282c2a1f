"""A rung's source beside what it is compiled to: the lines that belong together are marked in both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from bench.questions.ladder_questions import AssemblyAnswer, Listing
from gui.base.boxes import HORIZONTAL, VERTICAL, filled, splitter
from gui.base.theme import Theming
from gui.pages.ladder.rung_source import source_lines
from gui.widgets.code_view import CodeLine, CodeView
from gui.widgets.combo import Combo
from gui.widgets.find_bar import FindBar
from gui.widgets.labels import Elided, Label

WAITING = "Compiling …"
WIDE = 620  # pixels, from which source and code stand beside each other


class AssemblyView(QWidget):
    """`show_source` and then `show_answer` fill it."""

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._answer: AssemblyAnswer | None = None
        self._listing: Listing | None = None
        self._of: Mapping[int, Sequence[int]] = {}  # by line of the source, from 1: those of the listing
        self._following = False
        self.source, self.code = CodeView(theming), CodeView(theming)
        self.source.setAccessibleName("Source")
        self.code.setAccessibleName("Compiled code")
        self.find_bar = FindBar(self.code, self)
        self.which = Combo("PTX or SASS", lambda _: self._fill())
        self.which.setToolTip("PTX is what the compiler writes, SASS what the machine runs")
        self.words = Elided(role="muted")
        self.told = Label(role="muted", wrap=True, selectable=True)
        bar = filled(QHBoxLayout(), self.which, (self.words, 1))
        self._split = splitter(
            "ladder-assembly", HORIZONTAL, self.source, self.code, stretch=(1, 1), collapsible=False
        )
        filled(
            QVBoxLayout(self),
            *(bar, self.told, (self._split, 1), self.find_bar),
            margins=(4, 4, 4, 4),
            spacing=3,
        )
        self.source.cursorPositionChanged.connect(self._on_source)
        self.code.cursorPositionChanged.connect(self._on_code)

    def show_source(self, text: str, suffix: str) -> None:
        """Of a rung whose compiled code is awaited."""
        self._answer = self._listing = None
        self._of = {}
        self._following = True
        self.source.show_lines(source_lines(text.replace("\r\n", "\n").replace("\r", "\n"), suffix, {}))
        self.code.show_lines([])
        self._following = False
        self.which.hide()
        self._tell(WAITING, "")

    def show_answer(self, answer: AssemblyAnswer) -> None:
        """What it is compiled to, or why that is not there."""
        self._answer = answer
        self.which.offer(
            {listing.name: listing.name for listing in answer.listings}, self.which.currentData()
        )
        self.which.setVisible(self.which.count() > 0)
        self._fill()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Beside each other where both have room for a line."""
        super().resizeEvent(event)
        wide = self.width() >= WIDE
        self._split.setOrientation(HORIZONTAL if wide else VERTICAL)

    def _fill(self) -> None:
        answer = self._answer
        if answer is None:
            return
        found = (listing for listing in answer.listings if listing.name == self.which.currentText())
        self._listing = listing = next(found, None)
        if listing is None:
            self._tell("", answer.error)
            return
        of: dict[int, list[int]] = {}
        for index, number in enumerate(listing.lines):
            if number:
                of.setdefault(number, []).append(index)
        self._of = of
        texts = listing.text.split("\n")
        self._following = True
        self.code.show_lines([CodeLine(text, number) for number, text in enumerate(texts, start=1)])
        self._following = False
        count = sum(map(len, of.values()))
        words = f"{answer.arch}: {count:,} instructions of {len(of)} lines" if of else answer.arch
        self._tell(words, answer.missing)
        if self.source.at + 1 not in of and of and self.source.at == 0:
            self.source.go_to(min(of) - 1)  # which marks it
        else:
            self._on_source()

    def _tell(self, words: str, told: str) -> None:
        self.words.setText(words)
        self.told.setText(f"{told[:1].upper()}{told[1:]}{'' if told.endswith('.') else '.'}" if told else "")
        self.told.setVisible(bool(told))

    def _on_source(self) -> None:
        """The caret is on a line of the source."""
        if not self._following:
            self._mark(self.source.at + 1)
            if ours := self._of.get(self.source.at + 1):
                self.code.bring(ours[0])

    def _on_code(self) -> None:
        """The caret is on an instruction."""
        if self._following or self._listing is None:
            return
        lines, at = self._listing.lines, self.code.at
        if at < len(lines) and (number := lines[at]):
            self._mark(number)
            self.source.bring(number - 1)

    def _mark(self, number: int) -> None:
        """A line of the source, and what it has become; of a line that became nothing, that one alone."""
        self.source.mark({number - 1} if self._listing is not None else ())
        self.code.mark(self._of.get(number, ()))
