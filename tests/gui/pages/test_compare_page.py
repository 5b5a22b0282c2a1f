"""The Compare page draws the same definitions that are exported, answers the mouse, and holds still."""

import math
from pathlib import Path
from typing import get_args

import msgspec
import numpy as np
import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtWidgets import QApplication

from bench.results.records import StopReason
from bench.views.cards import RIGHT
from bench.views.charts.comparison_charts import charts
from gui.pages.compare import PANELS, ComparePage
from gui.pages.page import page_types
from gui.shell import docks
from gui.shell.main_window import TOUR_SEEN
from tests.bench import synthetic
from tests.gui import shared
from tests.gui.recorded import Shown
from tests.gui.shared import as_found

FAILURES = {
    ("engine-cuda", 1024): ("out_of_memory", "150 GiB were asked for"),
    ("engine-cpu", 64): ("crashed", "the worker was killed by SIGSEGV"),
}


@pytest.fixture(scope="module")
def recorded():
    return synthetic.run(models=("lenet5-digits", "alexnet"), failures=FAILURES)


@pytest.fixture
def page(make_window, recorded):
    window = make_window("ok", begin=False)
    run, measurements = recorded
    window.state.open(run, Path("a-run"), measurements)
    window.redraw.flush()
    return window.pages[0]


@pytest.fixture(scope="module")
def opened(make_shared_window, recorded):
    window = make_shared_window()
    run, measurements = recorded
    window.state.open(run, Path("a-run"), measurements)
    window.redraw.flush()
    QApplication.processEvents()
    return window


@pytest.fixture
def same_page(opened):
    """As `page`, for what leaves it as it was."""
    with as_found(opened, themes=True):
        yield opened.pages[0]


def test_what_a_test_leaves_in_a_shared_window_is_noticed(opened, monkeypatch):
    monkeypatch.setattr(shared, "PATIENCE_S", 0.0)
    with pytest.raises(AssertionError, match="as it did not find it"), as_found(opened):
        opened.pages[0]._legend.buttons["engine-cpu"].click()
    opened.pages[0]._legend.buttons["engine-cpu"].click()


def test_an_empty_page_says_what_fills_it(make_window):
    window = make_window("ok", begin=False)
    window.redraw.flush()
    for page in window.pages:
        assert len(page.empty_text()) > 20
    assert "F5" in window.pages[0].empty_text()


def test_pages_are_found_in_their_order():
    titles = [page.title for page in page_types()]
    assert titles[0] == "Compare"
    assert len(set(titles)) == len(titles)


def test_it_draws_the_charts_that_are_exported(same_page, recorded):
    expected = {c.name: c for c in charts([recorded]) if c.model == "lenet5-digits"}
    for name, view in same_page.views.items():
        if name == "accuracy":  # which the card says: all answer alike
            assert view.chart is None
            continue
        assert view.chart == expected[f"lenet5-digits-{name}"]
        assert view.finding == view.chart.finding
    plot = same_page.views["op-time"].plots[""]
    for series in plot.panel.series:
        x, y = plot._items[series.label].line.getData()
        points = {2.0 ** round(a): 10**b for a, b in zip(x, y, strict=True) if np.isfinite(b)}
        assert points == pytest.approx({p.x: p.y for p in series.points})


def test_a_speed_up_that_is_not_known_breaks_its_line(same_page):
    plot = next(plot for title, plot in same_page.views["speed"].plots.items() if title.startswith("1× ="))
    x, y = plot._items["engine-cpu"].line.getData()
    assert [2 ** round(at) for at, value in zip(x, y, strict=True) if np.isnan(value)] == [64]


def test_items_persist_and_the_view_holds_still(same_page, recorded):
    page = same_page
    plot = page.views["op-time"].plots[""]
    items = {label: id(found.line) for label, found in plot._items.items()}
    plot.getPlotItem().getViewBox().setRange(xRange=(1, 2), yRange=(-5, -4), padding=0)
    plot._on_touched()
    view = plot.getPlotItem().getViewBox().viewRange()
    case = page.state.measurements[0].case
    page.state.add([synthetic.measurement(case, seed=9)])
    while page.state.work(1.0):
        pass
    page.redraw()
    assert {label: id(found.line) for label, found in plot._items.items()} == items
    assert plot.getPlotItem().getViewBox().viewRange() == view
    page.views["op-time"].reset_view()
    assert plot.getPlotItem().getViewBox().viewRange() != view
    run, measurements = recorded
    page.state.open(run, Path("a-run"), measurements)


