"""A chart on the screen: title, finding, legend, and its panels, beside each other if there is room; and
several charts in a grid.

`ChartView.show_chart` may be called often: items stay, and only what changed is set.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyqtgraph as pg
from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QIcon, QMouseEvent, QPainter, QPen, QPixmap, QPolygonF, QResizeEvent
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
from bench.views.charts.doubts import LEGEND, has_doubts
from bench.views.sentences import findings
from gui.base.boxes import filled, fitting_height
from gui.base.theme import GAP, Theming, points, put_icon, scaled
from gui.plots.bars import BarPlot
from gui.plots.base import PanelPlot, hatched, standing_out
from gui.plots.lines import LinePlot
from gui.widgets.controls import Combo, Elided, Label, Lines, Linked, as_tip, new_action, tool_button

WIDTH = 400


class ChartTitle(Elided):
    """A title. A click shows its `meaning`, a text with marked words, if it has one."""

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
    """A card with the meaning of a chart. Esc or a click beside it closes it."""

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
    """The number of columns for this many panels on a chart of this size (pixels), so that all have room;
    0 if they do not."""
    if count == 1:
        return 1
    for wanted in (min(count, IN_A_ROW), min(count, width // scaled(PANEL_WIDTH))):
        rows = -(-count // max(1, wanted))
        high = rows == 1 or (height - scaled(ABOVE)) / rows >= scaled(PANEL_HEIGHT)
        if wanted > 1 and width / wanted >= scaled(PANEL_WIDTH) and high:
            return wanted
    return 0


NARROW = 420  # pixels of a whole chart's width, below which its switches are in its context menu alone
# Pixels of a whole chart's height from which its finding has a second line, a third, a fourth.
LINES = (256, 280, 380)

pg.setConfigOptions(antialias=True)


class ChartView(QFrame):
    """A chart. `picked` carries (contender label, batch size) of the point or bar that was clicked;
    `menu_opened` the context menu and the chart, so that others can add actions; `expanded` whether the
    chart wants all the room."""

    picked = Signal(str, float)
    menu_opened = Signal(object, object)
    expanded = Signal(bool)
    moved = Signal(object)  # with the LinePlot that was zoomed, panned or reset
    pointed = Signal(object)  # with the LinePlot whose crosshair has moved

    def __init__(self, theming: Theming, empty: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("role", "card")
        self._theming = theming
        self._empty = empty
        self.chart: Chart | None = None
        self._ticks: tuple[float, ...] = ()
        self.plots: dict[str, PanelPlot] = {}
        self._arranged: tuple[int, list[str]] = (0, [])  # as its panels were drawn last
        self._spare: list[PanelPlot] = []
        self._chosen = ""  # the panel the user wants to see where not all have room; "": the first
        self._log: dict[str, bool | None] = {"x": None, "y": None}
        self._pointed = ""
        self.stated_above = ""  # what stands above all charts, and need not stand here too
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
    def title(self) -> str:
        return self._title.text()

    @property
    def finding(self) -> str:
        return self._finding.text()

    def show_chart(self, chart: Chart | None, ticks: Sequence[float] = ()) -> None:
        """Draw a chart; None shows the sentence for an empty view. ticks: batch sizes that are still to
        come, so that axes hold still."""
        if chart == self.chart and tuple(ticks) == self._ticks and chart is not None:
            return
        self.chart, self._ticks = chart, tuple(ticks)
        self._nothing.setVisible(chart is None)
        own = () if self._shared else (self._legend,)
        # Set each widget once to its final state: a change would compute the layout twice.
        for widget in (*own, self._area):
            widget.setVisible(chart is not None)
        if chart is None:
            self._switchable = ()
            for widget in (self.choice, self._finding, self._notes, self._scale_x, self._scale_y):
                widget.hide()
            self._title.setText("")
            self._title.meaning = ""
            return
        first = chart.panels[0]
        lined = not first.bars
        self._switchable = tuple(
            switch
            for switch, able in (
                (self._scale_x, lined and not first.x.labels),
                (self._scale_y, lined and not first.y.labels and any(p.y.unit != "%" for p in chart.panels)),
            )
            if able
        )
        self._show_scales(chart)
        self._place_switches()
        # If the title is too long, it is shown without the model, which stands above the charts.
        self._title.setText(chart.title, *_without_model(chart.title))
        self._title.meaning = findings.meaning(chart.name)
        self._finding.setText(chart.finding)
        self._finding.setVisible(chart.finding not in ("", self.stated_above))
        self._notes.setVisible(bool(chart.notes))
        self._notes.setToolTip(as_tip("\n".join(chart.notes)))
        if not self._shared:
            self._legend.show_entries(entries(chart))
        self._offer_panels([p.title for p in chart.panels])
        self._draw()

    def share(self, legend: Legend) -> None:
        """Use a legend together with other charts."""
        self._legend.hide()
        self._under.addStretch(1)  # in its place
        self._legend = legend
        self._shared = True
        legend.toggled.connect(self._on_hidden)

    def make_ready(self, bars: bool) -> None:
        """Make the plot of one more panel before it is needed. It takes 10 ms, which is long while a run
        streams."""
        if not self.plots:
            self._spare.append(BarPlot(self._theming) if bars else LinePlot(self._theming))

    def set_enlargeable(self, on: bool) -> None:
        """Whether the chart can take all the room. If not, it gives back what it has."""
        if not on:
            self._expand.setChecked(False)
        self._expand.setVisible(on)

    def shrink(self) -> bool:
        """Give back all the room. Returns whether the chart had it."""
        enlarged = self._expand.isChecked() and self.isVisible()
        if enlarged:
            self._expand.setChecked(False)
        return enlarged

    def _restyle(self) -> None:
        for plot in self.plots.values():
            plot.restyle()
        self._draw()

    def set_log(self, axis: str, log: bool) -> None:
        """Make axis "x" or "y" of all panels logarithmic or linear."""
        self._log[axis] = log
        for plot in self.plots.values():
            if isinstance(plot, LinePlot):
                plot.set_scales(self._log["x"], self._log["y"])

    def point_out(self, label: str) -> None:
        """Emphasize the name of a series, in charts that name series at their points."""
        self._pointed = label
        for plot in self.plots.values():
            if isinstance(plot, LinePlot):
                plot.point_out(label)

    def select(self, label: str, x: float | None) -> None:
        """Mark a point of the series `label`, or the bar at `x` of the panel `label`. None: nothing is
        selected."""
        self._selected = (label, x)
        for plot in self.plots.values():
            plot.select(label, x)

    def reset_view(self) -> None:
        """Show all data again, in this chart and in those that follow it."""
        for plot in self.plots.values():
            plot.reset_view()
            plot.moved.emit()

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
        self._scale_x = self._switch(scale_words("x", True), "Logarithmic or linear batch sizes", "x")
        self._scale_y = self._switch(scale_words("y", True), "Logarithmic or linear values", "y")
        self._notes = tool_button("", self._show_notes, role="switch", name="Notes")
        put_icon(self._notes, "notes", self._theming, "muted")
        tip = "Enlarge this chart to the whole page; Esc leaves it"
        self._expand = tool_button("", tip=tip, role="switch", name="Enlarge", toggled=self._on_expand)
        put_icon(self._expand, "whole", self._theming, "muted")
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
        button.toggled.connect(lambda on: button.setText(scale_words(axis, on)))
        return button

    # ------------------------------------------------------------------------------------------ the inside

    def _show_scales(self, chart: Chart) -> None:
        """Have the switches say which scale is shown, until the user has chosen one."""
        panel = chart.panels[0]
        for axis, switch, scale in (("x", self._scale_x, panel.x.scale), ("y", self._scale_y, panel.y.scale)):
            if self._log[axis] is None and switch.isChecked() != (scale == "log"):
                switch.blockSignals(True)
                switch.setChecked(scale == "log")
                switch.blockSignals(False)
                switch.setText(scale_words(axis, scale == "log"))

    def lines(self) -> list[LinePlot]:
        """The plots of lines that are shown."""
        return [plot for plot in self.plots.values() if isinstance(plot, LinePlot)]

    def _shown(self) -> list[Panel]:
        """The panels that have room: all, or the chosen one."""
        assert self.chart is not None
        panels = list(self.chart.panels)
        if self._columns(len(panels)):
            return panels
        chosen = self.choice.currentText()
        return [next((p for p in panels if p.title == chosen), panels[0])]

    def _arrangement(self) -> tuple[int, list[str]]:
        """The number of columns, and the titles of the panels in them."""
        titles = [panel.title for panel in self._shown()]
        return self._columns(len(titles)), titles

    def _columns(self, count: int) -> int:
        return columns(count, self.width(), self.height())

    def _offer_panels(self, titles: list[str]) -> None:
        if self.choice.offered != titles:
            self.choice.offer({title: title for title in titles}, self._chosen)
        self.choice.setVisible(not self._columns(len(titles)))
        if not self._shared:
            # The list stands beside the legend, unless the legend would then need more height than both.
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
        for title in [t for t in self.plots if t not in {p.title for p in wanted}]:
            self._drop(title)
        across = self._columns(len(wanted))
        for column in range(self._grid.columnCount()):
            self._grid.setColumnStretch(column, 1 if column < across else 0)
        for index, panel in enumerate(wanted):
            plot: PanelPlot | None = self.plots.get(panel.title)
            if plot is not None and isinstance(plot, BarPlot) != bool(panel.bars):
                self._drop(panel.title)
                plot = None
            if plot is None:
                plot = self.plots[panel.title] = self._make(panel)
            self._grid.addWidget(plot, index // across, index % across)
            self._grid.setColumnStretch(index % across, 1)
            if isinstance(plot, BarPlot):
                plot.categories = self.chart.categories
            assert isinstance(plot, LinePlot | BarPlot)
            plot.ticks = self._ticks
            heading = panel.title if len(wanted) > 1 and panel.title else None
            size, colour = f"{points('caption')}pt", self._theming.theme.muted
            plot.getPlotItem().setTitle(heading, size=size, color=colour)
            plot.show_panel(panel)

    def _drop(self, title: str) -> None:
        gone = self.plots.pop(title)
        self._grid.removeWidget(gone)
        gone.hide()
        gone.deleteLater()

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
            plot.moved.connect(lambda: self.moved.emit(plot))
            plot.pointed.connect(lambda: self.pointed.emit(plot))
        plot.select(*self._selected)
        plot.picked.connect(self.picked)
        plot.setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)  # the event goes on to this widget
        return plot

    def _place_switches(self) -> None:
        """Hide the switches if they would cut the title. The context menu has them, too."""
        for switch in (self._scale_x, self._scale_y):
            switch.setVisible(switch in self._switchable and self.width() >= scaled(NARROW))

    def _on_chosen(self) -> None:
        self._chosen = self.choice.currentData()
        self._draw()

    def _on_hidden(self, hidden: frozenset[str]) -> None:
        for plot in self.plots.values():
            plot.set_hidden(hidden)

    def _on_expand(self, on: bool) -> None:
        put_icon(self._expand, "back" if on else "whole", self._theming, "muted")
        self._limit_finding()
        self.expanded.emit(on)

    def _limit_finding(self) -> None:
        """Give the finding fewer lines if the chart is low. Its tooltip has all of it."""
        most = 1 + sum(self.height() >= scaled(height) for height in LINES)
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
                menu.addAction(new_action(menu, words, switch.setChecked, checked=switch.isChecked()))
        self.menu_opened.emit(menu, self.chart)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self.mapToGlobal(at))


def _without_model(title: str) -> tuple[str, ...]:
    _, colon, rest = title.partition(": ")
    return (rest[:1].upper() + rest[1:],) if colon else ()


def scale_words(axis: str, log: bool) -> str:
    """What a switch says of its axis."""
    return f"{axis}: {'log' if log else 'linear'}"


LEAST_WIDTH = 290  # pixels of a chart beside another
LEAST_HEIGHT = 250


class ChartGrid(QScrollArea):
    """Charts in a grid. A chart that asks for all the room gets it until it gives it back. shares: of the
    width, of charts beside each other (none: all alike)."""

    def __init__(
        self,
        views: Sequence[ChartView],
        parent: QWidget | None = None,
        least_height: int = LEAST_HEIGHT,
        shares: Sequence[int] = (),
    ) -> None:
        super().__init__(parent)
        self._views: list[ChartView] = []
        self._shares = tuple(shares)
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
        """Show these charts from now on; one of them that has all the room keeps it. The earlier ones may
        belong to another grid by now."""
        for view in self._views:
            view.expanded.disconnect(self._on_expanded)
            view.moved.disconnect(self._on_moved)
            view.pointed.disconnect(self._on_pointed)
            if view not in views and view.parentWidget() is self._charts:
                view.shrink()
                view.hide()
        self._views = list(views)
        for view in self._views:
            view.expanded.connect(self._on_expanded)
            view.moved.connect(self._on_moved)
            view.pointed.connect(self._on_pointed)
        self._alone, self._columns = self._alone if self._alone in views else None, 0
        self._arrange()
        for view in self._views:  # a tab that was not in front has hidden it
            view.setVisible(self._alone in (None, view))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _on_moved(self, moved: LinePlot) -> None:
        """Other charts show the same sizes."""
        for plot in (plot for view in self._views for plot in view.lines() if plot is not moved):
            plot.follow(moved)

    def _on_pointed(self, pointed: LinePlot) -> None:
        """One crosshair goes through all charts."""
        for plot in (plot for view in self._views for plot in view.lines() if plot is not pointed):
            plot.point_as(pointed)

    def _on_expanded(self, on: bool) -> None:
        view = self.sender()
        self._alone = view if on and isinstance(view, ChartView) else None
        for other in self._views:
            other.setVisible(self._alone is None or other is self._alone)
        self._columns = 0
        self._arrange()

    def _arrange(self) -> None:
        visible = self._views if self._alone is None else [self._alone]
        if not visible:
            return
        room = self.viewport().size()
        columns = self._fitting(len(visible), room.width(), room.height())
        rows = -(-len(visible) // columns)
        if columns != self._columns:
            self._columns = columns
            for index, view in enumerate(visible):
                last = index == len(visible) - 1
                span = columns - index % columns if last else 1  # an odd one takes the rest of its row
                self._grid.addWidget(view, index // columns, index % columns, 1, span)
            for i in range(max(4, len(self._views))):  # a row without a view must not keep its share
                self._grid.setRowStretch(i, 1 if i < rows else 0)
                share = self._shares[i] if 1 < columns == len(self._shares) > i else 1
                self._grid.setColumnStretch(i, share if i < columns else 0)
        # Without this the content would be as high as its wrapped texts.
        self._charts.resize(room.width(), max(room.height(), rows * self._least_height))

    def _fitting(self, count: int, width: int, height: int) -> int:
        """The number of columns: 2; one for each chart if two rows are too high; 1 if the grid is narrow."""
        if width < 2 * LEAST_WIDTH:
            return 1
        rows = -(-count // 2)
        in_a_row = width >= count * LEAST_WIDTH and height < rows * self._least_height
        return count if in_a_row else min(count, 2)


ICON = QSize(26, 14)
SHORT = QSize(18, 14)  # of a compact legend
SQUARE = QSize(14, 14)
SPACING = 2
PADDING = 9  # pixels beside icon and text of a compact one's entry
MANY = 6  # entries, beyond which a legend is compact
LINE = "-"  # a marker: none on the line
DOUBT = "doubt"  # a marker: a hatched square and no line, which explains and hides nothing


@dataclass(frozen=True)
class LegendEntry:
    """key: what a click hides; dashed, marker, overlay: how its line is drawn (marker "": a filled
    square); short: the button's text, if earlier entries already say the rest of the label."""

    key: str
    label: str
    colour: str
    dashed: bool = False
    marker: str = ""
    overlay: int = 0
    short: str = ""


