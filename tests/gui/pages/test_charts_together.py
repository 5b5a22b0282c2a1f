"""The charts of Compare are read together: zoomed and reset together, with one crosshair; the lines of two
runs are named at their ends, and a switch says which scale is shown."""

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication

from gui.base.theme import Theming
from gui.plots.chart import ChartGrid, ChartView
from gui.sessions.comparison_session import Overlay, RunState
from tests.bench import synthetic


@pytest.fixture
def state():
    made = RunState()
    run, measured = synthetic.run(backends=("engine-cpu", "ort-cpu"), batches=(1, 4, 16, 64))
    made.open(run, measurements=measured)
    while not made.up_to_date:
        made.work(1.0)
    return made


def views(qtbot, state):
    theming = Theming("light")
    charts = {chart.name: chart for chart in state.charts(state.models[0])}
    shown = [ChartView(theming), ChartView(theming)]
    grid = ChartGrid(shown)
    qtbot.addWidget(grid)
    grid.resize(1100, 420)
    grid.show()
    for view, name in zip(shown, ("op-time", "speed"), strict=True):
        view.show_chart(next(chart for known, chart in charts.items() if known.endswith(name)))
    QApplication.processEvents()
    return grid, *shown


def wheel(plot, turns):
    at = plot.viewport().rect().center()
    event = QWheelEvent(
        QPointF(at), QPointF(plot.viewport().mapToGlobal(at)), QPoint(), QPoint(0, 120 * turns),
        Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(plot.viewport(), event)


def across(plot):
    return plot.box.viewRange()[0]


def test_zoom_reset_and_crosshair_go_through_all_charts(qtbot, state):
    _grid, one, other = views(qtbot, state)
    time, speed = one.lines()[0], other.lines()[0]
    before = across(time), across(speed)
    wheel(time, 3)
    assert across(time) != before[0]
    assert across(speed) == pytest.approx(across(time), abs=1e-6)
    other.set_log("x", False)  # the same sizes on another scale
    wheel(time, 1)
    assert across(speed) == pytest.approx([2**end for end in across(time)], rel=1e-6)
    time.reset_view()
    time.moved.emit()
    assert across(time) == before[0]
    other.set_log("x", True)
    assert across(speed) == before[1]

    time.read_out(2.0)  # a batch of 4
    assert time.cross.isVisible()
    assert speed.cross.isVisible()
    assert speed.cross.value() == 2.0
    assert not speed.readout.isVisible(), "one tooltip is enough"
    time.read_out(None)
    assert not speed.cross.isVisible()

    other.set_log("x", False)
    for _ in range(30):  # as far away as one likes: beyond the largest number there is
        wheel(time, -8)
    assert across(time)[1] > 2000
    assert not time.grab().isNull()
    assert not speed.grab().isNull()


def test_a_switch_says_its_scale_and_lines_of_two_runs_are_named_at_their_ends(qtbot, state):
    _grid, one, _ = views(qtbot, state)
    assert [one._scale_x.text(), one._scale_y.text()] == ["x: log", "y: log"]
    one._scale_y.click()
    assert one._scale_y.text() == "y: linear"
    assert one.lines()[0].logs == (True, False)
    assert not one.lines()[0].names.texts, "the legend names them"

    run, measured = synthetic.run(backends=("engine-cpu", "ort-cpu"), batches=(1, 4, 16, 64))

    overlay = Overlay(Path("second"), run, measured)
    while overlay.step():
        pass
    state.lay_over(overlay)
    one.show_chart(next(c for c in state.charts(state.models[0]) if c.name.endswith("op-time")))
    QApplication.processEvents()
    assert {"engine-cpu", "ort-cpu"} & set(one.lines()[0].names.texts)


def test_a_chart_keeps_all_the_room_when_others_come_and_gives_it_back_when_it_goes(qtbot, state):
    grid, one, other = views(qtbot, state)
    one._expand.click()
    assert (one.isVisible(), other.isVisible()) == (True, False)
    grid.hold([one, other])
    assert (one.isVisible(), other.isVisible()) == (True, False)
    grid.hold([other])
    assert (one.isVisible(), other.isVisible()) == (False, True)
    grid.hold([one, other])
    assert (one.isVisible(), other.isVisible()) == (True, True)
    one._expand.click()
    assert not other.isVisible(), "one click enlarges it again"
