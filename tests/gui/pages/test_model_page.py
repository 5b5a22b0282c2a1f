"""The Model page, by its widgets: what is shown of a file before anything runs, and what becomes of a file
that is no model."""

import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit

from gui.shell import model_files
from tests.gui.models import small_model

LEFT, NONE = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier


@pytest.fixture
def opened(make_window, qtbot):
    """A window in which a file was opened and is shown."""

    def make(path: Path):
        window = make_window("ok")
        page = window.model_files.page
        window.open_models([str(path)])
        qtbot.waitUntil(lambda: not window.model_files.busy)
        qtbot.waitUntil(lambda: page.at_rest)
        window.redraw.flush()
        return window, page

    return make


def drop(window, path: Path) -> bool:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    copy = Qt.DropAction.CopyAction
    enter = QDragEnterEvent(QPoint(50, 50), copy, data, LEFT, NONE)
    QApplication.sendEvent(window, enter)
    if enter.isAccepted():
        QApplication.sendEvent(window, QDropEvent(QPointF(50, 50), copy, data, LEFT, NONE))
    return enter.isAccepted()


def test_a_model_opened_is_shown_before_anything_runs(opened, tmp_path):
    path = small_model(tmp_path / "mine.onnx")
    window, page = opened(path)
    assert window.page is page
    assert str(path) in window.form.models.checked
    last = window.form.models.item(window.form.models.count() - 1)
    seen = window.form.models.visualItemRect(last).center()
    assert window.form.models.viewport().rect().contains(seen), "the list goes to what was opened"
    assert [box.title for box in page.graph.boxes] == [
        "image  N × 3 × 8 × 8",
        "Conv",
        "Relu",
        "GlobalAveragePool",
        "Flatten",
        "scores  N × 4",
    ]
    for said in ("input: image: float32, N × 3 × 8 × 8", "output: scores: float32, N × 4", "batch size: any"):
        assert said in page.about.text
    page.graph.setFocus()
    QTest.keyClick(page.graph, Qt.Key.Key_Home)
    QTest.keyClick(page.graph, Qt.Key.Key_Down)
    assert page.panes.currentWidget() is page.node
    for said in (
        "pads: 1, 1, 1, 1",
        "engine-cpu: conv/",
        "in one step with second",
        "weight: float32, 4 × 3 × 3 × 3",
    ):
        assert said in page.node.text
    assert page.node.card.isVisible()
    page.panes.setCurrentWidget(page.weights)
    assert page.weights.card.title.text() == "weight  4 × 3 × 3 × 3"
    assert "mean" in page.weights.card.spread.text()
    left = page.weights.card.histogram
    assert left.words_at(left.width() / 2).endswith("of 108 values")
    page.panes.setCurrentWidget(page.images)
    assert page.images.count == 3


def test_a_node_without_a_kernel_is_marked_with_the_reason(opened, tmp_path):
    _, page = opened(small_model(tmp_path / "mine.onnx", "Det"))
    assert page.graph.look("second").failed
    assert not page.graph.look("first").failed
    page.select_node("second")
    assert "the engine does not support Det" in page.node.text
    assert "Softmax" not in page.node.text, "not the list of all that is supported"
    assert "1 of 4 nodes has no kernel (Det)" in page.about.text
    page.panes.setCurrentWidget(page.nodes)
    row = page.nodes.source.rows[1]
    assert all(run.refused for run in row.runs.values())
    assert row.runs.keys() == {"cpu", "cuda"}


def test_the_ladder_of_a_node_is_a_key_away(opened, qtbot, tmp_path, monkeypatch):
    window, page = opened(small_model(tmp_path / "mine.onnx", "Det"))
    asked = []
    monkeypatch.setattr(window.ladders.session, "ask", lambda question, run=True: asked.append(question))
    page.select_node("second")
    assert not page.ladder_action.isEnabled(), "it has no kernel"
    page.select_node("first")
    page.ladder_action.trigger()
    assert (asked[-1].model, asked[-1].nodes, asked[-1].batch) == (str(tmp_path / "mine.onnx"), ("first",), 1)
    assert window.page.title == "Ladder"


def test_find_goes_from_one_match_to_the_next(opened, tmp_path):
    _, page = opened(small_model(tmp_path / "mine.onnx"))
    page.find_bar.open_bar()
    QTest.keyClicks(page.find_bar.field, "pads")
    assert page.graph.selected == "first", "an attribute is found, too"
    page.find_bar.field.clear()
    QTest.keyClicks(page.find_bar.field, "flat")
    assert (page.graph.selected, page.find_bar.count.text()) == ("flat", "1 of 1")
    page.find_bar.field.setText("e")
    found = []
    for _ in range(3):
        QTest.keyClick(page.find_bar.field, Qt.Key.Key_Return)
        found.append(page.graph.selected)
    assert len(set(found)) == 3
    page.find_bar.field.setText("nowhere")
    assert page.find_bar.count.text() == "not found"


