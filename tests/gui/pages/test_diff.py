"""Two runs held against each other in the window, a baseline, and what is said of a run that has ended."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QItemSelectionModel, QPoint, Qt
from PySide6.QtWidgets import QApplication

from bench.results import baseline
from bench.views.diff.between import between
from bench.views.diff.records import Difference
from bench.views.sentences import diff_sentences as sentences
from gui.menus.diff import SHOW
from gui.pages.runs.diff_window import LEAST_HEIGHT, MOST_LINES, DiffWindow
from gui.pages.runs.several_window import SeveralWindow
from gui.shell import library
from gui.shell.library import Library
from tests.bench.profile.test_waterfall import copy, saved, slower_rung
from tests.bench.profile.test_waterfall import ours as profiled
from tests.bench.views.diff.runs import ours, run
from tests.gui.pages.test_runs_kept import press
from tests.gui.pages.test_runs_page import settle, show_runs
from tests.gui.sessions.test_session import JOB


@pytest.fixture
def runs(tmp_path):
    folder = tmp_path / "runs"
    run(folder / "before")
    run(folder / "after", 3, ours(4, 1.5), environment={"driver": "590.1"})
    saved(folder / "profile", profiled())
    saved(folder / "slower", copy(slower_rung(profiled())))
    return folder


def choose(page, *names):
    """Ctrl+click each."""
    flags = QItemSelectionModel.SelectionFlag
    table = page.table
    table.clearSelection()
    for place, row in enumerate(table.source.rows):
        if row.path.name in names:
            table.selectionModel().select(table.source.index(place, 0), flags.Select | flags.Rows)


def shown(qtbot, window) -> DiffWindow:
    settle(qtbot, window)
    return window.findChildren(DiffWindow)[-1]


def test_two_runs_are_chosen_and_their_difference_is_shown(qtbot, make_window, runs):
    window = make_window("mute", begin=False)
    page = show_runs(qtbot, window)
    choose(page, "before")
    assert not page.actions_of["diff"].isEnabled(), "there is no baseline"
    choose(page, "before", "profile")
    assert not page.actions_of["diff"].isEnabled(), "they are of two kinds"
    choose(page, "before", "after")
    assert not page.actions_of["delete"].isEnabled(), "what is done to one is done to one"
    press(qtbot, page, page.actions_of["diff"])
    found = shown(qtbot, window)
    diff = found.diff
    assert {diff.a.path, diff.b.path} == {runs / "before", runs / "after"}
    assert found.verdict.text() == sentences.verdict(diff)
    assert "driver: " in found.differences.text()
    said_first = found.differences.mapTo(found, QPoint()).y()
    assert said_first < found.verdict.mapTo(found, QPoint()).y(), "what else differs is said first"
    rows = {(row.pair.who, row.pair.batch): row for row in found.table.source.rows}
    assert rows["engine-cpu", 4].verdict in ("SLOWER", "FASTER")
    assert found.table.ink(
        rows["engine-cpu", 4], next(c for c in found.table.source.columns if c.name == "ratio")
    )
    window.findChild(Library).refresh()
    settle(qtbot, window)
    assert len(page.table.chosen_runs) == 2, "both stay chosen when the list is read anew"


def test_much_that_differs_leaves_the_cases_their_room(qtbot, make_window, runs):
    window = make_window("mute", begin=False)
    diff = between(runs / "before", runs / "after")
    many = tuple(Difference("configuration", "x" * 90, "y" * 90, f"case {n}") for n in range(40))
    found = DiffWindow(replace(diff, differences=many), window.theming, window)
    qtbot.addWidget(found)
    found.show()
    QApplication.processEvents()
    text = found.differences
    assert found.table.height() >= LEAST_HEIGHT
    assert text.height() >= text.heightForWidth(text.width()), "whole, where it is scrolled to its end"
    assert text.parentWidget().height() <= MOST_LINES * text.fontMetrics().lineSpacing()
    few = DiffWindow(replace(diff, differences=many[:1]), window.theming, window)
    qtbot.addWidget(few)
    few.show()
    QApplication.processEvents()
    assert few.differences.parentWidget().height() == few.differences.height() < text.height()


def test_a_baseline_is_set_marked_used_and_let_go(qtbot, make_window, runs, monkeypatch):
    window = make_window("mute", begin=False)
    page = show_runs(qtbot, window)
    choose(page, "before")
    press(qtbot, page, page.actions_of["baseline"])
    settle(qtbot, window)
    assert "before is now what every comparison of lenet5-digits is held against." in window.banner.text
    assert [path for path, _ in baseline.read(runs)] == [runs / "before"]
    names = {
        row.path.name: page.table.model().index(place, 0).data()
        for place, row in enumerate(page.table.source.rows)
    }
    assert names["before"].endswith("(baseline)")
    choose(page, "after")
    press(qtbot, page, page.actions_of["diff"])
    found = shown(qtbot, window)
    assert (found.diff.a.path.name, found.diff.b.path.name) == ("before", "after")
    choose(page, "before")
    assert not page.actions_of["diff"].isEnabled()
    assert page.actions_of["baseline"].text() == "No more &baseline"
    press(qtbot, page, page.actions_of["baseline"])
    settle(qtbot, window)
    assert baseline.read(runs) == ()
    baseline.keep(runs, runs / "before")
    monkeypatch.setattr(library.QFile, "moveToTrash", lambda *_: False)
    library.destroy(runs / "before", runs)
    assert baseline.read(runs) == (), "what is deleted is no baseline"


def test_profiles_show_their_waterfall(qtbot, make_window, runs):
    window = make_window("mute", begin=False)
    window.findChild(Library)  # the window's own way to it is the page's, tested above
    diff = between(runs / "profile", runs / "slower")
    found = DiffWindow(diff, window.theming, window)
    qtbot.addWidget(found)
    found.show()
    assert found.chart.chart.name == "diff-waterfall"
    assert {row.label for row in found.steps.source.rows[:2]} == {"conv2", "copy in"}
    found.chart.expanded.emit(True)
    assert not found.steps.isVisible()
    found.chart.expanded.emit(False)
    assert found.steps.isVisible()
    (plot,) = found.chart.plots.values()
    lift = next(c for c in found.chart.chart.categories if not c.colour)
    assert plot._stacks[lift.key].opts["brush"].style() == Qt.BrushStyle.NoBrush, (
        "what lifts a bar is not seen"
    )


def test_a_run_that_has_ended_is_held_against_the_baseline(qtbot, make_window, run_to_end, tmp_path):
    window = make_window("ok", "ok", "ok")
    menu = window.menu_actions.by_name["diff-baseline"]
    menu.trigger()
    assert "There is no run to hold against a baseline" in window.banner.text
    window.banner.dismiss()
    run_to_end(window, JOB)
    settle(qtbot, window)
    assert not window.banner.text
    menu.trigger()
    settle(qtbot, window)
    assert "has no baseline; the Runs page sets one" in window.banner.text
    window.banner.dismiss()
    first = window.state.folder
    baseline.keep(tmp_path / "runs", first)
    run_to_end(window, JOB)
    settle(qtbot, window)
    assert window.state.folder != first
    assert window.banner.text.startswith(f"Against the baseline {first.name}: ")
    assert window.banner.button.text() == SHOW
    qtbot.mouseClick(window.banner.button, Qt.MouseButton.LeftButton)
    assert shown(qtbot, window).diff.a.path == first
    menu.trigger()
    settle(qtbot, window)
    assert [found.diff.a.path for found in window.findChildren(DiffWindow)] == [first, first]


def test_several_runs_stand_side_by_side_beside_the_baseline_with_their_charts(qtbot, make_window, runs):
    run(runs / "third")
    window = make_window("mute", begin=False)
    baseline.keep(runs, runs / "after")
    page = show_runs(qtbot, window)
    choose(page, "before", "after", "profile")
    assert not page.actions_of["diff"].isEnabled(), "of two kinds"
    choose(page, "before", "after", "third")
    press(qtbot, page, page.actions_of["diff"])
    settle(qtbot, window)
    qtbot.waitUntil(lambda: bool(window.findChildren(SeveralWindow)))
    found = window.findChildren(SeveralWindow)[-1]
    assert found.found.base.path == runs / "after", "the one that is a baseline"
    assert {other.path.name for other in found.found.others} == {"before", "third"}
    columns = found.table.source.columns
    assert columns[-3].heading == "after (baseline)"
    row = next(row for row in found.table.source.rows if (row.pair.who, row.pair.batch) == ("engine-cpu", 4))
    told = [column.words(row) for column in columns[-2:]]
    assert all("faster" in words for words in told), "the baseline is the slow one"
    assert found.table.ink(row, columns[-1]) is not None
    assert found.table.ink(row, columns[-3]) is None

    found.tabs.setCurrentIndex(1)
    charts = found.tabs.currentWidget()
    qtbot.waitUntil(lambda: charts.views["op-time"].chart is not None)
    labels = {s.label for panel in charts.views["op-time"].chart.panels for s in panel.series}
    assert {"engine-cpu", "engine-cpu · before", "engine-cpu · third"} <= labels
