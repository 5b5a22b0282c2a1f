"""What is selected is marked in every chart, failures stand at no value, and Esc leaves an enlarged chart."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from gui.plots.base import place
from tests.bench import synthetic
from tests.gui.pages.test_compare_page import FAILURES


def opened(made):
    made.resize(1500, 940)
    run, measurements = synthetic.run(models=("lenet5-digits",), failures=FAILURES)
    made.state.open(run, Path("a-run"), measurements)
    made.redraw.flush()
    return made


@pytest.fixture
def window(make_window):
    return opened(make_window("ok", begin=False))


@pytest.fixture(scope="module")
def shared(make_shared_window):
    return opened(make_shared_window())


def _halo(plot):
    return [(point.pos().x(), point.pos().y()) for point in plot._halo.points()]


def test_the_selected_case_is_marked_in_lines_and_bars(window):
    page = window.pages[0]
    case = next(
        m.case for m in window.state.measurements if m.case.backend == "ort-cpu" and m.case.batch == 4
    )
    assert not _halo(page.views["op-time"].plots[""])
    window.state.select(case)
    window.redraw.flush()
    plot = page.views["op-time"].plots[""]
    series = next(s for s in plot.panel.series if s.label == "ort-cpu")
    value = next(p.y for p in series.points if p.x == 4)
    ((x, y),) = _halo(plot)
    assert y == pytest.approx(place(value, True))
    drawn = plot._items["ort-cpu"].line.getData()
    assert (x, y) in [(pytest.approx(a), pytest.approx(b)) for a, b in zip(*drawn, strict=True)]
    bars = page.views["breakdown"]
    bars.choice.choose("ort-cpu")
    bars.choice.activated.emit(0)
    (frame,) = [plot._frame.opts["x"] for title, plot in bars.plots.items() if title == "ort-cpu"]
    assert list(frame) == [bars.plots["ort-cpu"]._places[4.0]]
    window.state.select(next(m.case for m in window.state.measurements if m.case.backend == "engine-cuda"))
    window.redraw.flush()
    assert not list(bars.plots["ort-cpu"]._frame.opts["x"])


def test_failures_have_one_look_and_a_lane_below_every_value(same_window):
    plot = same_window.pages[0].views["op-time"].plots[""]
    failed = same_window.theming.theme.failed.lower()
    marks = {label: items.marks for label, items in plot._items.items() if len(items.marks.data)}
    assert set(marks) == {"engine-cuda", "engine-cpu"}
    pens = {item.opts["pen"].color().name() for item in marks.values()}
    assert pens == {failed}
    assert {item.opts["symbol"] for item in marks.values()} == {"x"}
    (heights,) = {tuple(item.getData()[1]) for item in marks.values()}
    top = plot._failed_band.getRegion()[1]
    assert heights[0] < top
    ends = [
        value
        for s in plot.panel.series
        for p in s.points
        for value in (place(p.y, True), place(p.low if p.low is not None else p.y, True))
    ]
    assert min(ends) > top, "no value stands in the lane of those that have none"


def test_intervals_of_two_lines_do_not_lie_on_each_other(same_window):
    plot = same_window.pages[0].views["op-time"].plots[""]
    places = {label: tuple(items.bars.opts["x"]) for label, items in plot._items.items()}
    first = [xs[0] for xs in places.values()]
    assert len(set(first)) == len(first)
    assert max(first) - min(first) < 0.8


def test_escape_leaves_an_enlarged_chart(window, qtbot):
    views = window.pages[0].views
    with qtbot.waitActive(window):
        window.activateWindow()
    QTest.mouseClick(views["speed"]._expand, Qt.MouseButton.LeftButton)
    assert not views["op-time"].isVisible()
    window.tell("A message of the window's.")
    QTest.keyClick(window, Qt.Key.Key_Escape)
    assert window.banner.text, "one thing at a time"
    qtbot.waitUntil(views["op-time"].isVisible)
    # Answers that are all alike are a badge.
    assert all(view.isVisible() for name, view in views.items() if name != "accuracy")
