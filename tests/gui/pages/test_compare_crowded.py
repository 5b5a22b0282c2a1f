"""A run of many contenders on the Compare page: one precision at a time, by a choice that is kept."""

from itertools import pairwise
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from bench.views.charts.comparison_charts import charts
from gui.base.theme import Theming
from gui.plots.chart import PANEL_HEIGHT, ChartView
from tests.bench import synthetic
from tests.gui.shared import as_found

PRECISIONS = ("fp32", "tf32", "fp16")


def shown(window, data):
    run, measured = data
    window.state.open(run, Path("a-run"), measured)
    window.redraw.flush()
    QApplication.processEvents()
    return window.pages[0]


@pytest.fixture(scope="module")
def opened(make_shared_window):
    return shown(make_shared_window(), synthetic.rivals())


@pytest.fixture
def page(opened):
    """What a test has chosen is taken back."""
    with as_found(opened.window()):
        yield opened
        opened._wanted = ""
        opened._precision.setCurrentIndex(0)
        opened.state.select(None)
        opened.state.take_off()
        opened.invalidate()


def choose(page, data):
    box = page._precision
    box.setCurrentIndex(box.findData(data))
    box.activated.emit(box.currentIndex())
    page.window().redraw.flush()


def labels(page):
    return {s.label for panel in page.views["op-time"].chart.panels for s in panel.series if s.marker}


def test_lines_are_shown_in_one_precision_at_a_time(page):
    assert page.precision_choice.isVisible()
    assert [page._precision.itemData(i) for i in range(page._precision.count())] == [*PRECISIONS, "together"]
    assert labels(page) == {
        "engine-cuda", "engine-cuda fp32-tc", "ort-cuda", "ort-cuda-tuned", "torch-cuda-graph"
    }  # fmt: skip
    (card,) = page.cards.texts
    line = card.partition("\n")[0]
    assert line.startswith("lenet5-digits, fp32, forward pass: engine-cuda")
    assert "tf32" not in line
    assert {row.case.precision for row in page.table.source.rows} == {"fp32", "fp32-tc"}
    view = page.views["op-time"]
    assert view.finding == line.removeprefix("lenet5-digits, fp32, forward pass: ")
    assert view._finding.isHidden(), "it stands above the charts"
    choose(page, "tf32")
    assert labels(page) == {
        f"{name} tf32" for name in ("engine-cuda", "ort-cuda", "ort-cuda-tuned", "torch-cuda-graph")
    }
    assert page.views["speed"].chart.title.endswith(", tf32")
    assert {row.case.precision for row in page.table.source.rows} == {"tf32"}


def test_all_of_them_can_be_had_in_one(page):
    choose(page, "together")
    assert {label.partition(" ")[2] for label in labels(page)} == {"", "fp32-tc", "tf32", "fp16"}
    assert [text.split(", forward pass")[0] for text in page.cards.texts] == [
        f"lenet5-digits, {precision}" for precision in PRECISIONS
    ]
    assert page.views["op-time"]._finding.isHidden()
    assert len(page.table.source.rows) == len(page.state.measurements)


def test_what_is_selected_elsewhere_is_shown_in_its_precision(page):
    case = next(m.case for m in page.state.measurements if m.case.precision == "fp16")
    page.state.select(case)
    page.window().redraw.flush()
    assert page._precision.currentText() == "fp16"
    assert page.table.source.rows[page.table.currentIndex().row()].case == case
    assert page.views["op-time"].plots[""].selected == (f"{case.backend} fp16", float(case.batch))
    assert page._wanted == "", "nothing was chosen by the user"


def test_the_choice_is_kept(make_window):
    window = make_window("ok", begin=False)
    choose(shown(window, synthetic.rivals()), "fp16")
    window.close()
    page = shown(make_window("ok", begin=False), synthetic.rivals())
    assert page._precision.currentData() == "fp16"
    # Where it is not to be had, nothing else is hidden for it.
    few = synthetic.run(batches=(1, 4))
    assert not shown(page.window(), few).precision_choice.isVisible()
    assert labels(page) == set(synthetic.BACKENDS)


def test_a_run_is_divided_before_its_first_line(make_window):
    run, measured = synthetic.rivals()
    page = shown(make_window("ok", begin=False), (run, measured[:1]))
    assert page.precision_choice.isVisible()
    assert page._precision.currentData() == "fp32"


def test_what_is_shown_can_be_exported_by_its_name(page):
    drawn = {view.chart.name for view in page.views.values() if view.chart is not None}
    assert "lenet5-digits-op-time-fp32" in drawn
    exported = {chart.name for chart in page.exported().charts}
    assert drawn <= exported
    assert exported == {chart.name for chart in charts([synthetic.rivals()])}
    choose(page, "together")
    assert {view.chart.name for view in page.views.values() if view.chart is not None} <= exported


def test_another_run_is_laid_over_in_the_same_precision(page):
    from gui.sessions.comparison_session import Overlay

    page.state.lay_over(Overlay(Path("other"), *synthetic.rivals()))
    page.window().redraw.flush()
    ours = {label for label in labels(page) if "·" not in label}
    assert labels(page) - ours == {f"{label} · other" for label in ours}
    assert len(ours) == 5


@pytest.mark.parametrize(
    ("size", "panels", "columns"),
    [((1650, 300), 6, 6), ((1100, 620), 6, 4), ((1100, 300), 1, 1), ((2600, 300), 6, 6)],
)
def test_panels_are_never_squashed(qtbot, size, panels, columns):
    (chart,) = (
        found
        for found in charts([synthetic.run(batches=(1, 16, 1024), precisions=PRECISIONS)])
        if found.name.endswith("-breakdown")
    )
    view = ChartView(Theming("light"))
    qtbot.addWidget(view)
    view.resize(*size)
    view.show_chart(chart)
    view.show()
    QApplication.processEvents()
    assert len(view.plots) == panels
    assert len({plot.x() for plot in view.plots.values()}) == columns
    assert view.choice.isVisible() is (panels == 1)
    for plot in view.plots.values():
        assert plot.height() > 0.8 * PANEL_HEIGHT
        (low, high), axis = plot.getPlotItem().getViewBox().viewRange()[1], plot.y_axis
        (_, labelled), _ = axis.tickValues(low, high, axis.size().height())
        apart = min(above - below for below, above in pairwise(labelled))
        assert apart * axis.size().height() / (high - low) >= 10, "labels lie on each other"


def test_the_last_batch_size_has_its_label(qtbot):
    chart = next(
        found for found in charts([synthetic.run(batches=(1, 16, 10_000))]) if found.name.endswith("-op-time")
    )
    view = ChartView(Theming("light"))
    qtbot.addWidget(view)
    view.resize(330, 300)
    view.show_chart(chart)
    view.show()
    QApplication.processEvents()
    (plot,) = view.plots.values()
    (low, high), axis = plot.getPlotItem().getViewBox().viewRange()[0], plot.x_axis
    (_, labelled), _ = axis.tickValues(low, high, axis.size().width())
    pixel = (high - low) / axis.size().width()
    assert round(2 ** labelled[-1]) == 10_000
    assert labelled[-1] + axis.label_width(labelled[-1]) / 2 * pixel <= high + 1e-9, "else it is not drawn"
