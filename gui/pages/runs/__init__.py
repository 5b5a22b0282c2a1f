"""Runs: the list of saved runs, ladders and profiles, and what can be done with one: open, resume, name,
show its folder, delete, draw it over the run shown, fill the form from it, compare it, make it a
baseline."""

from __future__ import annotations

import functools
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QItemSelectionModel, QModelIndex, Qt, Signal
from PySide6.QtGui import QKeySequence, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QHBoxLayout,
    QLineEdit,
    QPlainTextEdit,
    QWidget,
)

from bench.results.note import NAME_CHARACTERS, Note
from bench.results.summaries import Summary
from bench.views.tables import run_tables
from bench.views.tables.run_tables import COLUMNS
from bench.views.tables.table import Column, Table, pick
from gui.base.boxes import as_column, filled
from gui.base.theme import PAGE_MARGINS, Theming
from gui.pages.page import Find, Page
from gui.sessions.comparison_session import RunState
from gui.widgets.controls import Label, line_edit, new_action, shortcut, tool_of
from gui.widgets.table_view import TableView

STARTED, *OTHERS = pick(
    run_tables.COLUMNS,
    *("created_at", "called", "kind", "models", "node", "result", "done", "failed", "backends", "batches"),
    *("machine", "note", "name"),
)


class RunsTable(TableView):
    """The list. `opened` carries the folder of a run that is to be opened."""

    opened = Signal(Path)
    chosen = Signal()
    widest = 280
    margin = 8
    row_margin = 9
    grows = False
    filters = False  # the page has a field for it

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Saved runs", parent=parent)
        self._marks: Mapping[Path, str] = {}
        self.sortByColumn(0, Qt.SortOrder.DescendingOrder)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.horizontalHeader().setStretchLastSection(True)
        self.horizontalHeader().setMinimumSectionSize(40)
        self.activated.connect(self._on_activated)
        self.selectionModel().selectionChanged.connect(lambda *_: self.chosen.emit())

    def show_runs(
        self,
        runs: Sequence[Summary],
        shown_folder: Path | None,
        overlays: Sequence[Path],
        baselines: Collection[Path] = (),
    ) -> None:
        """Show these runs. Marks say which one is on the pages, which ones lie over it, and which are
        baselines (resolved paths). The selection stays."""
        before = [run.path for run in self.chosen_runs]
        marks = {path.absolute(): "laid over" for path in overlays}
        if shown_folder is not None:
            marks[shown_folder.absolute()] = "shown"
        for path in (run.path.absolute() for run in runs if run.path.resolve() in baselines):
            marks[path] = ", ".join(filter(None, ("baseline", marks.get(path, ""))))
        if tuple(runs) != self.source.table.rows or marks != self._marks:
            self._marks = marks
            self.show_table(Table((replace(STARTED, cell=self._started), *OTHERS), tuple(runs)))
            self.choose(before[0] if before else None)
            self._choose_also(before[1:])

    def widest_of(self, column: Column[Summary]) -> int:
        """The result is what is looked for first."""
        return 2 * self.widest if column.name == "result" else self.widest

    def chosen_path(self) -> Path | None:
        return self.chosen_run.path if self.chosen_run is not None else None

    @property
    def chosen_run(self) -> Summary | None:
        """The selected run, if exactly one is selected."""
        runs = self.chosen_runs
        return runs[0] if len(runs) == 1 else None

    @property
    def chosen_runs(self) -> list[Summary]:
        return [self.source.rows[index.row()] for index in self.selectionModel().selectedRows()]

    def _choose_also(self, paths: Sequence[Path]) -> None:
        flags = QItemSelectionModel.SelectionFlag
        for place, run in enumerate(self.source.rows):
            if run.path in paths:
                self.selectionModel().select(self.source.index(place, 0), flags.Select | flags.Rows)

    def choose(self, path: Path | None) -> None:
        """Select a run; the first one if it is not in the list."""
        paths = [run.path for run in self.source.rows]
        if paths:
            self.go_to(paths.index(path) if path in paths else 0)

    def _fit(self) -> None:
        """Give room that no column needs to columns whose texts are cut."""
        super()._fit()
        there = [place for place in range(self.source.columnCount()) if not self.isColumnHidden(place)]
        last = self.sizeHintForColumn(there[-1]) + self.margin if there else 0
        spare = self.viewport().width() - sum(map(self.columnWidth, there[:-1])) - last
        for place in there[:-1]:
            missing = self.sizeHintForColumn(place) + self.margin - self.columnWidth(place)
            if missing > 0 and spare > 0:
                self.setColumnWidth(place, self.columnWidth(place) + min(missing, spare))
                spare -= min(missing, spare)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._fit()

    def key(self, row: Summary) -> Hashable:
        return row.path

    def tip(self, row: Summary, column: Column[Summary]) -> str:
        of_column = {"result": row.result, "note": row.note}.get(column.name, "")
        return "\n".join(filter(None, (of_column, str(row.path.absolute()), row.command, row.problem)))

    def bold(self, row: Summary, column: Column[Summary]) -> bool:
        return bool(self._mark(row))

    def hides(self, column: Column[Summary]) -> bool:
        """Hide the columns that are empty in all rows."""
        return column.name in ("node", "called", "note", "result") and super().hides(column)

    def _mark(self, summary: Summary) -> str:
        return self._marks.get(summary.path.absolute(), "")

    def _started(self, summary: Summary) -> str:
        mark = self._mark(summary)
        return f"{summary.started}  ({mark})" if mark else summary.started

    def _on_activated(self, index: QModelIndex) -> None:
        self.opened.emit(self.source.rows[index.row()].path)


