"""The timeline by itself: tracks, axis, what is drawn of many, and the hands of the user on it."""

import itertools

import msgspec
import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QWheelEvent
from PySide6.QtWidgets import QApplication

from bench.results.events import ApiCall, HostSpan, Mark
from bench.views.charts.profile_charts import PARTS
from gui.base.theme import Theming
from gui.pages.timeline import timeline_view
from gui.pages.timeline.timeline_view import TICKS, TITLES, TimeAxis, TimelineView, colour, facts
from gui.sessions import profile_session
from gui.sessions.profile_session import FIRST_PASS, PROCESS, STEADY
from tests.gui.pages import profiled

US = 1_000
MIB = 1 << 20


def group(slow=1.0, backend="engine-cuda", **more):
    events = profiled.gpu_events(slow, **more)
    return profile_session.group(profiled.measured(backend, events), events, f"{backend}, batch 1")


@pytest.fixture
def view(qtbot):
    made = TimelineView(Theming("light"))
    qtbot.addWidget(made)
    made.resize(TITLES + 800, 420)
    with qtbot.waitActive(made):
        made.show()
        made.activateWindow()
    made.show_groups([group(), group(1.5, "ort-cuda", begin=450 * profiled.MS)])
    return made


def place(view, event):
    """Where the middle of an event lies in the viewport."""
    found = view.place_of(event)
    zero = view.zero_of(event)
    x = TITLES + view.axis.x((event.start_ns + event.end_ns) / 2 - zero)
    return QPointF(x, TICKS + 1 + found.top + found.height / 2 - view.verticalScrollBar().value())


def kernels(view, group=0):
    return (
        next(track for track in view.groups[group].tracks if track.title.startswith("kernels")).rows[0].events
    )