def entries(chart: Chart) -> tuple[LegendEntry, ...]:
    """The legend of a chart: one entry for each category and baseline of bars, or for each series with
    data."""
    doubtful = (LegendEntry(LEGEND, LEGEND, "", marker=DOUBT),) if has_doubts(chart) else ()
    if chart.categories or any(panel.baselines for panel in chart.panels):
        levels = {line.label: line for panel in chart.panels for line in panel.baselines}
        return (
            *(LegendEntry(c.key, c.label, c.colour) for c in chart.categories if c.colour),
            *(
                LegendEntry(b.label, b.label, b.colour, dashed=True, marker=LINE, short=short)
                for b, short in zip(levels.values(), _shortened(list(levels)), strict=True)
            ),
            *doubtful,
        )
    lines: dict[str, LegendEntry] = {}
    for panel in chart.panels:
        for s in panel.series:
            if not s.named and (s.points or s.marks or s.provisional):
                lines.setdefault(
                    s.label, LegendEntry(s.label, s.label, s.colour, s.dashed, s.marker or LINE, s.overlay)
                )
    return (*lines.values(), *doubtful)


def _shortened(labels: Sequence[str]) -> list[str]:
    """The labels without the words that all begin with, from the second one on: "A reference, 44 µs", "in
    tf32, 43 µs"."""
    words = [re.findall(r"[^\s,]+|,", label) for label in labels]
    shared = 0
    for column in zip(*words, strict=False):
        if len(set(column)) > 1:
            break
        shared += 1
    shortened = []
    for index, label in enumerate(labels):
        rest = label
        for word in words[index][:shared] if index else ():
            rest = rest.strip()[len(word) :]
        shortened.append(rest.strip(" ,") or label)
    return shortened


