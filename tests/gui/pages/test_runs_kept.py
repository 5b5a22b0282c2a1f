"""What one does with runs that are kept, by mouse and keyboard: go on with them, name them, find them, lay
several over one, fill the form from one; and none that was deleted is shown anywhere."""

from __future__ import annotations

import shutil

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QToolButton

from bench.results import note
from bench.results.records import Measurement
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.run.kinds.ladder import KIND as LADDER
from gui.menus.export import ExportActions
from gui.pages.runs import NoteDialog
from gui.shell import library
from gui.shell.library import Library
from gui.shell.main_window import TRUST
from tests.bench import synthetic
from tests.bench.ladder import test_ladder_folders
from tests.bench.results.test_thin import saved
from tests.gui.answering import Answers
from tests.gui.pages.test_runs_page import listed, settle, show_runs
from tests.gui.sessions.test_session import JOB

CPU = ("engine-cpu", "ort-cpu")


@pytest.fixture
def runs(tmp_path):
    folder = tmp_path / "runs"
    for name, batches in (("first", (1, 2, 4)), ("second", (2, 8)), ("third", (1, 4))):
        saved(folder / name, *synthetic.run(backends=CPU, batches=batches))
    saved(folder / "alex", *synthetic.run(models=("alexnet-digits",), backends=CPU, batches=(1,)))
    return folder


def button(page, action):
    """The bar's button of an action, as the mouse finds it."""
    return next(b for b in page.findChildren(QToolButton) if b.defaultAction() is action)


def press(qtbot, page, action):
    qtbot.mouseClick(button(page, action), Qt.MouseButton.LeftButton)


def type_on(qtbot, window, page, key):
    """A key on the table of runs, which has the focus."""
    window.activateWindow()
    page.table.setFocus()
    qtbot.waitUntil(page.table.hasFocus)
    qtbot.keyClick(page.table, key)


def cut(folder, lines):
    """As a kill leaves it: so many measurements less."""
    results = folder / "results.jsonl"
    results.write_bytes(b"".join(results.read_bytes().splitlines(keepends=True)[:-lines]))


def test_an_interrupted_run_is_resumed_from_its_line(qtbot, make_window, run_to_end):
    window = make_window("ok", "ok")
    run_to_end(window, JOB)
    folder = window.state.folder
    page = show_runs(qtbot, window)
    page.table.choose(folder)
    assert not page.actions_of["resume"].isEnabled(), "all of it is measured"
    cut(folder, 2)
    window.findChild(Library).refresh()
    settle(qtbot, window)
    assert "2 of 4" in {line["done"] for line in listed(page)}
    page.table.choose(folder)
    assert page.actions_of["resume"].isEnabled()
    with qtbot.waitSignal(window.session.ended):
        press(qtbot, page, page.actions_of["resume"])
        assert window.page.title == "Compare"
    assert [m.disposition for m in COMPARISON.open(folder).measurements()] == ["ok"] * 4


def crash(folder, lines):
    """As if the last of so many cases had crashed."""
    held = COMPARISON.open(folder)
    held.claim()
    for measurement in held.measurements()[-lines:]:
        held.append(Measurement(case=measurement.case, disposition="crashed", reason="an access"))
    held.close()


def test_what_crashed_is_measured_again_from_its_line_and_from_compare(qtbot, make_window, run_to_end):
    window = make_window("ok", "ok", "ok")
    run_to_end(window, JOB)
    folder = window.state.folder
    compare, page = window.pages[0], show_runs(qtbot, window)
    page.table.choose(folder)
    assert not page.actions_of["retry"].isEnabled(), "nothing crashed"
    assert not window.menu_actions.by_name["retry"].isEnabled()
    crash(folder, 2)
    window.findChild(Library).refresh()
    settle(qtbot, window)
    page.table.choose(folder)
    assert not page.actions_of["resume"].isEnabled()
    with qtbot.waitSignal(window.session.ended):
        press(qtbot, page, page.actions_of["retry"])
    assert [m.disposition for m in COMPARISON.open(folder).measurements()] == ["ok"] * 4
    assert "4 of 4 cases ok in" in window.progress.words.text()
    crash(folder, 1)
    window.findChild(Library).open(folder)
    settle(qtbot, window)
    window.tabs.setCurrentIndex(0)
    window.redraw.flush()
    assert compare.retry.text() == "Retry 1 that failed"
    assert window.menu_actions.by_name["retry"].isEnabled()
    with qtbot.waitSignal(window.session.ended):
        qtbot.mouseClick(compare.retry, Qt.MouseButton.LeftButton)
        window.redraw.flush()
        assert not compare.retry.isEnabled(), "while it runs"
    window.redraw.flush()
    assert compare.retry.isHidden()
    assert [m.disposition for m in COMPARISON.open(folder).measurements()] == ["ok"] * 4