def test_the_crosshair_reads_values_and_failures(same_page):
    plot = same_page.views["op-time"].plots[""]
    x = plot.nearest(QPointF(6.1, -3))
    assert x == 6.0  # batch 64, in doublings
    words = plot.words_at(x)
    assert "batch 64" in words
    assert "crashed: the worker was killed by SIGSEGV" in words
    assert "ort-cpu" in words
    plot.read_out(x)
    assert not plot.readout.isHidden()
    plot.read_out(None)
    assert plot.readout.isHidden()
    bars = next(iter(same_page.views["breakdown"].plots.values()))
    assert "conv" in bars.words_at(0.0)
    assert "%" in bars.words_at(0.0)


def test_what_has_no_value_is_marked_below_all_values(same_page):
    plot = same_page.views["op-time"].plots[""]
    items = [plot._items[series.label] for series in plot.panel.series]
    marked = [y for item in items for y in item.marks.getData()[1]]
    assert marked
    top = plot._failed_band.getRegion()[1]
    assert max(marked) < top
    assert all(math.log10(p.y) > top for series in plot.panel.series for p in series.points if p.y), (
        "no value stands in the lane"
    )
    assert plot._failed_name.toPlainText() == "no value"


def test_the_legend_hides_and_shows_a_series(same_page):
    view = same_page.views["op-time"]
    plot = view.plots[""]
    view._legend.buttons["engine-cpu"].click()
    assert not plot._items["engine-cpu"].line.isVisible()
    assert "engine-cpu" not in plot.words_at(0.0)
    same_page.invalidate()
    same_page.redraw()
    assert not plot._items["engine-cpu"].line.isVisible()
    view._legend.buttons["engine-cpu"].click()
    assert plot._items["engine-cpu"].line.isVisible()


def test_scales_switch(same_page):
    view = same_page.views["op-time"]
    plot = view.plots[""]
    view.set_log("y", False)
    series = plot.panel.series[0]
    _, y = plot._items[series.label].line.getData()
    assert y[0] == pytest.approx(series.points[0].y)
    low, high = plot.getPlotItem().getViewBox().viewRange()[1]
    assert low <= 0
    assert high > max(p.y for s in plot.panel.series for p in s.points)
    view.set_log("y", True)


def test_a_pick_selects_and_the_inspector_tells_all(same_page):
    page, window = same_page, same_page.window()
    page.views["op-time"].picked.emit("engine-cuda", 1024.0)
    assert page.state.case.backend == "engine-cuda"
    window.redraw.flush()
    assert "150 GiB were asked for" in window.inspector.text
    page.views["op-time"].picked.emit("ort-cuda", 8.0)
    window.redraw.flush()
    for words in (
        "median",
        "95 % interval",
        "copy in",
        "top-1",
        "relative L2 error",
        "SM clock",
        "stopped because",
    ):
        assert words in window.inspector.text
    page.state.select(None)


def test_the_inspector_has_words_for_whatever_stopped_the_samples(same_page):
    window = same_page.window()
    for reason in set(get_args(StopReason)) - {""}:
        measured = next(m for m in window.state.measurements if m.samples_ns)
        validity = msgspec.structs.replace(measured.validity, stop_reason=reason)
        told = dict(docks._validity(msgspec.structs.replace(measured, validity=validity)))
        assert len(told["stopped because"].split()) > 2


def test_an_enlarged_chart_has_all_the_room_and_gives_it_back(same_page):
    view = same_page.views["breakdown"]
    assert len(view.plots) == 1
    narrow = view.width()
    view._expand.click()
    QApplication.processEvents()
    assert all(other.isHidden() for name, other in same_page.views.items() if name != "breakdown")
    assert view.width() > 1.8 * narrow
    view._expand.click()
    assert not any(other.isHidden() for name, other in same_page.views.items() if name != "accuracy")


def test_the_model_can_be_chosen(same_page):
    page = same_page
    page.choose("alexnet")
    page.window().redraw.flush()
    assert page.views["op-time"].chart.model == "alexnet"
    assert {row.case.model for row in page.table.source.rows} == {"alexnet"}
    page.choose("lenet5-digits")