class Legend(QWidget):
    """A button for each entry, which shows or hides it. `toggled` carries the frozenset of hidden keys.
    With many entries, or with baselines, it is compact."""

    toggled = Signal(object)

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theming = theming
        theming.changed.connect(self._restyle)
        self._entries: tuple[LegendEntry, ...] = ()
        self._compact = False
        self.buttons: dict[str, QToolButton] = {}
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    @property
    def hidden(self) -> frozenset[str]:
        return frozenset(
            key for key, button in self.buttons.items() if button.isCheckable() and not button.isChecked()
        )

    def show_entries(self, wanted: tuple[LegendEntry, ...]) -> None:
        if wanted == self._entries:
            return
        self._entries = wanted
        for key in [k for k in self.buttons if k not in {e.key for e in wanted}]:
            button = self.buttons.pop(key)
            button.hide()
            button.deleteLater()
        for entry in wanted:
            if entry.key not in self.buttons:
                self.buttons[entry.key] = self._make(entry)
        self._compact = any(entry.short for entry in wanted) or len(wanted) > MANY
        for entry in wanted:
            button = self.buttons[entry.key]
            if button.property("compact") is not self._compact:
                button.setProperty("compact", self._compact)
                button.style().polish(button)  # its size of text is the sheet's
            button.setIconSize((SHORT if self._compact else ICON) if entry.marker else SQUARE)
        self._restyle()
        self._arrange(self.width(), move=True)
        self.updateGeometry()

    # Buttons stand side by side and go on in a new line where they do not fit.

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._arrange(width, move=False)

    def sizeHint(self) -> QSize:
        return QSize(200, self._arrange(max(200, self.width()), move=False))

    def minimumSizeHint(self) -> QSize:
        widest = max((self._size(entry).width() for entry in self._entries), default=0)
        return QSize(widest, self._arrange(max(widest, self.width()), move=False))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange(self.width(), move=True)

    def _arrange(self, width: int, move: bool) -> int:
        """Place the buttons (if `move`), and return the height they need. Baselines begin a new line if
        that needs no more height."""
        sizes = {entry.key: self._size(entry) for entry in self._entries}
        first = next((entry.key for entry in self._entries if entry.short), "")
        places, height = self._flow(sizes, width, first)
        flowing, least = self._flow(sizes, width, "")
        if height > least:
            places, height = flowing, least
        if move:
            for key, place in places.items():
                self.buttons[key].setGeometry(place)
                self.buttons[key].show()
        return height

    @staticmethod
    def _flow(sizes: dict[str, QSize], width: int, begins: str) -> tuple[dict[str, QRect], int]:
        """The place of each button, and the height of all. begins: the key that begins a new line."""
        places: dict[str, QRect] = {}
        x = y = line = 0
        for key, size in sizes.items():
            if x > 0 and (x + size.width() > width or key == begins):
                x, y, line = 0, y + line + SPACING, 0
            places[key] = QRect(x, y, size.width(), size.height())
            x += size.width() + SPACING
            line = max(line, size.height())
        return places, y + line

    def _size(self, entry: LegendEntry) -> QSize:
        button = self.buttons[entry.key]
        if not self._compact:
            return button.sizeHint()
        metrics = button.fontMetrics()
        width = metrics.horizontalAdvance(button.text()) + button.iconSize().width() + PADDING
        return QSize(width, max(metrics.height(), button.iconSize().height()) + 2)

    def _restyle(self) -> None:
        for entry in self._entries:
            self.buttons[entry.key].setIcon(self._icon(entry))

    def _make(self, entry: LegendEntry) -> QToolButton:
        button = QToolButton(self)
        button.setText(entry.short or entry.label)
        button.setAccessibleName(entry.label)
        explains = entry.marker == DOUBT
        button.setCheckable(not explains)
        button.setChecked(not explains)
        button.setProperty("role", "legend")
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        tip = (
            "Hollow or hatched: to be doubted, for the reasons in the notes"
            if explains
            else f"Show or hide {entry.label}"
        )
        button.setToolTip(as_tip(tip))
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.toggled.connect(self._on_toggled)
        return button

    def _on_toggled(self) -> None:
        self._restyle()
        self.toggled.emit(self.hidden)

    def _icon(self, entry: LegendEntry) -> QIcon:
        ratio = self.devicePixelRatioF()
        size = self.buttons[entry.key].iconSize()
        picture = QPixmap(size * ratio)
        picture.setDevicePixelRatio(ratio)
        picture.fill(Qt.GlobalColor.transparent)
        painter = QPainter(picture)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        is_on = entry.marker == DOUBT or self.buttons[entry.key].isChecked()
        own = standing_out(entry.colour, self._theming.theme) if entry.marker == LINE else entry.colour
        colour = QColor(own if is_on else self._theming.theme.line)
        middle = QPointF(size.width() / 2, size.height() / 2)
        if entry.marker == DOUBT:
            theme = self._theming.theme
            painter.setPen(QPen(QColor(theme.ink), 1))
            painter.setBrush(hatched(theme.ink, theme.paper))
            painter.drawRect(QRectF(middle.x() - 6, middle.y() - 5, 12, 10))
        elif not entry.marker:
            painter.setPen(QPen(QColor(self._theming.theme.line), 1))
            painter.setBrush(colour)
            painter.drawRect(QRectF(middle.x() - 6, middle.y() - 5, 12, 10))
        else:
            style = Qt.PenStyle.DashLine if entry.dashed else Qt.PenStyle.SolidLine
            painter.setPen(QPen(colour, 0.8 if entry.overlay else 1.6, style))
            painter.drawLine(QPointF(1, middle.y()), QPointF(size.width() - 1, middle.y()))
            painter.setPen(QPen(colour, 0.8 if entry.overlay else 1.3))
            painter.setBrush(colour)
            if entry.marker != LINE:
                _marker(painter, entry.marker, middle, 2.6 if entry.overlay else 3.4)
        painter.end()
        return QIcon(picture)


