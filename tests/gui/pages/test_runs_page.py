"""Saved runs, ladders and profiles in the window: listed, opened, laid over each other, dropped, deleted; and
what is none."""

from __future__ import annotations

import dataclasses
import re
import shutil
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QKeySequence
from PySide6.QtWidgets import QApplication

from bench.results import baseline
from bench.results.folders import copy, open_folder
from bench.results.summaries import BESIDE_SAMPLE, SAMPLE, summary
from bench.run.kinds.ladder import KIND as LADDER
from gui.pages.runs import RunsTable
from gui.shell import library
from gui.shell.library import Library
from tests.bench import synthetic
from tests.bench.ladder import test_ladder_folders
from tests.bench.results.test_thin import saved
from tests.gui.answering import Answers
from tests.gui.pages import profiled

CPU = ("engine-cpu", "ort-cpu")


@pytest.fixture
def runs(tmp_path):
    """Three runs where the window keeps its own: of one model twice, one of them with a failure."""
    folder = tmp_path / "runs"
    failure = {("engine-cpu", 2): ("crashed", "the worker was killed")}
    saved(folder / "first", *synthetic.run(backends=CPU, batches=(1, 2, 4), failures=failure))
    saved(folder / "second", *synthetic.run(backends=CPU, batches=(2, 8)))
    saved(folder / "other", *synthetic.run(models=("alexnet-digits",), backends=CPU, batches=(1,)))
    (folder / "no run").mkdir()
    return folder


@pytest.fixture
def window(make_window, runs):
    return make_window("mute", begin=False)


def settle(qtbot, window):
    """Until everything read off the GUI thread has arrived and is drawn."""
    found = window.findChild(Library)
    qtbot.waitUntil(lambda: not found.background.busy)
    window.redraw.flush()


def show_runs(qtbot, window):
    page = next(p for p in window.pages if p.title == "Runs")
    window.tabs.setCurrentWidget(page)
    settle(qtbot, window)
    return page


def listed(page):
    """What the table says of each run, by its columns' names."""
    model = page.table.model()
    names = [column.name for column in page.table.source.columns]
    return [
        {name: model.index(row, column).data() for column, name in enumerate(names)}
        for row in range(model.rowCount())
    ]


def test_runs_are_listed_and_enter_opens_one(qtbot, window, runs):
    page = show_runs(qtbot, window)
    lines = {line["name"]: line for line in listed(page)}
    assert set(lines) == {"first", "second", "other"}
    told = {
        "kind": "comparison",
        "models": "lenet5-digits",
        "node": "",
        "backends": "engine-cpu, ort-cpu",
        "batches": "1–4",
        "machine": "Example GPU 80 GB",
        "done": "6",
        "failed": "1",
    }
    assert lines["first"].items() >= told.items()
    assert re.fullmatch(r"engine-cpu [\d.]+× to [\d.]+× slower than ort-cpu( !)?", lines["first"]["result"])

    page.table.choose(runs / "first")
    qtbot.keyClick(page.table, Qt.Key.Key_Return)
    settle(qtbot, window)
    assert window.state.folder == runs / "first"
    assert len(window.state.measurements) == 6
    assert window.page.title == "Compare"
    page = show_runs(qtbot, window)
    assert [line["name"] for line in listed(page) if "(shown)" in line["created_at"]] == ["first"]


def test_a_run_laid_over_another_shows_both(qtbot, window, runs):
    window.findChild(Library).open(runs / "first")
    settle(qtbot, window)
    page = show_runs(qtbot, window)
    page.table.choose(runs / "second")
    assert page.actions_of["overlay"].text() == "Lay o&ver"
    page.actions_of["overlay"].trigger()
    settle(qtbot, window)
    assert window.page.title == "Compare"
    qtbot.keyPress(window.windowHandle(), Qt.Key.Key_Control, Qt.KeyboardModifier.ControlModifier)
    assert QApplication.keyboardModifiers() == Qt.KeyboardModifier.ControlModifier, "as after Ctrl+6"
    assert [run.path.name for run in show_runs(qtbot, window).table.chosen_runs] == ["second"], "still chosen"
    qtbot.keyRelease(window.windowHandle(), Qt.Key.Key_Control)
    assert QApplication.keyboardModifiers() == Qt.KeyboardModifier.NoModifier
    window.tabs.setCurrentIndex(0)
    settle(qtbot, window)
    view = window.page.views["op-time"]
    assert set(view._legend.buttons) == {*CPU, "engine-cpu · second", "ort-cpu · second"}
    plot = next(iter(view.plots.values()))
    drawn = {label: items.line.getData()[1] for label, items in plot._items.items()}
    assert len(drawn["engine-cpu · second"]) == 2
    assert (
        plot._items["engine-cpu · second"].line.opts["pen"].widthF()
        < plot._items["engine-cpu"].line.opts["pen"].widthF()
    )

    window.menu_actions.by_name["take-off"].trigger()
    settle(qtbot, window)
    assert set(view._legend.buttons) == set(CPU)


