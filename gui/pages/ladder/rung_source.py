"""The source of a rung in three views: alone with its errors; beside its compiled code; beside another
rung.

Which lines of two sources belong together is found without Qt (`pairs`, `changes`, `word_spans`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QListWidget, QListWidgetItem, QScrollBar, QVBoxLayout, QWidget

from bench.questions.ladder_questions import AssemblyAnswer, CountsAnswer, LineCount, Listing
from gui.base.boxes import HORIZONTAL, VERTICAL, as_column, filled, splitter
from gui.base.theme import Theming
from gui.widgets.code_view import CodeLine, CodeView, header_lines, highlighted
from gui.widgets.controls import Combo, Elided, FindBar, Label, as_tip, shortcut, tool_button

MOST_LISTED = 5  # errors seen at once below the source


COUNTING = "Counting on the CPU …"


@dataclass(frozen=True)
class Cost:
    """A count of lines that can be looked at. of: of a line, None where there is nothing to count; over: what
    it costs as a ratio to the least (None: the count itself is the cost)."""

    title: str
    tip: str
    of: Callable[[LineCount], float | None]
    text: Callable[[float], str]
    over: Callable[[LineCount], float] | None = None


COSTS = (
    Cost(
        "Sectors a request",
        "sectors of 32 bytes of global memory for each load or store of a warp",
        lambda it: it.sectors / it.requests if it.requests else None,
        "{:.1f}".format,
        over=lambda it: it.sectors / max(1, it.least_sectors),
    ),
    Cost(
        "Bank conflicts",
        "wavefronts of shared memory over the fewest that there can be (1.0: no conflicts)",
        lambda it: it.wavefronts / it.least_wavefronts if it.least_wavefronts else None,
        "{:.1f}".format,
        over=lambda it: it.wavefronts / max(1, it.least_wavefronts),
    ),
    Cost(
        "Divergence",
        "how often threads of a warp go different ways",
        lambda it: it.divergent or None,
        "{:,.0f}".format,
    ),
    Cost(
        "Executions",
        "instructions, each of a warp of 32 threads",
        lambda it: it.instructions or None,
        "{:,.0f}".format,
    ),
)


def with_heat(lines: Sequence[CodeLine], counts: CountsAnswer, cost: Cost) -> list[CodeLine]:
    """The lines with what they cost: the most beyond the least is hottest."""
    values = {it.line: value for it in counts.lines if (value := cost.of(it)) is not None}
    over = cost.over
    beyond = {
        it.line: values[it.line] if over is None else max(0.0, over(it) - 1)
        for it in counts.lines
        if it.line in values
    }
    most = max(beyond.values(), default=0.0)
    made = []
    for line in lines:
        at = line.number or 0
        if at not in values:
            made.append(line)
            continue
        heat = beyond[at] / most if most > 0 else 0.0
        made.append(replace(line, heat=heat, figure=cost.text(values[at])))
    return made


class SourceView(QWidget):
    """A source with line numbers, colours, the compiler's messages beside their lines, and what each line
    costs in front of it. `show_source` fills it; `counts_wanted`: the user wants to see what lines cost,
    which `show_counts` then shows."""

    counts_wanted = Signal()

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.title = Elided(role="heading")
        self.files = Combo("The rung's file or one that it includes", lambda _: self._fill())
        self.files.setToolTip("The rung's own file, and the headers that it includes")
        self.files.hide()
        self.costs = Combo("What a line costs", lambda _: self._on_costs())
        self.costs.setToolTip(as_tip("What each line costs a GPU, counted on this machine's CPU; no times"))
        self.costs.offer({None: "No counts", **{cost: cost.title for cost in COSTS}}, None)
        self.costs.hide()
        self.told = Elided(role="muted")
        self._counts: CountsAnswer | None = None
        self._asked = False
        self.code = CodeView(theming)
        self.code.setAccessibleName("Source")
        self.code.setCenterOnScroll(True)  # it scrolls beyond its end: any line can be the first that is seen
        self.find_bar = FindBar(self.code, self)
        self.errors = QListWidget()
        self.errors.setAccessibleName("Errors in the source")
        self.errors.setWordWrap(True)
        self.errors.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.errors.itemClicked.connect(self._on_error)
        self.errors.itemActivated.connect(self._on_error)
        self.errors.hide()
        filled(
            QVBoxLayout(self),
            self.title,
            filled(QHBoxLayout(), self.files, self.costs, (self.told, 1)),
            (self.code, 1),
            self.find_bar,
            self.errors,
            margins=(0, 0, 0, 0),
            spacing=3,
        )
        self._own: tuple[str, str, str] = ("", "", "")
        self._errors: Mapping[int, str] = {}
        self._shown: tuple[str, str, str] = ("", "", "")

    def show_source(
        self,
        text: str,
        title: str,
        suffix: str,
        error_lines: Mapping[int, str] | None = None,
        headers: Sequence[Path] = (),
        counted: bool = False,
    ) -> None:
        """Show a text. suffix: of its file (".cu", ".cuh", ".py"); error_lines: messages by line number
        from 1, the first is scrolled to, and one for a line that does not exist stands in the list
        only; headers: files that the user may read here, too; counted: what its lines cost can be told. If
        the same file was saved again, the view stays where it is."""
        own = (text.replace("\r\n", "\n").replace("\r", "\n"), title, suffix)
        errors = dict(sorted((error_lines or {}).items()))
        if errors or title != self._own[1]:
            self.files.setCurrentIndex(0)
        if own != self._own:
            self._counts, self._asked = None, False
        self._own, self._errors = own, errors
        self._offer(title, headers)
        self.costs.setVisible(counted)
        self._fill()
        self._want()

    def show_counts(self, answer: CountsAnswer) -> None:
        """Show what the lines cost, or why that is not known."""
        self._counts = answer
        self._fill()

    def forget_counts(self) -> None:
        """They are of other work than is shown now."""
        self._counts, self._asked = None, False
        self._want()

    def _on_costs(self) -> None:
        self._want()
        self._fill()

    def _want(self) -> None:
        """Ask for the counts, once for a text."""
        if not self.costs.isHidden() and self.costs.currentData() is not None and not self._asked:
            self._asked = True
            self.counts_wanted.emit()

    def _offer(self, title: str, headers: Sequence[Path]) -> None:
        """Offer the file and its headers. The one that is being read stays in front."""
        items: dict[Path | None, str] = {None: title, **{path: path.name for path in headers}}
        self.files.offer(items, self.files.currentData())
        self.files.setVisible(bool(headers))
        self.title.setVisible(not headers)

    def _fill(self) -> None:
        header: Path | None = self.files.currentData()
        text, title, suffix = self._own if header is None else _file(header)
        errors = self._errors if header is None else {}
        lines = source_lines(text, suffix, errors)
        cost: Cost | None = None if self.costs.isHidden() else self.costs.currentData()
        if cost is not None and header is None and self._counts is not None:
            lines = with_heat(lines, self._counts, cost)
        self._tell(cost)
        if (text, title, suffix) == self._shown:
            self.code.change_lines(lines)
        else:
            at = self.code.verticalScrollBar().value() if title == self._shown[1] else None
            self.code.show_lines(lines)
            if at is None:
                # The kernel is what one came to read: its settings stand above it, a turn of the wheel away.
                self.code.open_at(settings(lines))
            else:
                self.code.verticalScrollBar().setValue(at)
        self._shown = (text, title, suffix)
        self.title.setText(title)
        self._list(errors)
        if errors:
            self.code.go_to(min(max(1, next(iter(errors))), len(lines)) - 1)

    def _tell(self, cost: Cost | None) -> None:
        counts = self._counts
        words = (
            "" if cost is None else COUNTING if counts is None else f"{cost.tip}, on {counts.on}; no times"
        )
        if counts is not None and counts.error and cost is not None:
            words = counts.error
        self.told.setText(words)

    def _list(self, errors: Mapping[int, str]) -> None:
        self.errors.clear()
        for number, words in errors.items():
            item = QListWidgetItem(f"line {number}: {words}")
            item.setToolTip(as_tip(words))
            item.setData(Qt.ItemDataRole.UserRole, number)
            self.errors.addItem(item)
        row = self.errors.fontMetrics().lineSpacing() + 6
        rows = sum(1 + words.count("\n") for words in errors.values())
        self.errors.setFixedHeight(row * min(MOST_LISTED, max(2, rows)) + 4)
        self.errors.setVisible(bool(errors))

    def _on_error(self, item: QListWidgetItem) -> None:
        self.code.go_to(item.data(Qt.ItemDataRole.UserRole) - 1)


def _file(path: Path) -> tuple[str, str, str]:
    """Text, name and suffix of a header."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        text = f"// cannot be read: {error}"
    return text, path.name, path.suffix


