"""Charts in two columns, or one where there is no room for two; they scroll rather than shrink to nothing."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QScrollArea, QWidget

from gui.plots.chart import ChartView

LEAST_WIDTH = 280  # pixels of a chart beside another
LEAST_HEIGHT = 250


class ChartGrid(QScrollArea):
    """A chart that asks for all the room gets it until it gives it back."""

    def __init__(
        self, views: Sequence[ChartView], parent: QWidget | None = None, least_height: int = LEAST_HEIGHT
    ) -> None:
        super().__init__(parent)
        self._views: list[ChartView] = []
        self._least_height = least_height
        self._alone: ChartView | None = None
        self._charts = QWidget()
        self._grid = QGridLayout(self._charts)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(6)
        self.setWidget(self._charts)
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._columns = 0
        self.hold(views)

    def hold(self, views: Sequence[ChartView]) -> None:
        """Show these from now on; those it had are somebody else's, and may be given back."""
        for view in self._views:
            view.expanded.disconnect(self._on_expanded)
        self._views = list(views)
        for view in self._views:
            view.expanded.connect(self._on_expanded)
        self._alone, self._columns = None, 0
        self._arrange()
        for view in self._views:
            view.show()  # a tab that was not in front has hidden it

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _on_expanded(self, on: bool) -> None:
        view = self.sender()
        self._alone = view if on and isinstance(view, ChartView) else None
        for other in self._views:
            other.setVisible(self._alone is None or other is self._alone)
        self._columns = 0
        self._arrange()

    def _arrange(self) -> None:
        shown = self._views if self._alone is None else [self._alone]
        if not shown:
            return
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
        self._charts.resize(room.width(), max(room.height(), rows * self._least_height))
