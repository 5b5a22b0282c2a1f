"""One definition of a column is all that a table needs: it stands in the terminal, in CSV, JSON and Markdown
and in the window, with one value, one text and one mark; and the window's table stays where the user is."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from PySide6.QtCore import QEvent, QPoint, QSettings, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QApplication, QMenu
from rich.console import Console

from bench.views.sentences import profile_findings as findings
from bench.views.tables import comparison_tables as tables
from bench.views.tables import compiled_tables, ladder_tables, profile_tables, run_tables
from bench.views.tables.grid import Grid, stacked
from bench.views.tables.table import Column, Table, pick, records, to_csv, to_json, to_markdown
from bench.words import units
from gui.pages import compare as rows_table
from gui.pages import runs as runs_table
from gui.pages.ladder import ladder_reader
from gui.widgets.table_view import TableView


@dataclass(frozen=True)
class Toy:
    name: str
    time_s: float | None
    doubts: tuple[str, ...] = ()
    shape: tuple[int, ...] = (2, 3)


ROWS = (
    Toy("=sum(a|b)", 0.002),
    Toy("late", 1.5e-6, ("the machine was unquiet",)),
    Toy("lost", None),
    Toy("mid", 3e-4),
)
COLUMNS: tuple[Column[Toy], ...] = (
    Column("name", left=True),
    Column("shape", text=lambda shape: "×".join(map(str, shape))),
)
TIME: Column[Toy] = Column(
    "time_s", text=lambda s: units.si(s, "s"), doubts=lambda t: t.doubts, title="time", tip="Of a pass"
)


def test_a_sorted_column_keeps_its_heading_and_a_lower_table_its_selected_row(qtbot):
    view = View("Toys")
    qtbot.addWidget(view)
    view.resize(500, 400)
    wide = replace(TIME, title="a heading wider than what is in it")
    view.show_table(Table((*COLUMNS, wide), [Toy(f"toy {n}", n * 1e-6) for n in range(12)]))
    view.show()
    header = view.horizontalHeader()
    view.sortByColumn(2, Qt.SortOrder.DescendingOrder)
    assert header.sectionSize(2) >= header.sectionSizeHint(2), "the arrow takes no letter away"
    view.setCurrentIndex(view.source.index(11, 0))
    view.resize(500, 120)
    QApplication.processEvents()
    assert view.viewport().rect().contains(view.visualRect(view.currentIndex()))
    view.scrollToTop()  # away from it, it is not fetched back
    view.resize(500, 110)
    QApplication.processEvents()
    assert not view.viewport().rect().intersects(view.visualRect(view.currentIndex()))


class View(TableView):
    def key(self, row: Toy) -> str:
        return row.name

    def target(self, row: Toy) -> str:
        return row.name


def text_of(renderable: Any, width: int = 80) -> str:
    out = io.StringIO()
    Console(file=out, width=width, highlight=False).print(renderable)
    return out.getvalue()


@pytest.fixture
def view(qtbot: Any) -> View:
    made = View("Toys")
    qtbot.addWidget(made)
    made.show_table(Table((*COLUMNS, TIME), ROWS))
    return made


def names(view: View) -> list[str]:
    return [row.name for row in view.source.rows]


def test_a_column_is_one_entry(view: View) -> None:
    without, table = Table(COLUMNS, ROWS), Table((*COLUMNS, TIME), ROWS, "Toys", ("A note.",))
    for made in (without, table):
        there = made is table
        grids = text_of(Grid(made)), text_of(stacked([made]))
        assert [("1.50 µs !" in shown, " time" in shown) for shown in grids] == 2 * [(there, there)]
        (line,) = (item for item in csv.DictReader(io.StringIO(to_csv(made))) if item["name"] == "late")
        assert line.get("time_s") == ("1.5e-06" if there else None)
        assert json.loads(to_json(records(made)))[1].get("time_s") == (1.5e-6 if there else None)
        assert ("| 1.50 µs ! |" in to_markdown(made)) == there
        assert ("| time s |" in to_markdown(made, by_name=True)) == there
        view.show_table(made)
        assert view.source.columnCount() == len(made.columns)
    cell = view.source.index(1, 2)
    assert cell.data() == "1.50 µs !"
    assert cell.data(Qt.ItemDataRole.ToolTipRole) == "the machine was unquiet"
    heads = [view.source.headerData(2, Qt.Orientation.Horizontal, role)
             for role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole)]  # fmt: skip
    assert heads == ["time", "Of a pass"]
    view.copy_csv()
    assert QApplication.clipboard().text() == to_csv(table)
    view.copy_markdown()
    assert QApplication.clipboard().text() == to_markdown(table)


def test_files_hold_values_and_what_people_read_is_text() -> None:
    table = Table((*COLUMNS, TIME), ROWS)
    first, _, lost, _ = csv.DictReader(io.StringIO(to_csv(table)))
    assert first == {"name": "'=sum(a|b)", "shape": "2x3", "time_s": "0.002"}
    assert (lost["time_s"], records(table)[2]["time_s"]) == ("", None)
    assert "=sum(a\\|b)" in to_markdown(table)


def test_what_tells_nothing_is_left_out_and_an_empty_table_keeps_its_heads() -> None:
    idle: Column[Toy] = Column("zero", lambda _: 0, idle=True)
    lost = Table((*COLUMNS, TIME, idle), ROWS[2:3])
    assert [column.name for column in lost.telling().columns] == ["name", "shape"]
    assert "zero" in to_markdown(replace(lost, columns=(replace(idle, idle=False),)))
    assert to_markdown(replace(lost, rows=())).startswith("| name | shape | time | zero |")


def test_a_table_sorts_by_value_with_what_has_none_last_and_is_its_own_order_again(view: View) -> None:
    view.sortByColumn(2, Qt.SortOrder.AscendingOrder)
    assert names(view) == ["late", "mid", "=sum(a|b)", "lost"]
    view.sortByColumn(2, Qt.SortOrder.DescendingOrder)
    assert names(view) == ["=sum(a|b)", "mid", "late", "lost"]
    view.sortByColumn(1, Qt.SortOrder.AscendingOrder)  # all alike: as they stood
    assert names(view) == ["=sum(a|b)", "mid", "late", "lost"]
    view.sortByColumn(-1, Qt.SortOrder.AscendingOrder)
    assert names(view) == [row.name for row in ROWS]


def test_rows_that_come_change_and_go_leave_the_user_where_he_is(view: View) -> None:
    gone: list[str] = []
    view.picked.connect(gone.append)
    view.sortByColumn(2, Qt.SortOrder.AscendingOrder)
    view.setCurrentIndex(view.source.index(names(view).index("mid"), 0))
    assert gone == ["mid"]
    columns = view.source.columns
    faster = Toy("mid", 1e-9)
    view.show_table(Table(columns, (*ROWS[:3], faster, Toy("new", 1e-8))))
    assert names(view) == ["mid", "new", "late", "=sum(a|b)", "lost"]
    assert view.source.rows[view.currentIndex().row()] is faster
    view.show_table(Table(columns, (faster, ROWS[1])))
    assert names(view) == ["mid", "late"]
    assert view.source.rows[view.currentIndex().row()] is faster
    view.show_table(Table(columns, (ROWS[1], ROWS[2])))  # without the row he is at
    assert names(view) == ["late", "lost"]
    view.follow("lost")
    assert view.currentIndex().row() == 1
    assert gone == ["mid"], "nobody went anywhere"
    # Two that cannot be told apart, or none that stays: a new table.
    view.show_table(Table(columns, (ROWS[0], ROWS[0])))
    assert names(view) == 2 * ["=sum(a|b)"]
    assert not view.currentIndex().isValid()


def test_the_selected_rows_alone_are_copied_as_they_are_sorted(view: View) -> None:
    view.sortByColumn(2, Qt.SortOrder.DescendingOrder)
    view.selectRow(0)
    assert len(view.chosen_rows()) == len(ROWS)  # one is where the user is, and no choice
    view.selectAll()
    assert [row.name for row in view.chosen_rows()] == names(view)


@pytest.mark.parametrize(
    "columns",
    [
        *(tables.COLUMNS, tables.LAYER_COLUMNS, ladder_tables.COLUMNS, compiled_tables.COLUMNS),
        *(profile_tables.LINE_COLUMNS, (*findings.COLUMNS, *findings.COUNTED), profile_tables.COUNTED),
        *(run_tables.COLUMNS, rows_table.COLUMNS, ladder_reader.RUNG_COLUMNS),
        (runs_table.STARTED, *runs_table.OTHERS),
    ],
)
def test_columns_are_known_by_their_names(columns: Sequence[Column[Any]]) -> None:
    """A name that is there twice would be lost in JSON."""
    found = [column.name for column in columns]
    assert len(set(found)) == len(found)


def test_columns_are_picked_by_name_under_other_headings() -> None:
    picked = pick((*COLUMNS, TIME), "time_s", Column("more", lambda _: 1), "name", name="who")
    assert [(c.name, c.heading) for c in picked] == [("time_s", "time"), ("more", "more"), ("name", "who")]
    with pytest.raises(KeyError):
        pick(COLUMNS, "nosuch")


def test_a_row_that_another_selection_left_is_picked_by_a_click_again(qtbot, view):
    view.show()
    picked = []
    view.picked.connect(picked.append)
    at = view.visualRect(view.source.index(1, 0)).center()
    for _ in range(2):
        qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=at)
        view.follow("no row")
        assert not view.selectedIndexes()
    assert picked == ["late", "late"]


def test_the_menu_of_a_heading_leaves_no_action_behind(view):
    before = len(view.findChildren(QAction))
    for _ in range(2):
        view._on_heading_menu(QPoint(5, 5))
        view.findChild(QMenu).close()
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert len(view.findChildren(QAction)) == before


@pytest.fixture
def toys(qtbot, tmp_path):
    """toys(): a table of toys whose columns are kept in one file of settings."""
    settings = QSettings(str(tmp_path / "window.ini"), QSettings.Format.IniFormat)

    def make(width=500):
        view = View("Toys")
        qtbot.addWidget(view)
        view.chosen_columns.keep_in(settings)
        view.resize(width, 150)
        view.show_table(Table((*COLUMNS, TIME), [Toy(f"toy {n}", n * 1e-6) for n in range(12)]))
        with qtbot.waitExposed(view):
            view.show()
        return view

    return make


def chosen(view, words, place=0):
    return next(a for a in view.chosen_columns.actions(QMenu(view), place) if a.text() == words)


def from_left(view):
    header = view.horizontalHeader()
    places = [header.logicalIndex(at) for at in range(header.count())]
    return [view.source.columns[at].name for at in places if not view.isColumnHidden(at)]


def test_columns_are_hidden_moved_and_pinned_and_stay_so(toys):
    view = toys()
    assert from_left(view) == ["name", "shape", "time_s"]
    chosen(view, "Hide “shape”", 1).trigger()
    assert from_left(view) == ["name", "time_s"]
    view.horizontalHeader().moveSection(2, 0)
    assert from_left(view) == ["time_s", "name"]
    again = toys()
    assert from_left(again) == ["time_s", "name"], "kept, without waiting for the end"
    assert not chosen(again, "shape").isChecked()
    chosen(again, "shape").trigger()
    assert from_left(again) == ["time_s", "name", "shape"]
    chosen(again, "The usual columns").trigger()
    assert from_left(again) == ["name", "shape", "time_s"]
    assert from_left(toys()) == ["name", "shape", "time_s"]


def test_pinned_columns_stay_while_others_scroll(qtbot, toys):
    view = toys(width=130)
    chosen(view, "Pin the columns up to here", 0).trigger()
    pins = view.chosen_columns._pins
    assert not pins.isVisible(), "nothing is scrolled away"
    view.horizontalScrollBar().setValue(view.horizontalScrollBar().maximum())
    qtbot.waitUntil(pins.isVisible)
    assert [place for place in range(3) if not pins.isColumnHidden(place)] == [0]
    over = pins.viewport().mapTo(view, pins.viewport().rect().topLeft())
    assert over == view.viewport().geometry().topLeft(), "row over row"
    assert pins.horizontalHeader().isVisible(), "each under its own heading"
    view.verticalScrollBar().setValue(3)
    assert pins.rowAt(2) == view.rowAt(2) > 0
    view.selectRow(5)
    assert pins.selectionModel().isRowSelected(5)
    view.horizontalScrollBar().setValue(0)
    assert not pins.isVisible()


def test_a_filter_leaves_rows_out_and_esc_brings_them_back(qtbot, toys):
    view = toys()
    view.setFocus()
    qtbot.keyClick(view, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert view.filter.isVisible()
    qtbot.keyClicks(view.filter, "toy 1")
    assert [row.name for row in view.source.rows] == ["toy 1", "toy 10", "toy 11"]
    view.show_table(Table((*COLUMNS, TIME), [Toy("toy 1", 3.0), Toy("toy 2", 3.0)]))
    assert [row.name for row in view.source.rows] == ["toy 1"], "also of rows that come later"
    view.copy_csv()
    assert "toy 2" not in QApplication.clipboard().text()
    qtbot.keyClick(view, Qt.Key.Key_Escape)
    assert [row.name for row in view.source.rows] == ["toy 1", "toy 2"]
    assert not view.filter.isVisible()


def test_a_third_click_on_a_heading_gives_the_usual_order_back(qtbot, toys):
    view = toys()
    header = view.horizontalHeader()
    at = QPoint(header.sectionViewportPosition(2) + 8, header.height() // 2)
    orders = []
    for _ in range(3):
        qtbot.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=at)
        orders.append([row.name for row in view.source.rows][:2])
    assert orders[-1] == ["toy 0", "toy 1"]
    assert ["toy 11", "toy 10"] in orders