def source_lines(text: str, suffix: str, errors: Mapping[int, str]) -> list[CodeLine]:
    """The lines of a source with its errors by line number."""
    parts = highlighted(text, suffix)
    header = header_lines(text, suffix)
    return [
        CodeLine(
            words,
            number,
            parts[number - 1],
            role="error" if number in errors else "",
            sign="✕" if number in errors else "",
            note=errors.get(number, ""),
            dim=number <= header,
        )
        for number, words in enumerate(text.split("\n"), start=1)
    ]


def settings(lines: Sequence[CodeLine]) -> int:
    """How many lines of a rung's source stand before its kernel: its settings, and what is empty below."""
    at = next((at for at, line in enumerate(lines) if not line.dim), 0)
    return next((below for below in range(at, len(lines)) if lines[below].text.strip()), at)


WAITING = "Compiling …"
WIDE = 620  # pixels, from which source and code stand beside each other


class AssemblyView(QWidget):
    """A source beside what it is compiled to. Lines that belong together are marked in both. `show_source`
    and then `show_answer` fill it."""

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
        self.problem = Label(role="muted", wrap=True, selectable=True)
        bar = filled(QHBoxLayout(), self.which, (self.words, 1))
        self._split = splitter(
            "ladder-assembly", HORIZONTAL, self.source, self.code, stretch=(1, 1), collapsible=False
        )
        filled(
            QVBoxLayout(self),
            *(bar, self.problem, (self._split, 1), self.find_bar),
            margins=(4, 4, 4, 4),
            spacing=3,
        )
        self.source.cursorPositionChanged.connect(self._on_source)
        self.code.cursorPositionChanged.connect(self._on_code)

    def show_source(self, text: str, suffix: str) -> None:
        """Show the source of a rung whose compiled code is awaited."""
        self._answer = self._listing = None
        self._of = {}
        self._following = True
        lines = source_lines(text.replace("\r\n", "\n").replace("\r", "\n"), suffix, {})
        self.source.show_lines(lines)
        self.source.verticalScrollBar().setValue(settings(lines))
        self.code.show_lines([])
        self._following = False
        self.which.hide()
        self._tell(WAITING, "")

    def show_answer(self, answer: AssemblyAnswer) -> None:
        """Show what it is compiled to, or why that is missing."""
        self._answer = answer
        self.which.offer(
            {listing.name: listing.name for listing in answer.listings}, self.which.currentData()
        )
        self.which.setVisible(self.which.count() > 0)
        self._fill()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Source and code stand beside each other if the view is WIDE pixels wide, else below each other."""
        super().resizeEvent(event)
        wide = self.width() >= WIDE
        self._split.setOrientation(HORIZONTAL if wide else VERTICAL)

    def _fill(self) -> None:
        answer = self._answer
        if answer is None:
            return
        named = (listing for listing in answer.listings if listing.name == self.which.currentText())
        self._listing = listing = next(named, None)
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

    def _tell(self, words: str, problem: str) -> None:
        self.words.setText(words)
        self.problem.setText(
            f"{problem[:1].upper()}{problem[1:]}{'' if problem.endswith('.') else '.'}" if problem else ""
        )
        self.problem.setVisible(bool(problem))

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
        """Mark a line of the source, and the instructions that it became, if any."""
        self.source.mark({number - 1} if self._listing is not None else ())
        self.code.mark(self._of.get(number, ()))


ALIKE = 0.5  # of two lines' characters, from which they are one line that was changed
MOST_PAIRS = 4_000  # of lines of one change that are compared with each other; above it they pair in order
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")

Span = tuple[int, int]  # first column, length


@dataclass(frozen=True)
class Pair:
    """A row of a difference. left, right: numbers of the lines from 0, None if that side has none; spans:
    the columns that differ."""

    left: int | None
    right: int | None
    changed: bool = False
    left_spans: tuple[Span, ...] = ()
    right_spans: tuple[Span, ...] = ()


def pairs(left: list[str], right: list[str]) -> list[Pair]:
    """The rows that show two lists of lines side by side."""
    rows: list[Pair] = []
    for tag, a0, a1, b0, b1 in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag == "equal":
            rows += [Pair(a0 + i, b0 + i) for i in range(a1 - a0)]
        else:
            rows += _change(left, right, range(a0, a1), range(b0, b1))
    return rows


def changes(rows: list[Pair]) -> list[Span]:
    """The first row and the length of each group of changed rows."""
    runs: list[Span] = []
    for index, row in enumerate(rows):
        if not row.changed:
            continue
        if runs and sum(runs[-1]) == index:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((index, 1))
    return runs


def word_spans(left: str, right: str) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """The columns in which two lines differ, in whole words."""
    a, b = _WORDS.findall(left), _WORDS.findall(right)
    spans: tuple[list[Span], list[Span]] = ([], [])
    for tag, a0, a1, b0, b1 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag != "equal":
            for side, words, first, last in ((spans[0], a, a0, a1), (spans[1], b, b0, b1)):
                # A change of the indentation alone is not marked.
                if last > first and not (first == 0 and last == 1 and words[0].isspace()):
                    side.append((sum(map(len, words[:first])), sum(map(len, words[first:last]))))
    return tuple(spans[0]), tuple(spans[1])


def _change(left: list[str], right: list[str], a: range, b: range) -> list[Pair]:
    """The rows of one change: similar lines beside each other, other lines alone."""
    rows: list[Pair] = []
    i, j = a.start, b.start
    for one, other in _alike(left, right, a, b):
        rows += [Pair(k, None, True) for k in range(i, one)]
        rows += [Pair(None, k, True) for k in range(j, other)]
        rows.append(Pair(one, other, True, *word_spans(left[one], right[other])))
        i, j = one + 1, other + 1
    rows += [Pair(k, None, True) for k in range(i, a.stop)]
    rows += [Pair(None, k, True) for k in range(j, b.stop)]
    return rows


def _alike(left: list[str], right: list[str], a: range, b: range) -> list[tuple[int, int]]:
    """Which line of `a` became which line of `b`: the ordered pairing with the largest total likeness."""
    if len(a) * len(b) > MOST_PAIRS:
        return list(zip(a, b, strict=False))
    # best[i][j]: what the lines from a[i] and b[j] on have in common at best.
    best = [[0.0] * (len(b) + 1) for _ in range(len(a) + 1)]
    common = [[_likeness(left[one], right[other]) for other in b] for one in a]
    for i in reversed(range(len(a))):
        for j in reversed(range(len(b))):
            best[i][j] = max(best[i + 1][j], best[i][j + 1], common[i][j] + best[i + 1][j + 1])
    pairing, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        if common[i][j] and best[i][j] == common[i][j] + best[i + 1][j + 1]:
            pairing.append((a[i], b[j]))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairing


def _likeness(left: str, right: str) -> float:
    """How similar two lines are: 0 (another line) to 1. Empty lines are similar to nothing."""
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
    """Two sources side by side, scrolled together. `show_pair` fills it. Alt+Down and Alt+Up, or the
    buttons, go from change to change."""

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
        """Show how the right text differs from the left one, and scroll to the first change. suffix: of
        both files, ".cu" or ".py"."""
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
        """Scroll to a change, by its index in `changes`."""
        self.at = change
        for view in (self.right, self.left):
            view.go_to(self.changes[change][0])
        self._tell()

    def step(self, by: int, _clicked: bool = False) -> None:
        """Go `by` changes on (negative: back)."""
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
    """One side of a row."""
    if index is None:
        return CodeLine("", role="absent")
    if not row.changed:
        return CodeLine(lines[index], index + 1, parts[index])
    spans = row.left_spans if role == "removed" else row.right_spans
    return CodeLine(lines[index], index + 1, parts[index], role, spans, sign)
