"""From a kernel on the timeline to its layer, its rung and its row, and from each of them to the others."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from bench.results.ladder_records import REFERENCE
from bench.views.sentences.profile_findings import NODES
from gui.pages.page import Spot
from gui.pages.timeline import nodes_of
from gui.shell.library import Library
from tests.gui.pages.test_runs_page import settle

RECORDED = Path(__file__).parents[2] / "bench" / "results" / "recorded"


def page_of(window, title):
    return next(page for page in window.pages if page.title == title)


def rest(qtbot, window, page):
    """Until the page has what it waits for and is drawn."""
    for _ in range(3):
        settle(qtbot, window)
        qtbot.waitUntil(lambda: page.at_rest)
        window.redraw.flush()


@pytest.fixture
def window(qtbot, make_window, tmp_path):
    """A comparison and a profile of one model are open."""
    for kind in ("comparison", "profile"):
        shutil.copytree(RECORDED / kind, tmp_path / "runs" / kind)
    window = make_window("mute", begin=False)
    for kind in ("comparison", "profile"):
        window.findChild(Library).open(tmp_path / "runs" / kind)
        rest(qtbot, window, page_of(window, "Timeline"))
    assert window.page.title == "Timeline"
    return window


def kernel(page, node):
    """A step of the engine in a profiled pass, and its middle in the viewport, in view."""
    (read,) = [r for c in page.session.state.fine if (r := page.session.state.read(c)) is not None]
    event = next(e for e in read.events.intervals if node in e.nodes and e.run == 0)
    return event


def go(qtbot, window, title):
    """By the keys that the menu names."""
    action = window.menu_actions.by_name[f"link-{title.lower()}"]
    assert action.shortcut().toString().startswith("Ctrl+Alt+")
    action.trigger()
    rest(qtbot, window, page_of(window, title))


@pytest.mark.sampled(2, "links")
def test_a_kernel_on_the_timeline_leads_to_its_row_its_layer_and_its_rung(qtbot, window):
    timeline = page_of(window, "Timeline")
    assert not timeline._go.isEnabled()
    event = kernel(timeline, "conv2")
    timeline.view.select(event)
    rest(qtbot, window, timeline)
    (row,) = timeline.details.tables.activities.selectionModel().selectedRows()
    line = timeline.details.tables.activities.source.rows[row.row()]
    assert event.rung in str(line["name"]), "its row is marked in the table"
    assert timeline._go.isEnabled()
    assert {action.text() for action in timeline._go.menu().actions()} == {
        "Show in La&yers",
        "Open in &Ladder",
    }

    go(qtbot, window, "Layers")
    assert window.page.title == "Layers"
    layer = window.page._layer()
    assert "conv2" in layer.nodes
    assert window.state.case.backend == "engine-cpu"
    assert window.page.graph.selected == layer.output

    window.tabs.setCurrentWidget(timeline)
    go(qtbot, window, "Ladder")
    ladder = window.page
    assert ladder.session.state.ladder.job.node == "conv2"
    assert ladder.session.state.question.batch == timeline.batch
    assert ladder._key == event.rung
    assert ladder.reader.title.text().partition(" ")[2].startswith(event.rung)


@pytest.mark.sampled(2, "links")
def test_a_line_of_the_tables_and_of_the_diagnosis_leads_on_by_its_menu(qtbot, window):
    timeline = page_of(window, "Timeline")
    details = timeline.details
    details.setCurrentIndex(2)
    rest(qtbot, window, timeline)
    table = details.findings
    place = next(i for i, row in enumerate(table.source.rows) if "conv2" in row[NODES])
    at = table.visualRect(table.source.index(place, 0)).center()
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert "conv2" in timeline.view.selected.nodes
    assert [a.text() for a in table.actions() if a in timeline.links] == [
        "Show in La&yers",
        "Open in &Ladder",
    ]
    details.setCurrentIndex(0)
    table = details.tables.activities
    table.setCurrentIndex(table.source.index(0, 0))
    assert timeline.view.selected.op_type in str(table.source.rows[0]["name"])
    next(a for a in table.actions() if "Ladder" in a.text()).trigger()
    rest(qtbot, window, page_of(window, "Ladder"))
    assert window.page.session.state.ladder.job.node in timeline.view.selected.nodes


@pytest.mark.sampled(2, "links")
def test_a_layer_leads_to_its_kernel_and_a_reference_s_to_the_ladder_s_reference(qtbot, window):
    timeline, layers = page_of(window, "Timeline"), page_of(window, "Layers")
    window.tabs.setCurrentWidget(layers)
    rest(qtbot, window, layers)
    measurement = next(m for m in window.state.measurements if m.case.backend == "ort-cpu" and m.layers)
    layer = next(layer for layer in measurement.layers if "conv1" in layer.nodes)
    window.state.select(measurement.case, layer.output)
    window.redraw.flush()
    assert layers.spot().backend == "ort-cpu"
    go(qtbot, window, "Timeline")
    assert window.page is timeline
    assert "conv1" in timeline.view.selected.nodes
    assert timeline.view.selected.run is not None, "of a profiled pass, not of warming up"
    assert timeline.spot().nodes == timeline.view.selected.nodes

    window.tabs.setCurrentWidget(layers)
    go(qtbot, window, "Ladder")
    assert window.page.session.state.ladder.job.node == "conv1"
    assert window.page._key == REFERENCE


@pytest.mark.sampled(2, "links")
def test_a_rung_leads_to_its_layer_and_its_kernel(qtbot, window):
    ladder, timeline = page_of(window, "Ladder"), page_of(window, "Timeline")
    window.ladders._begin()
    assert not ladder.show_spot(Spot("lenet5-digits", ("conv2",), "engine-cpu", 4))
    window.tabs.setCurrentWidget(ladder)
    rest(qtbot, window, ladder)
    assert "conv2" in ladder.spot().nodes
    go(qtbot, window, "Layers")
    assert "conv2" in window.page._layer().nodes
    window.tabs.setCurrentWidget(ladder)
    go(qtbot, window, "Timeline")
    assert nodes_of(timeline.view.selected) & set(ladder.spot().nodes)


def test_what_is_not_there_is_told_and_the_page_stays(qtbot, make_window, tmp_path):
    shutil.copytree(RECORDED / "comparison", tmp_path / "runs" / "comparison")
    window = make_window("mute", begin=False)
    window.findChild(Library).open(tmp_path / "runs" / "comparison")
    layers = page_of(window, "Layers")
    window.tabs.setCurrentWidget(layers)
    rest(qtbot, window, layers)
    go(qtbot, window, "Timeline")
    assert "Select a layer" in window.banner.text
    window.banner.dismiss()
    measurement = next(m for m in window.state.measurements if m.layers)
    window.state.select(measurement.case, next(x.output for x in measurement.layers if x.nodes))
    window.redraw.flush()
    go(qtbot, window, "Timeline")
    assert "No profile of lenet5-digits is open" in window.banner.text
    assert window.page is layers
    assert "no layers of alexnet" in layers.show_spot(Spot("alexnet", ("conv1",)))
    assert "holds nothing" in layers.show_spot(Spot("lenet5-digits", ("nothing",)))


def test_a_profile_is_of_the_kernels_chosen_in_the_form(qtbot, window, monkeypatch):
    timeline = page_of(window, "Timeline")
    rungs = {"lenet5-digits:conv1": "cpu/direct", "alexnet-digits:conv1": "cpu/im2col", "fc": "blocked"}
    window.form.rungs.set_chosen(rungs, ("/my/kernels",), window.form.models.keys)
    window.form.rungs.chosen.emit()
    window.redraw.flush()
    timeline.controls.choose_model("lenet5-digits")
    monkeypatch.setattr(type(timeline.controls), "chosen", ("engine-cpu",))
    job = timeline.controls.job()
    assert job.rungs == {"lenet5-digits:conv1": "cpu/direct", "fc": "blocked"}, (
        "those of another model stay out"
    )
    assert job.kernel_dirs == ("/my/kernels",)
    assert timeline.controls.kernels.text() == "with 2 chosen kernels"
    timeline.controls.copy_command()
    command = QApplication.clipboard().text()
    assert "--rung lenet5-digits:conv1=cpu/direct --rung fc=blocked --kernels /my/kernels" in command
    begun = []
    monkeypatch.setattr(timeline.session, "begin", lambda folder, cases: begun.append(folder.header))
    qtbot.mouseClick(timeline.controls.run_button, Qt.MouseButton.LeftButton)
    (header,) = begun
    assert header.job == job
    assert header.command == command
