"""The verdicts above the charts: a line a model, the largest letters of the page, leading to its points."""

import re
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QTextDocument
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from bench.results.records import Validity
from bench.results.summaries import SAMPLE
from bench.views.sentences.verdicts import verdicts
from gui.shell.docks import EMPTY
from gui.widgets import verdict_strip
from tests.bench import synthetic
from tests.gui import screenshots

# As a text is read: Qt writes a space that does not break as any other.
RELIABLE = verdict_strip.RELIABLE.replace("\N{NO-BREAK SPACE}", " ")
MODELS = ("lenet5-digits", "alexnet")


def opened(made):
    run, found = synthetic.run(
        models=MODELS, backends=("engine-cpu", "ort-cpu"), batches=(1, 4, 16), images=(200,)
    )
    held = Validity(warnings=("the GPU was held back",))
    found[0] = msgspec.structs.replace(found[0], validity=held)
    made.resize(1500, 940)
    made.state.open(run, Path("a-run"), found)
    made.redraw.flush()
    return made


@pytest.fixture
def window(make_window):
    return opened(make_window("ok", begin=False))


@pytest.fixture(scope="module")
def shared(make_shared_window):
    return opened(make_shared_window())


def test_all_models_have_their_line_at_once_and_it_is_the_report_s(same_window):
    strip = same_window.pages[0].strip
    said = verdicts(same_window.state.rows(), [same_window.state.run])
    assert strip.texts == [found.line for found in said]
    assert all(line.isVisible() for line in strip.lines)
    assert strip.height() >= sum(line.height() for line in strip.lines)
    assert len({line.font().pointSizeF() for line in strip.lines}) == 1, "no model stands behind another"
    theme = same_window.theming.theme
    assert all(line.text().startswith(f'<div style="color:{theme.ink}">') for line in strip.lines)
    kind = type(strip.lines[0]).__mro__[1]
    others = [w.font().pointSizeF() for w in same_window.pages[0].findChildren(kind)]
    assert strip.lines[0].font().pointSizeF() == max(others)


def test_a_chart_says_again_nothing_that_stands_above_it(same_window):
    page = same_window.pages[0]
    for name in ("op-time", "speed"):
        view = page.views[name]
        assert f"{page.model}, forward pass: {view.finding}" in page.strip.texts
        assert not view._finding.isVisible()
        assert view.chart.finding  # it goes with the picture
    assert page.views["breakdown"]._finding.isVisible()


