"""About: versions and machine, to be read and copied; the licence."""

from __future__ import annotations

import platform

from PySide6.QtWidgets import QApplication, QPlainTextEdit

from bench.words.version import version
from gui.menus.about import About


def test_about_tells_versions_and_machine_and_copies_them(make_window):
    window = make_window("ok")
    window.menu_actions.by_name["about"].trigger()
    about = window.findChild(About)
    assert version()
    for words in (f"Kernelscope {version()}", f"Python {platform.python_version()}", "PySide6"):
        assert words in about.text
    for backend in window.backends:
        assert f"{backend.name}: " in about.text
    QApplication.clipboard().clear()
    about.copy_button.click()
    assert QApplication.clipboard().text() == about.text
    panes = [about.tabs.widget(i) for i in range(about.tabs.count())]
    assert all(isinstance(pane, QPlainTextEdit) and pane.isReadOnly() for pane in panes)
    assert "MIT License" in panes[1].toPlainText()
    panes[0].selectAll()
    panes[0].copy()
    assert QApplication.clipboard().text() == about.text


def test_before_a_worker_has_told_of_the_machine_about_says_so(make_window):
    window = make_window("mute", begin=False)
    window.menu_actions.by_name["about"].trigger()
    assert "has not started yet" in window.findChild(About).text