def wheel(view, at, turn, modifiers=Qt.KeyboardModifier.NoModifier):
    event = QWheelEvent(
        at, view.viewport().mapToGlobal(at), QPoint(), QPoint(0, turn), Qt.MouseButton.NoButton, modifiers,
        Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(view.viewport(), event)


# ----------------------------------------------------------------------------------------------------- tracks


def test_lanes_are_the_host_its_threads_streams_and_ways_of_copying():
    made = group()
    assert [track.title for track in made.tracks] == [
        "cold start", "passes", "CUDA calls, thread 11", "kernels, stream 7", "copies DtoH", "copies HtoD",
    ]  # fmt: skip
    passes = made.tracks[1]
    assert [len(row.events) for row in passes.rows] == [3, 3]  # the stage lies in its pass
    assert [span.title for span in made.spans] == [
        "cold start", "all profiled passes", "profiled pass 1", "profiled pass 2", "profiled pass 3",
    ]  # fmt: skip
    assert made.anchor(PROCESS) == 0
    assert made.anchor(FIRST_PASS) == made.anchor(STEADY) == 300 * profiled.MS


def test_staging_and_onnx_runtimes_runs_have_lanes_in_the_colours_of_their_parts(qtbot):
    events = profiled.gpu_events()
    spans = (("fill page-locked memory", "staging", 2, 6, 4 * MIB), ("ONNX Runtime's run", "run", 6, 30, 0))
    host = tuple(
        HostSpan(name=name, kind=kind, start_ns=low * US, end_ns=high * US, thread=11, nbytes=nbytes)
        for name, kind, low, high, nbytes in spans
    )
    events = msgspec.structs.replace(events, intervals=host)
    made = profile_session.group(profiled.measured("ort-cuda", events), events, "ort-cuda")
    tracks = {track.title: track for track in made.tracks}
    assert tracks["staging, thread 11"].keys == ("staging",)
    assert tracks["runs, thread 11, ORT"].keys == ("ort",)
    light = Theming("light").theme
    assert colour("staging", light) == QColor(PARTS["staging"])
    said = dict(facts(host[0], 0))
    assert said["bytes"].endswith("(4.00 MiB)")
    assert said["rate"] == f"{4 * MIB / 4000:,.2f} GB/s"
    assert "rate" not in dict(facts(host[1], 0))


def test_a_pass_says_how_long_its_thread_had_a_core():
    made = Mark(name="pass", kind="window", start_ns=0, end_ns=20 * US, run=0)
    assert "its thread had a core for" not in dict(facts(made, 0))
    told = facts(msgspec.structs.replace(made, cpu_ns=15 * US), 0)
    assert ("its thread had a core for", "15.00 µs") in told


def test_steps_of_a_cpu_have_a_lane():
    events = profiled.cpu_events()
    made = profile_session.group(profiled.measured("engine-cpu", events), events, "engine-cpu")
    assert [track.title for track in made.tracks] == ["cold start", "passes", "steps, thread 1"]


def test_nothing_that_overlaps_shares_a_row_but_the_last():
    calls = [
        ApiCall(name="cuX", domain="driver", thread=1, start_ns=i, end_ns=100 - i) for i in range(8)
    ]  # fmt: skip
    made = profile_session.track("calls", calls)
    assert [len(row.events) for row in made.rows] == [1, 1, 1, 1, 4]
    assert made.count == 8
    assert profile_session.track("nothing", []) is None


# ------------------------------------------------------------------------------------------------------ axis


def test_the_axis_zooms_about_a_place_and_keeps_within_what_there_is():
    axis = TimeAxis()
    axis.width = 1000.0
    axis.bound(0, 1_000_000)
    axis.fit()
    before = axis.time(250)
    axis.zoom(10, 250)
    assert axis.time(250) == pytest.approx(before)
    assert axis.end - axis.start == pytest.approx(104_000)
    axis.pan(1e9)
    assert axis.start == pytest.approx(axis.low)
    axis.zoom(1e12, 500)
    assert axis.end - axis.start == pytest.approx(timeline_view.LEAST_NS)
    axis.zoom(1e-12, 500)
    assert (axis.start, axis.end) == (axis.low, axis.high)


@pytest.mark.parametrize("length", [60, 1e3, 7.3e4, 2.2e6, 9e9])
def test_ticks_are_round_and_have_room(length):
    axis = TimeAxis()
    axis.width = 1000.0
    axis.bound(0, length)
    axis.fit()
    ticks = axis.ticks(90)
    assert 4 <= len(ticks) <= 12
    assert all(b.x - a.x >= 90 for a, b in itertools.pairwise(ticks))
    assert len({tick.text for tick in ticks}) == len(ticks)
    assert len({tick.text.split()[-1] for tick in ticks}) == 1  # one unit


def test_what_is_too_small_to_be_seen_alone_is_seen_by_how_dense_it_is():
    starts = np.arange(0, 1_000_000, 100)
    row = profile_session.TrackRow((), starts, starts + 25, starts + 25, np.zeros(len(starts), np.int64))
    axis = TimeAxis()
    axis.width = 100.0
    axis.bound(0, 1_000_000)
    axis.fit()
    seen = timeline_view.drawn(row, 1, axis, 0)
    assert len(seen.wide) == 0
    inner = seen.cover[5:-5]
    assert inner.mean() == pytest.approx(0.25, rel=0.05)
    axis.show(0, 1000)
    seen = timeline_view.drawn(row, 1, axis, 0)
    assert list(seen.wide) == list(range(10))
    assert seen.x1[3] - seen.x0[3] == pytest.approx(2.5, rel=0.1)


# ------------------------------------------------------------------------------------------------ by the hand


def test_both_cases_lie_on_one_axis_from_the_moment_chosen(view):
    first, other = kernels(view)[0], kernels(view, 1)[0]
    assert place(view, first).x() == pytest.approx(place(view, other).x(), abs=2)
    view.show_groups(view.groups, PROCESS)
    assert place(view, other).x() > place(view, first).x() + 50


def test_pointing_tells_what_is_there(qtbot, view):
    view.look_at(view.groups[0].spans[2], view.groups[0])
    copy = next(track for track in view.groups[0].tracks if track.title == "copies HtoD").rows[0].events[0]
    qtbot.mouseMove(view.viewport(), QPoint(TITLES + 5, 200))
    # On a screen the mouse arrives when the server says so.
    qtbot.mouseMove(view.viewport(), place(view, copy).toPoint())
    qtbot.waitUntil(lambda: view.readout.isVisible() and "memcpy HtoD" in view.readout.text())
    for words in ("10.00 µs", "100,000", "10.00 GB/s", "pinned to device"):
        assert words in view.readout.text()
    qtbot.mouseMove(view.viewport(), place(view, kernels(view)[0]).toPoint())
    qtbot.waitUntil(lambda: "kernel::conv" in view.readout.text())
    for words in ("16 × 6 × 1", "256 × 1 × 1", "40 a thread", "2.00 KiB a block", "conv1"):
        assert words in view.readout.text()
    qtbot.mouseMove(view.viewport(), QPoint(TITLES + 5, TICKS + 5))
    qtbot.waitUntil(lambda: not view.readout.isVisible())


def test_a_click_selects_and_a_double_click_shows_it_all(qtbot, view):
    view.look_at(view.groups[0].spans[2], view.groups[0])
    kernel = kernels(view)[2]
    with qtbot.waitSignal(view.picked) as caught:
        qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=place(view, kernel).toPoint())
    assert caught.args[0] is kernel
    qtbot.keyClick(view, Qt.Key.Key_N)
    assert view.selected is kernels(view)[3]
    qtbot.keyClick(view, Qt.Key.Key_P)
    assert view.selected is kernel
    qtbot.keyClick(view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert (
        QApplication.clipboard().text().startswith("void kernel::conv<float>(float const*, float*): time 70")
    )
    view.copy_picture()
    assert QApplication.clipboard().image().width() == view.viewport().width()
    qtbot.mouseDClick(view.viewport(), Qt.MouseButton.LeftButton, pos=place(view, kernel).toPoint())
    assert kernel.time_ns / (view.axis.end - view.axis.start) == pytest.approx(1 / 1.16)
    qtbot.keyClick(view, Qt.Key.Key_Escape)
    assert view.selected is None
    qtbot.keyClick(view, Qt.Key.Key_0)
    assert (view.axis.start, view.axis.end) == (view.axis.low, view.axis.high)
    wide = view.axis.end - view.axis.start
    qtbot.keyClick(view, Qt.Key.Key_W)
    assert view.axis.end - view.axis.start == pytest.approx(wide / 1.5)
    start = view.axis.start
    qtbot.keyClick(view, Qt.Key.Key_D)
    assert view.axis.start > start
    qtbot.keyClick(view, Qt.Key.Key_A)
    assert view.axis.start == pytest.approx(start)
    qtbot.keyClick(view, Qt.Key.Key_S)
    assert (view.axis.start, view.axis.end) == (view.axis.low, view.axis.high)


def test_what_is_selected_is_joined_to_the_call_that_started_it(view):
    kernel = kernels(view)[2]
    view.select(kernel)
    ((call, place),) = view._partners
    assert (call.name, call.correlation) == ("cudaLaunchKernel_v7000", kernel.correlation)
    assert place.group is view.groups[0]
    view.select(call)
    assert [event for event, _ in view._partners] == [kernel]
    view.grab()
    view.select(view.groups[0].tracks[0].rows[0].events[0])
    assert view._partners == []


def test_dragging_measures_and_takes_the_edges_that_are_near(qtbot, view):
    view.look_at(view.groups[0].spans[2], view.groups[0])
    kernel = kernels(view)[0]
    middle, zero = place(view, kernel), view.zero_of(kernel)
    ends = [TITLES + view.axis.x(t - zero) for t in (kernel.start_ns, kernel.end_ns)]
    viewport = view.viewport()
    start = QPoint(round(ends[0]) + 2, round(middle.y()))
    qtbot.mousePress(viewport, Qt.MouseButton.LeftButton, pos=start)
    with qtbot.waitSignal(view.measured) as caught:
        qtbot.mouseMove(viewport, QPoint(round(ends[1]) - 2, round(middle.y())))
    qtbot.mouseRelease(viewport, Qt.MouseButton.LeftButton, pos=QPoint(round(ends[1]) - 2, round(middle.y())))
    low, high = caught.args[0]
    assert high - low == kernel.time_ns
    assert timeline_view.length_text(high - low) == "40.00 µs (25.0 k/s)"
    qtbot.keyClick(view, Qt.Key.Key_Z)
    assert (view.axis.start, view.axis.end) == pytest.approx((low, high))
    qtbot.keyClick(view, Qt.Key.Key_Escape)
    assert view.measure is None


def test_the_wheel_zooms_where_the_pointer_is_and_moving_moves(qtbot, view):
    view.look_at(view.groups[0].spans[1], view.groups[0])
    at = QPointF(TITLES + 300, 100)
    before, length = view.axis.time(300), view.axis.end - view.axis.start
    wheel(view, at, 240)
    assert view.axis.time(300) == pytest.approx(before)
    assert view.axis.end - view.axis.start < 0.8 * length
    start = view.axis.start
    wheel(view, at, -240, Qt.KeyboardModifier.ShiftModifier)
    assert view.axis.start > start
    start = view.axis.start
    qtbot.mousePress(view.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(TITLES + 300, 10))
    qtbot.mouseMove(view.viewport(), QPoint(TITLES + 400, 10))
    qtbot.mouseMove(view.viewport(), QPoint(TITLES + 420, 10))
    qtbot.waitUntil(lambda: view.axis.start < start)
    qtbot.mouseRelease(view.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(TITLES + 420, 10))
    assert view.measure is None


def test_it_is_painted_in_the_colours_of_the_parts_in_both_themes(view):
    view.look_at(view.groups[0].spans[2], view.groups[0])
    kernel = kernels(view)[0]
    for choice in ("light", "dark"):
        view.theming.choose(choice)
        at = place(view, kernel).toPoint()
        seen = view.viewport().grab().toImage().pixelColor(at.x() + 20, at.y() - 6)
        assert seen.name() == colour("op:Conv", view.theming.theme).name()
    assert colour("op:Conv", view.theming.theme) != QColor("#332288")  # that would sink into the dark paper


def test_tens_of_thousands_of_intervals_are_drawn_from_pixels_alone(view, monkeypatch):
    made = group(passes=2_000, kernels=4)
    assert sum(track.count for track in made.tracks) > 25_000
    view.show_groups([made])
    counted = []
    original = timeline_view.drawn

    def counting(*given):
        found = original(*given)
        counted.append(len(found.wide))
        return found

    monkeypatch.setattr("gui.pages.timeline.timeline_view.drawn", counting)
    for factor in (1, 10, 100, 1000):
        view.axis.fit()
        view.axis.zoom(factor, 400)
        view.viewport().grab()
        assert sum(counted) <= 800 / timeline_view.SEEN * 6 + 50
        counted.clear()


def test_the_facts_count_from_the_moment_that_is_zero():
    made = group()
    kernel = next(track for track in made.tracks if track.title.startswith("kernels")).rows[0].events[0]
    assert ("starts at", "0.0200 ms") in facts(kernel, made.anchor(STEADY))
    assert ("operator", "Conv") in facts(kernel, 0)


def test_rows_grow_with_the_text(view):
    event = kernels(view)[0]
    before = view.place_of(event)
    theming = Theming("light")
    theming.changed.connect(lambda: view.show_groups(view.groups))
    try:
        theming.enlarge(200)
        grown = view.place_of(event)
        assert grown.height == 2 * before.height >= view.fontMetrics().height()
        assert grown.top > 1.5 * before.top
    finally:
        theming.enlarge(100)
    assert view.place_of(event) == before
