"""A list's text is whole, or cut by "…"."""

from gui.widgets.controls import Combo


def test_text_without_room_is_cut_by_dots_and_no_letter_is_halved(qtbot):
    box = Combo()
    qtbot.addWidget(box)
    box.addItem("speed-up against ort-cpu")
    box.resize(box.sizeHint())
    box.show()
    assert box.shown_text() == "speed-up against ort-cpu"
    box.resize(box.sizeHint().width() - 30, box.height())
    assert box.shown_text().endswith("…")
    box.grab()
