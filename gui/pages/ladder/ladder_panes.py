"""Where the ladder's charts, table and reader stand: side by side as far as there is room, else behind tabs.

Whichever it is, the same four widgets are moved; how wide the user made each is kept for each way by itself.
"""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QStackedLayout, QTabWidget, QVBoxLayout, QWidget

from gui.base.boxes import HORIZONTAL, VERTICAL, filled, splitter
from gui.pages.ladder.ladder_reader import LadderReader
from gui.pages.ladder.ladder_table import LadderTable
from gui.plots.chart import ChartGrid, ChartView

# The least width and height of the panes in pixels for each way, the roomiest first.
LEAST = {
    "rows": (740, 600),  # charts beside each other, and below them the table beside the reader
    "halves": (660, 330),  # charts behind tabs, the table below them, and the reader beside both
}
SMALLEST = QSize(300, 220)
BARS, ROOFLINE, RUNGS = "Bars", "Roofline", "R&ungs"


class LadderPanes(QWidget):
    """`way` is "rows", "halves" or "tabs": the last has all of it in the reader's tabs."""

    def __init__(
        self,
        speed: ChartView,
        roofline: ChartView,
        table: LadderTable,
        reader: LadderReader,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.way = ""
        self._whole = False  # the reader has all the room, for as long as the user likes
        self._speed, self._roofline, self._table, self._reader = speed, roofline, table, reader
        self._slots = {way: (_Slot(), _Slot()) for way in LEAST}  # of the table and the reader
        self._grid = ChartGrid([], least_height=190)
        across, down = HORIZONTAL, VERTICAL
        self._columns = splitter("ladder-columns", across, *self._slots["rows"], stretch=(1, 1))
        self._rows = splitter("ladder-rows", down, self._grid, self._columns, stretch=(1, 1))
        self._charts = QTabWidget()
        self._charts.setDocumentMode(True)
        in_table, in_reader = self._slots["halves"]
        self._left = splitter("ladder-left", down, self._charts, in_table, stretch=(1, 1))
        self._halves = splitter("ladder-halves", across, self._left, in_reader, stretch=(1, 1))
        self._alone = _Slot()
        self._stack = QStackedLayout(self)
        self._stack.setSizeConstraint(QStackedLayout.SizeConstraint.SetNoConstraint)  # of ways not in use
        for body in (self._rows, self._halves, self._alone):
            self._stack.addWidget(body)
        self.reset()
        self._arrange("rows")

    def reset(self) -> None:
        """Every pane as large as it was at first."""
        self._rows.setSizes([440, 560])
        self._columns.setSizes([540, 460])
        self._left.setSizes([600, 400])
        self._halves.setSizes([480, 520])

    def set_whole(self, on: bool) -> None:
        """Give the reader all the room, or everything its place again."""
        self._whole = on
        if not on:
            self._arrange(self._fitting())
        elif self.way != "tabs":  # where it has it already
            self._alone.hold(self._reader)
            self._reader.set_compact(True)
            self._stack.setCurrentWidget(self._alone)

    def show_source(self) -> None:
        """Bring the source into view, where it is behind what was chosen."""
        if self.way == "tabs":
            self._reader.tabs.setCurrentWidget(self._reader.source)

    def minimumSizeHint(self) -> QSize:
        return SMALLEST

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if not self._whole and (way := self._fitting()) != self.way:
            self._arrange(way)

    # ------------------------------------------------------------------------------------------ the inside

    def _fitting(self) -> str:
        room = self.width(), self.height()
        fitting = (way for way, least in LEAST.items() if room[0] >= least[0] and room[1] >= least[1])
        return next(fitting, "tabs")

    def _arrange(self, way: str) -> None:
        self.way = way
        table, reader, charts = self._table, self._reader, (self._speed, self._roofline)
        for chart in charts:
            chart.set_enlargeable(way == "rows")
        self._grid.hold(charts if way == "rows" else ())
        if way == "tabs":
            self._alone.hold(reader)
            for at, (pane, words) in enumerate(((table, RUNGS), (charts[0], BARS), (charts[1], ROOFLINE))):
                reader.tabs.insertTab(at, pane, words)
            reader.tabs.setCurrentWidget(table)
        else:
            in_table, in_reader = self._slots[way]
            in_table.hold(table)
            in_reader.hold(reader)
        if way == "halves":
            for chart, words in zip(charts, (BARS, ROOFLINE), strict=True):
                self._charts.addTab(chart, words)
            self._charts.setCurrentIndex(0)
        reader.set_compact(way == "tabs")
        self._stack.setCurrentWidget({"rows": self._rows, "halves": self._halves, "tabs": self._alone}[way])


class _Slot(QWidget):
    """A place for one widget; one that has moved elsewhere has left it."""

    def __init__(self) -> None:
        super().__init__()
        self._column = filled(QVBoxLayout(self), margins=(0, 0, 0, 0))

    def hold(self, widget: QWidget) -> None:
        self._column.addWidget(widget)
        widget.show()  # a tab that was not in front has hidden it
