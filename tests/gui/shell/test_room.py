"""Who has which room: the window fits its screen, the form folds, the inspector comes and goes, one button a
page is the primary one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QTextBrowser, QWidget

from gui.base.boxes import FRAME, placed
from gui.base.theme import DARK, ICONS, LIGHT, icon
from gui.form.job_form import in_a_line
from gui.plots.base import beside
from gui.shell.docks import TINY
from gui.shell.main_window import MainWindow
from gui.shell.room import BUTTONS
from tests import preloaded
from tests.bench import synthetic

FIRST = """
import sys
from PySide6.QtCore import QPoint, QRect, QSettings
from PySide6.QtWidgets import QApplication
app = QApplication([]); app.setStyle("Fusion")
from gui.base.theme import Theming
from gui.sessions.session import Standing
from gui.shell.main_window import MainWindow
theming = Theming("light"); theming.apply()
window = MainWindow(QSettings(sys.argv[1], QSettings.Format.IniFormat), theming)
window.show()
def inside(widget):
    rect = QRect(widget.mapTo(window, QPoint(0, 0)), widget.size())
    return widget.isVisible() and window.rect().contains(rect)
def turn():
    for _ in range(20):
        app.processEvents()
from gui.shell.strips import cpu_reading
window.machine.show_reading(cpu_reading("AMD EPYC, 128 threads", 100.0, 123_000_000_000, 999_000_000_000))
turn()
room = app.primaryScreen().availableGeometry()
print("on screen", room.contains(window.frameGeometry()))
print("run", inside(window.room.toolbar.buttons["run"]))
window.session.stands.emit(Standing(phase="running", done=3, total=40, words="lenet5-digits"))
turn()
whole = [b for b in (window.progress.pause_button, window.progress.cancel_button)
    if inside(b) and b.width() >= b.sizeHint().width()]
