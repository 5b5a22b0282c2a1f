"""Runs: the saved runs, ladders and profiles, to open, to resume, to name, to find on the disk, to delete;
runs to lay over the one shown, and to fill the form from; two to hold against each other, and a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QAction, QKeySequence, QShortcut, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QMenu, QToolButton, QVBoxLayout, QWidget

from bench.kinds.note import Note
from bench.kinds.summaries import Summary
from bench.show.run_tables import COLUMNS
from gui.base.boxes import filled
from gui.base.scale import PAGE_MARGINS
from gui.base.theme import Theming
from gui.pages.page import Page
from gui.sessions.run_state import RunState
from gui.widgets.labels import Label

ORDER = 90


class RunsPage(Page):
    """Knows what to show and what the user wants; gui.shell.library does it."""

    title = "Runs"
    form = False
    ways = (("run", "Run the comparison"), ("open-run", "Open a run…"), ("open-sample", "See a recorded run"))
    list_wanted = Signal()
    open_wanted = Signal(Path)
    resume_wanted = Signal(Path)
    retry_wanted = Signal(Path)
    overlay_wanted = Signal(Path)
    overlay_unwanted = Signal(Path)
    form_wanted = Signal(Path)
    noted = Signal(Path, object)  # with a Note
    reveal_wanted = Signal(Path)
    delete_wanted = Signal(Path)
    diff_wanted = Signal(Path, Path)  # the run before, the run after
    baseline_wanted = Signal(Path, bool)

    def __init__(self, state: RunState, theming: Theming, parent: QWidget | None = None) -> None:
        self._summaries: tuple[Summary, ...] = ()
        self._where: Path | None = None
        self._held: Mapping[Path, Path] = {}  # the baseline of each run that has one
        self._baselines: frozenset[Path] = frozenset()
        super().__init__(state, theming, parent)
        self.open_action = self._action(
            "&Open", "Show this run, ladder or profile on its pages (Enter)", self._open
        )
        self.resume_action = self._action(
            "Res&ume", "Measure what is missing of this run (Ctrl+G)", self._resume
        )
        self.retry_action = self._action(
            "Re&try", "Measure again what crashed or timed out in this run, and what is missing", self._retry
        )
        self.overlay_action = self._action(
            "Lay o&ver", "Draw this run in thin lines over the one on the Compare page (Space)", self._overlay
        )
        self.form_action = self._action(
            "Fill the fo&rm", "Put this run's settings into the form, for F5", self._fill_form
        )
        self.diff_action = self._action(
            "D&iff",
            "Hold two runs against each other (Ctrl+click chooses the second), or one against its baseline: "
            "which is faster, is it right, what else differs (Ctrl+D)",
            self._diff,
        )
        self.baseline_action = self._action(
            "Set as &baseline",
            "Hold further runs of the same models against this one, and say so when one ends",
            self._set_baseline,
        )
        self.note_action = self._action(
            "&Name…", "Name this run and note something of it; kept in its folder (F2)", self._ask_note
        )
        self.reveal_action = self._action("Show the &folder", "Open the run's folder", self._reveal)
        self.delete_action = self._action("&Delete…", "Move the run to the trash (Delete)", self._delete)
        self.resume_action.setShortcut("Ctrl+G")
        self.overlay_action.setShortcut("Space")
        self.diff_action.setShortcut("Ctrl+D")
        self.note_action.setShortcut("F2")
        self.delete_action.setShortcut("Del")

    def empty_text(self) -> str:
        where = f" in {self._where}" if self._where is not None else ""
        return (
            f"There is no saved run{where}: every comparison, ladder and profile leaves one here.\n"
            "F5 makes the first; a run's folder from elsewhere is opened, or dropped on the window."
        )

    def has_content(self) -> bool:
        return bool(self._summaries)

    def build(self) -> QWidget:
        from gui.pages.runs.runs_table import RunsTable

        self.table = RunsTable()
        self.table.opened.connect(self.open_wanted)
        self.table.chosen.connect(self._enable)
        self.table.addActions(self._actions)
        self.table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.table.customContextMenuRequested.connect(self._on_menu)
        bar = QHBoxLayout()
        for action in self._actions:
            button = QToolButton()
            button.setDefaultAction(action)
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            if action is self.open_action:
                button.setProperty("role", "primary")
            bar.addWidget(button)
        bar.addStretch(1)
        self._count = Label()
        self._count.setProperty("role", "muted")
        bar.addWidget(self._count)
        self.filter = QLineEdit()
        self.filter.setPlaceholderText("Only runs with …")
        self.filter.setToolTip("Every word has to stand somewhere in a run's line or in its note (Ctrl+F)")
        self.filter.setAccessibleName("Filter")
        self.filter.setClearButtonEnabled(True)
        self.filter.setMaximumWidth(240)
        self.filter.textChanged.connect(lambda _: self.invalidate())
        self.filter.returnPressed.connect(self.table.setFocus)
        bar.addWidget(self.filter)
        find = QShortcut(QKeySequence(QKeySequence.StandardKey.Find), self)
        find.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        find.setWhatsThis("Find a run by its words")
        find.activated.connect(self.filter.setFocus)
        body = QWidget()
        filled(QVBoxLayout(body), bar, (self.table, 1), margins=PAGE_MARGINS)
        self._enable()
        return body

    def refresh(self) -> None:
        wanted, every = matching(self._summaries, self.filter.text()), len(self._summaries)
        overlays = [other.folder for other in self.state.overlays]
        self.table.show_runs(wanted, self.state.folder, overlays, self._baselines)
        some = f"{len(wanted)} of {every}" if len(wanted) < every else f"{every}"
        self._count.setText(f"{some} runs" if every != 1 else f"{some} run")
        self._enable()

    def show_runs(
        self,
        summaries: Sequence[Summary],
        where: Path,
        held: Mapping[Path, Path] | None = None,
        baselines: Sequence[Path] = (),
    ) -> None:
        """Make these the runs; `where` most of them lie. held: the baseline of each that has one; baselines:
        all that are kept."""
        self._where = where
        self._held = held or {}
        self._baselines = frozenset(path.resolve() for path in baselines)
        if tuple(summaries) != self._summaries:
            self._summaries = tuple(summaries)
        self.invalidate()

    @property
    def summaries(self) -> tuple[Summary, ...]:
        return self._summaries

    @property
    def chosen(self) -> Path | None:
        return self.table.chosen_path() if self._body is not None else None

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.list_wanted.emit()

    # ------------------------------------------------------------------------------------------ the inside

    @property
    def _actions(self) -> list[QAction]:
        return [
            self.open_action,
            self.resume_action,
            self.retry_action,
            self.overlay_action,
            self.form_action,
            self.diff_action,
            self.baseline_action,
            self.note_action,
            self.reveal_action,
            self.delete_action,
        ]

    def _action(self, text: str, tip: str, slot: object) -> QAction:
        action = QAction(text, self)
        action.setToolTip(tip)
        action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        action.triggered.connect(slot)
        return action

    def _enable(self) -> None:
        chosen = self.chosen
        for action in self._actions:
            action.setEnabled(chosen is not None)
        self.overlay_action.setText("Take o&ff" if self._over else "Lay o&ver")
        shown = chosen is not None and self.state.folder is not None and same(self.state.folder, chosen)
        run = self.table.chosen_run if self._body is not None else None
        self.overlay_action.setEnabled(run is not None and run.layered and not shown)
        self.resume_action.setEnabled(run is not None and run.resumable)
        self.retry_action.setEnabled(run is not None and run.retriable)
        self.form_action.setEnabled(run is not None and run.layered and not run.problem)
        self.note_action.setEnabled(run is not None and bool(run.kind))
        self.diff_action.setEnabled(self._two() is not None)
        self.baseline_action.setText("No more &baseline" if self._is_baseline else "Set as &baseline")
        self.baseline_action.setEnabled(run is not None and run.measured > 0 and not run.problem)

    @property
    def _is_baseline(self) -> bool:
        chosen = self.chosen
        return chosen is not None and chosen.resolve() in self._baselines

    def _two(self) -> tuple[Path, Path] | None:
        """The two that would be held against each other, the older first; None where there are none."""
        runs = self.table.chosen_runs if self._body is not None else []
        if len(runs) == 1 and (kept := self._held.get(runs[0].path)) is not None and not runs[0].problem:
            return kept, runs[0].path
        if len(runs) != 2 or runs[0].kind != runs[1].kind or any(run.problem for run in runs):
            return None
        first, second = sorted(runs, key=lambda run: run.created_at)
        return first.path, second.path

    def _diff(self) -> None:
        if (two := self._two()) is not None:
            self.diff_wanted.emit(*two)

    def _set_baseline(self) -> None:
        if self.chosen is not None:
            self.baseline_wanted.emit(self.chosen, not self._is_baseline)

    def _open(self) -> None:
        if self.chosen is not None:
            self.open_wanted.emit(self.chosen)

    @property
    def _over(self) -> bool:
        """Whether the run chosen lies over the one shown."""
        chosen = self.chosen
        return chosen is not None and any(same(other.folder, chosen) for other in self.state.overlays)

    def _overlay(self) -> None:
        if self.chosen is not None:
            (self.overlay_unwanted if self._over else self.overlay_wanted).emit(self.chosen)

    def _resume(self) -> None:
        if self.chosen is not None:
            self.resume_wanted.emit(self.chosen)

    def _retry(self) -> None:
        if self.chosen is not None:
            self.retry_wanted.emit(self.chosen)

    def _fill_form(self) -> None:
        if self.chosen is not None:
            self.form_wanted.emit(self.chosen)

    def _ask_note(self) -> None:
        from gui.pages.runs.note_dialog import NoteDialog

        run = self.table.chosen_run
        if run is not None:
            dialog = NoteDialog(run.name, Note(name=run.called, text=run.note), self)
            dialog.kept.connect(lambda note, path=run.path: self.noted.emit(path, note))
            dialog.open()

    def _reveal(self) -> None:
        if self.chosen is not None:
            self.reveal_wanted.emit(self.chosen)

    def _delete(self) -> None:
        if self.chosen is not None:
            self.delete_wanted.emit(self.chosen)

    def _on_menu(self, at: QPoint) -> None:
        menu = QMenu(self.table)
        menu.addActions(self._actions)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self.table.viewport().mapToGlobal(at))


def matching(runs: Sequence[Summary], text: str) -> tuple[Summary, ...]:
    """The runs of which every word of a text stands in the line, the note or the command."""
    words = text.casefold().split()
    return tuple(run for run in runs if all(word in _said(run) for word in words))


def _said(run: Summary) -> str:
    shown = (column.words(run) for column in COLUMNS)
    return " ".join((*shown, run.note, run.command)).casefold()


def same(one: Path, other: Path) -> bool:
    """Whether two paths name one folder, which need not exist any more."""
    return one.absolute() == other.absolute()


PAGE = RunsPage
