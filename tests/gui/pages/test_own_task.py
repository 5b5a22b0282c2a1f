"""A task of one's own in the window: its folder is opened, dropped or found, its ladder climbed, and kernels
run again when they are saved. Opening it runs nothing of it."""

from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog

from bench.questions.ladder_questions import task_at
from bench.results.summaries import BESIDE_SAMPLE
from bench.run import watching
from gui.menus.palette import everything
from kernels.tasks import FILE
from tests.gui.pages.test_ladder_page import climb, result, settled
from tests.gui.pages.test_runs_page import drop

TASK = """title = "Of a test"
operations = "n"
check = [{n = 1}, {n = 5}]
time = [{n = 1000}]

[sizes]
n = "elements"

[[input]]
name = "x"
shape = ["n"]

[[output]]
name = "y"
shape = ["n"]
"""
HEADER = '# op = "{}"\n# rung = {}\n# name = "{}"\n# idea = "Of a test."\n'
BODY = """import numpy as np


def bind(p, inputs, output, workspace):
    def run():
        np.multiply(inputs[0], {}, output)

    return run
"""


@pytest.fixture(autouse=True)
def _places(tmp_path, tmp_path_factory, monkeypatch):
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(watching, "QUICK_BUDGET_S", 0.05)


def a_task(folder: Path, *rungs: str) -> Path:
    folder.mkdir(parents=True)
    (folder / FILE).write_text(TASK)
    (folder / "reference.py").write_text("def reference(x):\n    return 2 * x\n")
    for number, name in enumerate(rungs, start=1):
        write(folder, number, name, 2)
    return folder


def write(folder: Path, number: int, name: str, factor: int) -> None:
    text = HEADER.format(folder.name, number, name) + BODY.format(factor)
    (folder / f"{number:02d}_{name}.py").write_text(text)


@pytest.mark.sampled(6, "longest")
@pytest.mark.off_screen
def test_a_task_s_folder_is_opened_and_its_ladder_climbed_and_watched(
    make_window, qtbot, tmp_path, monkeypatch
):
    assert watching.TASK_FILE == FILE
    window = make_window("ok")
    page, state = window.ladders._page, window.ladders.session.state
    # First a ladder that was measured on another machine's GPU: nothing of it stays.
    window.ladders.open(BESIDE_SAMPLE[0])
    qtbot.waitUntil(lambda: "Measured on" in window.ladders.session.standing.ended and page.at_rest)
    task = a_task(tmp_path / "mine" / "doubled", "first", "wrong_one")
    write(task, 2, "wrong_one", 3)
    assert task_at(task) == task_at(task / FILE) == task
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(task))
    window.menu_actions.by_name["open-task"].trigger()
    qtbot.waitUntil(lambda: state.ladder is not None and state.ladder.job.op == "doubled" and page.at_rest)
    settled(window, page, qtbot)
    assert window.page is page
    assert "Measured on" not in page.words.text()
    assert page.bar.device.currentData() == "cpu"
    assert page.bar.op.currentData() == "doubled"
    assert page.bar.node.currentData() == "doubled n 1,000"
    names = [shown.row.case.rung for shown in page.table.source.rows]
    assert names == ["first", "wrong_one", "reference"]
    assert not state.measured, "nothing of it was run"
    assert not page.session.active
    page._on_picked("first")
    window.redraw.flush()
    assert "np.multiply" in page.reader.source.code.toPlainText()
    climb(window, page, qtbot)
    assert result(page, "first") == "ok"
    assert result(page, "wrong_one").startswith("wrong")
    # Watched: what is saved is run again, and a kernel that joins the folder as well.
    write(task, 2, "wrong_one", 2)
    qtbot.waitUntil(lambda: result(page, "wrong_one") == "ok")
    settled(window, page, qtbot)
    write(task, 3, "new_one", 2)
    qtbot.waitUntil(lambda: result(page, "new_one") == "ok")
    settled(window, page, qtbot)


@pytest.mark.sampled(4, "long")
@pytest.mark.off_screen
def test_a_task_is_dropped_or_found_and_what_is_wrong_with_one_is_told(
    make_window, qtbot, tmp_path, monkeypatch
):
    window = make_window("ok")
    page, state = window.ladders._page, window.ladders.session.state

    def shown(words):
        qtbot.waitUntil(lambda: words in page.ready and page.at_rest)

    dropped = a_task(tmp_path / "first" / "halved", "only")
    assert drop(window, dropped / FILE)
    qtbot.waitUntil(lambda: state.ladder is not None and state.ladder.job.op == "halved" and page.at_rest)
    assert state.question.kernel_dirs == (str(dropped),)
    # Another one of the same name takes its place; one without a kernel says so, and gets its first.
    other = a_task(tmp_path / "second" / "halved")
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(other))
    (found,) = [find for find in everything(window, window.menu_actions) if "Open task" in find.words]
    found.go()
    shown("has no kernel for")
    assert state.question.kernel_dirs == (str(other),)
    page.session.write_template(other)
    qtbot.waitUntil(lambda: result(page, "mine") == "ok")
    settled(window, page, qtbot)
    # One that cannot be read is named with its file, by the button of the page as well.
    broken = a_task(tmp_path / "third" / "broken", "only")
    (broken / FILE).write_text("operations = \n")
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(broken))
    (entry,) = [each for each in page.bar.kernels.menu().actions() if "task" in each.text()]
    entry.trigger()
    shown(str(broken / FILE))
    # A folder that is none is a sentence, and changes nothing.
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(tmp_path))
    window.menu_actions.by_name["open-task"].trigger()
    assert f"{tmp_path.name} is no task" in window.banner.text
    assert state.question.op == "broken"
