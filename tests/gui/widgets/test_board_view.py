"""The scoreboard in the window: the cells that all others show, leading to their cases, holding still."""

import csv
import io
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication, QBoxLayout

from bench.results.records import Case
from bench.views.charts.scoreboard import fill
from bench.views.tables import scoreboard
from tests.bench import synthetic
from tests.gui.shared import as_found

CPU = ("engine-cpu", "ort-cpu")


@pytest.fixture(scope="module")
def opened(make_shared_window):
    window = make_shared_window()
    window.resize(1500, 940)
    failures = {("engine-cpu", 16): ("crashed", "the worker was killed by SIGSEGV")}
    run, found = synthetic.run(batches=(1, 16, 64), images=(200,), failures=failures)
    window.state.open(run, Path("a-run"), found)
    window.redraw.flush()
    return window


@pytest.fixture
def window(opened):
    with as_found(opened, themes=True):
        yield opened


def data(board, row, batch, role=Qt.ItemDataRole.DisplayRole):
    places = [scoreboard.batch_of(column) for column in board.source.columns]
    return board.source.index(row, places.index(batch)).data(role)


def test_cells_have_the_text_the_colour_and_what_is_behind_them(window):
    board, told = window.pages[0].board, window.state.board("lenet5-digits")
    assert board.isVisible()
    for row, line in enumerate(told.lines):
        for cell in line.cells:
            assert data(board, row, cell.batch) == cell.text
            colour = data(board, row, cell.batch, Qt.ItemDataRole.BackgroundRole)
            assert colour == (QColor(fill(cell)) if fill(cell) else None)
            tip = data(board, row, cell.batch, Qt.ItemDataRole.ToolTipRole)
            assert cell.why.split()[0] in tip
    assert [line.contender for line in told.lines] == ["engine-cuda", "engine-cpu", "ort-cuda", "ort-cpu"]


def test_in_the_dark_it_has_colours_of_the_dark(window):
    board, cell = window.pages[0].board, window.state.board("lenet5-digits").lines[0].at(1)
    window.theming.choose("dark")
    colour = data(board, 0, 1, Qt.ItemDataRole.BackgroundRole)
    window.theming.choose("light")
    assert colour == QColor(fill(cell, dark=True)) != QColor(fill(cell))


def test_what_is_copied_is_what_is_behind_every_cell(window):
    board = window.pages[0].board
    board.copy_csv()
    header, *lines = csv.reader(io.StringIO(QApplication.clipboard().text()))
    assert header == ["contender", "reference", "batch", "grade", "speedup", "low", "high", "text", "why"]
    assert len(lines) == 12
    board.copy_markdown()
    assert "| engine-cpu | ort-cpu | " in QApplication.clipboard().text()


def test_a_cell_leads_to_its_case_and_a_case_to_its_cell(make_window):
    window = make_window("ok", begin=False)
    run, found = synthetic.run(backends=CPU, batches=(1, 16), images=(200,))
    window.state.open(run, Path("a-run"), found)
    window.redraw.flush()
    board = window.pages[0].board
    places = [scoreboard.batch_of(column) for column in board.source.columns]
    board.setCurrentIndex(board.source.index(0, places.index(16)))
    assert (window.state.case.backend, window.state.case.batch) == ("engine-cpu", 16)
    seen = board.grab(board.visualRect(board.currentIndex()).translated(board.viewport().pos())).toImage()
    inside = seen.pixelColor(6, seen.height() // 2)
    assert inside == data(board, 0, 16, Qt.ItemDataRole.BackgroundRole), "the colour of its verdict"
    assert seen.pixelColor(0, seen.height() // 2) == QColor(window.theming.theme.ink), "in a frame"
    window.state.select(Case(model="lenet5-digits", backend="ort-cpu", precision="fp32", batch=1, images=200))
    window.redraw.flush()
    at = board.currentIndex()
    assert (at.row(), places[at.column()]) == (1, 1)


def test_it_holds_still_while_it_fills_and_stands_beside_the_verdict(make_window):
    window = make_window("ok", begin=False)
    run, found = synthetic.run(backends=CPU, batches=(1, 16), images=(200,))
    window.resize(1500, 940)
    window.state.open(run, Path("a-run"), found[:1])
    window.redraw.flush()
    QApplication.processEvents()
    board, strip = window.pages[0].board, window.pages[0].strip
    before = board.geometry()
    assert board.isVisible()
    assert before.left() >= strip.geometry().right()
    window.state.add(found[1:])
    window.redraw.flush()
    QApplication.processEvents()
    assert board.geometry() == before
    assert data(board, 0, 16).endswith(" slower")


def test_a_wide_board_stands_below_and_a_run_of_references_has_none(make_window):
    window = make_window("ok", begin=False)
    window.resize(1500, 940)
    run, found = synthetic.run(images=(200,))  # twelve batch sizes
    window.state.open(run, Path("a-run"), found)
    window.redraw.flush()
    QApplication.processEvents()
    page = window.pages[0]
    assert page.board.geometry().top() >= page.strip.geometry().bottom()
    assert page._body.layout().itemAt(0).layout().direction() == QBoxLayout.Direction.TopToBottom
    alone = [m for m in found if m.case.backend == "ort-cpu"]
    window.state.open(msgspec.structs.replace(run, cases=tuple(m.case for m in alone)), Path("b"), alone)
    window.redraw.flush()
    assert not page.board.isVisible()
