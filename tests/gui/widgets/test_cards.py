"""The cards above the charts: a row a model, three answers, leading to their points; few words, and room for
the table."""

import re
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QApplication, QPushButton

from bench.results.messages import Provisional
from bench.results.records import Validity
from bench.results.summaries import SAMPLE
from bench.run import beforehand
from bench.views.cards import FAST, HELD, RIGHT
from gui.pages.ladder import LadderPage
from gui.shell import remedies
from tests.bench import synthetic
from tests.gui import screenshots

MODELS = ("lenet5-digits", "alexnet")
FEW = "only 3 samples fit the budget; a larger --budget helps"
MOST_WORDS = 40
FIELDS = (QAccessible.Role.ComboBox, QAccessible.Role.SpinBox, QAccessible.Role.CheckBox)


def opened(window):
    run, found = synthetic.run(
        models=MODELS, backends=("engine-cpu", "ort-cpu"), batches=(1, 4, 16), images=(200,)
    )
    found[0] = msgspec.structs.replace(found[0], validity=Validity(warnings=(FEW,)))
    window.resize(1500, 940)
    window.state.open(run, Path("a-run"), found)
    window.redraw.flush()
    return window


@pytest.fixture(scope="module")
def shared(make_shared_window):
    return opened(make_shared_window())


def texts(row):
    return [row.name.words, *(cell.words for cell in row.cells.values())]


def test_each_model_has_three_answers_and_the_sentence_behind_them(same_window):
    cards = same_window.pages[0].cards
    first, second = cards.rows
    assert texts(first)[:2] == ["lenet5-digits", "✓ same answers 200 images, accuracy 97.25 %"]
    assert first.cells[FAST].words.endswith("× engine-cpu slower than ort-cpu, 2 of 3 batch sizes")
    assert first.cells[HELD].words.startswith("conv, ")
    assert second.cells[FAST].words.endswith("× engine-cpu slower than ort-cpu"), "nothing of it is doubted"
    theme = same_window.theming.theme
    assert (first.cells[RIGHT].ink, first.cells[FAST].ink, first.cells[HELD].ink) == (
        theme.good, theme.failed, theme.ink
    )  # fmt: skip
    assert "doubtful (!) at batch 1" in first.cells[FAST].toolTip()
    assert first.cells[RIGHT].accessibleName().startswith("Right? ✓ same answers")
    cards.copy_action.trigger()
    said = QApplication.clipboard().text()
    assert said.startswith("lenet5-digits, forward pass: engine-cpu is ")
    assert "alexnet, forward pass: " in said
    assert "Held back by: conv" in said
    assert all(
        view._finding.isHidden()
        for name, view in same_window.pages[0].views.items()
        if name in ("op-time", "speed", "breakdown")
    ), "a chart says again nothing that stands above it"


def test_a_cell_goes_to_its_points_by_mouse_and_keyboard_and_a_name_to_its_charts(make_window, qtbot):
    window = opened(make_window("ok", begin=False))
    page = window.pages[0]
    first, second = page.cards.rows
    qtbot.mouseClick(first.cells[FAST], Qt.MouseButton.LeftButton)
    assert (window.state.case.model, window.state.case.batch) == ("lenet5-digits", 4), "what is sure"
    qtbot.mouseClick(first.cells[FAST], Qt.MouseButton.LeftButton)
    assert window.state.case.batch == 16
    qtbot.keyClick(second.cells[HELD], Qt.Key.Key_Space)
    assert (window.state.case.model, window.state.case.batch) == ("alexnet", 16)
    window.redraw.flush()
    assert page.model == "alexnet"
    assert [row.name.marked for row in page.cards.rows] == [False, True]
    qtbot.mouseClick(first.name, Qt.MouseButton.LeftButton)
    window.redraw.flush()
    assert page.views["op-time"].chart.model == "lenet5-digits"
    assert page.below.text() == "↓ lenet5-digits", "whose charts they are, also where titles are cut"
    second.board.setCurrentIndex(second.board.source.index(0, 1))
    assert (window.state.case.model, window.state.case.batch) == ("alexnet", 1)


def test_it_says_from_the_start_what_is_to_come_and_follows_the_theme(make_window):
    window = make_window("ok", begin=False)
    run, found = synthetic.run(models=MODELS, backends=("engine-cpu", "ort-cpu"), batches=(1, 4))
    window.state.open(run, Path("a-run"), found[:2])
    window.redraw.flush()
    page = window.pages[0]
    assert len(page.cards.rows) == 2, "so that nothing moves when the second comes"
    assert page.cards.rows[1].cells[FAST].words == "– not measured yet"
    assert not page.cards.rows[1].cells[FAST].isEnabled()
    assert page.stopped.text() == "2 of 8"
    assert page.resume.isVisible()
    window.theming.choose("dark")
    assert page.cards.rows[0].cells[RIGHT].ink == window.theming.theme.good
    window.theming.choose("light")


