"""Notices lie over the pages: nothing moves for them; each has its severity, and goes with its cause."""

from pathlib import Path

from PySide6.QtCore import QPoint
from PySide6.QtGui import QAccessible

from bench.run.beforehand import Looked
from gui.sessions.session import Ended, Standing
from gui.shell.notices import MACHINE, MOST
from tests.gui.sessions.test_session import JOB

UNQUIET = "Another program, python, uses 99 % of one core (this machine has 2). This run goes on."


def named(widget):
    read = QAccessible.queryAccessibleInterface(widget)
    return read.text(QAccessible.Text.Name), read.text(QAccessible.Text.Description)


def test_a_notice_moves_nothing_says_how_grave_it_is_and_lies_inside(qtbot, make_window):
    window = make_window("mute", begin=False)
    tabs = window.tabs.geometry()
    window.tell("The form has the settings of it.")
    window.tell("mine.onnx was not opened: it is no model. " * 20, "failed")
    assert window.tabs.geometry() == tabs
    banner, centre = window.banner, window.centralWidget()
    assert centre.rect().contains(banner.geometry())
    assert banner.geometry().bottom() > centre.height() / 2
    assert [named(notice)[0] for notice in banner.notices] == ["Note", "Failed"]
    assert all(notice.label.height() >= notice.label.heightForWidth(notice.label.width()) for notice in
               banner.notices)  # fmt: skip
    window.resize(640, 420)
    qtbot.waitUntil(lambda: centre.rect().contains(banner.geometry()))
    for number in range(MOST + 1):
        window.tell(f"Sentence {number}.")
    assert len(banner.notices) == MOST
    window.tell(f"Sentence {MOST}.")
    assert banner.text.endswith(f"Sentence {MOST}. (2 times)")
    at = banner.mapTo(window, QPoint(5, 5))
    assert banner.isAncestorOf(window.childAt(at)) or window.childAt(at) is banner, "nothing lies over it"


def test_what_is_said_of_a_run_goes_with_it(qtbot, make_window):
    window = make_window("held")
    window.start(JOB)
    qtbot.waitUntil(lambda: len(window.state.measurements) >= 1)
    window.session._warn(Looked((UNQUIET,)))
    window.ladders.session.run()
    assert "A comparison is running" in window.banner.text
    assert UNQUIET in window.banner.text
    window.tell("Something else.")
    with qtbot.waitSignal(window.session.ended):
        window.session.cancel()
    assert window.banner.text == "Something else."


def test_a_deleted_run_is_not_said_to_be_kept(make_window, tmp_path):
    window = make_window("mute", begin=False)
    session, folder = window.session, tmp_path / "runs" / "mine"
    session._folder = folder
    session.standing = Standing(ended=Ended((("ok", 2),), 2, 1.0, Path("runs/mine")))
    session.stands.emit(session.standing)
    assert "run kept in" in window.progress.words.text()
    session.forget(tmp_path / "runs" / "other")
    assert "run kept in" in window.progress.words.text()
    window.library._on_deleted(folder)
    assert "run kept in" not in window.progress.words.text()


def test_what_is_turned_off_stays_so_until_it_is_wanted_again(make_window):
    window = make_window("mute", begin=False)
    window.session._warn(Looked((UNQUIET,)))
    (notice,) = window.banner.notices
    notice.hush.click()
    assert not window.banner.text
    again = make_window("mute", begin=False)  # with the same settings
    again.session._warn(Looked((UNQUIET,)))
    assert not again.banner.text
    again.tell("Something else.")
    assert again.banner.text == "Something else."
    assert not again.banner.notices[0].hush.isVisible(), "only what comes by itself can be turned off"
    again.banner.hush(MACHINE, on=False)
    again.session._warn(Looked((UNQUIET,)))
    assert UNQUIET in again.banner.text


def test_the_title_is_the_run_s_name(make_window, tmp_path):
    window = make_window("mute", begin=False)
    assert window.windowTitle() == "Kernelscope"
    window.state.folder = tmp_path / "20260101-first"
    window.name_window()
    assert window.windowTitle() == "20260101-first", "Qt adds the program's name"


def test_what_waits_for_an_answer_is_not_pushed_out(make_window):
    window = make_window("mute", begin=False)
    banner, agreed = window.banner, []
    banner.ask(
        "The run starts as soon as the machine is quiet.", "Start now", lambda: agreed.append(True), "quiet"
    )
    for number in range(2 * MOST):
        window.tell(f"Sentence {number}.")
    assert len(banner.notices) == MOST
    assert banner.notices[0].about == "quiet"
    assert banner.text.endswith(f"Sentence {2 * MOST - 1}."), "the newest is shown"
    banner.button.click()
    assert agreed
    assert len(banner.notices) == MOST - 1
