"""Everything without a mouse: each action has its keys, Tab reaches each control, a run is driven."""

import shutil
from collections import Counter

import pytest
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QAbstractButton, QApplication, QFileDialog, QLabel, QMenu, QWidget

from bench.run.kinds.comparison import KIND as COMPARISON
from gui.pages.compare import ComparePage
from gui.shell.library import Library
from tests.gui.pages.test_runs_page import settle
from tests.gui.recorded import RECORDED


@pytest.fixture
def active(qtbot, make_window):
    """active("ok", …): a window that has the keyboard."""

    def make(*plan, **options):
        window = make_window(*plan, **options)
        window.activateWindow()
        qtbot.waitUntil(window.isActiveWindow)
        return window

    return make


def press(qtbot, window, key, modifier=Qt.KeyboardModifier.NoModifier):
    qtbot.keyClick(QApplication.focusWidget() or window, key, modifier)


CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier


def entries(menu: QMenu):
    """Every action of a menu and of the menus in it, with the menu that it is in."""
    for action in menu.actions():
        if action.isSeparator():
            continue
        yield menu, action
        if action.menu() is not None:
            yield from entries(action.menu())


def marked(text):
    at = text.replace("&&", "").find("&")
    return text[at + 1].lower() if at >= 0 else ""


def test_every_action_has_a_shortcut_or_a_marked_letter_and_no_two_the_same(active):
    window = active("ok", begin=False)
    keys = Counter()
    letters = Counter()
    for top in window.menu_actions.menus.values():
        for menu, action in entries(top):
            letter = marked(action.text())
            first = action.text()[:1].lower()  # in a menu, a letter goes to what begins with it too
            assert not action.shortcut().isEmpty() or letter or first.isalnum(), action.text()
            if letter:
                letters[menu.title(), letter] += 1
            keys.update(sequence.toString() for sequence in action.shortcuts())
    assert [key for key, times in keys.items() if times > 1] == []
    assert [letter for letter, times in letters.items() if times > 1] == []
    reachable = {action for top in window.menu_actions.menus.values() for _, action in entries(top)}
    named = {name for name, action in window.menu_actions.by_name.items() if action not in reachable}
    assert named == set()


def test_a_menu_s_letter_is_no_field_s(active):
    window = active("ok", begin=False)
    menus = {marked(menu.title()) for menu in window.menu_actions.menus.values()}
    fields = {marked(label.text()) for label in window.findChildren(QLabel) if label.buddy() is not None}
    window.page_of(ComparePage).prepare()  # with the buttons that are seen only where a run is not whole
    buttons = {marked(button.text()) for button in window.findChildren(QAbstractButton)}
    assert "u" in buttons, "Resume"
    assert not menus & ((fields | buttons) - {""})


def controls(window: QWidget):
    """What takes the keyboard when Tab comes to it."""
    return {
        w
        for w in window.findChildren(QWidget)
        if w.isVisible()
        and w.isEnabled()
        and w.focusPolicy() & Qt.FocusPolicy.TabFocus
        and w.focusProxy() is None
        and w.window() is window
    }


def test_tab_reaches_every_control_of_every_page(qtbot, active):
    window = active("ok")
    window.findChild(Library).open(RECORDED)
    settle(qtbot, window)
    for page in window.pages:
        window.tabs.setCurrentWidget(page)
        settle(qtbot, window)
        qtbot.waitUntil(lambda page=page: page.at_rest)  # what is asked of a worker enables more
        settle(qtbot, window)
        QApplication.processEvents()
        wanted = controls(window)
        assert len(wanted) > 6, page.title
        seen = set()
        window.form.models.setFocus()
        for _ in range(2 * len(wanted) + 20):
            seen.add(QApplication.focusWidget())
            press(qtbot, window, Qt.Key.Key_Tab)
            if QApplication.focusWidget() is window.form.models:
                break
        missed = {(type(w).__name__, w.accessibleName() or w.objectName()) for w in wanted - seen}
        assert not missed, page.title


def test_a_run_is_started_paused_gone_on_with_and_run_again(qtbot, active):
    window = active("held", "ok", "ok")
    window.form.models.check(["lenet5-digits"])
    window.form.batches.text = "1,2"
    press(qtbot, window, Qt.Key.Key_F5)
    assert window.session.active
    first = window.state.folder
    qtbot.waitUntil(lambda: len(window.state.measurements) >= 1)
    press(qtbot, window, Qt.Key.Key_F6)
    qtbot.waitUntil(lambda: window.session.standing.phase == "paused")
    with qtbot.waitSignal(window.session.ended):
        press(qtbot, window, Qt.Key.Key_F6)
    assert len(window.state.measurements) == 4
    with qtbot.waitSignal(window.session.ended):
        press(qtbot, window, Qt.Key.Key_R, CTRL)
    assert window.state.folder != first
    for folder in (first, window.state.folder):
        assert [m.disposition for m in COMPARISON.open(folder).measurements()] == ["ok"] * 4


def test_a_run_is_cancelled(qtbot, active):
    window = active("hang")
    press(qtbot, window, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: window.session.standing.phase == "running")
    with qtbot.waitSignal(window.session.ended):
        press(qtbot, window, Qt.Key.Key_F5, SHIFT)
    assert not window.session.active