def test_runs_without_a_common_model_say_so(qtbot, window, runs):
    found = window.findChild(Library)
    found.open(runs / "first")
    settle(qtbot, window)
    found.lay_over(runs / "other")
    settle(qtbot, window)
    assert "no model in common" in window.banner.text
    found.lay_over(runs / "first")
    assert "is the run shown" in window.banner.text


def damaged(folder):
    results = folder / "results.jsonl"
    results.write_text(results.read_text() + "nonsense\n")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda folder: (folder / "run.json").write_text("{"), "run.json is broken"),
        (lambda folder: (folder / "run.json").unlink(), "holds no run"),
        (damaged, "is damaged and was left out"),
        (shutil.rmtree, "holds no run"),
    ],
)
def test_a_broken_run_is_one_sentence_in_the_banner(qtbot, window, runs, spoil, words):
    spoil(runs / "second")
    window.findChild(Library).open(runs / "second")
    settle(qtbot, window)
    assert words in window.banner.text
    assert "\n" not in window.banner.text
    assert window.state.empty == (spoil is not damaged), "of a damaged line the others are shown"


def drop(window, path: Path) -> bool:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    action, button = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
    none = Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(QPointF(50, 50).toPoint(), action, data, button, none)
    QApplication.sendEvent(window, enter)
    if enter.isAccepted():
        QApplication.sendEvent(window, QDropEvent(QPointF(50, 50), action, data, button, none))
    return enter.isAccepted()


def test_a_dropped_run_opens_and_stays_in_the_list(qtbot, window, runs, tmp_path):
    elsewhere = tmp_path / "elsewhere" / "mine"
    shutil.copytree(runs / "first", elsewhere)
    assert drop(window, elsewhere)
    settle(qtbot, window)
    assert window.state.folder == elsewhere
    page = show_runs(qtbot, window)
    assert [line["name"] for line in listed(page) if "(shown)" in line["created_at"]] == ["mine"]
    assert drop(window, runs / "second" / "results.jsonl")
    settle(qtbot, window)
    assert window.state.folder == runs / "second"
    note = tmp_path / "note.txt"
    note.write_text("")
    assert drop(window, note)
    assert "note.txt is not an .onnx file" in window.banner.text


def test_a_packed_run_opens_beside_the_others(qtbot, window, runs, tmp_path):
    """Also a second time; what is none is told in a sentence."""
    file = copy(runs / "first", tmp_path / "from colab.zip")
    assert drop(window, file)
    qtbot.waitUntil(lambda: window.state.folder == runs / "from colab")
    settle(qtbot, window)
    assert open_folder(runs / "from colab").measurements() == open_folder(runs / "first").measurements()
    window.findChild(Library).open(file)
    qtbot.waitUntil(lambda: window.state.folder not in (None, runs / "from colab"))
    assert window.state.folder.parent == runs
    file.write_bytes(b"PK")
    assert drop(window, file)
    settle(qtbot, window)
    qtbot.waitUntil(lambda: "is no packed run that can be read" in window.banner.text)


@pytest.fixture
def others(runs):
    """A ladder and a profile beside the runs."""
    climbed = test_ladder_folders.saved(runs / "climbed")
    profiled.two_gpus(runs / "where time goes", batches=(16,))
    return climbed


def until(qtbot, window, reached):
    settle(qtbot, window)
    qtbot.waitUntil(reached)
    window.redraw.flush()


def test_ladders_and_profiles_are_listed_and_open_on_their_pages(qtbot, window, runs, others):
    page = show_runs(qtbot, window)
    assert window.progress.words.text() == "Ready. Enter opens the selected run."
    lines = {line["name"]: line for line in listed(page)}
    assert (lines["climbed"]["created_at"], lines["climbed"]["kind"]) == ("2026-01-02 03:04", "ladder")
    told = {"kind": "profile", "models": "lenet5-digits", "node": "", "backends": "engine-cuda, ort-cuda"}
    assert lines["where time goes"].items() >= told.items()

    page.table.choose(runs / "climbed")
    assert not page.actions_of["overlay"].isEnabled()
    page.actions_of["open"].trigger()
    session = window.ladders.session
    until(qtbot, window, lambda: window.page.title == "Ladder" and window.page.at_rest)
    assert session.state.opened == runs / "climbed"
    assert session.state.ladder == others.header
    measured = {m.case.key: m.disposition for m in others.measurements()}
    assert {row.case.key: row.measurement.disposition for row in session.state.derived} == measured
    assert session.standing.ended == f"Measured on 2026-01-02 03:04, kept in {runs.name}/climbed."
    unknown = next(row for row in session.state.derived if session.state.info(row.case.rung) is None)
    window.page._on_picked(unknown.case.key)
    window.redraw.flush()
    reader = window.page.reader
    assert unknown.case.is_reference or "not found here" in reader.state.text()
    assert reader.tabs.isHidden(), "and no empty page in its place"
    session.ask(session.state.question)  # what is asked next takes its place, and nothing of it stays
    until(qtbot, window, lambda: session.state.opened is None and window.page.at_rest)
    assert not session.state.derived

    page = show_runs(qtbot, window)
    page.table.choose(runs / "where time goes")
    qtbot.keyClick(page.table, Qt.Key.Key_Return)
    until(qtbot, window, lambda: window.profiles.session.state.folder == runs / "where time goes")
    assert window.page.title == "Timeline"


