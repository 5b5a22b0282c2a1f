"""File, at its end: quit."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gui.shell.actions import Actions
    from gui.shell.main_window import MainWindow

ORDER = 90


def add_to(window: MainWindow, actions: Actions) -> None:
    actions.add("file", "quit", "&Quit", window.close, "Ctrl+Q")