def test_an_interrupted_run_that_is_opened_offers_to_go_on(qtbot, make_window, run_to_end):
    window = make_window("ok", "ok")
    run_to_end(window, JOB)
    folder = window.state.folder
    cut(folder, 1)
    window.findChild(Library).open(folder)
    settle(qtbot, window)
    assert "1 case is not measured yet" in window.banner.text
    with qtbot.waitSignal(window.session.ended):
        qtbot.mouseClick(window.banner.button, Qt.MouseButton.LeftButton)
    assert len(COMPARISON.open(folder).measurements()) == 4
    assert not window.banner.text
    window.findChild(Library).open(folder)
    settle(qtbot, window)
    assert not window.banner.text, "a whole run is just opened"


def test_a_run_that_the_window_left_behind_is_offered_at_the_next_start(qtbot, make_window):
    window = make_window("held")
    window.start(JOB)
    folder = window.session.writing
    qtbot.waitUntil(lambda: len(window.state.measurements) == 1)
    window.end()
    again = make_window("ok")
    qtbot.waitUntil(lambda: "was interrupted when the window closed: 3 cases" in again.banner.text)
    with qtbot.waitSignal(again.session.ended):
        again.banner.button.click()
    assert len(COMPARISON.open(folder).measurements()) == 4
    again.end()
    third = make_window("ok")
    settle(qtbot, third)
    assert not third.banner.text, "it is offered once, and not when it is whole"


def test_a_run_that_was_cancelled_is_not_offered(qtbot, make_window):
    window = make_window("held")
    window.start(JOB)
    qtbot.waitUntil(lambda: len(window.state.measurements) == 1)
    with qtbot.waitSignal(window.session.ended):
        window.session.cancel()
    window.end()
    again = make_window("ok")
    settle(qtbot, again)
    assert not again.banner.text


def test_a_run_that_another_window_measures_is_not_said_to_be_interrupted(tmp_path, runs):
    cut(runs / "first", 1)
    assert library.left_behind(runs / "first").left == 1
    with COMPARISON.open(runs / "first") as held:
        held.claim()
        assert library.left_behind(runs / "first") is None
    assert library.left_behind(runs / "first") is not None
    assert library.left_behind(runs / "second") is None, "all of it is measured"
    assert library.left_behind(tmp_path / "nowhere") is None


def test_an_interrupted_ladder_goes_on_in_its_folder(qtbot, make_window, runs, monkeypatch):
    held = test_ladder_folders.saved(runs / "climbed")
    whole = {m.case.key for m in held.measurements()}
    cut(runs / "climbed", 1)
    window = make_window("mute", begin=False)
    begun = []
    session = window.ladders.session
    monkeypatch.setattr(session, "begin", lambda folder, cases: begun.append((folder.path, cases)))
    page = show_runs(qtbot, window)
    page.table.choose(runs / "climbed")
    page.actions_of["open"].trigger()
    qtbot.waitUntil(lambda: "climbed was interrupted: 1 case is" in window.banner.text)
    page = show_runs(qtbot, window)
    page.table.choose(runs / "climbed")
    page.actions_of["resume"].trigger()
    assert window.page.title == "Ladder"
    ((path, cases),) = begun
    left = {m.case.key for m in LADDER.open(path).measurements()}
    assert {case.key for case in cases} == whole - left
    assert len(cases) == 1
    assert session.state.opened == runs / "climbed"


def test_a_run_is_named_and_noted_by_keyboard_and_its_legend_says_so(qtbot, make_window, runs):
    window = make_window("mute", begin=False)
    window.findChild(Library).open(runs / "first")
    settle(qtbot, window)
    page = show_runs(qtbot, window)
    page.table.choose(runs / "second")
    page.actions_of["overlay"].trigger()
    settle(qtbot, window)
    page = show_runs(qtbot, window)
    page.table.choose(runs / "second")
    type_on(qtbot, window, page, Qt.Key.Key_F2)
    dialog = page.findChild(NoteDialog)
    qtbot.keyClicks(dialog.name, "before tuning")
    qtbot.keyClicks(dialog.text, "on battery")
    save = dialog.save
    qtbot.mouseClick(save, Qt.MouseButton.LeftButton)
    settle(qtbot, window)
    settle(qtbot, window)
    assert note.read(runs / "second") == note.Note(name="before tuning", text="on battery")
    line = next(line for line in listed(page) if line["name"] == "second")
    assert (line["called"], line["note"]) == ("before tuning", "on battery")
    window.tabs.setCurrentIndex(0)
    window.redraw.flush()
    assert "engine-cpu · before tuning" in window.page.views["op-time"]._legend.buttons