def test_a_dropped_ladder_opens_and_a_broken_one_is_told(qtbot, window, runs, others, tmp_path):
    elsewhere = tmp_path / "elsewhere" / "mine"
    shutil.copytree(runs / "climbed", elsewhere)
    assert drop(window, elsewhere / LADDER.file)
    state = window.ladders.session.state
    until(qtbot, window, lambda: state.opened == elsewhere)
    assert window.page.title == "Ladder"
    assert "mine" in {line["name"] for line in listed(show_runs(qtbot, window))}
    (runs / "climbed" / LADDER.file).write_text("{")
    assert drop(window, runs / "climbed")
    until(qtbot, window, lambda: "ladder.json is broken" in window.banner.text)
    assert state.opened == elsewhere


@pytest.mark.parametrize("name", ["climbed", "where time goes"])
def test_deleting_a_ladder_or_a_profile_takes_what_it_consists_of(
    qtbot, window, runs, others, name, monkeypatch
):
    answers = Answers(library.TO_TRASH, library.FOR_GOOD)
    monkeypatch.setattr(library, "to_trash", lambda _: None)
    page = show_runs(qtbot, window)
    page.table.choose(runs / name)
    page.actions_of["delete"].trigger()
    until(qtbot, window, lambda: not (runs / name).exists())
    assert not answers.left


def test_without_a_trash_nothing_is_deleted_unasked_and_what_is_not_the_run_stays(
    qtbot, window, runs, monkeypatch
):
    answers = Answers(library.KEEP, library.TO_TRASH, library.KEEP, library.TO_TRASH, library.FOR_GOOD)
    monkeypatch.setattr(library, "to_trash", lambda _: None)
    (runs / "second" / "my notes.txt").write_text("keep")
    baseline.keep(runs, runs / "second")
    page = show_runs(qtbot, window)
    page.table.choose(runs / "second")

    def delete():
        window.activateWindow()
        page.table.setFocus()
        qtbot.waitUntil(page.table.hasFocus)
        qtbot.keyClick(page.table, Qt.Key.Key_Delete)

    for asked in (1, 3):  # it is kept at the first question, then at the second
        delete()
        qtbot.waitUntil(lambda asked=asked: len(answers.asked) == asked)
        settle(qtbot, window)
        assert (runs / "second" / "run.json").exists()
        assert baseline.kept(runs), "nothing happened yet"
    assert answers.asked[1][1] == "Move second to the trash?"
    assert answers.asked[2][1] == "There is no trash here. Delete second for good? You cannot get it back."
    delete()
    qtbot.waitUntil(lambda: len(answers.asked) == 5)
    settle(qtbot, window)
    settle(qtbot, window)
    assert [p.name for p in (runs / "second").iterdir()] == ["my notes.txt"]
    assert {line["name"] for line in listed(page)} == {"first", "other"}
    assert not baseline.kept(runs)


def test_a_deleted_run_comes_back_by_undo(qtbot, window, runs, tmp_path, monkeypatch):
    trash = tmp_path / "trash"
    (trash / "files").mkdir(parents=True)
    (trash / "info").mkdir()

    def to_trash(path):
        (trash / "info" / f"{path.name}.trashinfo").write_text("[Trash Info]\n")
        return path.rename(trash / "files" / path.name)

    monkeypatch.setattr(library, "to_trash", to_trash)
    baseline.keep(runs, runs / "second")
    before = {path.name: path.read_bytes() for path in (runs / "second").iterdir()}
    answers = Answers(library.TO_TRASH)
    page = show_runs(qtbot, window)
    page.table.choose(runs / "second")
    page.actions_of["delete"].trigger()
    until(qtbot, window, lambda: "second is in the trash." in window.banner.text)
    assert answers.asked == [("Delete a run", "Move second to the trash?")]
    assert not (runs / "second").exists()
    assert not baseline.kept(runs)
    undo = window.menu_actions.by_name["undo-delete"]
    assert undo.isEnabled()
    assert undo.shortcut() == QKeySequence(QKeySequence.StandardKey.Undo)
    undo.trigger()
    until(qtbot, window, lambda: "second is back." in window.banner.text)
    assert "in the trash" not in window.banner.text
    assert {path.name: path.read_bytes() for path in (runs / "second").iterdir()} == before
    assert not undo.isEnabled()
    assert [path.name for path in baseline.kept(runs)] == ["second"]
    assert not [*tmp_path.rglob("*.trashinfo")]
    assert "second" in {line["name"] for line in listed(page)}


