"""File: models to compare, and the way out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtGui import QKeySequence

if TYPE_CHECKING:
    from gui.shell.actions import Actions
    from gui.shell.main_window import MainWindow

ORDER = 10


def add_to(window: MainWindow, actions: Actions) -> None:
    actions.add("file", "open-model", "&Open model…", window.open_models, QKeySequence.StandardKey.Open)