ORDER = 90


# What is done with the run chosen: its words, its tip, its keys.
VERBS = {
    "open": ("&Open", "Show this run, ladder or profile on its pages (Enter)", ""),
    "resume": ("Res&ume", "Measure what is missing of this run (Ctrl+G)", "Ctrl+G"),
    "retry": ("Re&try", "Measure again what crashed or timed out in this run, and what is missing", ""),
    "overlay": ("Lay o&ver", "Draw this run in thin lines over the one on the Compare page (Space)", "Space"),
    "form": ("Fill the fo&rm", "Put this run's settings into the form, for F5", ""),
    "diff": (
        "D&iff",
        "Hold two runs against each other (Ctrl+click chooses the second), one against its baseline, or "
        "several side by side: which is faster, is it right, what else differs (Ctrl+D)",
        "Ctrl+D",
    ),
    "baseline": (
        "Set as &baseline",
        "Hold further runs of the same models against this one, and say so when one ends",
        "",
    ),
    "note": ("&Name…", "Name this run and note something of it; kept in its folder (F2)", "F2"),
    "reveal": ("Show the &folder", "Open the run's folder", ""),
    "delete": ("&Delete…", "Move the run to the trash (Delete)", "Del"),
}


class RunsPage(Page):
    """Shows the runs and says what the user wants; gui.shell.library does it."""

    title = "Runs"
    form = False
    ways = (("run", "Run the comparison"), ("open-run", "Open a run…"), ("open-sample", "See a recorded run"))
    list_wanted = Signal()
    wanted = Signal(str, Path)  # one of VERBS, and the run that it is about
    noted = Signal(Path, object)  # with a Note
    diff_wanted = Signal(Path, Path)  # the run before, the run after
    several_wanted = Signal(object)  # paths of runs, the baseline first
    baseline_wanted = Signal(Path, bool)

    def __init__(self, state: RunState, theming: Theming, parent: QWidget | None = None) -> None:
        self.summaries: tuple[Summary, ...] = ()
        self._where: Path | None = None
        self._baseline_of: Mapping[Path, Path] = {}  # the baseline of each run that has one
        self._baselines: frozenset[Path] = frozenset()
        super().__init__(state, theming, parent)
        do = {"diff": self._diff, "baseline": self._set_baseline, "note": self._ask_note}
        self.actions_of = {
            verb: new_action(self, text, do.get(verb, functools.partial(self._want, verb)), tip, keys)
            for verb, (text, tip, keys) in VERBS.items()
        }

    def empty_text(self) -> str:
        where = f" in {self._where}" if self._where is not None else ""
        return (
            f"There is no saved run{where}: every comparison, ladder and profile leaves one here.\n"
            "F5 makes the first; a run's folder from elsewhere is opened, or dropped on the window."
        )

    @property
    def ready(self) -> str:
        return "Ready. Enter opens the selected run." if self.summaries else super().ready

    def has_content(self) -> bool:
        return bool(self.summaries)

    def build(self) -> QWidget:
        self.table = RunsTable()
        self.table.opened.connect(lambda path: self.wanted.emit("open", path))
        self.table.chosen.connect(self._enable)
        actions = tuple(self.actions_of.values())
        self.table.insertActions(self.table.actions()[0], actions)
        buttons = [
            tool_of(action, "primary" if verb == "open" else "") for verb, action in self.actions_of.items()
        ]
        self.count = Label(role="muted")
        tip = "Every word has to stand somewhere in a run's line or in its note (Ctrl+F)"
        self.filter = line_edit("Only runs with …", lambda _: self.invalidate(), "Filter", tip, width=240)
        self.filter.returnPressed.connect(self.table.setFocus)
        shortcut(self, QKeySequence.StandardKey.Find, "Find a run by its words", self.filter.setFocus)
        bar = filled(QHBoxLayout(), *buttons, 1, self.count, self.filter)
        body = as_column(bar, (self.table, 1), margins=PAGE_MARGINS)
        self._enable()
        return body

    def refresh(self) -> None:
        wanted, every = matching(self.summaries, self.filter.text()), len(self.summaries)
        overlays = [other.folder for other in self.state.overlays]
        self.table.show_runs(wanted, self.state.folder, overlays, self._baselines)
        some = f"{len(wanted)} of {every}" if len(wanted) < every else f"{every}"
        self.count.setText(f"{some} runs" if every != 1 else f"{some} run")
        self._enable()

    def show_runs(
        self,
        summaries: Sequence[Summary],
        where: Path,
        baseline_of: Mapping[Path, Path] | None = None,
        baselines: Sequence[Path] = (),
    ) -> None:
        """Show these runs. where: the folder of most of them; baseline_of: run → its baseline; baselines:
        all baselines."""
        self._where = where
        self._baseline_of = baseline_of or {}
        self._baselines = frozenset(path.resolve() for path in baselines)
        if tuple(summaries) != self.summaries:
            self.summaries = tuple(summaries)
            self.readied.emit()
        self.invalidate()

    def findable(self) -> Sequence[Find]:
        return [
            Find(
                "Run",
                " · ".join(filter(None, (run.called or run.name, ", ".join(run.models), run.node))),
                functools.partial(self.wanted.emit, "open", run.path),
                run.result,
            )
            for run in reversed(self.summaries)
        ]

    @property
    def chosen(self) -> Path | None:
        return self.table.chosen_path() if self._body is not None else None

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.list_wanted.emit()

    # ------------------------------------------------------------------------------------------ the inside

    def _enable(self) -> None:
        chosen, run = self.chosen, self.table.chosen_run if self._body is not None else None
        is_shown = chosen is not None and self.state.folder is not None and same(self.state.folder, chosen)
        able = {
            "resume": run is not None and run.resumable,
            "retry": run is not None and run.retriable,
            "overlay": run is not None and run.layered and not is_shown,
            "form": run is not None and run.layered and not run.problem,
            "diff": self._two() is not None or bool(self._several()),
            "baseline": run is not None and run.measured > 0 and not run.problem,
            "note": run is not None and bool(run.kind),
        }
        for verb, action in self.actions_of.items():
            action.setEnabled(able.get(verb, chosen is not None))
        self.actions_of["overlay"].setText("Take o&ff" if self._over else VERBS["overlay"][0])
        self.actions_of["baseline"].setText(
            "No more &baseline" if self._is_baseline else VERBS["baseline"][0]
        )

    @property
    def _is_baseline(self) -> bool:
        chosen = self.chosen
        return chosen is not None and chosen.resolve() in self._baselines

    def _two(self) -> tuple[Path, Path] | None:
        """The two runs to compare, the older one first; None if the selection is not for that."""
        runs = self.table.chosen_runs if self._body is not None else []
        if (
            len(runs) == 1
            and (baseline := self._baseline_of.get(runs[0].path)) is not None
            and not runs[0].problem
        ):
            return baseline, runs[0].path
        if len(runs) != 2 or runs[0].kind != runs[1].kind or any(run.problem for run in runs):
            return None
        first, second = sorted(runs, key=lambda run: run.created_at)
        return first.path, second.path

    def _several(self) -> list[Path]:
        """More than two runs of one kind, to be seen side by side: first the one that is a baseline, else the
        oldest. [] if the selection is not for that."""
        runs = self.table.chosen_runs if self._body is not None else []
        if len(runs) < 3 or len({run.kind for run in runs}) > 1 or any(run.problem for run in runs):
            return []
        first = sorted(runs, key=lambda run: (run.path.resolve() not in self._baselines, run.created_at))
        return [run.path for run in first]

    def _diff(self) -> None:
        if (two := self._two()) is not None:
            self.diff_wanted.emit(*two)
        elif several := self._several():
            self.several_wanted.emit(several)

    def _set_baseline(self) -> None:
        if self.chosen is not None:
            self.baseline_wanted.emit(self.chosen, not self._is_baseline)

    def _want(self, verb: str, _triggered: bool = False) -> None:
        if self.chosen is not None:
            self.wanted.emit("take off" if verb == "overlay" and self._over else verb, self.chosen)

    @property
    def _over(self) -> bool:
        """Whether the selected run lies over the run shown."""
        chosen = self.chosen
        return chosen is not None and any(same(other.folder, chosen) for other in self.state.overlays)

    def _ask_note(self) -> None:
        run = self.table.chosen_run
        if run is not None:
            dialog = NoteDialog(run.name, Note(name=run.called, text=run.note), self)
            dialog.saved.connect(lambda note, path=run.path: self.noted.emit(path, note))
            dialog.open()


