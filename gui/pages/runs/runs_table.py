"""The table of saved runs, ladders and profiles: newest first unless sorted otherwise; Enter or a double
click opens one."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QItemSelectionModel, QModelIndex, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QWidget

from bench.kinds.summaries import Summary
from bench.show import run_tables
from bench.show.table import Column, Table, pick
from gui.widgets.table_view import TableView

STARTED, *OTHERS = pick(
    run_tables.COLUMNS,
    *("created_at", "called", "kind", "models", "node", "result", "done", "failed", "backends", "batches"),
    *("machine", "note", "name"),
)


class RunsTable(TableView):
    opened = Signal(Path)
    chosen = Signal()
    widest = 280
    margin = 14
    row_margin = 9
    copies = False
    grows = False

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Saved runs", parent)
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
        shown: Path | None,
        overlays: Sequence[Path],
        baselines: Collection[Path] = (),
    ) -> None:
        """Show these, saying which is shown, which are laid over it and which are baselines (resolved); those
        that are chosen stay chosen."""
        before = [run.path for run in self.chosen_runs]
        marks = {path.absolute(): "laid over" for path in overlays}
        if shown is not None:
            marks[shown.absolute()] = "shown"
        for path in (run.path.absolute() for run in runs if run.path.resolve() in baselines):
            marks[path] = ", ".join(filter(None, ("baseline", marks.get(path, ""))))
        if tuple(runs) != self.source.table.rows or marks != self._marks:
            self._marks = marks
            self.show_table(Table((replace(STARTED, cell=self._started), *OTHERS), tuple(runs)))
            self.choose(before[0] if before else None)
            self._choose_also(before[1:])

    def chosen_path(self) -> Path | None:
        return self.chosen_run.path if self.chosen_run is not None else None

    @property
    def chosen_run(self) -> Summary | None:
        """The only one that is chosen."""
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
        """Select a run, the topmost where it is not there."""
        paths = [run.path for run in self.source.rows]
        if paths:
            self.setCurrentIndex(self.source.index(paths.index(path) if path in paths else 0, 0))

    def _fit(self) -> None:
        """Room that no column needs goes to those that are cut: sentences and lists of names."""
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
        """No column of nodes where there is no ladder, none of names where nothing is named."""
        return column.name in ("node", "called", "note", "result") and super().hides(column)

    def _mark(self, summary: Summary) -> str:
        return self._marks.get(summary.path.absolute(), "")

    def _started(self, summary: Summary) -> str:
        mark = self._mark(summary)
        return f"{summary.started}  ({mark})" if mark else summary.started

    def _on_activated(self, index: QModelIndex) -> None:
        self.opened.emit(self.source.rows[index.row()].path)
