"""File: open models. Run: start, pause and cancel a comparison, or copy it as a command."""

from __future__ import annotations

from PySide6.QtGui import QKeySequence

from gui.shell.main_window import Actions, MainWindow

ORDER = 10


def add_to(window: MainWindow, actions: Actions) -> None:
    session, form = window.session, window.form

    def pause() -> None:
        if session.standing.phase in ("paused", "pausing"):
            session.resume()
        else:
            session.pause()

    actions.add("file", "open-model", "&Open model…", window.open_models, QKeySequence.StandardKey.Open)
    actions.add("run", "run", "&Run the comparison", form.request_run, ["F5", "Ctrl+R"])
    actions.add("run", "pause", "&Pause", pause, "F6", enabled=False)
    actions.add("run", "cancel", "&Cancel", session.cancel, "Shift+F5", enabled=False)
    actions.add("run", "copy-command", "Copy as co&mmand", form.copy_command, "Ctrl+Shift+K")