def test_a_fixed_batch_is_said_and_is_what_is_looked_at(opened, qtbot, tmp_path):
    window, page = opened(small_model(tmp_path / "mine.onnx", batch=8))
    assert "batch size: 8 alone: the file fixes it" in page.about.text
    assert page.bar.boxes["batch"].currentData() == 8
    assert page.preview.nodes[0].shape == (8, 4, 8, 8)
    qtbot.waitUntil(lambda: window.form.job().batches_of(page.preview.model) == (8,))
    assert page.at_rest, "what the form has learned is no reason to read the file again"


def test_what_the_form_says_of_images_is_what_is_shown_of_them(opened, qtbot, tmp_path):
    window, page = opened(small_model(tmp_path / "mine.onnx"))
    before = page.preview.images[0].channels
    window.form.fields["preprocess"].widget.text = "raw"
    qtbot.waitUntil(lambda: page.at_rest and page.preview.images[0].channels != before)
    assert max(high for _, _, high in page.preview.images[0].channels) > 100
    window.form.dataset.setCurrentIndex(window.form.dataset.findData("digits"))
    qtbot.waitUntil(lambda: page.at_rest and bool(page.preview.images[0].label))


def test_a_file_that_is_no_model_is_refused_and_never_joins_the_list(make_window, qtbot, tmp_path):
    window = make_window("ok")
    holds = {"empty": b"", "cut": b"\x08\x07\x12", "page": b"<html>not found</html>"}
    paths = [tmp_path / f"{name}.onnx" for name in holds]
    for path in paths:
        path.write_bytes(holds[path.stem])
        assert drop(window, path)
    qtbot.waitUntil(lambda: not window.model_files.busy)
    for path in paths:
        assert f"{path.name} was not opened" in window.banner.text
        assert str(path) not in window.form.models.keys
    assert window.page is window.pages[0], "back to where the user was"
    window.end()
    assert not {*map(str, paths)} & {*make_window("ok", begin=False).form.models.keys}


def test_a_reader_that_dies_costs_a_sentence(make_window, qtbot, tmp_path, monkeypatch):
    path = small_model(tmp_path / "mine.onnx")
    dies = [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"]
    monkeypatch.setattr(model_files, "reader_command", lambda: dies)
    window = make_window("ok")
    window.open_models([str(path)])
    qtbot.waitUntil(lambda: not window.model_files.busy)
    assert "mine.onnx was not opened: reading it failed: the process" in window.banner.text
    assert str(path) not in window.form.models.keys


def test_a_file_that_was_a_model_once_is_taken_from_the_list_when_it_is_chosen(make_window, qtbot, tmp_path):
    window = make_window("ok")
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"")
    window.form.add_model(str(path))  # as a start reads it from what was kept
    qtbot.waitUntil(lambda: str(path) not in window.form.models.keys)
    assert "broken.onnx was taken from the list" in window.banner.text
    assert str(path) not in make_window("ok", begin=False).form.models.keys


def test_a_file_is_removed_from_the_list_by_its_menu_and_the_catalogue_stays(make_window, qtbot, tmp_path):
    window = make_window("ok")
    path = str(small_model(tmp_path / "mine.onnx"))
    models = window.form.models
    window.form.add_model(path)
    remove = next(action for action in models.actions() if "Remove" in action.text())
    models.setCurrentRow(0)
    assert not remove.isEnabled()
    before = models.keys
    models.setCurrentRow(models.keys.index(path))
    remove.trigger()
    assert models.keys == before[:-1]
    assert path not in make_window("ok", begin=False).form.models.keys


def test_a_drag_shows_where_it_may_be_dropped_and_what_comes_of_it(make_window, qtbot, tmp_path):
    window = make_window("ok", begin=False)
    target = window.drop_target
    fields = [*window.form.findChildren(QLineEdit), *window.page.findChildren(QLineEdit)]
    assert fields
    assert not any(field.acceptDrops() for field in fields), "it would take the path as text"
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(tmp_path / "mine.onnx"))])
    enter = QDragEnterEvent(QPoint(50, 50), Qt.DropAction.CopyAction, data, LEFT, NONE)
    QApplication.sendEvent(window, enter)
    assert target.isVisible()
    assert "mine.onnx" in target.text
    assert not target.refused
    QApplication.sendEvent(window, QDragLeaveEvent())
    assert not target.isVisible()
    assert drop(window, tmp_path / "mine.txt")
    assert not target.isVisible()
    assert "mine.txt is not an .onnx file" in window.banner.text
