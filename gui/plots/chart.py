"""A chart definition on screen: title, finding, legend, and its panels, side by side as far as there is room.

`ChartView.show_chart` may be called as often as one likes: items persist, and only what changed is set.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyqtgraph as pg
from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import (
    QApplication,
    QBoxLayout,
    QComboBox,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QMenu,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from bench.charts import Chart, Panel, meanings
from gui.base import icons
from gui.base.boxes import filled
from gui.base.scale import GAP
from gui.base.theme import Theming
from gui.plots.bars import BarPlot
from gui.plots.base import PanelPlot
from gui.plots.legend import Legend, entries
from gui.plots.lines import LinePlot
from gui.plots.meaning import ChartTitle
from gui.plots.panel_room import columns
from gui.widgets.combo import Combo
from gui.widgets.labels import Label, Lines, as_tip

NARROW = 420  # pixels of a whole chart's width, below which its switches are in its context menu alone
# Pixels of a whole chart's height from which its finding has a second line, a third, a fourth.
LINES = (256, 280, 380)

pg.setConfigOptions(antialias=True)


class ChartView(QFrame):
    """`picked` carries (contender label, batch) of a clicked point or bar; `menu_opened` the context menu and
    the chart before it is shown, so that others can add to it; `expanded` asks for all the room or gives it
    back."""

    picked = Signal(str, float)
    menu_opened = Signal(object, object)
    expanded = Signal(bool)

    def __init__(self, theming: Theming, empty: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("role", "card")
        self._theming = theming
        self._empty = empty
        self.chart: Chart | None = None
        self._ticks: tuple[float, ...] = ()
        self._plots: dict[str, PanelPlot] = {}
        self._arranged: tuple[int, list[str]] = (0, [])  # as its panels were drawn last
        self._spare: list[PanelPlot] = []
        self._chosen = ""  # the panel the user wants to see where not all have room; "": the first
        self._log: dict[str, bool | None] = {"x": None, "y": None}
        self._pointed = ""
        self.told = ""  # what stands above all charts, and need not stand here too
        self._switchable: tuple[QToolButton, ...] = ()  # the scales that can be chosen here
        self._legend = Legend(theming)
        self._shared = False  # the legend is not this chart's alone
        self._selected: tuple[str, float | None] = ("", None)
        self._build()
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._on_menu)

    def sizeHint(self) -> QSize:
        return QSize(420, 300)

    def minimumSizeHint(self) -> QSize:
        return QSize(200, 160)

    @property
    def plots(self) -> dict[str, PanelPlot]:
        """The panels that are drawn, by title."""
        return self._plots

    @property
    def title(self) -> str:
        return self._title.text()

    @property
    def finding(self) -> str:
        return self._finding.text()

    def show_chart(self, chart: Chart | None, ticks: Sequence[float] = ()) -> None:
        """Draw a chart; `ticks` are batch sizes still to come, so that axes hold still. None: the sentence
        given for an empty view."""
        if chart == self.chart and tuple(ticks) == self._ticks and chart is not None:
            return
        self.chart, self._ticks = chart, tuple(ticks)
        self._nothing.setVisible(chart is None)
        own = () if self._shared else (self._legend,)
        # Each widget once, to what it will be: shown and then hidden, it lays the card out twice.
        for widget in (*own, self._area):
            widget.setVisible(chart is not None)
        if chart is None:
            self._switchable = ()
            for widget in (self._panels, self._finding, self._notes, self._scale_x, self._scale_y):
                widget.hide()
            self._title.setText("")
            self._title.meaning = ""
            return
        lined = not chart.panels[0].bars
        self._switchable = tuple(
            switch
            for switch, able in (
                (self._scale_x, lined),
                (self._scale_y, lined and any(p.y.unit != "%" for p in chart.panels)),
            )
            if able
        )
        self._place_switches()
        # The model stands above the charts: where there is no room, it need not stand here too.
        self._title.setText(chart.title, *_without_model(chart.title))
        self._title.meaning = meanings.of(chart.name)
        self._finding.setText(chart.finding)
        self._finding.setVisible(chart.finding not in ("", self.told))
        self._notes.setVisible(bool(chart.notes))
        self._notes.setToolTip(as_tip("\n".join(chart.notes)))
        if not self._shared:
            self._legend.show_entries(entries(chart))
        self._offer_panels([p.title for p in chart.panels])
        self._draw()

    def share(self, legend: Legend) -> None:
        """Name lines in a legend that other charts have, too, and hide there what it hides."""
        self._legend.hide()
        self._under.addStretch(1)  # where it stood
        self._legend = legend
        self._shared = True
        legend.toggled.connect(self._on_hidden)

    def make_ready(self, bars: bool) -> None:
        """Make one more panel's plot ahead of need: it takes 10 ms, which is long while a run streams."""
        if not self._plots:
            self._spare.append(BarPlot(self._theming) if bars else LinePlot(self._theming))

    def set_enlargeable(self, on: bool) -> None:
        """Whether it can ask for all the room; where it cannot it has given back what it had."""
        if not on:
            self._expand.setChecked(False)
        self._expand.setVisible(on)

    def shrink(self) -> bool:
        """Give back all the room, where it has that. Whether it had."""
        enlarged = self._expand.isChecked() and self.isVisible()
        if enlarged:
            self._expand.setChecked(False)
        return enlarged

    def restyle(self) -> None:
        self._legend.restyle()
        for plot in self._plots.values():
            plot.restyle()
        self._draw()

    def set_log(self, axis: str, log: bool) -> None:
        """Make "x" or "y" of all panels logarithmic, or linear."""
        self._log[axis] = log
        for plot in self._plots.values():
            if isinstance(plot, LinePlot):
                plot.set_scales(self._log["x"], self._log["y"])

    def point_out(self, label: str) -> None:
        """The series that is selected, where series are named at their points."""
        self._pointed = label
        for plot in self._plots.values():
            if isinstance(plot, LinePlot):
                plot.point_out(label)

    def select(self, label: str, x: float | None) -> None:
        """Mark a point of the series, and in panels of bars the bar of the panel, that is called `label`;
        None: nothing is selected."""
        self._selected = (label, x)
        for plot in self._plots.values():
            plot.select(label, x)

    def reset_view(self) -> None:
        for plot in self._plots.values():
            plot.reset_view()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_switches()
        self._limit_finding()
        if self.chart is not None:
            self._offer_panels([p.title for p in self.chart.panels])
            if self._arranged != self._arrangement():  # a plot that stays draws itself at its new size
                self._draw()

    # ------------------------------------------------------------------------------------------ building

    def _build(self) -> None:
        self._title = ChartTitle()
        self._title.setProperty("role", "chart-title")
        self._finding = Lines(most=2, smaller=2.0)
        self._finding.setProperty("role", "finding")
        self._panels = Combo()
        self._panels.setAccessibleName("Panel")
        self._panels.setToolTip("Which panel of this chart to show")
        self._panels.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self._panels.textActivated.connect(self._on_chosen)
        self._scale_x = self._switch("log x", "Logarithmic or linear batch sizes", "x")
        self._scale_y = self._switch("log y", "Logarithmic or linear values", "y")
        self._notes = QToolButton()
        icons.put(self._notes, "notes", self._theming, "muted")
        self._notes.setProperty("role", "switch")
        self._notes.setAccessibleName("Notes")
        self._notes.clicked.connect(self._show_notes)
        self._expand = QToolButton()
        icons.put(self._expand, "whole", self._theming, "muted")
        self._expand.setCheckable(True)
        self._expand.setProperty("role", "switch")
        self._expand.setToolTip("Enlarge this chart to the whole page; Esc leaves it")
        self._expand.setAccessibleName("Enlarge")
        self._expand.toggled.connect(self._on_expand)
        self._legend.toggled.connect(self._on_hidden)
        self._nothing = Label(self._empty)
        self._nothing.setProperty("role", "empty")
        self._nothing.setWordWrap(True)
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._area = QWidget()
        self._area.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._grid = QGridLayout(self._area)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(4)
        head = filled(QHBoxLayout(), (self._title, 1), spacing=2)
        for widget in (self._scale_x, self._scale_y, self._notes, self._expand):
            head.addWidget(widget)
        layout = filled(QVBoxLayout(self), head, self._finding, margins=(8, 5, 6, 4), spacing=2)
        corner = Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignRight
        self._under = filled(QHBoxLayout(), (self._legend, 1), (self._panels, 0, corner))
        layout.addLayout(self._under)
        layout.addWidget(self._area, 1)
        layout.addWidget(self._nothing, 1)
        self.show_chart(None)

    def _switch(self, text: str, tip: str, axis: str) -> QToolButton:
        button = QToolButton()
        button.setText(text)
        button.setCheckable(True)
        button.setChecked(True)
        button.setProperty("role", "switch")
        button.setToolTip(tip)
        button.toggled.connect(lambda on: self.set_log(axis, on))
        return button

    # ------------------------------------------------------------------------------------------ the inside

    def _shown(self) -> list[Panel]:
        """The panels there is room for: all, or the chosen one."""
        assert self.chart is not None
        panels = list(self.chart.panels)
        if self._columns(len(panels)):
            return panels
        chosen = self._panels.currentText()
        return [next((p for p in panels if p.title == chosen), panels[0])]

    def _arrangement(self) -> tuple[int, list[str]]:
        """In how many columns which panels stand."""
        shown = [panel.title for panel in self._shown()]
        return self._columns(len(shown)), shown

    def _columns(self, count: int) -> int:
        return columns(count, self.width(), self.height())

    def _offer_panels(self, titles: list[str]) -> None:
        known = [self._panels.itemText(i) for i in range(self._panels.count())]
        if known != titles:
            self._panels.blockSignals(True)
            self._panels.clear()
            self._panels.addItems(titles)
            self._panels.setCurrentIndex(max(0, self._panels.findText(self._chosen)))
            self._panels.blockSignals(False)
        self._panels.setVisible(not self._columns(len(titles)))
        if not self._shared:
            # Beside the legend, unless that would then need more lines than the list is high.
            wide, need = self.contentsRect().width() - 2 * GAP, self._panels.sizeHint()
            beside = self._legend.heightForWidth(wide - need.width())
            below = self._legend.heightForWidth(wide) + need.height() < beside
            way = QBoxLayout.Direction.TopToBottom if below else QBoxLayout.Direction.LeftToRight
            self._under.setDirection(way)

    def _draw(self) -> None:
        if self.chart is None:
            return
        wanted = self._shown()
        self._arranged = self._arrangement()
        for title in [t for t in self._plots if t not in {p.title for p in wanted}]:
            gone = self._plots.pop(title)
            self._grid.removeWidget(gone)
            gone.hide()
            gone.deleteLater()
        across = self._columns(len(wanted))
        for column in range(self._grid.columnCount()):
            self._grid.setColumnStretch(column, 1 if column < across else 0)
        for index, panel in enumerate(wanted):
            plot: PanelPlot | None = self._plots.get(panel.title)
            if plot is not None and isinstance(plot, BarPlot) != bool(panel.bars):
                self._plots.pop(panel.title).deleteLater()
                plot = None
            if plot is None:
                plot = self._plots[panel.title] = self._make(panel)
            self._grid.addWidget(plot, index // across, index % across)
            self._grid.setColumnStretch(index % across, 1)
            if isinstance(plot, BarPlot):
                plot.categories = self.chart.categories
            assert isinstance(plot, LinePlot | BarPlot)
            plot.ticks = self._ticks
            heading = panel.title if len(wanted) > 1 and panel.title else None
            plot.getPlotItem().setTitle(heading, size="9pt", color=self._theming.theme.muted)
            plot.show_panel(panel)

    def _make(self, panel: Panel) -> PanelPlot:
        kind = BarPlot if panel.bars else LinePlot
        plot = self._spare.pop() if self._spare else None
        if isinstance(plot, kind):
            plot.restyle()  # the theme may be another by now
        else:
            plot = kind(self._theming)
        plot.hidden = self._legend.hidden
        if isinstance(plot, LinePlot):
            plot.log_x, plot.log_y = self._log["x"], self._log["y"]
            plot.point_out(self._pointed)
        plot.select(*self._selected)
        plot.picked.connect(self.picked)
        plot.setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)  # goes on to this widget
        return plot

    def _place_switches(self) -> None:
        """Where they would cut the title short they are in the context menu alone."""
        for switch in (self._scale_x, self._scale_y):
            switch.setVisible(switch in self._switchable and self.width() >= NARROW)

    def _on_chosen(self, panel: str) -> None:
        self._chosen = panel
        self._draw()

    def _on_hidden(self, hidden: frozenset[str]) -> None:
        for plot in self._plots.values():
            plot.set_hidden(hidden)

    def _on_expand(self, on: bool) -> None:
        icons.put(self._expand, "back" if on else "whole", self._theming, "muted")
        self._limit_finding()
        self.expanded.emit(on)

    def _limit_finding(self) -> None:
        """What is drawn comes first where there is little room; the whole finding is its tooltip."""
        most = 1 + sum(self.height() >= height for height in LINES)
        most = 8 if self._expand.isChecked() else most
        if most != self._finding.most:
            self._finding.most = most
            self._finding.updateGeometry()

    def _show_notes(self) -> None:
        from PySide6.QtWidgets import QToolTip

        QToolTip.showText(self._notes.mapToGlobal(QPoint(0, self._notes.height())), self._notes.toolTip())

    def _on_menu(self, at: QPoint) -> None:
        if self.chart is None:
            return
        menu = QMenu(self)
        fit = QAction("&Fit to the data", menu)
        fit.triggered.connect(self.reset_view)
        copy = QAction("&Copy the finding", menu)
        copy.setEnabled(bool(self.chart.finding))
        copy.triggered.connect(lambda: QApplication.clipboard().setText(self.finding))
        means = QAction("What this chart &means", menu)
        means.setEnabled(bool(self._title.meaning))
        means.triggered.connect(self._title.show_meaning)
        menu.addActions([fit, copy, means])
        for switch, words in ((self._scale_x, "Logarithmic &x"), (self._scale_y, "Logarithmic &y")):
            if switch in self._switchable:
                scale = menu.addAction(words)
                scale.setCheckable(True)
                scale.setChecked(switch.isChecked())
                scale.triggered.connect(switch.setChecked)
        self.menu_opened.emit(menu, self.chart)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self.mapToGlobal(at))


def _without_model(title: str) -> tuple[str, ...]:
    _, colon, rest = title.partition(": ")
    return (rest[:1].upper() + rest[1:],) if colon else ()