print("cancel", inside(window.room.toolbar.buttons["cancel"]) and len(whole) == 2)
window.end()
"""


@pytest.mark.parametrize(("screen", "scale"), [((1366, 768), "1"), ((1366, 768), "2")])
def test_a_first_start_fits_the_screen_and_run_and_cancel_are_reached(tmp_path, screen, scale):
    config = {"screens": [{"name": "one", "x": 0, "y": 0, "width": screen[0], "height": screen[1]}]}
    (tmp_path / "screen.json").write_text(json.dumps(config))
    found = subprocess.run(
        [sys.executable, "-c", preloaded.MARK + FIRST, str(tmp_path / "window.ini")],
        env={
            **os.environ,
            "QT_SCALE_FACTOR": scale,
            "QT_QPA_PLATFORM": f"offscreen:configfile={tmp_path / 'screen.json'}",
        },
        cwd=Path(__file__).parents[3], capture_output=True, text=True,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    assert found.stdout.split("\n")[:3] == ["on screen True", "run True", "cancel True"], found.stdout


def test_a_window_is_put_in_the_middle_and_is_no_larger_than_its_screen():
    room = QRect(100, 50, 1366, 768)
    assert room.contains(QRect(placed(QSize(1500, 940), room).topLeft(), room.size() - FRAME))
    assert placed(QSize(1500, 940), QRect(0, 0, 3840, 2160)).size() == QSize(1500, 940)


def test_a_window_asks_for_the_place_of_its_frame(make_window, monkeypatch):
    """What manages windows puts the frame where a moved window asks for; a geometry is the place of what is
    inside, whose title bar may then lie above the screen."""
    asked = []
    monkeypatch.setattr(MainWindow, "setGeometry", lambda *place: pytest.fail("the place of what is inside"))
    monkeypatch.setattr(MainWindow, "move", lambda window, place: asked.append(place))
    room = make_window("ok", begin=False).screen().availableGeometry()
    assert asked
    assert all(room.contains(place) for place in asked)


def test_the_sheet_of_shortcuts_is_no_larger_than_the_screen(make_window):
    from gui.menus.help import GlossaryWindow, ShortcutSheet

    window = make_window("ok", begin=False)
    room = window.screen().availableGeometry().size() - FRAME
    for dialog in (ShortcutSheet({}, window), GlossaryWindow(window)):
        assert dialog.size().boundedTo(room) == dialog.size()


def test_all_shortcuts_stand_on_one_sheet_where_there_is_room(make_window):
    from gui.menus import help

    window = make_window("ok", begin=False)
    window.menu_actions.by_name["shortcuts"].trigger()
    dialog = window.findChild(help.ShortcutSheet)
    dialog.resize(help.SHEET)
    QApplication.processEvents()
    text = dialog.findChild(QTextBrowser)
    assert text.verticalScrollBar().maximum() == 0
    assert text.horizontalScrollBar().maximum() == 0
    dialog.close()


def test_a_window_kept_from_a_larger_screen_comes_back_onto_this_one(make_window):
    make_window("ok", begin=False).end()
    again = make_window("ok", begin=False)
    room = again.screen().availableGeometry()
    assert (again.width(), again.height()) != (1500, 940)
    assert room.contains(again.geometry())


@pytest.fixture
def opened(make_window):
    """A window that shows a run."""
    window = make_window("ok", begin=False)
    run, measurements = synthetic.run(batches=(1, 8, 64))
    window.state.open(run, Path("a-run"), measurements)
    window.redraw.flush()
    QApplication.processEvents()
    return window


def test_the_form_folds_into_a_line_once_a_run_is_shown_and_opens_on_demand(make_window, qtbot):
    window = make_window("ok", begin=False)
    line = window.room.toolbar.folded
    assert window.form_dock.isVisible()
    assert not line.isVisible()
    run, measurements = synthetic.run(batches=(1, 8))
    window.state.open(run, Path("a-run"), measurements)
    assert window.form_dock.isHidden()
    qtbot.waitUntil(line.isVisible)
    assert "lenet5-digits" in line.words
    assert "fp32" in line.words
    qtbot.mouseClick(line, Qt.MouseButton.LeftButton)
    assert window.form_dock.isVisible()
    window.state.open(run, Path("another-run"), measurements)
    assert window.form_dock.isHidden()


def test_what_the_user_closed_stays_closed(make_window):
    window = make_window("ok", begin=False)
    window.form_dock.close()
    window.tabs.setCurrentIndex(2)
    window.tabs.setCurrentIndex(0)
    assert window.form_dock.isHidden()
    window.end()
    again = make_window("ok", begin=False)
    assert again.form_dock.isHidden()
    again.form_dock.toggleViewAction().trigger()
    assert again.form_dock.isVisible()


def test_in_a_very_narrow_window_the_form_gives_way_until_it_is_asked_for(make_window, qtbot):
    window = make_window("ok", begin=False)
    window.resize(TINY - 40, 500)
    qtbot.waitUntil(window.form_dock.isHidden)
    window.resize(1500, 940)
    qtbot.waitUntil(window.form_dock.isVisible)


def test_the_inspector_is_there_for_what_the_page_has_selected(opened):
    inspector, titles = opened.inspector_dock, [page.title for page in opened.pages]
    measured = next(m for m in opened.state.measurements if m.layers)
    assert inspector.isHidden()
    opened.state.select(measured.case)
    assert inspector.isVisible()
    opened.redraw.flush()
    assert "median" in opened.inspector.text
    opened.tabs.setCurrentIndex(titles.index("Layers"))
    assert inspector.isHidden(), "no layer is selected"
    opened.state.select(measured.case, measured.layers[0].output)
    assert inspector.isVisible()
    opened.redraw.flush()
    assert "operator" in opened.inspector.text
    assert "median" not in opened.inspector.text
    for other in ("Ladder", "Timeline", "Runs"):
        opened.tabs.setCurrentIndex(titles.index(other))
        assert inspector.isHidden(), other
    opened.tabs.setCurrentIndex(0)
    opened.redraw.flush()
    assert "operator" not in opened.inspector.text


def primary(window: QWidget) -> list[str]:
    return [
        button.text().replace("&", "")
        for button in window.findChildren(QAbstractButton)
        if button.isVisible() and button.property("role") == "primary"
    ]


def test_every_page_has_one_primary_button(make_window, qtbot):
    window = make_window("ok", begin=False)
    for page in window.pages:
        window.tabs.setCurrentWidget(page)
        window.redraw.flush()
        QApplication.processEvents()
        assert len(primary(window)) == 1, (page.title, primary(window))
    window.tabs.setCurrentIndex(0)
    run, measurements = synthetic.run(batches=(1, 8))
    window.state.open(run, Path("a-run"), measurements)
    window.redraw.flush()
    for index in (0, 1, 0):
        window.tabs.setCurrentIndex(index)
        window.redraw.flush()
        assert primary(window) == ["Run"]
    window.room.toolbar.folded.click()
    assert primary(window) == ["Run"], "that of the form, and not the toolbar's too"


def test_the_toolbar_runs_and_its_run_gives_way_to_cancel(make_window, qtbot):
    window = make_window("held", "ok")
    buttons = window.room.toolbar.buttons
    assert set(buttons) == {name for name, *_ in BUTTONS}
    assert all(not button.icon().isNull() for button in buttons.values())
    window.form.models.check(["lenet5-digits"])
    window.form.batches.text = "1"
    qtbot.mouseClick(buttons["run"], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(buttons["cancel"].isVisible)
    assert not buttons["run"].isVisible()
    with qtbot.waitSignal(window.session.ended):
        qtbot.mouseClick(buttons["cancel"], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(buttons["run"].isVisible)


def test_icons_follow_the_theme(make_window):
    window = make_window("ok", begin=False)

    def darkest(button):
        image = button.icon().pixmap(16, 16).toImage()
        pixels = [image.pixelColor(x, y) for x in range(image.width()) for y in range(image.height())]
        return min((p for p in pixels if p.alpha() > 200), key=lambda p: p.lightness()).lightness()

    button = window.room.toolbar.buttons["open-model"]
    assert darkest(button) < 100
    window.theming.choose("dark")
    assert darkest(button) > 150
    window.theming.choose("light")
    assert {icon(name, window.theming).isNull() for name in ICONS} == {False}


def test_the_finding_is_larger_than_what_is_written_beside_it(opened):
    view = opened.pages[0].views["op-time"]
    for theme in (LIGHT, DARK):
        opened.theming.choose(theme.name)
        sizes = {name: getattr(view, name).font().pointSizeF() for name in ("_finding", "_title")}
        assert sizes["_finding"] > sizes["_title"]
        assert sizes["_finding"] > QLabel().font().pointSizeF()
    opened.theming.choose("light")


def test_a_card_stands_beside_its_value_and_within_the_page():
    room = QRect(0, 0, 400, 300)
    card = QSize(150, 80)
    for value in (QRect(20, 50, 20, 200), QRect(370, 50, 20, 200), QRect(190, 0, 20, 300)):
        place = beside(card, value, room)
        assert place is not None
        assert room.contains(place)
        assert not place.intersects(value)
    wide = beside(QSize(350, 80), QRect(180, 100, 40, 60), room)
    assert wide is not None
    assert room.contains(wide)
    assert not wide.intersects(QRect(180, 100, 40, 60)), "above or below it, where no side has room"
    assert beside(QSize(350, 200), QRect(180, 100, 40, 60), room) is None


def test_a_long_choice_is_counted_in_the_line():
    from bench.run import defaults

    job = defaults.job()
    assert "4 backends" in in_a_line(job, ["a", "b", "c", "d"])
    assert "a, b" in in_a_line(job, ["a", "b"])
