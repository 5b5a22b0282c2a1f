"""File: which editor opens a kernel; and what opens one."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QInputDialog

from gui.base import editor
from gui.pages.ladder import LadderPage
from gui.shell.actions import Actions
from gui.shell.main_window import MainWindow

ORDER = 16
ASKED = (
    "The command that opens a file. {file} and {line} in it are filled in; the usual editors need none.\n"
    "Empty: VISUAL or EDITOR, else the desktop's choice."
)


def add_to(window: MainWindow, actions: Actions) -> None:
    def ask() -> None:
        known = str(window.settings.value(editor.SETTING, "") or "")
        text, agreed = QInputDialog.getText(window, "Editor", ASKED, text=known)
        if agreed:
            window.settings.setValue(editor.SETTING, text.strip())

    def edit(file: Path, line: int) -> None:
        if reason := editor.open_in_editor(Path(file), line, window.settings):
            window.tell(reason)

    actions.add("file", "editor", "Ed&itor…", ask)
    for page in window.pages:
        if isinstance(page, LadderPage):
            page.edit_wanted.connect(edit)
