"""Two rungs' sources beside each other: changed lines aligned, changed words marked, scrolled as one.

Which lines belong together is found without Qt (`pairs`, `changes`, `word_spans`).
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from difflib import SequenceMatcher

from PySide6.QtWidgets import QHBoxLayout, QScrollBar, QVBoxLayout, QWidget

from gui.base.boxes import HORIZONTAL, as_column, filled, splitter
from gui.base.theme import Theming
from gui.widgets.code_view import CodeLine, CodeView, highlighted
from gui.widgets.controls import shortcut, tool_button
from gui.widgets.labels import Elided

ALIKE = 0.5  # of two lines' characters, from which they are one line that was changed
MOST_PAIRS = 4_000  # of lines of one change that are compared with each other; above it they pair in order
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")

Span = tuple[int, int]  # first column, length


@dataclass(frozen=True)
class Pair:
    """A row: the number of its line in either text (from 0; None: that side has none), and the columns that
    differ where both have one."""

    left: int | None
    right: int | None
    changed: bool = False
    left_spans: tuple[Span, ...] = ()
    right_spans: tuple[Span, ...] = ()


def pairs(left: list[str], right: list[str]) -> list[Pair]:
    """The rows that set two lists of lines side by side."""
    found: list[Pair] = []
    for tag, a0, a1, b0, b1 in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag == "equal":
            found += [Pair(a0 + i, b0 + i) for i in range(a1 - a0)]
        else:
            found += _change(left, right, range(a0, a1), range(b0, b1))
    return found


def changes(rows: list[Pair]) -> list[Span]:
    """(first row, rows) of each run of changed rows."""
    found: list[Span] = []
    for index, row in enumerate(rows):
        if not row.changed:
            continue
        if found and sum(found[-1]) == index:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((index, 1))
    return found


def word_spans(left: str, right: str) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """The columns of two lines that differ, in whole words."""
    a, b = _WORDS.findall(left), _WORDS.findall(right)
    spans: tuple[list[Span], list[Span]] = ([], [])
    for tag, a0, a1, b0, b1 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag != "equal":
            for made, words, first, last in ((spans[0], a, a0, a1), (spans[1], b, b0, b1)):
                # A line moved in or out as a whole says so by its place.
                if last > first and not (first == 0 and last == 1 and words[0].isspace()):
                    made.append((sum(map(len, words[:first])), sum(map(len, words[first:last]))))
    return tuple(spans[0]), tuple(spans[1])


def _change(left: list[str], right: list[str], a: range, b: range) -> list[Pair]:
    """The rows of one change: lines that are alike beside each other, the others alone."""
    found: list[Pair] = []
    i, j = a.start, b.start
    for one, other in _alike(left, right, a, b):
        found += [Pair(k, None, True) for k in range(i, one)]
        found += [Pair(None, k, True) for k in range(j, other)]
        found.append(Pair(one, other, True, *word_spans(left[one], right[other])))
        i, j = one + 1, other + 1
    found += [Pair(k, None, True) for k in range(i, a.stop)]
    found += [Pair(None, k, True) for k in range(j, b.stop)]
    return found


def _alike(left: list[str], right: list[str], a: range, b: range) -> list[tuple[int, int]]:
    """Which line of `a` became which of `b`: the pairing in order that has the most in common."""
    if len(a) * len(b) > MOST_PAIRS:
        return list(zip(a, b, strict=False))
    # best[i][j]: what the lines from a[i] and b[j] on have in common at best.
    best = [[0.0] * (len(b) + 1) for _ in range(len(a) + 1)]
    common = [[_likeness(left[one], right[other]) for other in b] for one in a]
    for i in reversed(range(len(a))):
        for j in reversed(range(len(b))):
            best[i][j] = max(best[i + 1][j], best[i][j + 1], common[i][j] + best[i + 1][j + 1])
    found, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        if common[i][j] and best[i][j] == common[i][j] + best[i + 1][j + 1]:
            found.append((a[i], b[j]))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return found


def _likeness(left: str, right: str) -> float:
    """What two lines have in common, 0 (not the same line) to 1; of empty lines nothing."""
    left, right = left.strip(), right.strip()
    if not left or not right:
        return 0.0
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    if matcher.quick_ratio() < ALIKE:
        return 0.0
    ratio = matcher.ratio()
    return ratio if ratio >= ALIKE else 0.0


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
        self.titles = (Elided(role="heading"), Elided(role="heading"))
        views = self.left, self.right
        for view, (side, _, _) in zip(views, SIDES, strict=True):
            view.setAccessibleName(f"Source on the {side}")
        halves = [
            as_column(title, (view, 1), spacing=3) for title, view in zip(self.titles, views, strict=True)
        ]
        split = splitter("ladder-difference", HORIZONTAL, *halves, stretch=(1, 1), collapsible=False)
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

    def step(self, by: int, _clicked: bool = False) -> None:
        """Go so many changes on, or back."""
        if self.changes:
            at = -1 if self.at is None and by > 0 else self.at or 0
            self.go(min(max(0, at + by), len(self.changes) - 1))

    def _bar(self) -> QHBoxLayout:
        self._words = Elided(role="muted")
        self.buttons = []
        for sign, words, keys, by in (
            ("↑ Previous", "The change before", "Alt+Up", -1),
            ("↓ Next", "The change after", "Alt+Down", 1),
        ):
            do = functools.partial(self.step, by)
            self.buttons.append(tool_button(sign, do, f"{words} ({keys})"))
            shortcut(self, keys, words, do)
        return filled(QHBoxLayout(), (self._words, 1), *self.buttons)

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
