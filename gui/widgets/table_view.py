"""A table (bench.views.tables) in the window. It can be sorted, filtered, selected by rows, and copied as CSV
and Markdown; its columns can be hidden, moved and pinned (gui.widgets.columns)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from PySide6.QtCore import (
    QAbstractTableModel,
    QEvent,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QSettings,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import QColor, QFont, QFontMetrics, QKeyEvent, QKeySequence, QPixmap, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QApplication, QMenu, QStyle, QTableView, QWidget

from bench.views.tables.table import Column, Table, to_csv, to_markdown
from bench.words import glossary
from gui.base.theme import CELL, Theme, Theming, resized, scaled
from gui.base.wording import in_window
from gui.widgets.columns import Columns, fill
from gui.widgets.controls import as_tip, context_menu, line_edit, new_action, open_term, plain_meaning

Index = QModelIndex | QPersistentModelIndex
NO_INDEX = QModelIndex()
FIND = QKeySequence.StandardKey.Find
FILTER = "Every word has to stand somewhere in a row (Esc shows all rows)"


class TableModel(QAbstractTableModel):
    """The rows in the order shown. The view adds what the columns do not say of a row."""

    def __init__(self, view: TableView) -> None:
        super().__init__(view)
        self.table: Table[Any] = Table((), ())
        self.rows: list[Any] = []
        self._looks = view
        self._sorted_by = (-1, Qt.SortOrder.AscendingOrder)

    @property
    def columns(self) -> Sequence[Column[Any]]:
        return self.table.columns

    def show_table(self, table: Table[Any]) -> None:
        """Show a table. The selection stays on rows that are still there."""
        key = self._looks.key
        new = {key(row): row for row in table.rows}
        keys = [key(row) for row in self.rows]
        names = [column.name for column in table.columns]
        same_rows = len(new) == len(table.rows) and None not in new and not new.keys().isdisjoint(keys)
        if not same_rows or names != [column.name for column in self.columns]:
            self.beginResetModel()
            self.table, self.rows = table, list(table.rows)
            self.rows = self._in_order()
            self.endResetModel()
            return
        for place in reversed(range(len(keys))):
            if keys[place] not in new:
                self.beginRemoveRows(NO_INDEX, place, place)
                del self.rows[place]
                self.endRemoveRows()
        before, columns = self.rows, self.columns
        self.table, self.rows = table, [new.pop(key(row)) for row in before]
        everything = columns is not table.columns
        changed = [i for i, row in enumerate(self.rows) if everything or row is not before[i]]
        if changed:
            last = self.index(changed[-1], len(names) - 1)
            self.dataChanged.emit(self.index(changed[0], 0), last)
        if new:
            self.beginInsertRows(NO_INDEX, len(self.rows), len(self.rows) + len(new) - 1)
            self.rows += new.values()
            self.endInsertRows()
        self._arrange()

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self._sorted_by = (column, order)
        self._arrange()

    def _arrange(self) -> None:
        rows = self._in_order()
        if all(a is b for a, b in zip(rows, self.rows, strict=True)):
            return
        self.layoutAboutToBeChanged.emit()
        after = {id(row): place for place, row in enumerate(rows)}
        old = self.persistentIndexList()
        new = [self.index(after[id(self.rows[at.row()])], at.column()) for at in old]
        self.rows = rows
        self.changePersistentIndexList(old, new)
        self.layoutChanged.emit()

    def _in_order(self) -> list[Any]:
        """The sorted rows. Equal ones keep their earlier order."""
        place, order = self._sorted_by
        if not 0 <= place < len(self.columns):
            return list(self.table.rows)
        value = self.columns[place].of
        known = [row for row in self.rows if value(row) is not None]
        known.sort(key=value, reverse=order == Qt.SortOrder.DescendingOrder)
        return known + [row for row in self.rows if value(row) is None]

    def rowCount(self, parent: Index = NO_INDEX) -> int:
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = NO_INDEX) -> int:
        return 0 if parent.isValid() else len(self.columns)

    def term(self, section: int) -> str:
        """The word of the glossary in a heading, "" for none."""
        column = self.columns[section]
        return glossary.find(column.heading) or glossary.find(column.name)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = 0) -> Any:
        if orientation == Qt.Orientation.Vertical or section >= len(self.columns):
            return None
        column = self.columns[section]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return column.heading
            case Qt.ItemDataRole.ToolTipRole:
                term = self.term(section)
                meaning = f"{term}: {plain_meaning(term)}" if term else ""
                return as_tip("\n".join(filter(None, [column.tip, meaning]))) or None
            case Qt.ItemDataRole.TextAlignmentRole if self._looks.flush_headings:
                return self._looks.heading_flush(column)
            case Qt.ItemDataRole.DecorationRole:
                return self._looks.heading_swatch(column)
        return None

    def data(self, index: Index, role: int = 0) -> Any:
        row, column, looks = self.rows[index.row()], self.columns[index.column()], self._looks
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return in_window(column.shown(row))
            case Qt.ItemDataRole.TextAlignmentRole:
                return _flush(column)
            case Qt.ItemDataRole.ForegroundRole:
                return looks.ink(row, column)
            case Qt.ItemDataRole.BackgroundRole:
                return looks.fill(row, column)
            case Qt.ItemDataRole.DecorationRole:
                return looks.swatch(row, column)
            case Qt.ItemDataRole.ToolTipRole:
                return as_tip(looks.tip(row, column)) or None
            case Qt.ItemDataRole.FontRole if looks.bold(row, column):
                return resized(QFont(), bold=True)
        return None


def _flush(column: Column[Any]) -> int:
    side = Qt.AlignmentFlag.AlignLeft if column.left else Qt.AlignmentFlag.AlignRight
    if column.fill is not None:
        side = Qt.AlignmentFlag.AlignHCenter
    return int(side | Qt.AlignmentFlag.AlignVCenter)


MEASURED = 1000  # rows whose texts decide how wide a column is


class TableView(QTableView):
    """A table. A page's own table overrides the methods from `key` on. `picked` carries the `target` of
    the row that the user went to."""

    picked = Signal(object)
    widest = 320  # pixels of a column
    margin = 6
    padding = 2 * CELL  # of a cell in the style sheet
    row_margin = 7
    sortable = True
    copies = True
    grows = True  # columns never shrink while data comes
    filters = True  # Ctrl+F shows a field that leaves rows out
    KEYS: ClassVar = {"Ctrl+F in a table": "Only rows with the words that you type; Esc shows all again"}
    flush_headings = True  # headings stand as their values do

    def __init__(self, name: str, theming: Theming | None = None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        if theming is not None:
            self._theming = theming
            theming.changed.connect(self.viewport().update)
        self._widths: dict[int, int] = {}
        self.source = TableModel(self)
        self.setModel(self.source)
        if self.sortable:
            self.setSortingEnabled(True)
            self.horizontalHeader().setSortIndicatorClearable(True)  # a third click: the usual order
            self.horizontalHeader().sortIndicatorChanged.connect(lambda *_: self._fit())
            self.sortByColumn(-1, Qt.SortOrder.AscendingOrder)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setAlternatingRowColors(True)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setAccessibleName(name)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + self.row_margin)
        self.horizontalHeader().setHighlightSections(False)
        self.horizontalHeader().setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.horizontalHeader().customContextMenuRequested.connect(self._on_heading_menu)
        self._following = False
        self._whole: Table[Any] = Table((), ())  # with the rows that the filter leaves out
        self.chosen_columns = Columns(self)
        self.filter = line_edit("Only rows with …", lambda _: self.show_again(), "Filter", FILTER)
        self.filter.setParent(self)
        self.filter.hide()
        self.selectionModel().currentRowChanged.connect(self._on_current)
        if self.copies:
            self._add_action("&Copy as CSV", QKeySequence(QKeySequence.StandardKey.Copy), self.copy_csv)
            self._add_action("Copy as &Markdown", QKeySequence("Ctrl+Shift+C"), self.copy_markdown)
            context_menu(self, self.actions)

    def show_table(self, table: Table[Any]) -> None:
        """Show a table. Columns that say nothing are hidden, others are as wide as their texts."""
        self._whole = table
        if words := self.filter.text().casefold().split():
            rows = [row for row in table.rows if _has(row, table.columns, words)]
            table = replace(table, rows=rows)
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
            if self.isColumnHidden(place)
            != (hidden := column.name in self.chosen_columns.hidden or self.hides(column))
        ]
        # Qt draws a scrolled header wrongly while columns are hidden, so scroll to the left first.
        across = self.horizontalScrollBar().value()
        if changed:
            self.horizontalScrollBar().setValue(0)
        for place, hidden in changed:
            self.setColumnHidden(place, hidden)
        if changed:
            self.updateGeometries()
            self.horizontalScrollBar().setValue(across)
        self.chosen_columns.place()
        if self.fits():
            self._fit()

    def show_again(self) -> None:
        """Show the same rows, because the filter or the choice of columns has changed."""
        self.show_table(self._whole)

    def _fit(self) -> None:
        fonts = self.fontMetrics(), QFontMetrics(resized(self.font(), bold=True))
        for place in range(self.source.columnCount()):
            if not self.isColumnHidden(place):
                wanted = max(self._widest_cell(place, *fonts) + self.margin, self.heading_width(place))
                wanted = min(scaled(self.widest_of(self.source.columns[place])), wanted)
                if wanted > self._widths.get(place, 0) or not self.grows:
                    self._widths[place] = wanted
                    self.setColumnWidth(place, wanted)

    def _widest_cell(self, place: int, plain: QFontMetrics, bold: QFontMetrics) -> int:
        """The width that the texts of a column need. Qt's own way asks each cell for its fonts and colours,
        too, which takes ten times as long."""
        column, style = self.source.columns[place], self.style()
        beside = 2 * (style.pixelMetric(QStyle.PixelMetric.PM_FocusFrameHMargin) + 1)
        picture = style.pixelMetric(QStyle.PixelMetric.PM_SmallIconSize) + beside
        widest = 0
        known: dict[tuple[str, bool], int] = {}
        for row in self.source.rows[:MEASURED]:
            key = in_window(column.shown(row)), self.bold(row, column)
            if key not in known:
                metrics = bold if key[1] else plain
                known[key] = max(map(metrics.horizontalAdvance, key[0].split("\n")))
            widest = max(widest, known[key] + (picture if self.swatch(row, column) is not None else 0))
        return widest + beside + self.padding

    def _fit_anew(self) -> None:
        self._widths.clear()
        self._fit()

    def follow(self, target: Any) -> None:
        """Go to the row of what was selected elsewhere."""
        places = (place for place, row in enumerate(self.source.rows) if self.target(row) == target)
        row = next(places, None)
        self._following = True
        if row is None:
            self.selectionModel().clear()  # the current row, too: a click on it is to pick it again
        elif row != self.currentIndex().row() or not self.selectionModel().isRowSelected(row):
            across = self.horizontalScrollBar().value()  # the user may be reading the last columns
            self.go_to(row, max(0, self.currentIndex().column()))
            self.horizontalScrollBar().setValue(across)
        self._following = False

    def go_to(self, row: int, column: int = 0) -> None:
        """Select a row, and scroll to it. Qt's `setCurrentIndex` does what the keys say that are held: while
        Ctrl is still down, as after Ctrl+6, it takes the selection away."""
        at, flags = self.source.index(row, column), QItemSelectionModel.SelectionFlag
        what = flags.Rows if self.selectionBehavior() == self.SelectionBehavior.SelectRows else flags.NoUpdate
        self.selectionModel().setCurrentIndex(at, flags.ClearAndSelect | what)

    def chosen_rows(self) -> list[Any]:
        """The selected rows if there are several, else all; in the order shown."""
        chosen = sorted(index.row() for index in self.selectionModel().selectedRows())
        return [self.source.rows[i] for i in chosen] if len(chosen) > 1 else list(self.source.rows)

    def copy_csv(self) -> None:
        QApplication.clipboard().setText(to_csv(self.copied()))

    def copy_markdown(self) -> None:
        QApplication.clipboard().setText(self.markdown(self.copied()))

    @property
    def theme(self) -> Theme:
        """The theme in use. Only for tables that were given the theming."""
        return self._theming.theme

    # ---------------------------------------------------------------------------------- of a table of its own

    def key(self, row: Any) -> Hashable | None:
        """What identifies a row in the next table. None: each table is a new one."""
        return None

    def target(self, row: Any) -> Any:
        """What `picked` carries for a row."""
        return row

    def widest_of(self, column: Column[Any]) -> int:
        """The most pixels of a column, with text of the usual size."""
        return self.widest

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

    def heading_flush(self, column: Column[Any]) -> int:
        """Where in its place a heading stands."""
        return _flush(column)

    def heading_swatch(self, column: Column[Any]) -> QColor | None:
        return None

    def hides(self, column: Column[Any]) -> bool:
        return not column.has_content(self.source.rows)

    def fits(self) -> bool:
        """Whether to adapt the widths of columns."""
        return True

    def heading_width(self, place: int) -> int:
        """The width in pixels of a heading, with the arrow of a sorted column."""
        return self.horizontalHeader().sectionSizeHint(place)

    def copied(self) -> Table[Any]:
        return replace(self.source.table, rows=self.chosen_rows())

    def markdown(self, table: Table[Any]) -> str:
        return to_markdown(table)

    # ------------------------------------------------------------------------------------------------- events

    def event(self, event: QEvent) -> bool:
        """The keys that search belong to the table while it has the focus."""
        if (
            event.type() == QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and self.filters
            and (event.matches(FIND) or (event.key() == Qt.Key.Key_Escape and self.filter.isVisible()))
        ):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self.filters and event.matches(FIND):
            self._place_filter()
            self.filter.show()
            self.filter.setFocus()
        elif event.key() == Qt.Key.Key_Escape and self.filter.isVisible():
            self.filter.clear()
            self.filter.hide()
            self.setFocus()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.filter.hasFocus():
            self.setFocus()
        else:
            super().keyPressEvent(event)

    def _place_filter(self) -> None:
        high, at = self.filter.sizeHint().height(), self.viewport().geometry()
        wide = min(at.width(), 26 * self.fontMetrics().averageCharWidth())
        self.filter.setGeometry(at.right() - wide, at.bottom() - high, wide, high)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """A selected row that is visible stays so when the table gets lower."""
        seen = QRect(0, 0, 1 << 16, event.oldSize().height())
        row = self.currentIndex()
        was_visible = row.isValid() and seen.intersects(self.visualRect(row))
        super().resizeEvent(event)
        if self.filter.isVisible():
            self._place_filter()
        if was_visible:
            across = self.horizontalScrollBar().value()
            self.scrollTo(row)
            self.horizontalScrollBar().setValue(across)

    def changeEvent(self, event: QEvent) -> None:
        """Larger letters take higher rows and wider columns."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + self.row_margin)
            QTimer.singleShot(0, self, self._fit_anew)  # its headings get the letters after it

    def _add_action(self, words: str, keys: QKeySequence, do: Any) -> None:
        action = new_action(self, words, do, keys=keys, scope=Qt.ShortcutContext.WidgetShortcut)
        self.addAction(action)

    def _on_current(self, current: QModelIndex) -> None:
        if current.isValid() and not self._following:
            self.picked.emit(self.target(self.source.rows[current.row()]))

    def _on_heading_menu(self, at: QPoint) -> None:
        """The context menu of a heading: what its word means, and which columns are shown."""
        place = self.horizontalHeader().logicalIndexAt(at)
        menu = QMenu(self)
        if 0 <= place < len(self.source.columns) and (term := self.source.term(place)):
            menu.addAction(f"What “{term}” means").triggered.connect(lambda: open_term(term))
        fill(menu, self.chosen_columns.actions(menu, place))
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self.horizontalHeader().viewport().mapToGlobal(at))


def _has(row: Any, columns: Sequence[Column[Any]], words: Sequence[str]) -> bool:
    """Whether each of these words stands somewhere in a row."""
    text = " ".join(column.words(row) for column in columns).casefold()
    return all(word in text for word in words)


def keep_columns(settings: QSettings, widget: QWidget) -> None:
    """Keep the columns of all tables inside a widget in the settings."""
    for table in widget.findChildren(TableView):
        table.chosen_columns.keep_in(settings)
