"""Two rungs' sources beside each other: changed lines aligned, changed words marked, scrolled as one."""

from __future__ import annotations

import functools

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QHBoxLayout, QScrollBar, QSplitter, QToolButton, QVBoxLayout, QWidget

from gui.base.boxes import filled
from gui.base.theme import Theming
from gui.widgets.code_view import CodeLine, CodeView
from gui.widgets.highlight import highlighted
from gui.widgets.labels import Elided
from gui.widgets.text_diff import Pair, Span, changes, pairs

SIDES = (("left", "removed", "−"), ("right", "added", "+"))


class RungDiff(QWidget):
    """`show_pair` fills it; Alt+Down and Alt+Up, or the buttons, go from change to change."""

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rows: list[Pair] = []
        self.changes: list[Span] = []
        self.at: int | None = None  # the change gone to
        self._following = False
        self.left, self.right = CodeView(theming), CodeView(theming)
        self.titles = (Elided(), Elided())
        split = QSplitter(Qt.Orientation.Horizontal)
        split.setObjectName("ladder-difference")
        split.setChildrenCollapsible(False)
        for view, title, (side, _, _) in zip((self.left, self.right), self.titles, SIDES, strict=True):
            title.setProperty("role", "heading")
            view.setAccessibleName(f"Source on the {side}")
            half = QWidget()
            filled(QVBoxLayout(half), title, (view, 1), margins=(0, 0, 0, 0), spacing=3)
            split.addWidget(half)
            split.setStretchFactor(split.count() - 1, 1)
        self._join(self.left, self.right)
        self._join(self.right, self.left)
        filled(QVBoxLayout(self), self._bar(), (split, 1), margins=(0, 0, 0, 0))

    def show_pair(
        self, left_title: str, left_text: str, right_title: str, right_text: str, suffix: str
    ) -> None:
        """Show what `right_text` has made of `left_text`; suffix: of both files, ".cu" or ".py". The first
        change is in view."""
        texts = [t.replace("\r\n", "\n").replace("\r", "\n") for t in (left_text, right_text)]
        split = [text.split("\n") for text in texts]
        self.rows = pairs(split[0], split[1])
        self.changes = changes(self.rows)
        for view, (side, role, sign), text, lines in zip(
            (self.left, self.right), SIDES, texts, split, strict=True
        ):
            parts = highlighted(text, suffix)
            view.show_lines([_line(getattr(row, side), row, role, sign, lines, parts) for row in self.rows])
        for title, words in zip(self.titles, (left_title, right_title), strict=True):
            title.setText(words)
        self.at = None
        if self.changes:
            self.go(0)
        else:
            self._tell()

    def go(self, change: int) -> None:
        """Bring a change of `changes` into view."""
        self.at = change
        for view in (self.right, self.left):
            view.go_to(self.changes[change][0])
        self._tell()

    def next_change(self) -> None:
        self._step(1)

    def previous_change(self) -> None:
        self._step(-1)

    def _step(self, by: int) -> None:
        if self.changes:
            at = -1 if self.at is None and by > 0 else self.at or 0
            self.go(min(max(0, at + by), len(self.changes) - 1))

    def _bar(self) -> QHBoxLayout:
        bar = QHBoxLayout()
        self._words = Elided()
        self._words.setProperty("role", "muted")
        bar.addWidget(self._words, 1)
        self.buttons = []
        for sign, words, keys, do in (
            ("↑ Previous", "The change before", "Alt+Up", self.previous_change),
            ("↓ Next", "The change after", "Alt+Down", self.next_change),
        ):
            button = QToolButton()
            button.setText(sign)
            button.setToolTip(f"{words} ({keys})")
            button.clicked.connect(do)
            shortcut = QShortcut(QKeySequence(keys), self)
            shortcut.setWhatsThis(words)
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(do)
            bar.addWidget(button)
            self.buttons.append(button)
        return bar

    def _tell(self) -> None:
        count = len(self.changes)
        removed = sum(row.changed and row.left is not None for row in self.rows)
        added = sum(row.changed and row.right is not None for row in self.rows)
        if not count:
            words = "Both are the same."
        else:
            place = f"change {self.at + 1} of {count}" if self.at is not None else f"{count} changes"
            words = f"{place}; − {removed:,} and + {added:,} lines in all"
        self._words.setText(words)
        back, on = self.buttons
        back.setEnabled(bool(self.at))
        on.setEnabled(count > 0 and self.at != count - 1)

    def _join(self, moved: CodeView, follower: CodeView) -> None:
        for bar, other in (
            (moved.verticalScrollBar(), follower.verticalScrollBar()),
            (moved.horizontalScrollBar(), follower.horizontalScrollBar()),
        ):
            bar.valueChanged.connect(functools.partial(self._follow, other))

    def _follow(self, bar: QScrollBar, value: int) -> None:
        if not self._following:
            self._following = True
            bar.setValue(value)
            self._following = False


def _line(index: int | None, row: Pair, role: str, sign: str, lines: list[str], parts: list) -> CodeLine:
    """A row's line on one side."""
    if index is None:
        return CodeLine("", role="absent")
    if not row.changed:
        return CodeLine(lines[index], index + 1, parts[index])
    spans = row.left_spans if role == "removed" else row.right_spans
    return CodeLine(lines[index], index + 1, parts[index], role, spans, sign)
