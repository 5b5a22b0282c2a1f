"""A few letters lead to everything: actions, runs, models, nodes, rungs, settings, words of the glossary."""

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtWidgets import QApplication

from gui.menus.palette import Palette, matching
from gui.pages.page import Find
from gui.shell.library import Library
from tests.bench import synthetic
from tests.bench.results.test_thin import saved
from tests.gui.pages.test_runs_page import settle


def test_words_match_by_their_beginnings_first():
    finds = [
        Find("Action", words, print) for words in ("Export all", "Open run", "Resume", "Rerun all", "Run")
    ]
    assert [find.words for find in matching(finds, "run")] == ["Run", "Open run", "Rerun all"]
    assert [find.words for find in matching(finds, "all ru")] == ["Rerun all"]
    assert [find.words for find in matching(finds, "xprt")] == ["Export all"]
    assert not matching(finds, "run xyz")
    assert len(matching(finds, "")) == len(finds)


@pytest.fixture
def palette(qtbot, make_window, tmp_path):
    """palette(typed): an open palette with this typed, in a window with two runs and a shown one."""
    backends = ("engine-cpu", "ort-cpu")
    for name in ("first", "second"):
        saved(tmp_path / "runs" / name, *synthetic.run(backends=backends, batches=(1, 2)))
    window = make_window("mute", begin=False)
    window.library.refresh()
    window.findChild(Library).open(tmp_path / "runs" / "first")
    settle(qtbot, window)

    def opened(typed):
        window.menu_actions.by_name["palette"].trigger()
        found = window.findChildren(Palette)[-1]
        found.activateWindow()  # no window manager does it
        qtbot.waitUntil(found.isActiveWindow)  # until then keys are those of the window behind it
        qtbot.keyClicks(found.field, typed)
        return found

    opened.window = window
    return opened


def test_every_kind_is_found_and_enter_goes_there(qtbot, palette):
    window = palette.window
    finds = palette("").finds
    assert {find.kind for find in finds} >= {"Action", "Run", "Model", "Layer", "Setting", "Glossary"}
    layer = next(find.words for find in finds if find.kind == "Layer")
    for typed, then in (
        ("second run", lambda: window.state.folder is not None and window.state.folder.name == "second"),
        (layer, lambda: window.page.title == "Layers" and bool(window.state.layer)),
        ("fashion lenet model", lambda: window.form.models.checked == ("lenet5-fashion",)),
        ("time each case", lambda: window.preferences.dialog.focusWidget() is not None),
        ("roofline gloss", lambda: window.helper.glossary_window.isVisible()),
        ("timeline action", lambda: window.page.title == "Timeline"),
    ):
        found = palette(typed)
        assert found.found, typed
        qtbot.keyClick(found.field, Qt.Key.Key_Return)
        settle(qtbot, window)
        qtbot.waitUntil(then)


def test_arrows_choose_what_cannot_be_done_waits_below_and_esc_closes(qtbot, palette):
    found = palette("")
    assert found.list.currentIndex().row() == 0
    qtbot.keyClick(found.field, Qt.Key.Key_Down)
    assert found.list.currentIndex().row() == 1
    able = [find.able for find in found.found]
    assert able == sorted(able, reverse=True)
    qtbot.keyClicks(found.field, "nothing is called so")
    assert not found.found
    assert found.nothing.isVisible()
    qtbot.keyClick(found.field, Qt.Key.Key_Escape)
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert not [each for each in palette.window.findChildren(Palette) if each.isVisible()]