def words(*widgets):
    """Words with at least two letters of what the screen reader's tree has visible in these widgets; not what
    is chosen in fields."""
    shown, left = [], [QAccessible.queryAccessibleInterface(widget) for widget in widgets]
    while left:
        at = left.pop()
        children = [] if at.role() in FIELDS else [at.child(place) for place in range(at.childCount())]
        visible = [child for child in children if child is not None and not child.state().invisible]
        left += visible
        if not visible and not at.state().invisible and at.role() not in FIELDS:
            name = at.text(QAccessible.Text.Name)
            shown += [name.removeprefix(next(filter(name.startswith, (RIGHT, FAST, HELD)), ""))
                      if at.role() == QAccessible.Role.Button else name]  # fmt: skip
    return [word for text in shown for word in text.split() if len(re.findall("[a-zA-Z]", word)) > 1]


def test_on_a_laptop_the_cards_are_few_words_and_five_rows_of_the_table_remain(make_window, qtbot):
    window = make_window("ok", begin=False)
    window.resize(1366, 768)
    screenshots.open_run(window, SAMPLE)
    qtbot.waitUntil(lambda: not window.form.isVisible())
    page = window.pages[0]
    window.redraw.flush()
    window.room.show_form()
    QApplication.processEvents()
    for row in page.cards.rows:
        assert row.board.horizontalScrollBar().maximum() == 0, "all batch sizes are seen beside the form, too"
    window.form_dock.close()
    screenshots.select(window)  # the inspector stands beside it
    window.redraw.flush()
    QApplication.processEvents()
    window.redraw.flush()
    beside = (page.stopped, page.resume, page.retry, page.doubts)
    said = words(page.cards, *(each for each in beside if each.isVisible()))
    assert {"copy", "batch", "engine-cuda", "copies"} <= {*said}, "the tree has what is seen"
    assert len(said) <= MOST_WORDS, said
    table = page.table
    line = table.verticalHeader().defaultSectionSize()
    assert table.viewport().height() >= 5 * line
    assert page.cards.verticalScrollBar().maximum() == 0
    for view in page.views.values():
        assert all(plot.height() >= 160 for plot in view.plots.values() if view.isVisible())
    for row in page.cards.rows:
        for cell in row.cells.values():
            assert cell.is_whole, "nothing is cut"


def test_a_ladder_opens_with_few_words_and_the_foot_says_what_its_page_can_do(make_window, tmp_path, qtbot):
    window = make_window("ok", begin=False)
    window.resize(1366, 768)
    page = window.page_of(LadderPage)
    foot = window.progress.words
    assert "F5 runs the comparison" in foot.text()
    chosen = window.form.models.checked
    window.form.models.check([])
    window.form.models.chosen.emit()
    assert not window.form.run_button.isEnabled()
    assert foot.text() == window.form.refused == window.form.summary, "and not that F5 runs"
    window.form.models.check(chosen)
    window.form.models.chosen.emit()
    assert foot.text() == "Ready. F5 runs the comparison."
    window.tabs.setCurrentWidget(page)
    screenshots.open_beside(window, tmp_path)
    qtbot.waitUntil(lambda: page.at_rest and page.answers.isVisible())
    window.redraw.flush()
    able = page.bar.run_button.isEnabled()  # a ladder of a GPU's kernels: not where there is none
    here = "Ready." if able else "Kernels for cuda cannot run here. Choose the device cpu above; then"
    assert foot.text() == page.ready == f"{here} Ctrl+Shift+R runs the ladder."
    assert "Rung" in {find.kind for find in page.findable()}
    said = words(page.answers, page.words)
    assert {"whole_image", "faster", "multiprocessor"} <= {*said}
    assert len(said) <= MOST_WORDS, said
    before = window.sessions
    busy = SimpleNamespace(active=True, busy_words="A ladder is running")
    window.sessions = [busy]
    page.session.stands.emit(page.session.standing)
    assert foot.text() == "A ladder is running.", "and not that one can be started"
    window.sessions = before


def test_doubts_are_a_badge_that_opens_the_list_whose_buttons_start_again(make_window, qtbot, monkeypatch):
    window = opened(make_window("ok", begin=False))
    page, problems = window.pages[0], window.problems
    assert window.problems_dock.isHidden(), "a doubt alone does not open it"
    assert page.doubts.text() == "Doubts: 1 !", "as many as there are marks"
    qtbot.mouseClick(page.doubts, Qt.MouseButton.LeftButton)
    assert window.problems_dock.isVisible()
    assert window.problems_dock.windowTitle() == "Problems (1)"
    assert problems.lines == [("lenet5-digits: engine-cpu, batch 1", "doubtful", FEW)]
    started = []
    monkeypatch.setattr(window, "start", started.append)
    for typed in ("nothing of this kind", "", "lenet5"):  # what the filter leaves out comes back whole
        problems.filter.setText(typed)
        problems.show_again()
    (button,) = [each for each in problems.findChildren(QPushButton) if each.isVisible()]
    assert button.text() == "Measure longer"
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    (job,) = started
    assert job.models == ("lenet5-digits",)
    assert job.budget_s == 4 * window.state.run.job.budget_s


