"""A chart definition on screen: title, finding, legend, and its panels, side by side as far as there is room;
and several charts in a grid.

`ChartView.show_chart` may be called as often as one likes: items persist, and only what changed is set.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyqtgraph as pg
from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QResizeEvent
from PySide6.QtWidgets import (
    QApplication,
    QBoxLayout,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QMenu,
    QScrollArea,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from bench.views.charts.definitions import Chart, Panel
from bench.views.sentences import findings
from gui.base import icons
from gui.base.boxes import filled, fitting_height
from gui.base.scale import GAP
from gui.base.theme import Theming
from gui.plots.bars import BarPlot
from gui.plots.base import PanelPlot
from gui.plots.legend import Legend, entries
from gui.plots.lines import LinePlot
from gui.widgets.combo import Combo
from gui.widgets.controls import new_action, tool_button
from gui.widgets.labels import Elided, Label, Lines, Linked, as_tip

WIDTH = 400


class ChartTitle(Elided):
    """A click shows `meaning`, a text with marked words; without one the title is a title."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self._meaning = ""
        self.popup: Meaning | None = None

    @property
    def meaning(self) -> str:
        return self._meaning

    @meaning.setter
    def meaning(self, text: str) -> None:
        self._meaning = text
        if text:
            self.setCursor(Qt.CursorShape.WhatsThisCursor)
            self.setToolTip(as_tip(f"{self.text()}\n(a click says what it means)"))
        else:
            self.unsetCursor()
        self.setAccessibleDescription("A click says what the chart means" if text else "")

    def show_meaning(self) -> None:
        if self._meaning:
            self.popup = Meaning(self.text(), self._meaning, self.window())
            self.popup.move(self.mapToGlobal(QPoint(0, self.height() + 2)))
            self.popup.show()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self.show_meaning()
        super().mouseReleaseEvent(event)


class Meaning(QFrame):
    """Gone at the next click beside it, and by Esc."""

    def __init__(self, title: str, text: str, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setProperty("role", "card")
        heading = Label(title, role="heading", wrap=True)
        self.words = Linked(text)
        self.words.linkActivated.connect(lambda _: self.close())
        filled(QVBoxLayout(self), heading, self.words, margins=(14, 10, 14, 12), spacing=6)
        self.setFixedWidth(WIDTH)
        self.setFixedHeight(fitting_height(self, WIDTH))


PANEL_WIDTH = 250  # pixels a panel wants beside another
PANEL_HEIGHT = 140  # pixels it wants above another
ABOVE = 100  # pixels of a chart that its title, finding and legend take
IN_A_ROW = 4  # panels, of which more stand in a row only where there is no height for a second one


def columns(count: int, width: int, height: int) -> int:
    """Of so many panels on a chart of so many pixels, where there is room for all of them; else 0."""
    if count == 1:
        return 1
    for wanted in (min(count, IN_A_ROW), min(count, width // PANEL_WIDTH)):
        rows = -(-count // max(1, wanted))
        high = rows == 1 or (height - ABOVE) / rows >= PANEL_HEIGHT
        if wanted > 1 and width / wanted >= PANEL_WIDTH and high:
            return wanted
    return 0


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
        theming.changed.connect(self._restyle)
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
            for widget in (self.choice, self._finding, self._notes, self._scale_x, self._scale_y):
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
        self._title.meaning = findings.of(chart.name)
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

    def _restyle(self) -> None:
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
        self._finding = Lines(most=2, smaller=2.0, role="finding")
        self.choice = Combo("Panel", lambda _: self._on_chosen())
        self.choice.setToolTip("Which panel of this chart to show")
        self._scale_x = self._switch("log x", "Logarithmic or linear batch sizes", "x")
        self._scale_y = self._switch("log y", "Logarithmic or linear values", "y")
        self._notes = tool_button("", self._show_notes, role="switch", name="Notes")
        icons.put(self._notes, "notes", self._theming, "muted")
        tip = "Enlarge this chart to the whole page; Esc leaves it"
        self._expand = tool_button("", tip=tip, role="switch", name="Enlarge", toggled=self._on_expand)
        icons.put(self._expand, "whole", self._theming, "muted")
        self._legend.toggled.connect(self._on_hidden)
        self._nothing = Label(self._empty, role="empty", wrap=True, centred=True)
        self._area = QWidget()
        self._area.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._grid = QGridLayout(self._area)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(4)
        head = filled(
            QHBoxLayout(),
            (self._title, 1),
            self._scale_x,
            self._scale_y,
            self._notes,
            self._expand,
            spacing=2,
        )
        layout = filled(QVBoxLayout(self), head, self._finding, margins=(8, 5, 6, 4), spacing=2)
        corner = Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignRight
        self._under = filled(QHBoxLayout(), (self._legend, 1), (self.choice, 0, corner))
        layout.addLayout(self._under)
        layout.addWidget(self._area, 1)
        layout.addWidget(self._nothing, 1)
        self.show_chart(None)

    def _switch(self, text: str, tip: str, axis: str) -> QToolButton:
        button = tool_button(text, tip=tip, role="switch")
        button.setCheckable(True)
        button.setChecked(True)
        button.toggled.connect(lambda on: self.set_log(axis, on))
        return button

    # ------------------------------------------------------------------------------------------ the inside

    def _shown(self) -> list[Panel]:
        """The panels there is room for: all, or the chosen one."""
        assert self.chart is not None
        panels = list(self.chart.panels)
        if self._columns(len(panels)):
            return panels
        chosen = self.choice.currentText()
        return [next((p for p in panels if p.title == chosen), panels[0])]

    def _arrangement(self) -> tuple[int, list[str]]:
        """In how many columns which panels stand."""
        shown = [panel.title for panel in self._shown()]
        return self._columns(len(shown)), shown

    def _columns(self, count: int) -> int:
        return columns(count, self.width(), self.height())

    def _offer_panels(self, titles: list[str]) -> None:
        if self.choice.offered != titles:
            self.choice.offer({title: title for title in titles}, self._chosen)
        self.choice.setVisible(not self._columns(len(titles)))
        if not self._shared:
            # Beside the legend, unless that would then need more lines than the list is high.
            wide, need = self.contentsRect().width() - 2 * GAP, self.choice.sizeHint()
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

    def _on_chosen(self) -> None:
        self._chosen = self.choice.currentData()
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
        fit = new_action(menu, "&Fit to the data", self.reset_view)
        copy = new_action(
            menu,
            "&Copy the finding",
            lambda: QApplication.clipboard().setText(self.finding),
            enabled=bool(self.chart.finding),
        )
        means = new_action(
            menu, "What this chart &means", self._title.show_meaning, enabled=bool(self._title.meaning)
        )
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
