"""The confusion matrix: a row a label, a column an answer; a click or Enter asks for the images of a cell."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from PySide6.QtCore import QAbstractTableModel, QModelIndex, Qt, Signal
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QStyle, QTableView, QWidget

from gui.base.theme import Theming
from gui.pages.predictions.answers import Answered
from gui.widgets.colour_scale import blend, ink_on
from gui.widgets.labels import as_tip
from gui.widgets.table_view import NO_INDEX, Index


class ConfusionModel(QAbstractTableModel):
    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theming = theming
        self.counts: np.ndarray = np.zeros((0, 0), np.int64)
        self.classes: list[int] = []
        self.names: list[str] = []

    def show_answers(self, answered: Answered, focus: int) -> None:
        self.beginResetModel()
        labelled = answered.labelled
        self.classes = answered.classes() if labelled else []
        self.counts = answered.confusion(focus) if labelled else np.zeros((0, 0), np.int64)
        self.names = [answered.class_name(c) for c in self.classes]
        self.endResetModel()

    def rowCount(self, parent: Index = NO_INDEX) -> int:
        return 0 if parent.isValid() else len(self.classes)

    def columnCount(self, parent: Index = NO_INDEX) -> int:
        return 0 if parent.isValid() else len(self.classes)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = 0) -> Any:
        if section >= len(self.classes):
            return None
        name, number = self.names[section], str(self.classes[section])
        if role == Qt.ItemDataRole.DisplayRole:
            if orientation == Qt.Orientation.Horizontal:
                return number  # names would make the columns wide
            return number if name == number else f"{number}  {name}"
        if role == Qt.ItemDataRole.ToolTipRole:
            return as_tip(f"{'taken for' if orientation == Qt.Orientation.Horizontal else 'label'} {name}")
        return None

    def data(self, index: Index, role: int = 0) -> Any:
        count = int(self.counts[index.row(), index.column()])
        if role == Qt.ItemDataRole.DisplayRole:
            return f"{count:,}" if count else ""
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int(Qt.AlignmentFlag.AlignCenter)
        if role == Qt.ItemDataRole.BackgroundRole:
            return self._fill(index.row(), index.column())
        if role == Qt.ItemDataRole.ForegroundRole and count:
            return ink_on(self._fill(index.row(), index.column()))
        if role == Qt.ItemDataRole.ToolTipRole:
            return as_tip(self._tip(index.row(), index.column(), count))
        return None

    def _fill(self, row: int, column: int) -> QColor:
        """Right answers towards the accent, wrong ones towards the failures' colour; by the share of the
        label's images, rooted where wrong, so that a few of many are seen."""
        theme = self._theming.theme
        total, count = int(self.counts[row].sum()), int(self.counts[row, column])
        if not count:
            return QColor(theme.alternate if row == column else theme.paper)
        right = row == column
        share = count / total if right else 0.25 + 0.75 * math.sqrt(count / total)
        return blend((theme.paper, theme.accent if right else theme.failed), share)

    def _tip(self, row: int, column: int, count: int) -> str:
        of = int(self.counts[row].sum())
        share = f" ({count / of:.1%})" if of else ""
        verb = "are answered right" if row == column else f"are taken for {self.names[column]}"
        return f"{count:,} of {of:,} images of {self.names[row]}{share} {verb}"


class ConfusionTable(QTableView):
    """`picked` carries (label, predicted) of the cell that was clicked or entered."""

    picked = Signal(int, int)

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.source = ConfusionModel(theming, self)
        theming.changed.connect(self.viewport().update)
        self.setModel(self.source)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setTabKeyNavigation(False)
        self.setAccessibleName("Confusion matrix: one row per label, one column per answer")
        self.setCornerButtonEnabled(False)
        for header in (self.horizontalHeader(), self.verticalHeader()):
            header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
            header.setSectionsClickable(False)
            header.setHighlightSections(True)
        self.horizontalHeader().setMinimumSectionSize(10)
        self.verticalHeader().setMinimumSectionSize(10)
        self.verticalHeader().setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self.clicked.connect(self._on_entered)
        self.activated.connect(self._on_entered)

    def show_answers(self, answered: Answered, focus: int) -> None:
        self.source.show_answers(answered, focus)
        metrics = self.fontMetrics()
        most = f"{int(self.source.counts.max(initial=0)):,}"
        widest = max([most, *map(str, self.source.classes)], key=metrics.horizontalAdvance)
        margin = self.style().pixelMetric(QStyle.PixelMetric.PM_FocusFrameHMargin) + 1  # the delegate's
        wide = metrics.horizontalAdvance(widest) + 2 * margin + 2
        self.horizontalHeader().setDefaultSectionSize(max(metrics.height() + 6, wide))
        self.verticalHeader().setDefaultSectionSize(metrics.height() + 7)

    def _on_entered(self, index: QModelIndex) -> None:
        if index.isValid():
            self.picked.emit(self.source.classes[index.row()], self.source.classes[index.column()])
