"""With the mouse: what is hovered, clicked, dropped and opened by right click, on the window as it stands."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QApplication, QFileDialog, QMenu, QToolTip

from bench.run import nvml
from bench.run.kinds.comparison import KIND as COMPARISON
from gui.menus import export as export_actions
from gui.menus.export import FORMATS, ExportActions
from gui.shell.library import Library
from gui.shell.strips import gpu_reading
from tests import preloaded
from tests.gui.models import small_model
from tests.gui.mouse import move
from tests.gui.pages.test_runs_page import settle
from tests.gui.recorded import RECORDED

LEFT, NONE = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier


@pytest.fixture
def window(qtbot, make_window):
    window = make_window("ok")
    window.findChild(Library).open(RECORDED)
    settle(qtbot, window)
    QApplication.processEvents()
    return window


def click(qtbot, widget):
    assert widget.isVisible()
    qtbot.mouseClick(widget, LEFT, pos=widget.rect().center())


def hover(qtbot, plot, at):
    """The mouse on a place of a plot, in the plot's own units, until it is read out: of moves that come soon
    after each other (the window may have come up under the pointer) the plot passes some over."""
    local = QPointF(plot.mapFromScene(plot.getPlotItem().getViewBox().mapViewToScene(at))).toPoint()

    def read_out():
        move(plot.viewport(), local)
        return plot.readout.isVisible()

    qtbot.waitUntil(read_out)
    return local


def points(plot, contender):
    x, y = plot._items[contender].line.getData()
    return [QPointF(float(a), float(b)) for a, b in zip(x, y, strict=True)]


def test_hovering_reads_out_and_a_click_on_a_point_selects(qtbot, window):
    plot = window.page.views["op-time"].plots[""]
    at = points(plot, "ort-cpu")[1]
    local = hover(qtbot, plot, at)
    batch = round(2 ** at.x())
    assert f"batch {batch}" in plot.readout.text()
    assert "ort-cpu" in plot.readout.text()
    qtbot.mouseClick(plot.viewport(), LEFT, pos=local)
    QApplication.processEvents()
    assert (window.state.case.backend, window.state.case.batch) == ("ort-cpu", batch)
    window.redraw.flush()
    assert "ort-cpu" in window.inspector.text
    current = window.page.table.currentIndex()
    assert window.page.table.source.rows[current.row()].case == window.state.case


def test_a_page_follows_what_was_selected_while_it_was_out_of_sight(qtbot, window):
    page = next(p for p in window.pages if p.title == "Layers")
    with_layers = [m.case for m in window.state.measurements if m.layers]
    for case in (with_layers[-1], with_layers[0]):  # before the page was ever shown, and after
        window.tabs.setCurrentIndex(0)
        window.redraw.flush()
        window.state.select(case)
        window.redraw.flush()
        window.tabs.setCurrentWidget(page)
        window.redraw.flush()
        assert page._focus.case == case
    assert not page.dirty


def test_legends_and_scales_are_clicked(qtbot, window):
    view = window.page.views["op-time"]
    plot = view.plots[""]
    click(qtbot, view._legend.buttons["ort-cpu"])
    assert not plot._items["ort-cpu"].line.isVisible()
    click(qtbot, view._legend.buttons["ort-cpu"])
    assert plot._items["ort-cpu"].line.isVisible()
    before = points(plot, "ort-cpu")[0]
    click(qtbot, view._scale_x)
    click(qtbot, view._scale_y)
    after = points(plot, "ort-cpu")[0]
    assert after.y() == pytest.approx(10 ** before.y())
    assert after.x() == round(2 ** before.x()), "on a linear scale no line is set aside"


def test_a_click_on_a_column_s_head_sorts(qtbot, window):
    table = window.page.table
    head = table.horizontalHeader()
    column = [c.name for c in table.source.columns].index("median_s")
    at = QPoint(head.sectionViewportPosition(column) + head.sectionSize(column) // 2, head.height() // 2)
    qtbot.mouseClick(head.viewport(), LEFT, pos=at)
    first = [row.median_ns for row in table.source.rows]
    qtbot.mouseClick(head.viewport(), LEFT, pos=at)
    second = [row.median_ns for row in table.source.rows]
    assert sorted(first) == sorted(second)
    assert {tuple(first), tuple(second)} == {tuple(sorted(first)), tuple(sorted(first, reverse=True))}


def chart_menu(view):
    view._on_menu(QPoint(20, 60))
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu)
    return menu


@pytest.mark.parametrize("way", ["right click", "menu"])
def test_each_kind_is_exported_by_right_click_and_from_the_menu(qtbot, window, tmp_path, monkeypatch, way):
    exports = window.findChild(ExportActions)
    orders = []
    monkeypatch.setattr(exports.exporter, "start", orders.append)
    view = window.page.views["op-time"]
    for kind in FORMATS:
        chosen = str(tmp_path / f"chart.{kind}")
        monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_, chosen=chosen: (chosen, ""))
        if way == "menu":
            menu = next(a.menu() for a in window.menu_actions.menus["file"].actions() if "&chart" in a.text())
            menu.aboutToShow.emit()
            action = next(a for a in menu.actions() if a.text() == f"{view.chart.title}…")
        else:
            menu = chart_menu(view)
            words = "numbers as CSV" if kind == "csv" else f"as {FORMATS[kind]}"
            action = next(a for a in menu.actions() if words in a.text().replace("&", ""))
        action.trigger()
        menu.close()
    assert [order.where for order in orders] == [tmp_path / f"chart.{kind}" for kind in FORMATS]
    assert all(view.chart.name in order.arguments for order in orders)


def test_recent_files_are_offered_after_a_restart_while_they_are_there(
    make_window, qtbot, tmp_path, monkeypatch
):
    kept, gone = tmp_path / "kept.onnx", tmp_path / "gone.onnx"
    for path in (kept, gone):
        small_model(path)
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", lambda *_: ([str(kept), str(gone)], ""))
    window = make_window("ok")
    window.menu_actions.by_name["open-model"].trigger()
    qtbot.waitUntil(lambda: not window.model_files.busy)
    window.form.models.check(["lenet5-digits"])
    window.end()
    gone.unlink()
    again = make_window("ok", begin=False).form.models
    assert str(kept) in again.keys
    assert str(gone) not in again.keys
    assert again.checked == ("lenet5-digits",)


def test_a_greyed_backend_says_why_and_cannot_be_chosen(qtbot, window):
    backends = window.form.backends
    item = backends.item(backends.keys.index("engine-cuda"))
    at = backends.visualItemRect(item).center()
    qtbot.mouseClick(backends.viewport(), LEFT, pos=at)
    assert "engine-cuda" not in backends.checked
    there = backends.viewport().mapToGlobal(at)
    QApplication.sendEvent(backends.viewport(), QHelpEvent(QEvent.Type.ToolTip, at, there))
    assert QToolTip.text() == "no NVIDIA driver is installed"
    QToolTip.hideText()


def test_a_run_is_driven_by_its_buttons(qtbot, make_window):
    window = make_window("held", "hang", "ok")
    window.form.models.check(["lenet5-digits"])
    window.form.batches.text = "1,2"
    click(qtbot, window.form.run_button)
    qtbot.waitUntil(lambda: len(window.state.measurements) >= 1)
    words = window.progress.words.text()
    assert "lenet5-digits" in words
    click(qtbot, window.progress.pause_button)
    qtbot.waitUntil(lambda: window.session.standing.phase == "paused")
    click(qtbot, window.progress.pause_button)
    with qtbot.waitSignal(window.session.ended):
        click(qtbot, window.progress.cancel_button)
    first = window.state.folder
    kept = COMPARISON.open(first).measurements()
    assert [m.disposition for m in kept] == ["ok"]
    assert not window.form.isVisible(), "it is folded into a line once a run is shown"
    qtbot.waitUntil(window.room.toolbar.buttons["run"].isVisible)
    with qtbot.waitSignal(window.session.ended):
        click(qtbot, window.room.toolbar.buttons["run"])
    assert window.state.folder != first
    assert len(window.state.measurements) == 4


def test_tabs_are_clicked_and_a_wrong_image_is_found(qtbot, window):
    bar = window.tabs.tabBar()
    for index, page in enumerate(window.pages):
        qtbot.mouseClick(bar, LEFT, pos=bar.tabRect(index).center())
        assert window.page is page
    window.findChild(Library).open_sample()
    settle(qtbot, window)
    page = next(p for p in window.pages if p.title == "Predictions")
    window.tabs.setCurrentWidget(page)
    settle(qtbot, window)
    qtbot.waitUntil(lambda: page.grid.source.rowCount() > 0)
    filters = page._choices["shown"]
    assert filters.currentText() == "Wrong on any backend", "no two backends differ"
    wrong = page.grid.source.rowCount()
    filters.setFocus()
    qtbot.keyClick(filters, Qt.Key.Key_Up)
    assert filters.currentText() == "All images"
    everything = page.grid.source.rowCount()
    assert 1 < wrong < everything
    qtbot.keyClick(filters, Qt.Key.Key_Down)
    assert page.grid.source.rowCount() == wrong
    place = page.grid.visualRect(page.grid.source.index(1)).center()
    qtbot.mouseClick(page.grid.viewport(), LEFT, pos=place)
    assert page.grid.currentIndex().row() == 1
    click(qtbot, page.reset)
    assert page.grid.source.rowCount() == everything


def test_the_strip_shows_the_cpu_where_there_is_no_gpu(qtbot, make_window, monkeypatch):
    monkeypatch.setattr(nvml.Gpu, "first", classmethod(lambda cls: None))
    strip = make_window("ok", begin=False).machine
    strip.start()
    qtbot.waitUntil(lambda: len(strip._gauges) == 2)
    assert strip.text.startswith("this machine now: CPU, ")
    assert "load" in strip.text
    assert "memory" in strip.text
    qtbot.waitUntil(lambda: len(strip._gauges[0][1]._values) >= 2)
    strip.stop()


def test_the_strip_shows_a_gpu_and_why_it_holds_back(make_window):
    strip = make_window("ok", begin=False).machine
    seen = nvml.Reading(sm_clock_mhz=1755.0, power_w=412.0, temperature_c=61.0, memory_used_nbytes=3 << 30)
    strip.show_reading(gpu_reading("Example GPU", seen, 1980.0))
    for words in ("Example GPU", "1755 MHz", "412 W", "61 °C", "3.00 GiB"):
        assert words in strip.text
    assert strip._held_back.isHidden()
    held = nvml.Reading(power_w=700.0, reasons=("power limit",))
    strip.show_reading(gpu_reading("Example GPU", held, 1980.0))
    assert "power limit" in strip.text
    assert strip._held_back.isVisible()
    assert "SM –" in strip.text  # what the driver would not say


def test_the_whole_run_and_all_charts_are_asked_for_in_the_menu(window, tmp_path, monkeypatch):
    exports = window.findChild(ExportActions)
    orders = []
    monkeypatch.setattr(exports.exporter, "start", orders.append)
    monkeypatch.setattr(export_actions, "ask_folder", lambda *_: str(tmp_path))
    window.menu_actions.by_name["export-run"].trigger()
    window.menu_actions.by_name["export-all"].trigger()
    exports.form.folder.setText(str(tmp_path / "all"))
    exports.form.export_button.click()
    assert [order.where for order in orders] == [tmp_path / RECORDED.name, tmp_path / "all"]


SCALED = """
import sys
from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QAbstractButton, QApplication, QComboBox, QLabel
app = QApplication([]); app.setStyle("Fusion")
from gui.shell.main_window import MainWindow
from gui.base.theme import Theming
from tests.gui import screenshots
from bench.results.summaries import SAMPLE
from pathlib import Path
theming = Theming("light"); theming.apply()
window = MainWindow(QSettings(sys.argv[1], QSettings.Format.IniFormat), theming)
window.resize(1200, 760); window.show()
screenshots.open_run(window, SAMPLE)
least = window.minimumSizeHint()
print("needs", least.width(), least.height())
for page in window.pages:
    window.tabs.setCurrentWidget(page)
    window.redraw.flush()
    screenshots.wait(lambda: page.at_rest, 180)
    screenshots.settle(window, 0.05)
    for widget in page.findChildren(QAbstractButton) + page.findChildren(QComboBox):
        if widget.isVisible() and widget.height() < 0.9 * widget.fontMetrics().height():
            print("cut", page.title, widget)
assert page.grab().devicePixelRatio() == window.devicePixelRatioF()
for label in window.form.findChildren(QLabel):
    if label.isVisible() and not label.wordWrap() and label.width() < label.minimumSizeHint().width():
        print("cut", label.text())
print("ratio", window.devicePixelRatioF())
window.end()
"""


@pytest.mark.sampled(2, "nothing is cut")
@pytest.mark.slow
def test_nothing_is_cut_on_a_scaled_screen(tmp_path):
    """The window fits a screen of 2560 × 1600 dots also at 200 %, and no caption loses its letters."""
    found = subprocess.run(
        [sys.executable, "-c", preloaded.MARK + SCALED, str(tmp_path / "window.ini")],
        env={**os.environ, "QT_SCALE_FACTOR": "2", "QT_QPA_PLATFORM": "offscreen"},
        cwd=Path(__file__).parents[2], capture_output=True, text=True,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    assert "cut" not in found.stdout
    assert "ratio 2.0" in found.stdout
    line = next(line for line in found.stdout.splitlines() if line.startswith("needs"))
    width, height = map(int, line.split()[1:])
    assert width <= 1280
    assert height <= 800
