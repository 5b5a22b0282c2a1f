"""What went wrong, a row each: cases that failed and what the worker complained of, with the reason."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QApplication, QHeaderView, QTreeWidget, QTreeWidgetItem, QVBoxLayout, QWidget

from bench.kinds.registry import case_words
from bench.results.messages import Log
from bench.results.records import Case, Measurement
from bench.show.tables import WORDS
from gui.base.boxes import filled
from gui.sessions.run_state import RunState
from gui.widgets.labels import as_tip

MOST_LOGGED = 200


class Problems(QWidget):
    """A view for gui.shell.redraw. `counted` tells how many rows there are whenever that changes."""

    counted = Signal(int)

    def __init__(self, state: RunState, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._state = state
        self._drawn = -1
        self._count = 0
        self._shown: dict[str, Measurement] = {}
        self._tree = QTreeWidget()
        self._tree.setHeaderLabels(["Case", "What", "Reason"])
        self._tree.setRootIsDecorated(False)
        self._tree.setUniformRowHeights(True)
        self._tree.setAlternatingRowColors(True)
        self._tree.setAccessibleName("Problems")
        header = self._tree.header()
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Interactive)
        header.resizeSection(0, 360)
        header.resizeSection(1, 110)
        self._tree.currentItemChanged.connect(self._on_current)
        copying = QShortcut(
            QKeySequence.StandardKey.Copy, self._tree, self.copy, context=Qt.ShortcutContext.WidgetShortcut
        )
        copying.setWhatsThis("Copy the problems")
        filled(QVBoxLayout(self), self._tree, margins=(0, 0, 0, 0))
        state.replaced.connect(self._clear)

    @property
    def dirty(self) -> bool:
        return self._drawn != self._state.version

    @property
    def lines(self) -> list[tuple[str, str, str]]:
        """The rows as text."""
        return [tuple(item.text(i) for i in range(3)) for item in self._items()]  # type: ignore[misc]

    def redraw(self) -> None:
        self._drawn = self._state.version
        for m in self._state.measurements:
            if self._shown.get(m.case.key) is not m and m.disposition not in ("ok", "cancelled"):
                self._shown[m.case.key] = m
                self._put(case_words(m.case), WORDS.get(m.disposition, m.disposition), m.reason, m.case)
        self._tell()

    def logged(self, message: Log) -> None:
        """Take what the worker complained of; information goes to the log alone."""
        if message.level in ("warning", "error") and self._tree.topLevelItemCount() < MOST_LOGGED:
            self._put("worker", message.level, message.text, None)
            self._tell()

    def _tell(self) -> None:
        """Also of what was refused, and of complaints: nobody else says why a point is missing."""
        count = self._tree.topLevelItemCount()
        if count != self._count:
            self._count = count
            self.counted.emit(count)

    def copy(self) -> None:
        item = self._tree.currentItem()
        if item is not None:
            QApplication.clipboard().setText("\t".join(item.text(i) for i in range(3)))

    def _put(self, where: str, what: str, reason: str, case: Case | None) -> None:
        item = QTreeWidgetItem([where, what, reason])
        item.setData(0, Qt.ItemDataRole.UserRole, case)
        for column in range(3):
            item.setToolTip(column, as_tip(reason))
        self._tree.addTopLevelItem(item)

    def _items(self) -> list[QTreeWidgetItem]:
        found = (self._tree.topLevelItem(i) for i in range(self._tree.topLevelItemCount()))
        return [item for item in found if item is not None]

    def _clear(self) -> None:
        self._tree.clear()
        self._shown.clear()
        self._drawn = -1

    def _on_current(self, item: QTreeWidgetItem | None) -> None:
        case = item.data(0, Qt.ItemDataRole.UserRole) if item is not None else None
        if case is not None:
            self._state.select(case)
