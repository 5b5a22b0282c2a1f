"""What is known of the rung selected: its idea, its source, what it changes of its neighbour, its faults."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QTabWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from bench.questions.ladder_questions import AssemblyAnswer, KernelProblem, RungInfo
from bench.results import doubt
from bench.results.ladder_records import RungCase, RungMeasurement
from bench.results.stats import SAME_BOUND
from bench.views.sentences import ladder_story as story
from bench.views.tables.ladder_tables import WORDS
from bench.words import orders, units
from gui.base import icons
from gui.base.boxes import as_column, filled, scrolled
from gui.base.theme import Theming
from gui.pages.ladder.assembly_view import AssemblyView
from gui.pages.ladder.error_map import ErrorMapView
from gui.pages.ladder.ladder_table import LadderRow
from gui.pages.ladder.rung_diff import RungDiff
from gui.pages.ladder.rung_source import SourceView
from gui.widgets.combo import Combo
from gui.widgets.controls import push_button, set_role, shortcut, tool_button
from gui.widgets.labels import Label, Lines

SOURCE, DIFFERENCE, ASSEMBLY, FINDING = "&Source", "&Difference", "Asse&mbly", "Findin&g"
TEMPLATE = "its template"  # what a rung of the user's is compared with, beside other rungs
COMPILED = ".cu"  # the suffix of what is compiled, so that there is something to show; or it has a language


class LadderReader(QWidget):
    """`use_wanted` carries the RungCase that the model is to use, `step_wanted` how many rungs further on (or
    back) is to be read, `edit_wanted` a file and its line for an editor, `assembly_wanted` the RungInfo whose
    compiled code is to be shown. Tabs are filled when they are seen."""

    use_wanted = Signal(object)
    edit_wanted = Signal(Path, int)
    assembly_wanted = Signal(object)
    step_wanted = Signal(int)
    whole_wanted = Signal(bool)  # all of the page, or its own place

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
        self.title = Label(role="heading", wrap=True)
        self.words, self.state = Lines(3), Lines(4)
        self.use_button = push_button(
            "&Use in model",
            self._on_use,
            tip="Use this rung for this node of the model when the comparison runs (F5)",
        )
        self.edit_button = push_button(
            "&Edit…", self._on_edit, tip="Open this file in your editor, at the line of the caret (F4)"
        )
        shortcut(self, "F4", "Open the kernel in an editor", self._on_edit)
        self.source = SourceView(theming)
        self.assembly = AssemblyView(theming)
        self.diff = RungDiff(theming)
        self.finding = ErrorMapView(theming)
        self._pictures = scrolled(self.finding)  # they would take the room of the source, and of the charts
        self._pictures.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._against = Combo("The rung to compare with", self._fill)
        label = Label("&Against")
        label.setBuddy(self._against)
        line = filled(QHBoxLayout(), label, self._against, 1)
        self._beside = as_column(line, (self.diff, 1), margins=(4, 4, 4, 4))
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        panes = (self.source, self._beside, self._pictures, self.assembly)
        for pane, words in zip(panes, (SOURCE, DIFFERENCE, FINDING, ASSEMBLY), strict=True):
            self.tabs.addTab(pane, words)
        self.tabs.currentChanged.connect(self._fill)
        self.whole = tool_button(
            flat=True,
            name="The whole page",
            tip="Take the whole page, or give it back (Esc)",
            toggled=self._on_whole,
        )
        icons.put(self.whole, "whole", theming, "muted")
        self.tabs.setCornerWidget(self.whole)
        self.steps = tuple(self._step_button(step) for step in (-1, 1))
        buttons = (self.edit_button, self.use_button)
        head = filled(QHBoxLayout(), *self.steps, (self.title, 1), *buttons, spacing=4)
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
        self.use_button.setVisible(info is not None and not info.whole)
        self.use_button.setText("In the model" if used else "&Use in model")
        self._offer(other)
        wrong = self._measurement.finding is not None
        compiles = (
            info is not None
            and not info.whole
            and (Path(info.path).suffix == COMPILED or bool(info.case.language))
        )
        self._set_tabs(info is not None, info is not None and bool(self._against.count()), wrong, compiles)
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

    def event(self, event: QEvent) -> bool:
        """Esc gives the page back, before it is anything else's."""
        if isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape and self.whole.isChecked():
            if event.type() == QEvent.Type.KeyPress:
                self.whole.setChecked(False)
            event.accept()
            return True
        return super().event(event)

    # ------------------------------------------------------------------------------------------ the inside

    def _on_whole(self, on: bool) -> None:
        icons.put(self.whole, "back" if on else "whole", self._theming, "muted")
        self.whole_wanted.emit(on)

    def _step_button(self, step: int) -> QToolButton:
        words, keys = ("The rung before", "Alt+Left") if step < 0 else ("The next rung", "Alt+Right")
        button = tool_button("", lambda: self.step_wanted.emit(step), f"{words} ({keys})", name=words)
        button.setArrowType(Qt.ArrowType.LeftArrow if step < 0 else Qt.ArrowType.RightArrow)
        shortcut(self, keys, words, button.click)
        return button

    def _say(self, words: str, role: str) -> None:
        self.state.setText(words)
        self.state.setVisible(bool(words))
        set_role(self.state, role)

    def _set_tabs(self, source: bool, difference: bool, finding: bool, assembly: bool = False) -> None:
        for button in self.steps:
            button.setVisible(bool(self.title.text()))
        self.edit_button.setVisible(source)
        own = {
            self.source: source,
            self._beside: difference,
            self.assembly: assembly,
            self._pictures: finding,
        }
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
        """What to compare with: of a rung of the user's first its template, of any other the neighbour below;
        and every rung."""
        info = self._info
        chosen = None if other else self._against.currentData()
        items: dict[str, str] = {}
        if info is not None:
            items = {TEMPLATE: TEMPLATE} if info.template else {}
            items |= {rung.path: rung.case.label for rung in self._rungs if rung.path != info.path}
            below = neighbour(info, self._rungs)
            if chosen not in items and below is not None and not info.template:
                chosen = below.path
        self._against.offer(items, chosen)

    def _fill(self, _: int = 0) -> None:
        """The tab in front, where what it shows is not there yet."""
        tab, info = self.tabs.currentWidget(), self._info
        if tab is self.source:
            self._fill_source()
        elif tab is self._beside and info is not None:
            below = next((r for r in self._rungs if r.path == self._against.currentData()), None)
            if self._against.currentData() == TEMPLATE:
                other = ("The template", info.template)
            elif below is not None:
                other = (below.case.label, below.source)
            else:
                return
            if self._new(tab, (other, info)):
                self.diff.show_pair(*other, info.case.label, info.source, Path(info.path).suffix)
        elif tab is self.assembly and info is not None:
            if self._new(tab, (info.path, info.source, info.headers)):
                self.assembly.show_source(info.source, Path(info.path).suffix)
                self.assembly_wanted.emit(info)
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

    def show_assembly(self, rung: str, answer: AssemblyAnswer) -> None:
        """What the rung of this name is compiled to, if it is still the one that is read."""
        if self._info is not None and self._info.case.rung == rung:
            self.assembly.show_answer(answer)

    def forget_assembly(self) -> None:
        """The work is another, for which the same rung may be compiled otherwise."""
        self._filled.pop(self.assembly, None)
        self._fill()

    def _on_edit(self) -> None:
        if self._problem is not None:
            path, errors = self._problem.path, error_lines(self._problem.path, self._problem.reason)
        elif self._info is not None:
            path, errors = self._info.path, {}
        else:
            return
        if self.tabs.currentWidget() is self.assembly:
            self.edit_wanted.emit(Path(path), self.assembly.source.at + 1)
        elif self.tabs.currentWidget() is self.source:
            self.edit_wanted.emit(self.source.files.currentData() or Path(path), self.source.code.at + 1)
        else:
            self.edit_wanted.emit(Path(path), next(iter(errors), 1))

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
            (f"in {case.language}", case.language),
            ("beside the ladder", case.side),
            (case.precision, case.precision != "fp32"),
        )
        if on
    ]
    return case.label + (f" ({', '.join(marks)})" if marks else "")


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
    row = shown.row
    if row.gain is not None and row.lower is not None:
        told = orders.order(row.gain_verdict, row.gain, "it", row.lower.case.label, SAME_BOUND, ends=False)
        parts.append(doubt.marked(told, row.gain_doubts))
    if row.speedup is not None:
        told = orders.order(row.verdict, row.speedup, "it", "the reference", SAME_BOUND, ends=False)
        parts.append(doubt.marked(told, row.speedup_doubts))
    if whole := story.whole(row, shown.model, "the reference's"):
        parts.append(whole)
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
