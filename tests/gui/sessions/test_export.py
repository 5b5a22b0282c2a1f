"""Exports from the window: files of each kind that open, made by a child process, told in the status bar."""

from __future__ import annotations

import csv
import sys
from xml.etree import ElementTree

import pytest
from PIL import Image
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QMenu

from bench.results.summaries import BESIDE_SAMPLE
from bench.run.kinds.comparison import KIND as COMPARISON
from gui.menus.export import ExportActions, reveal
from gui.sessions.processes import Exporter, Order
from gui.shell.library import Library
from tests.bench import synthetic
from tests.bench.results.test_thin import saved
from tests.gui.pages.test_runs_page import settle
from tests.gui.shared import as_found

CPU = ("engine-cpu", "ort-cpu")
PROFILED = BESIDE_SAMPLE[1]


@pytest.fixture(scope="module")
def opened(make_shared_window, tmp_path_factory):
    run = saved(tmp_path_factory.mktemp("runs") / "a run", *synthetic.run(backends=CPU, batches=(1, 4)))
    window = make_shared_window()
    library = window.findChild(Library)
    library.open(run.path)
    while library.background.busy:
        QTest.qWait(5)
    return window


@pytest.fixture
def window(opened):
    """What is chosen when something is exported is kept; here by no other test."""
    with as_found(opened):
        yield opened
        opened.state.take_off()
        opened.theming.choose("light")
        opened.banner.dismiss()
        opened.settings.remove("export")
        opened.findChild(ExportActions).set_scale(2)


def exported(qtbot, window):
    exports = window.findChild(ExportActions)
    qtbot.waitUntil(lambda: not exports.exporter.busy)
    return exports


def wished(window, target, **choices):
    """The form that Export opens, filled in and sent off."""
    window.menu_actions.by_name["export-all"].trigger()
    exports = window.findChild(ExportActions)
    form = exports.form
    form.folder.setText(str(target))
    form.choose(choices.get("chart", ""))
    if "width" in choices:
        form.width_of.setCurrentIndex(form.width_of.findData(choices["width"]))
    for key, box in form.formats.items():
        box.setChecked(key in choices.get("formats", form.formats))
    form.caption.setChecked(choices.get("caption", False))
    QTest.mouseClick(form.export_button, Qt.MouseButton.LeftButton)
    return exports


def test_the_timeline_is_exported_alone_from_its_page(qtbot, make_window, tmp_path, monkeypatch):
    window = make_window("ok", begin=False)
    window.showers["profile"](PROFILED)
    page = window.page
    qtbot.waitUntil(lambda: page.exported().folder is not None)
    orders = []
    exports = window.findChild(ExportActions)
    monkeypatch.setattr(exports.exporter, "start", orders.append)
    wished(window, tmp_path, chart="timeline", formats=("svg",))
    (order,) = orders
    assert order.what == "The timeline alone"
    assert order.arguments[:2] == ("export", str(PROFILED))
    assert order.arguments[4:6] == ("--chart", "timeline"), "tests.bench.commands.test_export draws it"
    assert "--csv" not in order.arguments


@pytest.mark.off_screen
def test_everything_goes_into_a_folder_and_each_file_opens(qtbot, window, tmp_path):
    target = tmp_path / "to here"
    exports = wished(window, target)
    assert exports.exporter.busy
    assert exports.strip.words.text().startswith("Exporting all of the comparison")
    assert exports.strip.bar.isVisible()
    assert exports.strip.bar.maximum() == 24
    exported(qtbot, window)
    stems = {chart.name for chart in window.state.all_charts()}
    assert len(stems) == 6
    assert {p.stem for p in target.iterdir()} == stems | {"results", "layers"}
    for path in target.iterdir():
        if path.suffix == ".png":
            with Image.open(path) as image:
                image.load()
        elif path.suffix == ".svg":
            ElementTree.parse(path)
        elif path.suffix == ".pdf":
            assert path.read_bytes().startswith(b"%PDF")
        else:
            with path.open(newline="") as file:
                assert len(list(csv.DictReader(file))) >= 2
    assert exports.strip.words.text() == "Exported all of the comparison to to here (26 files)"
    folders = []
    exports.strip.folder_wanted.disconnect()
    exports.strip.folder_wanted.connect(folders.append)
    exports.strip.folder_button.click()
    exports.strip.folder_wanted.disconnect()
    exports.strip.folder_wanted.connect(reveal)
    assert folders == [target]


def test_a_chart_s_own_menu_exports_it_at_the_chosen_size(qtbot, window, tmp_path, monkeypatch):
    target = tmp_path / "times"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(target), "PNG picture (*.png)"))
    view = window.pages[0].views["op-time"]
    view._on_menu(QPoint(20, 60))
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu)
    actions = {action.text().replace("&", ""): action for action in menu.actions()}
    sizes = actions["PNG size"].menu()
    assert [a.text() for a in sizes.actions() if a.isChecked()] == ["&2×"]
    sizes.actions()[0].trigger()
    actions["Export as PNG…"].trigger()
    menu.close()
    exports = exported(qtbot, window)
    assert exports.scale == 1
    with Image.open(tmp_path / "times.png") as image:
        assert image.text["Description"] == view.chart.finding
        assert 1000 < image.size[0] < 1600
    assert "times.png" in exports.strip.words.text()


