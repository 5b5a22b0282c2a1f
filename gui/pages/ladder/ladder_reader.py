"""What is known of the rung selected: its idea, its source, what it changes of its neighbour, its faults."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QTabWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from bench.ladder.questions import KernelProblem, RungInfo
from bench.ladder.records import RungCase, RungMeasurement
from bench.ladder.show.tables import WORDS
from bench.results import doubt
from bench.words import units
from gui.base.boxes import filled
from gui.base.theme import Theming
from gui.pages.ladder.error_map import ErrorMapView
from gui.pages.ladder.ladder_table import LadderRow
from gui.pages.ladder.rung_diff import RungDiff
from gui.pages.ladder.rung_source import SourceView
from gui.widgets.labels import Label, Lines

SOURCE, DIFFERENCE, FINDING = "&Source", "&Difference", "Findin&g"


class LadderReader(QWidget):
    """`use_wanted` carries the RungCase that the model is to use, `step_wanted` how many rungs further on (or
    back) is to be read. Tabs are filled when they are seen."""

    use_wanted = Signal(object)
    step_wanted = Signal(int)

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theming = theming
        self._shown: object = None
        self._filled: dict[QWidget, object] = {}
        self._info: RungInfo | None = None
        self._rungs: Sequence[RungInfo] = ()
        self._measurement: RungMeasurement | None = None
        self._map: Path | None = None
        self._problem: KernelProblem | None = None
        self.title = Label()
        self.title.setProperty("role", "heading")
        self.title.setWordWrap(True)
        self.words, self.state = Lines(3), Lines(4)
        self.use_button = QPushButton("&Use in model")
        self.use_button.setToolTip("Use this rung for this node of the model when the comparison runs (F5)")
        self.use_button.clicked.connect(self._on_use)
        self.source = SourceView(theming)
        self.diff = RungDiff(theming)
        self.finding = ErrorMapView(theming)
        self._pictures = QScrollArea()  # they would take the room of the source, and of the charts
        self._pictures.setFrameShape(QScrollArea.Shape.NoFrame)
        self._pictures.setWidgetResizable(True)
        self._pictures.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._pictures.setWidget(self.finding)
        self._against = QComboBox()
        self._against.setAccessibleName("The rung to compare with")
        self._against.activated.connect(lambda _: self._fill())
        label = Label("&Against")
        label.setBuddy(self._against)
        line = filled(QHBoxLayout(), label, self._against, 1)
        self._beside = QWidget()
        filled(QVBoxLayout(self._beside), line, (self.diff, 1), margins=(4, 4, 4, 4))
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.tabs.addTab(self.source, SOURCE)
        self.tabs.addTab(self._beside, DIFFERENCE)
        self.tabs.addTab(self._pictures, FINDING)
        self.tabs.currentChanged.connect(lambda _: self._fill())
        head = QHBoxLayout()
        head.setSpacing(4)
        self.steps = tuple(self._step_button(step) for step in (-1, 1))
        for button in self.steps:
            head.addWidget(button)
        head.addWidget(self.title, 1)
        head.addWidget(self.use_button)
        filled(
            QVBoxLayout(self),
            head,
            self.words,
            self.state,
            (self.tabs, 1),
            0,
            margins=(6, 0, 0, 0),
            spacing=3,
        )

    def set_compact(self, on: bool) -> None:
        """Whether the words above the tabs keep to a line or two; all of them is their tooltip then."""
        self.words.most, self.state.most = (1, 2) if on else (3, 4)
        for words in (self.words, self.state):
            words.updateGeometry()

    # --------------------------------------------------------------------------------------------- showing

    def show_rung(
        self,
        info: RungInfo | None,
        rungs: Sequence[RungInfo],
        shown: LadderRow,
        map_path: Path | None,
        used: bool,
    ) -> None:
        """A rung (info None: the reference) and what came of it; used: the form has it for this node."""
        now = ("rung", info, tuple(rungs), shown, map_path, used)
        if now == self._shown:
            return
        self._shown = now
        other = self._info is None or info is None or self._info.path != info.path
        self._info, self._rungs, self._problem = info, rungs, None
        self._measurement, self._map = shown.row.measurement, map_path
        case = shown.row.case
        self.title.setText(heading(case))
        self.words.setText(case.idea)
        told, role = standing(shown)
        if info is None and not case.is_reference:
            told += " Its source is not kept with a ladder, and not found here."
        self._say(told, role)
        able = info is not None and not shown.failed and not shown.refused
        self.use_button.setEnabled(able and not used)
        self.use_button.setVisible(info is not None)
        self.use_button.setText("In the model" if used else "&Use in model")
        self._offer(other)
        wrong = self._measurement.finding is not None
        self._set_tabs(info is not None, info is not None and bool(self._against.count()), wrong)
        if wrong and other and self.tabs.currentWidget() in (self.source, self._beside):
            self.tabs.setCurrentWidget(self._pictures)
        self._fill()

    def show_problem(self, problem: KernelProblem) -> None:
        """A file of the user's that is no rung."""
        if problem == self._shown:
            return
        self._shown, self._problem, self._info, self._measurement = problem, problem, None, None
        self.title.setText(Path(problem.path).name)
        self.words.setText("This file is not a rung yet; it is never executed.")
        self._say(problem.reason[:1].upper() + problem.reason[1:], "failed")
        self.use_button.hide()
        self._set_tabs(bool(problem.source), False, False)
        self._fill()

    def show_nothing(self, words: str) -> None:
        if self._shown == words:
            return
        self._shown, self._info, self._measurement, self._problem = words, None, None, None
        self.title.setText("")
        self.words.setText(words)
        self._say("", "muted")
        self.use_button.hide()
        self._set_tabs(False, False, False)

    # ------------------------------------------------------------------------------------------ the inside

    def _step_button(self, step: int) -> QToolButton:
        button = QToolButton()
        button.setArrowType(Qt.ArrowType.LeftArrow if step < 0 else Qt.ArrowType.RightArrow)
        words, keys = ("The rung before", "Alt+Left") if step < 0 else ("The next rung", "Alt+Right")
        button.setAccessibleName(words)
        button.setToolTip(f"{words} ({keys})")
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.clicked.connect(lambda: self.step_wanted.emit(step))
        shortcut = QShortcut(QKeySequence(keys), self)
        shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        shortcut.activated.connect(button.click)
        return button

    def _say(self, words: str, role: str) -> None:
        self.state.setText(words)
        self.state.setVisible(bool(words))
        if self.state.property("role") != role:
            self.state.setProperty("role", role)
            self.state.style().polish(self.state)

    def _set_tabs(self, source: bool, difference: bool, finding: bool) -> None:
        for button in self.steps:
            button.setVisible(bool(self.title.text()))
        own = {self.source: source, self._beside: difference, self._pictures: finding}
        alone = self.tabs.count() == len(own)
        self.tabs.setVisible(any(own.values()) or not alone)
        if alone and not any(own.values()):
            return
        before = self.tabs.currentWidget()
        # Each keeps its place: one that comes or goes would move the others under the mouse.
        for widget, there in own.items():
            self.tabs.setTabEnabled(self.tabs.indexOf(widget), there)
        wanted = before if own.get(before, True) else next((w for w, there in own.items() if there), before)
        self.tabs.setCurrentWidget(wanted)

    def _offer(self, other: bool) -> None:
        """The rungs to compare with; the neighbour below is chosen when another rung is shown."""
        info = self._info
        chosen = None if other else self._against.currentData()
        self._against.clear()
        if info is None:
            return
        for rung in self._rungs:
            if rung.path != info.path:
                self._against.addItem(f"{rung.case.number:02d} {rung.case.rung}", rung.path)
        below = neighbour(info, self._rungs)
        at = self._against.findData(chosen) if chosen else -1
        if at < 0 and below is not None:
            at = self._against.findData(below.path)
        self._against.setCurrentIndex(max(0, at))

    def _fill(self) -> None:
        """The tab in front, where what it shows is not there yet."""
        tab, info = self.tabs.currentWidget(), self._info
        if tab is self.source:
            self._fill_source()
        elif tab is self._beside and info is not None:
            below = next((r for r in self._rungs if r.path == self._against.currentData()), None)
            if below is not None and self._new(tab, (below, info)):
                names = [f"{r.case.number:02d} {r.case.rung}" for r in (below, info)]
                suffix = Path(info.path).suffix
                self.diff.show_pair(names[0], below.source, names[1], info.source, suffix)
        elif tab is self._pictures and self._measurement is not None:
            finding = self._measurement.finding
            if finding is not None and self._new(tab, (finding, self._map)):
                self.finding.show_finding(finding, self._map)

    def _fill_source(self) -> None:
        headers: tuple[str, ...] = ()
        if self._problem is not None:
            path, text, reason = self._problem.path, self._problem.source, self._problem.reason
        elif self._info is not None:
            path, text, headers = self._info.path, self._info.source, self._info.headers
            reason = self._measurement.reason if self._measurement is not None else ""
        else:
            return
        errors = error_lines(path, f"{path}: {reason}" if self._problem is not None else reason)
        if self._new(self.source, (path, text, tuple(errors.items()), headers)):
            name = Path(path)
            self.source.show_source(text, name.name, name.suffix, errors, tuple(map(Path, headers)))

    def _new(self, tab: QWidget, content: object) -> bool:
        if self._filled.get(tab) == content:
            return False
        self._filled[tab] = content
        return True

    def _on_use(self) -> None:
        if self._info is not None:
            self.use_wanted.emit(self._info.case)


