"""The form by keyboard: what is typed stands, and Tab goes through the fields in the order they are read."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from bench.results.records import BackendInfo


@pytest.mark.parametrize(("field", "typed"), [("batches", "1"), ("images", "1"), ("images", "10")])
def test_what_is_typed_is_not_completed(make_window, qtbot, field, typed):
    form = make_window("ok", begin=False).form
    line = form.batches if field == "batches" else form.fields[field].widget
    box = line.box
    box.setFocus()
    box.lineEdit().selectAll()
    QTest.keyClicks(box.lineEdit(), typed)
    QTest.keyClick(box.lineEdit(), Qt.Key.Key_Tab)
    assert line.text == typed


def test_tab_meets_the_precisions_between_backends_and_batch_sizes(make_window, qtbot):
    window = make_window("ok", begin=False)
    form = window.form
    info = BackendInfo(name="engine-cuda", device="cuda", reference="", precisions=("fp32", "tf32", "fp16"))
    form.show_backends([info])
    window.activateWindow()
    qtbot.waitUntil(lambda: all(box.isVisible() for box in form.precisions._boxes.values()))
    form.backends.setFocus()
    met = []
    for _ in range(6):
        QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
        met.append(QApplication.focusWidget())
    boxes = list(form.precisions._boxes.values())
    assert met[: len(boxes)] == boxes
    assert met[len(boxes)] in (form.batches.box, form.batches.box.lineEdit())
