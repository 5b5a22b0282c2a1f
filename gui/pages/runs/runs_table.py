"""The table of saved runs, ladders and profiles: newest first unless sorted otherwise; Enter or a double
click opens one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QPersistentModelIndex,
    QSortFilterProxyModel,
    Qt,
    Signal,
)
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QAbstractItemView, QTableView, QWidget

from bench.kinds.summaries import Summary
from bench.words import units
from gui.widgets.labels import as_tip

Index = QModelIndex | QPersistentModelIndex
SORT = Qt.ItemDataRole.UserRole
WIDEST = 280  # pixels a column takes by itself
_NO_INDEX = QModelIndex()


@dataclass(frozen=True)
class Column:
    """text as shown; value to sort by (None: the text)."""

    name: str
    text: Callable[[Summary], str]
    value: Callable[[Summary], Any] | None = None
    number: bool = False


def _batches(summary: Summary) -> str:
    """Doublings in a row as a span; others are listed."""
    doublings = {1 << power for power in range(max(summary.batches, default=1).bit_length())}
    return units.spans(summary.batches, doublings.union(summary.batches))


def _done(summary: Summary) -> str:
    if summary.problem:
        return ""
    return (
        f"{summary.measured} of {summary.cases}"
        if summary.measured < summary.cases
        else f"{summary.measured}"
    )


COLUMNS = (
    Column("started", lambda s: s.started, lambda s: s.created_at),
    Column("kind", lambda s: s.kind),
    Column("models", lambda s: s.problem or ", ".join(s.models)),
    Column("node", lambda s: s.node),
    Column("backends", lambda s: ", ".join(s.backends)),
    Column("batches", _batches, lambda s: s.batches),
    Column("machine", lambda s: s.machine),
    Column("cases", _done, lambda s: s.measured, True),
    Column("ok", lambda s: "" if s.problem else str(s.ok), lambda s: s.ok, True),
    Column("failed", lambda s: str(s.failed) if s.failed else "", lambda s: s.failed, True),
    Column("run", lambda s: s.name),
)


class RunsModel(QAbstractTableModel):
    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.runs: tuple[Summary, ...] = ()
        self.marks: dict[Path, str] = {}

    def show_runs(self, runs: Sequence[Summary], marks: dict[Path, str]) -> None:
        if tuple(runs) != self.runs:
            self.beginResetModel()
            self.runs, self.marks = tuple(runs), marks
            self.endResetModel()
        elif marks != self.marks:
            self.marks = marks
            if self.runs:
                self.dataChanged.emit(self.index(0, 0), self.index(len(self.runs) - 1, len(COLUMNS) - 1))

    def rowCount(self, parent: Index = _NO_INDEX) -> int:
        return 0 if parent.isValid() else len(self.runs)

    def columnCount(self, parent: Index = _NO_INDEX) -> int:
        return 0 if parent.isValid() else len(COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = 0) -> Any:
        if role == Qt.ItemDataRole.DisplayRole and orientation == Qt.Orientation.Horizontal:
            return COLUMNS[section].name
        return None

    def data(self, index: Index, role: int = 0) -> Any:
        summary, column = self.runs[index.row()], COLUMNS[index.column()]
        mark = self.marks.get(summary.path.absolute(), "")
        if role == Qt.ItemDataRole.DisplayRole:
            text = column.text(summary)
            return f"{text}  ({mark})" if mark and index.column() == 0 else text
        if role == SORT:
            return column.value(summary) if column.value is not None else column.text(summary)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            flush = Qt.AlignmentFlag.AlignRight if column.number else Qt.AlignmentFlag.AlignLeft
            return int(flush | Qt.AlignmentFlag.AlignVCenter)
        if role == Qt.ItemDataRole.FontRole and mark:
            font = QFont()
            font.setBold(True)
            return font
        if role == Qt.ItemDataRole.ToolTipRole:
            told = (str(summary.path.absolute()), summary.command, summary.problem)
            return as_tip("\n".join(filter(None, told)))
        return None


class _Sorted(QSortFilterProxyModel):
    def lessThan(self, left: Index, right: Index) -> bool:
        return bool(left.data(SORT) < right.data(SORT))


class RunsTable(QTableView):
    opened = Signal(Path)
    chosen = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.source = RunsModel(self)
        self._proxy = _Sorted(self)
        self._proxy.setSourceModel(self.source)
        self.setModel(self._proxy)
        self.setSortingEnabled(True)
        self.sortByColumn(0, Qt.SortOrder.DescendingOrder)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setAlternatingRowColors(True)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setAccessibleName("Saved runs")
        self.setTabKeyNavigation(False)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 9)
        self.horizontalHeader().setHighlightSections(False)
        self.horizontalHeader().setStretchLastSection(True)
        self.horizontalHeader().setMinimumSectionSize(40)
        self.activated.connect(self._on_activated)
        self.selectionModel().selectionChanged.connect(lambda *_: self.chosen.emit())

    def show_runs(self, runs: Sequence[Summary], shown: Path | None, overlay: Path | None) -> None:
        """Show these, saying which is shown and which is laid over it; the chosen one stays chosen."""
        before, known = self.chosen_path(), (self.source.runs, self.source.marks)
        marks = {path.absolute(): words for path, words in ((shown, "shown"), (overlay, "laid over")) if path}
        self.source.show_runs(runs, marks)
        if (self.source.runs, self.source.marks) != known:
            self.choose(before)
            self._fit()

    def chosen_path(self) -> Path | None:
        return self.chosen_run.path if self.chosen_run is not None else None

    @property
    def chosen_run(self) -> Summary | None:
        rows = self.selectionModel().selectedRows()
        return self.source.runs[self._proxy.mapToSource(rows[0]).row()] if rows else None

    def choose(self, path: Path | None) -> None:
        """Select a run, the topmost where it is not there."""
        paths = [run.path for run in self.source.runs]
        if path in paths:
            self.setCurrentIndex(self._proxy.mapFromSource(self.source.index(paths.index(path), 0)))
        elif paths:
            self.setCurrentIndex(self._proxy.index(0, 0))

    def _fit(self) -> None:
        """Widths of what is shown; no column of nodes where there is no ladder."""
        node = next(place for place, column in enumerate(COLUMNS) if column.name == "node")
        self.setColumnHidden(node, not any(run.node for run in self.source.runs))
        for column in range(len(COLUMNS) - 1):
            header = self.horizontalHeader().sectionSizeHint(column)
            self.setColumnWidth(column, min(WIDEST, max(self.sizeHintForColumn(column) + 14, header)))

    def _on_activated(self, index: QModelIndex) -> None:
        self.opened.emit(self.source.runs[self._proxy.mapToSource(index).row()].path)
