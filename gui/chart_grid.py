"""Charts in two columns, or one where there is no room for two; they scroll rather than shrink to nothing."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QScrollArea, QWidget

from gui.plots import ChartView

LEAST_WIDTH = 280  # pixels of a chart beside another
LEAST_HEIGHT = 250


class ChartGrid(QScrollArea):
    """A chart that asks for all the room gets it until it gives it back."""

    def __init__(self, views: Sequence[ChartView], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._views = list(views)
        self._alone: ChartView | None = None
        self._charts = QWidget()
        self._grid = QGridLayout(self._charts)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(6)
        for view in self._views:
            view.expanded.connect(lambda on, view=view: self._give_room(view if on else None))
        self.setWidget(self._charts)
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._columns = 0
        self._arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _give_room(self, view: ChartView | None) -> None:
        self._alone = view
        for other in self._views:
            other.setVisible(view is None or other is view)
        self._columns = 0
        self._arrange()

    def _arrange(self) -> None:
        shown = self._views if self._alone is None else [self._alone]
        room = self.viewport().size()
        columns = min(len(shown), 2 if room.width() >= 2 * LEAST_WIDTH else 1)
        rows = -(-len(shown) // columns)
        if columns != self._columns:
            self._columns = columns
            for index, view in enumerate(shown):
                self._grid.addWidget(view, index // columns, index % columns)
            for i in range(len(self._views)):  # a row without a view must not keep its share
                self._grid.setRowStretch(i, 1 if i < rows else 0)
                self._grid.setColumnStretch(i, 1 if i < columns else 0)
        # Of its own accord the content would be as high as its wrapped texts would like it.
        self._charts.resize(room.width(), max(room.height(), rows * LEAST_HEIGHT))
