"""Preferences hold and are stored at the moment of their change; what the commands share is in their file."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from bench.run import settings
from gui.base.theme import CHOICES
from gui.shell.notices import MACHINE


@pytest.fixture
def config(tmp_path, monkeypatch):
    file = tmp_path / "kernelscope.toml"
    monkeypatch.setenv("KERNELSCOPE_CONFIG", str(file))
    monkeypatch.chdir(tmp_path)
    return file


def retype(qtbot, field, text):
    field.selectAll()
    qtbot.keyClicks(field, text)
    qtbot.keyClick(field, Qt.Key.Key_Return)


def test_shared_settings_are_written_at_once_and_hold(qtbot, make_window, config, tmp_path):
    window = make_window("ok")
    dialog = window.preferences.show()
    retype(qtbot, dialog.fields["budget"], "2.5")
    assert settings.values([settings.LASTING["budget"]]) == {"budget": 2.5}
    assert window.form.job().budget_s == 2.5
    retype(qtbot, dialog.fields["backend"], "ort-cpu, engine-cpu")
    assert set(window.form.backends.checked) == {"ort-cpu", "engine-cpu"}
    retype(qtbot, dialog.fields["runs"], str(tmp_path / "all runs"))
    assert {session.runs for session in window.sessions} == {window.library.runs} == {tmp_path / "all runs"}
    retype(qtbot, dialog.fields["budget"], "soon")
    assert "soon" in dialog.problem.text()
    assert window.form.job().budget_s == 2.5
    assert "soon" not in config.read_text()
    dialog.close()
    again = window.preferences.show("editor")
    assert again.fields["budget"].text() == "2.5", "what was not taken is not shown as if it were"
    assert again.fields["editor"].hasFocus() or again.focusWidget() is again.fields["editor"]


def test_what_somebody_else_says_cannot_be_changed_here(make_window, config, monkeypatch):
    monkeypatch.setenv("KERNELSCOPE_BUDGET", "7")
    dialog = make_window("mute", begin=False).preferences.show()
    assert dialog.fields["budget"].isReadOnly()
    assert dialog.fields["budget"].text() == "7"
    assert "KERNELSCOPE_BUDGET" in dialog.fields["budget"].toolTip()


def test_an_editor_kept_by_an_earlier_version_moves_into_the_file(make_window, config, settings_file):
    settings_file.write_text("[General]\neditor=code -w\n")
    window = make_window("mute", begin=False)
    assert config.read_text() == 'editor = "code -w"\n'
    assert window.settings.value("editor") is None


def test_the_look_and_the_notices_are_stored_at_once_and_text_grows(qtbot, make_window, config):
    window = make_window("mute", begin=False)
    usual = QApplication.font().pointSizeF()
    row = window.problems.verticalHeader().defaultSectionSize()
    try:
        dialog = window.preferences.show()
        dialog.theme.setCurrentIndex([*CHOICES].index("contrast"))
        dialog.theme.activated.emit(dialog.theme.currentIndex())
        assert (window.settings.value("theme"), window.theming.theme.name) == ("contrast", "contrast")
        window.menu_actions.by_name["larger"].trigger()
        assert (int(window.settings.value("zoom")), dialog.zoom.value()) == (110, 110)
        dialog.zoom.setValue(200)
        assert QApplication.font().pointSizeF() == 2 * usual
        assert window.progress.words.fontInfo().pointSizeF() == pytest.approx(2 * usual, rel=0.1)
        assert window.problems.verticalHeader().defaultSectionSize() > 1.5 * row
        dialog.notices[MACHINE].click()
        assert window.banner.hushed == [MACHINE]
        window.menu_actions.by_name["usual-size"].trigger()
        assert QApplication.font().pointSizeF() == usual
    finally:
        window.theming.enlarge(100)
        window.theming.choose("light")