def test_a_filter_leaves_the_runs_that_have_every_word(qtbot, make_window, runs):
    note.write(runs / "third", note.Note(text="with the new im2col"))
    window = make_window("mute", begin=False)
    page = show_runs(qtbot, window)
    qtbot.keyClicks(page.filter, "IM2COL lenet")
    window.redraw.flush()
    assert [line["name"] for line in listed(page)] == ["third"]
    assert "1 of 4" in page.count.text()
    page.filter.setText("alexnet")
    window.redraw.flush()
    assert [line["name"] for line in listed(page)] == ["alex"]
    page.filter.setText("nothing like it")
    window.redraw.flush()
    assert not listed(page)
    assert page.chosen is None
    page.filter.clear()
    window.redraw.flush()
    assert len(listed(page)) == 4


def test_several_runs_lie_over_one_and_a_deleted_one_leaves(qtbot, make_window, runs, monkeypatch):
    answers = Answers(*(library.TO_TRASH, library.FOR_GOOD) * 2)
    monkeypatch.setattr(library, "to_trash", lambda _: None)
    window = make_window("mute", begin=False)
    window.findChild(Library).open(runs / "first")
    settle(qtbot, window)
    for name in ("second", "third"):
        page = show_runs(qtbot, window)
        page.table.choose(runs / name)
        type_on(qtbot, window, page, Qt.Key.Key_Space)
        settle(qtbot, window)
    view = window.page.views["op-time"]
    over = {f"{backend} · {name}" for backend in CPU for name in ("second", "third")}
    assert set(view._legend.buttons) == {*CPU, *over}
    marks = {s.label: s.marker for panel in view.chart.panels for s in panel.series}
    assert marks["engine-cpu · second"] != marks["engine-cpu · third"], "told apart by more than a name"
    assert ("--over", str(runs / "second"), "--over", str(runs / "third")) == _over(window)

    page = show_runs(qtbot, window)
    assert sum("(laid over)" in line["created_at"] for line in listed(page)) == 2
    page.table.choose(runs / "second")
    page.actions_of["delete"].trigger()
    qtbot.waitUntil(lambda: not (runs / "second").exists())
    settle(qtbot, window)
    settle(qtbot, window)
    assert [overlay.folder for overlay in window.state.overlays] == [runs / "third"]
    shutil.rmtree(runs / "third")  # by somebody else
    window.findChild(Library).refresh()
    settle(qtbot, window)
    assert not window.state.overlays
    page.table.choose(runs / "first")
    page.actions_of["delete"].trigger()
    qtbot.waitUntil(lambda: not (runs / "first").exists())
    settle(qtbot, window)
    assert window.state.empty, "and the run that was shown is shown no more"
    assert window.state.folder is None
    assert not answers.left


def _over(window):
    """What an export of a chart says of the runs that lie over the one shown."""
    exports, orders = window.findChild(ExportActions), []
    exports.exporter.start = orders.append
    exports.export_chart(window.page.exported().charts[0], window.state.folder / "chart.png")
    words = orders[0].arguments
    return words[words.index("--over") :] if "--over" in words else ()


def test_a_run_fills_the_form(qtbot, make_window, runs):
    run, measurements = synthetic.run(backends=CPU, batches=(3, 5))
    job = msgspec.structs.replace(
        run.job, models=("lenet5-digits", "/gone/away.onnx"), backends=CPU, batches=(3, 5), budget_s=0.75
    )
    saved(runs / "odd", msgspec.structs.replace(run, job=job), measurements)
    window = make_window("ok")
    page = show_runs(qtbot, window)
    page.table.choose(runs / "odd")
    press(qtbot, page, page.actions_of["form"])
    settle(qtbot, window)
    now = window.form.job()
    assert (now.models, now.batches, now.budget_s) == (("lenet5-digits",), (3, 5), 0.75)
    assert "but for away, which is not here any more" in window.banner.text
    assert "/gone/away.onnx" not in window.form.models.keys


def test_kernels_of_somebody_elses_run_come_into_the_form_by_a_button_alone(
    qtbot, make_window, runs, tmp_path, monkeypatch
):
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "kernels").mkdir()
    run, measurements = synthetic.run(backends=CPU, batches=(1,))
    job = msgspec.structs.replace(run.job, rungs={"conv1": "evil"}, kernel_dirs=(str(tmp_path / "kernels"),))
    saved(runs / "received", msgspec.structs.replace(run, job=job), measurements)
    window = make_window("ok")
    window.findChild(Library).fill_form(runs / "received")
    settle(qtbot, window)
    assert window.banner.button.text() == TRUST
    assert not window.form.rungs.rungs
    window.banner.button.click()
    settle(qtbot, window)
    assert window.form.rungs.rungs == {"conv1": "evil"}