def test_the_table_sorts_by_value_and_copies(same_page):
    table = same_page.table
    names = [column.name for column in table.source.columns]
    table.sortByColumn(names.index("median_s"), Qt.SortOrder.DescendingOrder)
    medians = [row.median_ns for row in table.source.rows]
    known = [m for m in medians if m is not None]
    assert known == sorted(known, reverse=True)
    assert medians[-1] is None  # what has no value comes last
    table.sortByColumn(names.index("median_s"), Qt.SortOrder.AscendingOrder)
    assert table.source.rows[-1].median_ns is None
    table.copy_csv()
    lines = QApplication.clipboard().text().splitlines()
    assert lines[0].startswith("model,backend,precision,batch")
    assert len(lines) == 1 + table.source.rowCount()
    table.copy_markdown()
    assert QApplication.clipboard().text().startswith("| batch | backend | result | median")
    table.sortByColumn(-1, Qt.SortOrder.AscendingOrder)


def test_both_themes_restyle_the_plots(same_page):
    from gui.base.theme import DARK

    window = same_page.window()
    window.theming.choose("dark")
    window.redraw.flush()
    plot = same_page.views["op-time"].plots[""]
    assert plot.backgroundBrush().color().name().upper() == DARK.paper
    assert window.palette().window().color().name().upper() == DARK.window
    window.theming.choose("light")


@pytest.mark.sampled(2, "nothing is cut")
def test_every_page_draws_at_every_size(make_window, recorded):
    window = make_window("ok", begin=False)
    run, measurements = recorded
    window.state.open(run, Path("a-run"), measurements)
    for size in ((900, 600), (1500, 940), (2600, 1500)):
        window.resize(*size)
        for index in range(window.tabs.count()):
            window.tabs.setCurrentIndex(index)
            window.redraw.flush()
            assert not window.grab().isNull()


def test_what_is_made_ahead_is_what_is_shown(make_window, recorded, qtbot):
    window = make_window("ok")
    window.settings.setValue(TOUR_SEEN, True)  # else it shows the sample
    page = window.pages[0]
    window.begin()
    qtbot.waitUntil(lambda: page._body is not None and sum(len(v._spare) for v in page.views.values()) == 8)
    made = {name: view._spare[-1] for name, view in page.views.items()}
    window.theming.choose("dark")
    run, measurements = recorded
    window.state.open(run, Path("a-run"), measurements)
    window.redraw.flush()
    for name, view in page.views.items():
        if name == "accuracy":  # which the card says: all answer alike
            assert made[name] in view._spare
            continue
        assert made[name] in view.plots.values()
        # Of the panels of these charts there are more where there is room for them.
        assert len(view._spare) < PANELS.get(name, 1)
        qtbot.waitUntil(made[name].isVisible)
        assert made[name].backgroundBrush().color().name().upper() == window.theming.theme.paper
    window.theming.choose("light")


def test_rows_of_charts_stay_as_high_when_the_first_one_comes(make_window, recorded):
    from bench.results.messages import Provisional

    window = make_window("ok", begin=False)
    run, measurements = recorded
    window.state.open(run, Path("a-run"), ())
    window.state.expect(Provisional(case=measurements[0].case, median_ns=5e4))
    window.redraw.flush()
    QApplication.processEvents()
    views = [view for name, view in window.pages[0].views.items() if name != "accuracy"]
    heights = {view.height() for view in views}
    assert max(heights) - min(heights) <= 2, "one chart is there and two are still to come"
    assert len(window.pages[0].cards.rows) == 2, "the second model is still to come"
    window.state.add([m for m in measurements if m.disposition == "ok"])  # a problem opens its list
    window.redraw.flush()
    QApplication.processEvents()
    after = {view.height() for view in views}
    assert max(after | heights) - min(after | heights) <= 4


def test_answers_that_are_all_alike_stand_on_the_card_and_need_no_chart(make_window):
    run, measurements = synthetic.run(batches=(1, 8, 64))
    known = next(m.accuracy for m in measurements if m.accuracy is not None)
    same = msgspec.structs.replace(known, top1=0.9778, top5=1.0, agreement=1.0)
    alike = [msgspec.structs.replace(m, accuracy=same) for m in measurements]
    window = make_window("ok", begin=False)
    page = window.page
    window.state.open(run, Path("a-run"), alike)
    window.redraw.flush()
    (row,) = page.cards.rows
    assert row.cells[RIGHT].words.endswith(" accuracy 97.78 %")
    assert not page.views["accuracy"].isVisible()
    worse = msgspec.structs.replace(alike[0], accuracy=msgspec.structs.replace(same, top1=0.9))
    window.state.open(run, Path("a-run"), [worse, *alike[1:]])
    window.redraw.flush()
    assert page.views["accuracy"].isVisible()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("size", [(1268, 676), (1500, 940)])
