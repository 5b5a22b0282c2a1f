"""A table (bench.show.table) in the window: sorted and selected by rows, copied as CSV and Markdown."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QModelIndex, QPoint, Qt, Signal
from PySide6.QtGui import QAction, QColor, QKeySequence, QPixmap
from PySide6.QtWidgets import QAbstractItemView, QApplication, QMenu, QTableView, QWidget

from bench.show.table import Column, Table, to_csv, to_markdown
from gui.widgets.labels import open_term
from gui.widgets.table_model import TableModel


class TableView(QTableView):
    """What a page's table says of its rows beside their columns are the methods from `key` on. `picked`
    carries the `target` of the row that the user went to."""

    picked = Signal(object)
    widest = 320  # pixels of a column
    margin = 12
    row_margin = 7
    sortable = True
    copies = True
    grows = True  # columns never shrink while data comes
    flush_headings = True

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.source = TableModel(self, self)
        self.setModel(self.source)
        if self.sortable:
            self.setSortingEnabled(True)
            self.sortByColumn(-1, Qt.SortOrder.AscendingOrder)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setAlternatingRowColors(True)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setAccessibleName(name)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + self.row_margin)
        self.horizontalHeader().setHighlightSections(False)
        self.horizontalHeader().setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.horizontalHeader().customContextMenuRequested.connect(self._on_heading_menu)
        self._widths: dict[int, int] = {}
        self._following = False
        self.selectionModel().currentRowChanged.connect(self._on_current)
        if self.copies:
            self._add_action("&Copy as CSV", QKeySequence(QKeySequence.StandardKey.Copy), self.copy_csv)
            self._add_action("Copy as &Markdown", QKeySequence("Ctrl+Shift+C"), self.copy_markdown)
            self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
            self.customContextMenuRequested.connect(self._on_menu)

    def show_table(self, table: Table[Any]) -> None:
        """Columns that tell nothing are hidden, the others as wide as their texts."""
        before = [column.name for column in self.source.columns]
        self._following = True
        self.source.show_table(table)
        self._following = False
        if before and before != [column.name for column in table.columns]:
            self._widths.clear()
            if self.sortable:
                self.sortByColumn(-1, Qt.SortOrder.AscendingOrder)
        changed = [
            (place, hidden)
            for place, column in enumerate(table.columns)
            if self.isColumnHidden(place) != (hidden := self.hides(column))
        ]
        # A header that is scrolled while columns go is moved by Qt as a picture, over its neighbours too.
        across = self.horizontalScrollBar().value()
        if changed:
            self.horizontalScrollBar().setValue(0)
        for place, hidden in changed:
            self.setColumnHidden(place, hidden)
        if changed:
            self.updateGeometries()
            self.horizontalScrollBar().setValue(across)
        if self.fits():
            self._fit()

    def _fit(self) -> None:
        for place in range(self.source.columnCount()):
            if not self.isColumnHidden(place):
                wanted = max(self.sizeHintForColumn(place) + self.margin, self.heading_width(place))
                wanted = min(self.widest, wanted)
                if wanted > self._widths.get(place, 0) or not self.grows:
                    self._widths[place] = wanted
                    self.setColumnWidth(place, wanted)

    def follow(self, target: Any) -> None:
        """Go to the row of what was selected elsewhere."""
        found = (place for place, row in enumerate(self.source.rows) if self.target(row) == target)
        row = next(found, None)
        self._following = True
        if row is None:
            self.clearSelection()
        elif row != self.currentIndex().row() or not self.selectionModel().isRowSelected(row):
            across = self.horizontalScrollBar().value()  # the user may be reading the last columns
            self.setCurrentIndex(self.source.index(row, max(0, self.currentIndex().column())))
            self.horizontalScrollBar().setValue(across)
        self._following = False

    def chosen_rows(self) -> list[Any]:
        """The selected rows where there are several, else all, as sorted."""
        chosen = sorted(index.row() for index in self.selectionModel().selectedRows())
        return [self.source.rows[i] for i in chosen] if len(chosen) > 1 else list(self.source.rows)

    def copy_csv(self) -> None:
        QApplication.clipboard().setText(to_csv(self.copied()))

    def copy_markdown(self) -> None:
        QApplication.clipboard().setText(self.markdown(self.copied()))

    # ---------------------------------------------------------------------------------- of a table of its own

    def key(self, row: Any) -> Hashable | None:
        return None

    def target(self, row: Any) -> Any:
        return row

    def tip(self, row: Any, column: Column[Any]) -> str:
        return column.reasons(row)

    def ink(self, row: Any, column: Column[Any]) -> QColor | None:
        return None

    def fill(self, row: Any, column: Column[Any]) -> QColor | None:
        return None

    def bold(self, row: Any, column: Column[Any]) -> bool:
        return False

    def swatch(self, row: Any, column: Column[Any]) -> QColor | QPixmap | None:
        return None

    def heading_swatch(self, column: Column[Any]) -> QColor | None:
        return None

    def hides(self, column: Column[Any]) -> bool:
        return not column.tells(self.source.rows)

    def fits(self) -> bool:
        """Whether the columns' widths are to be looked at."""
        return True

    def heading_width(self, place: int) -> int:
        return self.horizontalHeader().sectionSizeHint(place)

    def copied(self) -> Table[Any]:
        return replace(self.source.table, rows=self.chosen_rows())

    def markdown(self, table: Table[Any]) -> str:
        return to_markdown(table)

    # ------------------------------------------------------------------------------------------------- events

    def _add_action(self, words: str, keys: QKeySequence, do: Any) -> None:
        action = QAction(words, self)
        action.setShortcut(keys)
        action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        action.triggered.connect(do)
        self.addAction(action)

    def _on_current(self, current: QModelIndex) -> None:
        if current.isValid() and not self._following:
            self.picked.emit(self.target(self.source.rows[current.row()]))

    def _on_heading_menu(self, at: QPoint) -> None:
        """Of a heading that is a word of the glossary."""
        place = self.horizontalHeader().logicalIndexAt(at)
        if 0 <= place < len(self.source.columns) and (term := self.source.term(place)):
            menu = QMenu(self)
            menu.addAction(f"What “{term}” means").triggered.connect(lambda: open_term(term))
            menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
            menu.popup(self.horizontalHeader().viewport().mapToGlobal(at))

    def _on_menu(self, at: QPoint) -> None:
        menu = QMenu(self)
        menu.addActions(self.actions())
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self.viewport().mapToGlobal(at))