@pytest.mark.off_screen
def test_the_sample_opens_and_fills_every_page(qtbot, window):
    for sample in (SAMPLE, *BESIDE_SAMPLE):
        assert sum(f.stat().st_size for f in sample.rglob("*") if f.is_file()) < 300_000
        told = summary(sample)
        assert (told.left, told.problem) == (0, ""), "every case that was meant is there, and whole"
    window.menu_actions.by_name["open-sample"].trigger()
    settle(qtbot, window)
    assert window.page is window.pages[0], "the ladder and the profile are opened behind it"
    for page in window.pages:
        window.tabs.setCurrentWidget(page)
        settle(qtbot, window)
        assert page.has_content(), page.title
    ladder = next(page for page in window.pages if page.title == "Ladder")
    window.tabs.setCurrentWidget(ladder)
    qtbot.waitUntil(lambda: ladder.at_rest)
    window.redraw.flush()
    assert ladder.speed.chart is not None
    assert ladder.table.source.rowCount() > 3
    assert ladder.answers.who.text()
    assert ladder.reader.title.text() == ladder.answers.who.text(), "selected is what the headline is about"
    said = [
        ladder.words.text(),
        *(cell.words for cell in ladder.answers.cells.values()),
        *ladder.answers.cells,
    ]
    words = [word for text in said for word in text.split() if len(re.findall("[a-zA-Z]", word)) > 1]
    assert len(words) <= 40, words
    timeline = next(page for page in window.pages if page.title == "Timeline")
    assert len(timeline.session.state.fine) > 2
    compare = window.pages[0]
    assert all(view.chart is not None for name, view in compare.views.items() if name != "accuracy")
    assert compare.views["accuracy"].chart is None, "all answer alike, which the cards say: it is not drawn"
    assert compare.views["op-time"].finding


def test_no_run_is_opened_over_one_that_is_measured(qtbot, window, runs, monkeypatch):
    monkeypatch.setattr(type(window.session), "active", property(lambda self: True))
    window.findChild(Library).open(runs / "first")
    settle(qtbot, window)
    assert "A comparison is running" in window.banner.text
    assert window.state.empty
    monkeypatch.undo()


def test_an_empty_page_has_one_button_that_fills_it(qtbot, make_window, runs):
    window = make_window("mute", begin=False)
    page = window.page
    assert page.begin_button is page._empty.buttons["run"]
    assert [b.property("role") for b in page._empty.buttons.values()] == ["primary", "link", "link"]
    page._empty.buttons["open-sample"].click()
    settle(qtbot, window)
    assert not window.state.empty
    assert page.begin_button is None


def test_a_folder_that_cannot_be_read_is_listed_with_the_reason(qtbot, window, runs):
    shutil.copytree(runs / "first", runs / "broken")
    (runs / "broken" / "run.json").write_text("{")
    shutil.copytree(runs / "first", runs / "newer")
    (runs / "newer" / "run.json").write_text('{"schema": 99}')
    page = show_runs(qtbot, window)
    lines = {line["name"]: line for line in listed(page)}
    assert set(lines) == {"first", "second", "other", "broken", "newer"}
    assert lines["broken"]["models"].startswith("cannot be read: run.json is broken")
    assert "newer Kernelscope" in lines["newer"]["models"]
    assert (lines["broken"]["done"], lines["broken"]["result"]) == ("", "")


def test_room_that_no_column_needs_goes_to_what_is_cut(qtbot, qapp):
    table = RunsTable()
    qtbot.addWidget(table)
    run = dataclasses.replace(summary(SAMPLE), result="engine-cuda 2.53–2.77× ort-cuda, " * 3)
    for width, whole in ((700, False), (3000, True), (700, False)):
        table.resize(width, 200)
        table.show_runs([run], None, [])
        table.show()
        qapp.processEvents()
        result = [column.name for column in table.source.columns].index("result")
        assert (table.columnWidth(result) >= table.sizeHintForColumn(result)) is whole
        assert (table.horizontalScrollBar().maximum() == 0) is whole
