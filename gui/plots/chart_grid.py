"""Charts in a row, in two columns or in one, by their room; they scroll rather than shrink to nothing."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QScrollArea, QWidget

from gui.base.scale import GAP
from gui.plots.chart import ChartView

LEAST_WIDTH = 290  # pixels of a chart beside another
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
        self._grid.setSpacing(GAP)
        self.setWidget(self._charts)
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._columns = 0
        self.hold(views)

    def hold(self, views: Sequence[ChartView]) -> None:
        """Show these from now on; those it had are somebody else's, and may be given back."""
        for view in self._views:
            view.expanded.disconnect(self._on_expanded)
            if view not in views and view.parentWidget() is self._charts:
                view.hide()
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
        columns = self._fitting(len(shown), room.width(), room.height())
        rows = -(-len(shown) // columns)
        if columns != self._columns:
            self._columns = columns
            for index, view in enumerate(shown):
                last = index == len(shown) - 1
                span = columns - index % columns if last else 1  # an odd one takes the rest of its row
                self._grid.addWidget(view, index // columns, index % columns, 1, span)
            for i in range(max(4, len(self._views))):  # a row without a view must not keep its share
                self._grid.setRowStretch(i, 1 if i < rows else 0)
                self._grid.setColumnStretch(i, 1 if i < columns else 0)
        # Of its own accord the content would be as high as its wrapped texts would like it.
        self._charts.resize(room.width(), max(room.height(), rows * self._least_height))

    def _fitting(self, count: int, width: int, height: int) -> int:
        """How many columns: two; where there is no height for their rows, one a chart; else one."""
        if width < 2 * LEAST_WIDTH:
            return 1
        rows = -(-count // 2)
        in_a_row = width >= count * LEAST_WIDTH and height < rows * self._least_height
        return count if in_a_row else min(count, 2)