def heading(case: RungCase) -> str:
    """A case as a title."""
    if case.is_reference:
        return "The reference" + (f", {case.precision}" if case.precision != "fp32" else "")
    marks = [
        words
        for words, on in (
            ("your own", case.user),
            ("beside the ladder", case.side),
            (case.precision, case.precision != "fp32"),
        )
        if on
    ]
    return f"{case.number:02d} {case.rung}" + (f" ({', '.join(marks)})" if marks else "")


def standing(shown: LadderRow) -> tuple[str, str]:
    """How a rung stands in words, and the role they are written in."""
    m = shown.row.measurement
    if shown.going is not None:
        return (f"{shown.going.words.capitalize()} …" if shown.going.words else "Waits its turn."), "muted"
    if shown.waits:
        return (f"Refused here: it {shown.refused}." if shown.refused else "Not measured yet."), "muted"
    if m.disposition == "unsupported":
        return f"Refused here: it {m.reason}.", "muted"
    if m.disposition != "ok":
        word = "wrong" if m.finding is not None else WORDS.get(m.disposition, m.disposition)
        return f"{word[:1].upper()}{word[1:]}: {_without_folder(m.reason)}", "failed"
    parts = [doubt.marked(units.duration(shown.row.time.value), shown.row.doubts)] if shown.row.time else []
    if shown.row.gain is not None:
        than = "as fast as" if not shown.row.beside else "the speed of"
        gain = doubt.marked(units.times(shown.row.gain.value), shown.row.gain_doubts)
        parts.append(f"{gain} {than} {shown.row.below}")
    if shown.row.speedup is not None:
        speedup = doubt.marked(units.times(shown.row.speedup.value), shown.row.speedup_doubts)
        parts.append(f"{speedup} the speed of the reference")
    doubts = shown.row.all_doubts
    notes = list(dict.fromkeys([*m.notes, *doubts]))
    words = ", ".join(parts) + "." if parts else ""
    return " ".join([words, *(f"{note[:1].upper()}{note[1:]}." for note in notes)]), "muted"


