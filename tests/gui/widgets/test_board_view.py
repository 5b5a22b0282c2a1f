"""The scoreboard in the window: the cells that all others show, leading to their cases, holding still."""

import csv
import io
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication

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


def board_of(window):
    (row,) = window.pages[0].cards.rows
    return row.board


def data(board, row, batch, role=Qt.ItemDataRole.DisplayRole):
    places = [scoreboard.batch_of(column) for column in board.source.columns]
    return board.source.index(row, places.index(batch)).data(role)


def test_cells_have_the_text_the_colour_and_what_is_behind_them(window):
    board, told = board_of(window), window.state.verdicts()[0].board
    assert board.isVisible()
    compared = [line for line in told.lines if not line.is_reference]
    assert board.source.rowCount() == len(compared), "the references' times are in charts and table"
    for row, line in enumerate(compared):
        for cell in line.cells:
            short = f"▼ {cell.text.removesuffix(' slower')}" if cell.grade == "slower" else cell.text
            assert data(board, row, cell.batch) == ("?" if cell.grade == "undecided" else short)
            colour = data(board, row, cell.batch, Qt.ItemDataRole.BackgroundRole)
            assert colour == (QColor(fill(cell)) if fill(cell) else None)
            tip = data(board, row, cell.batch, Qt.ItemDataRole.ToolTipRole)
            assert cell.why.split()[0] in tip
    assert [line.contender for line in told.lines] == ["engine-cuda", "engine-cpu", "ort-cuda", "ort-cpu"]


def test_in_the_dark_it_has_colours_of_the_dark(window):
    board, cell = board_of(window), window.state.verdicts()[0].board.lines[0].at(1)
    window.theming.choose("dark")
    colour = data(board, 0, 1, Qt.ItemDataRole.BackgroundRole)
    window.theming.choose("light")
    assert colour == QColor(fill(cell, dark=True)) != QColor(fill(cell))


def test_what_is_copied_is_what_is_behind_every_cell(window):
    board = board_of(window)
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
    board = board_of(window)
    places = [scoreboard.batch_of(column) for column in board.source.columns]
    board.setCurrentIndex(board.source.index(0, places.index(16)))
    assert (window.state.case.backend, window.state.case.batch) == ("engine-cpu", 16)
    seen = board.grab(board.visualRect(board.currentIndex()).translated(board.viewport().pos())).toImage()
    inside = seen.pixelColor(4, 4)  # beside the text
    assert inside == data(board, 0, 16, Qt.ItemDataRole.BackgroundRole), "the colour of its verdict"
    assert seen.pixelColor(0, seen.height() // 2) == QColor(window.theming.theme.ink), "in a frame"
    of = {"model": "lenet5-digits", "precision": "fp32", "batch": 1, "images": 200}
    window.state.select(Case(backend="engine-cpu", **of))
    window.redraw.flush()
    at = board.currentIndex()
    assert (at.row(), places[at.column()]) == (0, 1)
    window.state.select(Case(backend="ort-cpu", **of))
    window.redraw.flush()
    assert not board.selectedIndexes(), "a reference has no cell"
    board.setCurrentIndex(at)
    assert window.state.case.backend == "engine-cpu", "nor is one left to be gone to"


def test_it_holds_still_while_it_fills_and_a_run_of_references_has_none(make_window):
    window = make_window("ok", begin=False)
    run, found = synthetic.run(backends=CPU, batches=(1, 16), images=(200,))
    window.resize(1500, 940)
    window.state.open(run, Path("a-run"), found[:1])
    window.redraw.flush()
    QApplication.processEvents()
    board = board_of(window)
    before = board.size()
    assert board.isVisible()
    window.state.add(found[1:])
    window.redraw.flush()
    QApplication.processEvents()
    assert board.size() == before
    assert data(board, 0, 16).startswith("▼ ")
    alone = [m for m in found if m.case.backend == "ort-cpu"]
    window.state.open(msgspec.structs.replace(run, cases=tuple(m.case for m in alone)), Path("b"), alone)
    window.redraw.flush()
    assert not board_of(window).isVisible()


def test_columns_grow_narrow_before_any_is_out_of_sight(make_window):
    window = make_window("ok", begin=False)
    run, found = synthetic.run(batches=(1, 4, 16, 64, 256), images=(200,))
    window.state.open(run, Path("a-run"), found)
    window.redraw.flush()
    board = board_of(window)
    wide = board.sizeHint().width()
    board.setFixedWidth(wide)
    QApplication.processEvents()
    usual = board.columnWidth(1)
    board.setFixedWidth(wide - 30)
    QApplication.processEvents()
    assert board.horizontalScrollBar().maximum() == 0
    assert board.columnWidth(1) < usual
    assert board.sizeHint().width() == wide, "what it wants stays the same"
    board.setFixedWidth(wide)
    QApplication.processEvents()
    assert board.columnWidth(1) == usual


def test_boards_below_each_other_have_their_columns_in_line_and_say_the_batch_sizes_once(make_window):
    window = make_window("ok", begin=False)
    models, backends = ("lenet5-digits", "alexnet"), ("engine-cpu", "ort-cpu")
    run, found = synthetic.run(models=models, backends=backends, batches=(1, 16, 256), images=(200,))
    window.state.open(run, Path("a-run"), found)
    window.redraw.flush()
    QApplication.processEvents()
    first, second = (row.board for row in window.pages[0].cards.rows)
    widths = [[board.columnWidth(place) for place in range(4)] for board in (first, second)]
    assert widths[0] == widths[1]
    heads = [board.horizontalHeader() for board in (first, second)]
    assert [head.isHidden() for head in heads] == [False, True]
    assert first.source.headerData(0, Qt.Orientation.Horizontal, Qt.ItemDataRole.DisplayRole) == "batch"
    # Of other batch sizes, it has headings of its own.
    fewer = [m for m in found if m.case.model == models[0] or m.case.batch == 1]
    window.state.open(msgspec.structs.replace(run, cases=tuple(m.case for m in fewer)), Path("b"), fewer)
    window.redraw.flush()
    assert not any(row.board.horizontalHeader().isHidden() for row in window.pages[0].cards.rows)


def test_a_board_with_many_batch_sizes_scrolls_and_pushes_nothing_away(make_window):
    window = make_window("ok", begin=False)
    window.resize(1366, 768)
    run, found = synthetic.run(images=(200,))  # twelve batch sizes
    window.state.open(run, Path("a-run"), found)
    window.redraw.flush()
    QApplication.processEvents()
    (row,) = window.pages[0].cards.rows
    held = row.cells["Held back by"]
    assert held.mapTo(window, held.rect().topRight()).x() < window.width()
    assert row.board.horizontalScrollBar().maximum() > 0
    assert row.board.viewport().height() >= row.board.source.rowCount() * row.board.rowHeight(0)