def test_the_whole_run_is_copied_and_a_laid_over_run_is_drawn_too(qtbot, window, tmp_path):
    exports = window.findChild(ExportActions)
    exports.export_run(tmp_path / "copies")
    other = saved(tmp_path / "second", *synthetic.run(backends=CPU, batches=(2,)))
    window.findChild(Library).lay_over(other.path)
    settle(qtbot, window)
    chart = next(c for c in window.state.all_charts() if c.name.endswith("op-time"))
    exports.export_chart(chart, tmp_path / "both.csv")
    exported(qtbot, window)
    assert COMPARISON.open(tmp_path / "copies" / "a run").measurements() == window.state.measurements
    with (tmp_path / "both.csv").open(newline="") as file:
        assert {line["series"] for line in csv.DictReader(file)} == {
            *CPU, "engine-cpu · second", "ort-cpu · second",
        }  # fmt: skip


def test_a_figure_for_a_paper_is_asked_for_in_the_form_which_remembers(qtbot, window, tmp_path):
    chart = next(c for c in window.state.all_charts() if c.name.endswith("op-time"))
    window.theming.choose("dark")
    wished(window, tmp_path / "paper", chart=chart.name, width="one-column", formats=("svg",), caption=True)
    exports = exported(qtbot, window)
    names = sorted(path.name for path in (tmp_path / "paper").iterdir())
    assert names == [f"{chart.name}.svg", f"{chart.name}.txt"]
    svg = (tmp_path / "paper" / names[0]).read_text()
    assert 'width="252pt"' in svg
    drawn = svg.partition("</metadata>")[2]
    assert chart.title not in drawn
    assert window.theming.theme.paper.lower() not in drawn.lower(), "light, whatever the window's theme"
    assert chart.finding in (tmp_path / "paper" / names[1]).read_text()
    window.menu_actions.by_name["export-all"].trigger()
    again = exports.form.wish
    assert (again.formats, again.look.width, again.look.title) == (("svg",), "one-column", False)
    exports.form.reject()


@pytest.mark.off_screen
def test_an_export_is_cancelled_and_whole_files_stay(qtbot, window, tmp_path):
    exports = wished(window, tmp_path / "some")
    button = exports.strip.cancel_button
    qtbot.waitUntil(lambda: exports.strip.bar.value() > 0)
    assert button.isVisible()
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    assert not exports.exporter.busy
    assert exports.strip.words.text().startswith("Cancelled the export of all of the comparison; ")
    assert not button.isVisible()
    made = list((tmp_path / "some").iterdir())
    assert 0 < len(made) < 22
    for path in made:
        if path.suffix == ".svg":
            ElementTree.parse(path)


def test_a_chart_is_copied_as_an_image(qtbot, window):
    exports = window.findChild(ExportActions)
    exports.copy_image(window.state.all_charts()[0])
    exported(qtbot, window)
    assert QGuiApplication.clipboard().image().width() > 1000
    assert exports.strip.words.text() == "Copied the chart as an image"


@pytest.mark.off_screen
def test_what_fails_is_one_sentence_and_the_next_order_goes_on(qtbot, window, tmp_path):
    exports = window.findChild(ExportActions)
    blocked = tmp_path / "a file"
    blocked.write_text("")
    wished(window, blocked)
    exports.export_run(tmp_path / "copies")
    exported(qtbot, window)
    assert window.banner.text.startswith("Could not export all of the comparison: cannot write")
    assert "\n" not in window.banner.text
    assert (tmp_path / "copies" / "a run" / "run.json").is_file()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ((sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"), "was killed"),
        (("/nowhere/python",), "Could not export"),
    ],
)
def test_a_child_that_dies_leaves_the_window_alive(qtbot, tmp_path, command, words):
    exporter = Exporter(command=command)
    sentences: list[str] = []
    exporter.failed.connect(sentences.append)
    with qtbot.waitSignal(exporter.idle):
        exporter.start(Order((), "a chart", tmp_path))
    assert len(sentences) == 1
    assert words in sentences[0]
    assert not exporter.busy


def test_without_a_run_there_is_nothing_to_export(make_window):
    window = make_window("mute", begin=False)
    for name in ("export-all", "export-run", "export-report"):
        window.menu_actions.by_name[name].trigger()
        assert "nothing to export yet: this page exports the comparison" in window.banner.text
        window.banner.dismiss()


def test_a_report_of_the_page_in_front_is_one_html_file(qtbot, window, tmp_path, monkeypatch):
    target = tmp_path / "to hand in"  # without an ending: what was chosen is HTML
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(target), ""))
    window.menu_actions.by_name["export-report"].trigger()
    exports = exported(qtbot, window)
    text = target.with_name("to hand in.html").read_text("utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert text.count("<figure>") == 4
    assert exports.strip.words.text().startswith("Exported a report of the comparison")