def _without_folder(reason: str) -> str:
    """A reason that begins with a file's path, with the file's name alone."""
    found = re.match(r"(.*?[\\/])?([^\\/]+\.(?:cu|cuh|py):\d+: .*)", reason, re.DOTALL)
    return found[2] if found else reason


def neighbour(info: RungInfo, rungs: Sequence[RungInfo]) -> RungInfo | None:
    """The rung below on the ladder itself: of the same precision where there is one, else of fp32; above the
    first rung the one after it."""
    case = info.case
    own = [r for r in rungs if not (r.case.side or r.case.user or r.case.yardstick) and r.path != info.path]
    lower = [r for r in own if r.case.number < case.number]
    same = [r for r in lower if r.case.precision == case.precision]
    plain = [r for r in lower if r.case.precision == "fp32"]
    found = same or plain or lower
    return found[-1] if found else None


def error_lines(path: str, reason: str) -> dict[int, str]:
    """The line of the rung's own file that a reason names ("…/90_mine.cu:12: …"), with what it says of it."""
    found = re.match(re.escape(path) + r":(\d+): (.*)", reason, re.DOTALL)
    if found:
        return {int(found[1]): found[2]}
    # TOML says where in the header: "… (at line 3, column 8)"; the header begins in the file's first line.
    header = re.search(r"\(at line (\d+), column \d+\)", reason)
    return {int(header[1]): reason.partition(": ")[2] or reason} if header else {}