def test_at_the_full_layout_every_plot_is_high_enough_and_nothing_is_cut(make_window, recorded, qtbot, size):
    window = make_window("ok", begin=False)
    run, measurements = recorded
    window.state.open(run, Path("a-run"), measurements)
    window.resize(*size)
    page = window.page
    qtbot.waitUntil(lambda: not window.form.isVisible())
    window.redraw.flush()
    QApplication.processEvents()
    window.redraw.flush()
    assert page._grid.verticalScrollBar().maximum() == 0, "no chart has to be scrolled to"
    for name, view in page.views.items():
        if not view.isVisible():
            continue
        for plot in view.plots.values():
            assert plot.height() >= 160, (name, plot.height())
            (low, high), _ = plot.getPlotItem().getViewBox().viewRange()
            labelled = plot.x_axis.tickValues(low, high, plot.x_axis.size().width())[0][1]
            assert len(labelled) >= 9, name
        titles = [view._title.text(), *view._title._shorter]
        assert any(view._title.fontMetrics().horizontalAdvance(t) <= view._title.width() for t in titles), (
            name
        )


def test_one_legend_hides_a_backend_in_every_chart(same_page):
    same_page._legend.buttons["engine-cpu"].click()
    for name in ("op-time", "speed"):
        for plot in same_page.views[name].plots.values():
            assert not plot._items["engine-cpu"].line.isVisible()
    assert same_page.views["breakdown"]._legend is not same_page._legend
    same_page._legend.buttons["engine-cpu"].click()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("size", [(1500, 940), (1000, 640)])
def test_a_card_covers_neither_its_value_nor_the_inspector(make_window, recorded, size):
    window = make_window("ok", begin=False)
    run, measurements = recorded
    window.state.open(run, Path("a-run"), measurements)
    window.state.select(measurements[0].case)
    window.resize(*size)
    QApplication.processEvents()
    window.redraw.flush()
    for view in window.page.views.values():
        if not view.isVisible():
            continue
        for plot in view.plots.values():
            places = plot._places.values() if hasattr(plot, "_places") else (0.0, 4.0, 10.0)
            for x in places:
                plot.read_out(float(x))
                if not plot.readout.isVisible():
                    continue
                card, box = plot.readout.geometry(), plot.getPlotItem().getViewBox()
                at = plot.mapTo(window, box.mapViewToScene(QPointF(x, 0)).toPoint()).x()
                assert (
                    not card.left() <= at <= card.right()
                    or card.bottom() <= plot.mapTo(window, box.sceneBoundingRect().topLeft().toPoint()).y()
                    or card.top() >= plot.mapTo(window, box.sceneBoundingRect().bottomLeft().toPoint()).y()
                )
                if window.inspector_dock.isVisible():
                    assert not card.intersects(window.inspector_dock.geometry())
            plot.read_out(None)


def test_end_to_end_has_a_chart_where_it_was_measured(page, recorded):
    run, measurements = recorded
    assert "end-to-end" not in page.views, "it costs nothing where nobody asked"
    sent = [msgspec.structs.replace(m, end_to_end=synthetic.end_to_end(1e5)) for m in measurements]
    page.state.open(run, Path("another-run"), sent)
    page.window().redraw.flush()
    view = page.views["end-to-end"]
    assert view.isVisibleTo(page)
    assert view.chart.name == "lenet5-digits-end-to-end"
    row = next(row for row in page.state.rows("lenet5-digits") if row.median_ns is not None)
    told = dict(docks.sections(row))
    assert dict(told["End to end"])["carried as"] == "uint8"
    assert "One pass, host to host, copies included" in told
    page.state.open(run, Path("a-run"), measurements)
    page.window().redraw.flush()
    assert view.isHidden()


def test_while_another_run_is_loaded_no_row_of_the_one_before_is_shown(qtbot):
    shown = Shown(qtbot, ComparePage)
    shown.open()
    page, state = shown.page, shown.state
    before = page.table.source.rowCount()
    assert before > 0
    run, measured = synthetic.run(backends=("engine-cpu", "ort-cpu"), batches=(1, 2, 4))
    state.open(run, measurements=measured)
    assert page.table.source.rowCount() == 0
    page.redraw()
    assert page.stopped.text() == f"Loading: 0 of {len(measured)} cases"
    shown.redraw.flush()
    assert page.table.source.rowCount() == len(measured)
    assert "Loading" not in page.stopped.text()