def matching(runs: Sequence[Summary], text: str) -> tuple[Summary, ...]:
    """The runs whose line, note or command contains every word of a text."""
    words = text.casefold().split()
    return tuple(run for run in runs if all(word in _searched_text(run) for word in words))


def _searched_text(run: Summary) -> str:
    cells = (column.words(run) for column in COLUMNS)
    return " ".join((*cells, run.note, run.command)).casefold()


def same(one: Path, other: Path) -> bool:
    """Whether two paths name the same folder. It need not exist."""
    return one.absolute() == other.absolute()


PAGE = RunsPage


class NoteDialog(QDialog):
    """Asks for a run's name and note. `saved` carries the Note."""

    saved = Signal(object)

    def __init__(self, folder: str, note: Note, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Name a run")
        self.name = QLineEdit(note.name)
        self.name.setMaxLength(NAME_CHARACTERS)
        self.name.setPlaceholderText(folder)
        self.name.setMinimumWidth(360)
        self.text = QPlainTextEdit(note.text)
        self.text.setTabChangesFocus(True)
        self.text.setFixedHeight(6 * self.text.fontMetrics().lineSpacing() + 12)
        buttons = QDialogButtonBox()
        self.save = buttons.addButton("Save", QDialogButtonBox.ButtonRole.AcceptRole)
        buttons.addButton("Cancel", QDialogButtonBox.ButtonRole.RejectRole)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        form = QFormLayout(self)
        for words, field in (("&Name", self.name), ("N&ote", self.text)):
            form.addRow(Label(words, buddy=field), field)
        where = "Both lie in the run's folder, so they go where it goes; legends use the name."
        form.addRow(Label(where, role="muted", wrap=True))
        form.addRow(buttons)
        self.finished.connect(self.deleteLater)

    def accept(self) -> None:
        self.saved.emit(Note(name=self.name.text(), text=self.text.toPlainText()))
        super().accept()