def _star() -> list[tuple[float, float]]:
    turns = [(math.pi * k / 5 - math.pi / 2, 0.6 if k % 2 else 1.5) for k in range(10)]
    return [(r * math.cos(turn), r * math.sin(turn)) for turn, r in turns]


def _hexagon() -> list[tuple[float, float]]:
    return [(1.2 * math.sin(math.pi * k / 3), 1.2 * math.cos(math.pi * k / 3)) for k in range(6)]


def _plus() -> list[tuple[float, float]]:
    arm, half = 1.3, 0.45
    quarter = [(-half, -arm), (half, -arm), (half, -half)]
    turns = ((1, 0), (0, 1), (-1, 0), (0, -1))  # cosine and sine
    return [(c * x - s * y, s * x + c * y) for c, s in turns for x, y in quarter]


def _marker(painter: QPainter, marker: str, at: QPointF, r: float = 3.4) -> None:
    corners: dict[str, Sequence[tuple[float, float]]] = {
        "s": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
        "^": ((0, -1.2), (1.1, 0.9), (-1.1, 0.9)),
        "v": ((0, 1.2), (1.1, -0.9), (-1.1, -0.9)),
        "D": ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
        "<": ((-1.2, 0), (0.9, 1.1), (0.9, -1.1)),
        ">": ((1.2, 0), (-0.9, 1.1), (-0.9, -1.1)),
        "*": _star(),
        "h": _hexagon(),
        "P": _plus(),
    }
    if marker in corners:
        painter.drawPolygon(
            QPolygonF([QPointF(at.x() + dx * r, at.y() + dy * r) for dx, dy in corners[marker]])
        )
    else:
        painter.drawEllipse(at, r, r)
