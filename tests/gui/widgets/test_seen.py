"""What is drawn is seen: no text that is cut without need, no colour that sinks into its paper, no raw
number of bytes."""

import pytest
from PySide6.QtCore import QEvent, QPointF
from PySide6.QtWidgets import QApplication, QWidget

from bench.views.charts.comparison_charts import charts
from bench.words import palette
from gui.base.theme import Theming
from gui.plots.base import FAINT, outlined
from gui.plots.chart import ChartView, Legend, LegendEntry
from gui.shell import docks
from gui.widgets.controls import Readout
from tests.bench import synthetic


@pytest.fixture(params=["light", "dark"])
def theming(request, qapp):
    return Theming(request.param)


def test_a_legend_that_grows_has_one_size_of_text(qtbot, theming):
    theming.apply()
    legend = Legend(theming)
    qtbot.addWidget(legend)
    legend.show()
    entries = tuple(LegendEntry(f"line {i}", f"line {i}", "#0A78BA", marker="o") for i in range(9))
    sizes = []
    for count in (4, 9, 4):
        legend.show_entries(entries[:count])
        QApplication.processEvents()
        (size,) = {round(button.font().pointSizeF(), 1) for button in legend.buttons.values()}
        sizes.append(size)
    assert sizes[0] == sizes[2] > sizes[1]


def test_every_colour_of_a_chart_has_an_outline_that_is_seen(theming):
    for _, colour in (*palette.CATEGORIES.values(), *palette.STAGES.values()):
        edge = outlined(colour, theming.theme)
        assert palette.contrast(edge, theming.theme.paper) >= FAINT
        assert edge in (colour, theming.theme.muted)


def test_bars_are_outlined_in_what_is_seen(qtbot, theming):
    chart = next(c for c in charts([synthetic.run(batches=(1, 16))]) if c.name.endswith("-breakdown"))
    view = ChartView(theming)
    qtbot.addWidget(view)
    view.resize(1200, 400)
    view.show_chart(chart)
    theme = theming.theme
    for plot in view.plots.values():
        for category in chart.categories:
            pen = plot._stacks[category.key].opts["pen"].color().name()
            seen = theme.dark or palette.contrast(category.colour, theme.paper) < FAINT
            assert pen.lower() == (theme.muted if seen else theme.paper).lower()


def test_a_narrow_chart_has_its_list_of_panels_below_a_whole_legend(qtbot):
    chart = next(c for c in charts([synthetic.run(batches=(1, 16))]) if c.name.endswith("-breakdown"))
    view = ChartView(Theming("light"))
    qtbot.addWidget(view)
    for width, below in ((300, True), (480, False)):
        view.resize(width, 300)
        view.show_chart(chart)
        view.show()
        QApplication.processEvents()
        legend, panels = view._legend.geometry(), view.choice.geometry()
        assert view.choice.isVisible()
        assert (panels.top() >= legend.bottom()) is below
        assert (legend.width() > 0.9 * view.width()) is below


def test_a_chart_that_gives_way_takes_its_tooltips_along(qtbot):
    made = charts([synthetic.run(batches=(1, 16))])
    breakdown, time = (next(c for c in made if c.name.endswith(end)) for end in ("-breakdown", "-op-time"))
    box = QWidget()
    qtbot.addWidget(box)
    view = ChartView(Theming("light"), parent=box)
    view.resize(1200, 400)
    for _ in range(2):
        view.show_chart(breakdown)
        for plot in view.plots.values():
            plot.read_out(plot.nearest(QPointF(0, 0)))
        assert len(box.findChildren(Readout)) >= len(view.plots) > 1
        view.show_chart(time)
        for _ in range(2):  # the plot, then its tooltip
            QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        assert len(box.findChildren(Readout)) == len(view.plots) == 1


def test_bytes_and_moments_that_a_session_tells_are_as_people_read_them():
    assert docks._fact("l2_nbytes", "52428800") == ("l2", "50.0 MiB")
    assert docks._fact("tuned_at", "2026-11-25T17:30:57+00:00") == ("tuned at", "2026-11-25 17:30:57")
    assert docks._fact("cuda_graph", "yes") == ("cuda graph", "yes")