def test_batch_sizes_are_typed_or_taken_from_the_presets(qtbot, active):
    form = active("ok").form
    box = form.batches.box
    box.setFocus()
    box.lineEdit().selectAll()
    qtbot.keyClicks(box.lineEdit(), "1,2,x")
    assert "'x' is not a whole number" in form.batches._wrong.text()
    assert form.batches._wrong.isVisible()
    assert not form.run_button.isEnabled()
    qtbot.keyClick(box.lineEdit(), Qt.Key.Key_Backspace)
    qtbot.keyClicks(box.lineEdit(), "4")
    assert not form.batches._wrong.isVisible()
    assert form.job().batches == (1, 2, 4)
    presets = [box.itemText(i) for i in range(box.count())]
    assert {"1..1024", "1,100,1000,10000"} <= set(presets)
    seen = set()
    for key in (Qt.Key.Key_Up,) * len(presets) + (Qt.Key.Key_Down,) * len(presets):
        qtbot.keyClick(box.lineEdit(), key)
        seen.add(form.job().batches)
    assert {(1, 100, 1000, 10_000), tuple(2**i for i in range(11))} <= seen


def test_every_field_makes_its_part_of_the_job(qtbot, active):
    form = active("ok").form
    for field, key, part, value in (
        (form.fields["l2"].widget, Qt.Key.Key_Down, "l2", "cold"),
        (form.fields["layer-pass"].widget, Qt.Key.Key_Space, "layers", False),
        (form.fields["threads"].widget, Qt.Key.Key_Up, "threads", 1),
    ):
        field.setFocus()
        qtbot.keyClick(field, key)
        assert getattr(form.job(), part) == value
    form.fields["budget"].widget.setFocus()
    before = form.job().budget_s
    qtbot.keyClick(form.fields["budget"].widget, Qt.Key.Key_Up)
    assert form.job().budget_s > before
    form.dataset.setFocus()
    qtbot.keyClick(form.dataset, Qt.Key.Key_Down)
    assert form.job().dataset is not None
    form.fields["images"].widget.box.lineEdit().selectAll()
    qtbot.keyClicks(form.fields["images"].widget.box.lineEdit(), "1000")
    assert form.job().images == (1000,)
    form.backends.setFocus()
    form.backends.setCurrentRow(form.backends.keys.index("ort-cpu"))
    qtbot.keyClick(form.backends, Qt.Key.Key_Space)
    assert form.job().backends == ("engine-cpu",)


def test_the_command_is_copied_and_a_run_is_opened_and_laid_over(qtbot, active, tmp_path, monkeypatch):
    window = active("ok")
    press(qtbot, window, Qt.Key.Key_K, CTRL | SHIFT)
    assert QApplication.clipboard().text().startswith("python main.py compare lenet5-digits")
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(RECORDED))
    press(qtbot, window, Qt.Key.Key_O, CTRL | SHIFT)
    settle(qtbot, window)
    assert window.state.folder == RECORDED
    other = shutil.copytree(RECORDED, tmp_path / "other")
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(other))
    press(qtbot, window, Qt.Key.Key_L, CTRL)
    settle(qtbot, window)
    assert window.state.overlays
    press(qtbot, window, Qt.Key.Key_L, CTRL | SHIFT)
    assert not window.state.overlays


def test_pages_docks_and_the_table_answer_to_keys(qtbot, active):
    window = active("ok")
    window.findChild(Library).open(RECORDED)
    settle(qtbot, window)
    for index in reversed(range(len(window.pages))):
        press(qtbot, window, Qt.Key(Qt.Key.Key_1 + index), CTRL)
        assert window.tabs.currentIndex() == index
    assert window.inspector_dock.isHidden(), "nothing is selected"
    window.state.select(window.state.measurements[0].case)
    assert not window.inspector_dock.isHidden()
    press(qtbot, window, Qt.Key.Key_F8)
    assert window.inspector_dock.isHidden()
    press(qtbot, window, Qt.Key.Key_F8)
    assert not window.inspector_dock.isHidden()
    window.redraw.flush()
    table = window.pages[0].table
    table.setFocus()
    qtbot.keyClick(table, Qt.Key.Key_Home, CTRL)
    qtbot.keyClick(table, Qt.Key.Key_Down)
    assert window.state.case == table.source.rows[table.currentIndex().row()].case
    qtbot.keyClick(table, Qt.Key.Key_A, CTRL)
    qtbot.keyClick(table, Qt.Key.Key_C, CTRL)
    assert QApplication.clipboard().text().startswith("model,backend,precision")
    qtbot.keyClick(table, Qt.Key.Key_C, CTRL | SHIFT)
    assert QApplication.clipboard().text().startswith("| batch | backend")


def test_the_theme_is_chosen_in_the_menu(active):
    from gui.base.theme import DARK

    window = active("ok", begin=False)
    choose: QAction = window.menu_actions.by_name["theme-dark"]
    choose.trigger()
    assert choose.isChecked()
    assert window.palette().window().color().name().upper() == DARK.window
    window.menu_actions.by_name["theme-light"].trigger()


def test_the_theme_follows_the_system_until_one_is_chosen(monkeypatch, qtbot):
    from gui.base import theme

    class System(QObject):
        colorSchemeChanged = Signal(Qt.ColorScheme)
        scheme = Qt.ColorScheme.Light

        def colorScheme(self):
            return self.scheme

        def turn(self, scheme):
            self.scheme = scheme
            self.colorSchemeChanged.emit(scheme)

    system = System()
    monkeypatch.setattr(theme.QGuiApplication, "styleHints", lambda: system)
    theming = theme.Theming("system")
    seen = []
    theming.changed.connect(lambda: seen.append(theming.theme.name))
    system.turn(Qt.ColorScheme.Dark)
    system.turn(Qt.ColorScheme.Light)
    theming.choose("light")
    system.turn(Qt.ColorScheme.Dark)
    assert seen == ["dark", "light"]