def test_a_click_goes_to_the_points_one_after_another_and_to_their_model(window, qtbot):
    page = window.pages[0]
    line = page.strip.lines[0]
    start = line.fontMetrics().horizontalAdvance("lenet5-digits, forward pass: ") + 60
    QTest.mouseMove(line, QPoint(start, line.line_height // 2))
    QTest.mouseClick(line, Qt.MouseButton.LeftButton, pos=QPoint(start, line.line_height // 2))
    held = window.state.case
    assert (held.model, held.backend, held.batch) == ("lenet5-digits", "engine-cpu", 4), (
        "what is certain stands first"
    )
    line = page.strip.lines[1]
    links = [place for place, clause in enumerate(line._clauses) if clause.kind == "slower"]
    line.linkActivated.emit(str(links[0]))
    first = window.state.case
    assert (first.model, first.backend, first.batch) == ("alexnet", "engine-cpu", 1)
    assert page.model == "alexnet"
    line.linkActivated.emit(str(links[0]))
    assert window.state.case.batch == 4
    first = page.strip.lines[0]
    QTest.mouseMove(first, first.rect().center())
    QTest.mouseClick(first, Qt.MouseButton.LeftButton, pos=first.rect().center())
    window.redraw.flush()
    assert window.state.case.model == "lenet5-digits"
    assert EMPTY not in window.inspector.text


def test_what_is_not_measured_is_said_before_and_meanwhile(make_window):
    window = make_window("ok", begin=False)
    run, found = synthetic.run(models=MODELS, backends=("engine-cpu", "ort-cpu"), batches=(1, 4))
    window.state.open(run, Path("a-run"), found[:2])
    window.redraw.flush()
    first, second = window.pages[0].strip.texts
    assert first.endswith("; 2 of 4 cases are not measured yet.")
    assert second == "alexnet: nothing is measured yet."


def test_the_strip_follows_the_theme_and_names_the_doubt(same_window):
    strip = same_window.pages[0].strip
    assert ", doubtful (!) at batch 1 (the GPU was held back); " in strip.texts[0]
    before = strip.lines[0].text()
    same_window.theming.choose("dark")
    assert strip.lines[0].text() != before
    assert same_window.theming.theme.warning in strip.lines[0].text()
    same_window.theming.choose("light")


def test_a_comparison_has_a_line_of_its_own_and_says_whether_to_believe_it(make_window):
    window = make_window("ok", begin=False)
    run, found = synthetic.run(backends=("engine-cuda", "ort-cuda", "engine-cpu", "ort-cpu"), batches=(1, 4))
    held = Validity(warnings=("the GPU was held back",))
    found = [
        msgspec.structs.replace(m, validity=held) if m.case.backend == "engine-cpu" else m for m in found
    ]
    window.resize(1500, 940)
    window.state.open(run, Path("a-run"), found)
    window.redraw.flush()
    page, (line,) = window.pages[0], window.pages[0].strip.lines
    document = QTextDocument()
    document.setHtml(line.text())
    told = [text for text in document.toPlainText().splitlines() if text.strip()]
    cuda, cpu, answers = (text.replace("\N{NON-BREAKING HYPHEN}", "-") for text in told)
    assert "engine-cuda is" in cuda
    assert RELIABLE in cuda
    assert RELIABLE not in cpu
    assert cpu.strip().startswith(
        "\N{BLACK SQUARE} engine-cpu: doubtful (!) beside ort-cpu at both batch sizes"
    )
    assert answers.startswith("answers identical")
    doubted = line.text().split("engine\N{NON-BREAKING HYPHEN}cpu:")[1]
    theme = window.theming.theme
    assert not {theme.failed, theme.good} & set(re.findall("#[0-9A-F]{6}", doubted.split("</div>")[0]))
    assert page.about.text().startswith("Measured on Example GPU 80 GB and ")
    assert "batch 1,4" in page.about.text()
    assert "round by round" in page.about.text()
    assert window.room.toolbar.folded.words.startswith("Next run:")


def test_in_a_low_window_the_first_sentence_is_whole_and_all_can_be_scrolled_to(window, qtbot):
    window.resize(1268, 600)
    window.redraw.flush()
    strip = window.pages[0].strip
    qtbot.waitUntil(lambda: strip.height() < 80)
    first, second = strip.lines
    assert first.text()
    assert first.geometry().bottom() <= strip.viewport().height()
    bar = strip.verticalScrollBar()
    bar.setValue(bar.maximum())
    assert second.geometry().bottom() - bar.value() <= strip.viewport().height()
    assert window.room.toolbar.buttons["run"].isVisible()


@pytest.mark.parametrize("size", [(1354, 724), (1268, 676)])
def test_on_a_laptop_s_screen_all_models_have_their_answer(make_window, qtbot, size):
    window = make_window("ok", begin=False)
    window.resize(*size)
    screenshots.open_run(window, SAMPLE)
    qtbot.waitUntil(lambda: not window.form.isVisible())
    window.redraw.flush()
    QApplication.processEvents()
    window.redraw.flush()
    strip = window.pages[0].strip
    first, second = strip.lines
    assert first.geometry().bottom() <= strip.viewport().height()
    assert second.geometry().top() + second.line_height <= strip.viewport().height()
    if size[1] > 700:
        assert strip.verticalScrollBar().maximum() == 0
    for view in window.page.views.values():
        assert all(plot.height() >= 160 for plot in view.plots.values() if view.isVisible())
        assert not view._finding.isVisible() or not view._finding.lines()[-1].endswith("…"), view.finding