def test_a_run_waits_for_a_quiet_machine_or_until_told_otherwise(make_window, qtbot, monkeypatch):
    monkeypatch.setattr(remedies, "LOOK_MS", 1)
    window = make_window("ok", begin=False)
    run, found = synthetic.run(backends=("engine-cpu", "ort-cpu"), batches=(1,))
    busy = {"cores": 2.0, "wall_s": 1.0, "others_s": 1.9}
    window.state.open(run, Path("a-run"), [msgspec.structs.replace(m, load=busy) for m in found])
    window.redraw.flush()
    seen = beforehand.Looked(("Another program, make, uses 190 % of one core: times may be unsteady.",))
    monkeypatch.setattr(beforehand, "look", lambda: seen)
    started = []
    monkeypatch.setattr(window, "start", started.append)
    buttons = {each.text(): each for each in window.problems.findChildren(QPushButton)}
    assert list(buttons) == ["Wait until the machine is quiet", "Use 1 thread"]
    wait = buttons["Wait until the machine is quiet"]
    wait.click()
    qtbot.waitUntil(lambda: "make, uses 190 %" in window.banner.text)
    assert len(window.banner.notices) == 1, "what is said of the waiting replaces what was said before"
    window.banner.dismiss()
    qtbot.waitUntil(lambda: not window.remedies.waiting)
    wait.click()
    window.tell("Something else.")
    qtbot.waitUntil(lambda: "make, uses 190 %" in window.banner.text)
    assert window.banner.button.text() == "Start now"
    monkeypatch.setattr(beforehand, "look", beforehand.Looked)
    qtbot.waitUntil(lambda: bool(started))
    assert started.pop() == run.job
    assert window.banner.text == "Something else."
    buttons["Use 1 thread"].click()
    assert started.pop().threads == 1


def test_many_models_scroll_and_each_keeps_its_line(make_window):
    window = make_window("ok", begin=False)
    run, found = synthetic.run(
        models=tuple(f"net{n}" for n in range(12)), backends=("engine-cpu", "ort-cpu"), batches=(1,)
    )
    window.resize(1366, 768)
    window.state.open(run, Path("a-run"), found)
    window.redraw.flush()
    QApplication.processEvents()
    cards = window.pages[0].cards
    assert len(cards.rows) == 12
    assert cards.height() <= 0.35 * window.height()
    assert cards.verticalScrollBar().maximum() > 0
    shown = cards.viewport().rect()
    tops = [row.name.mapTo(cards.viewport(), row.name.rect().topLeft()) for row in cards.rows]
    for row, top in zip(cards.rows, tops, strict=True):
        assert not shown.contains(top) or shown.bottom() >= top.y() + row.name.height() - 1, (
            "none is cut in two"
        )


def test_figures_are_shown_before_the_images_are_looked_at_and_go_with_their_worker(make_window):
    window = make_window("ok", begin=False)
    run, found = synthetic.run(backends=("engine-cpu", "ort-cpu"), batches=(1, 16), images=(10_000,))
    window.state.open(run, Path("a-run"), ())
    page, first = window.pages[0], [m for m in found if m.case.batch == 1]
    window.state.turn(first[0].case, "prepare")
    window.state.expect(Provisional(case=first[1].case, median_ns=5e4))
    window.redraw.flush()
    results = [row.split("|")[2].strip() for row in shown(page.table)]
    assert results == ["measuring…", "preparing"]
    for measured in first:
        early = msgspec.structs.replace(measured, accuracy=None, layers=())
        window.state.expect(Provisional(case=measured.case, median_ns=5e4, measurement=early))
        window.state.turn(measured.case, "check", 0.25)
    window.redraw.flush()
    (row,) = page.cards.rows
    assert row.cells[FAST].words.endswith("× engine-cpu slower than ort-cpu, 1 of 2 batch sizes")
    assert row.cells[RIGHT].words == "✓ as float64"
    assert [line.split("|")[2].strip() for line in shown(page.table)] == ["checking 25 %"] * 2
    assert page.table.part_of(0) == 0.25
    assert page.exported().charts == (), "it may come to another result"
    assert window.state.missing == 4
    window.state.add(first[:1])
    window.redraw.flush()
    assert sorted(line.split("|")[2].strip() for line in shown(page.table)) == ["checking 25 %", "ok"]
    window.state.settle()  # the worker has ended
    window.redraw.flush()
    assert [row.case for row in window.state.rows()] == [first[0].case]


def shown(table):
    model = table.source
    return ["|".join(str(model.index(i, j).data()) for j in range(6)) for i in range(model.rowCount())]
