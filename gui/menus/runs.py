"""File: run folders, to open and to lay over each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gui.shell.drop_run import RunDrop
from gui.shell.library import Library

if TYPE_CHECKING:
    from gui.shell.actions import Actions
    from gui.shell.main_window import MainWindow

ORDER = 20


def add_to(window: MainWindow, actions: Actions) -> None:
    library = Library(window, window.session.runs)
    RunDrop(window, library.open)
    actions.add("file", "open-run", "Open &run…", library.ask_open, "Ctrl+Shift+O")
    actions.add("file", "open-sample", "Open &sample run", library.open_sample)
    actions.add("file", "lay-over", "&Lay a run over this one…", library.ask_overlay, "Ctrl+L")
    off = actions.add(
        "file", "take-off", "&Take the other runs off", lambda: window.state.take_off(), "Ctrl+Shift+L"
    )

    def enable() -> None:
        off.setEnabled(bool(window.state.overlays))

    window.state.changed.connect(enable)
    enable()
