"""File: open run folders, or draw one over another. Run: measure again what crashed or timed out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QTimer
from PySide6.QtGui import QKeySequence

from bench.results.summaries import Summary
from gui.pages.compare import ComparePage
from gui.shell.library import Library
from gui.shell.main_window import Actions, MainWindow
from gui.shell.start import Recent

ORDER = 20
RESUME = "Res&ume the run shown"
LATER_MS = 100  # after the window is there, until the list of runs is read
RETRY = "Retr&y what crashed or timed out"


def add_to(window: MainWindow, actions: Actions) -> None:
    library = window.library = Library(window, window.session.runs)
    window.run_dropped.connect(library.open)
    actions.add("file", "open-run", "Open &run…", library.ask_open, "Ctrl+Shift+O")
    actions.add("file", "open-packed", "Open &packed run…", library.ask_packed)
    actions.add("file", "open-sample", "Open &sample run", library.open_sample)
    actions.add("file", "lay-over", "&Lay a run over this one…", library.ask_overlay, "Ctrl+L")
    off = actions.add(
        "file", "take-off", "&Take the other runs off", lambda: window.state.take_off(), "Ctrl+Shift+L"
    )
    undo = actions.add(
        "file",
        "undo-delete",
        "&Undo deleting a run",
        library.undo,
        QKeySequence.StandardKey.Undo,
        enabled=False,
    )
    library.thrown.connect(undo.setEnabled)

    _show_recent(window, library)

    def again() -> None:
        if window.state.folder is not None:
            library.retry(window.state.folder)

    retry = actions.add("run", "retry", RETRY, again)
    retry.setToolTip("Measure again what crashed or timed out in the run that is shown")

    def go_on() -> None:
        if window.state.folder is not None:
            library.resume(window.state.folder)

    resume = actions.add("run", "resume", RESUME, go_on)
    resume.setToolTip("Measure the cases that the run shown lacks")

    def enable() -> None:
        off.setEnabled(bool(window.state.overlays))
        retry.setEnabled(
            window.state.folder is not None and window.state.lost > 0 and not window.session.active
        )

        idle = window.state.folder is not None and not window.session.active
        resume.setEnabled(idle and window.state.missing > 0)

    window.state.changed.connect(enable)
    window.session.stands.connect(enable)
    enable()


def _show_recent(window: MainWindow, library: Library) -> None:
    """Show the runs and models used last on the first page, while it is empty."""
    page, recent = window.page_of(ComparePage), Recent()
    page.hold_recent(recent)

    def listed(runs: Sequence[Summary]) -> None:
        models = [path for path in window.form.recent if Path(path).is_file()]
        recent.show_recent(runs, models)
        page.welcome(not recent.runs and not recent.models)

    def choose(model: str) -> None:
        window.form.models.check([model])
        window.room.show_form()

    library.listed.connect(listed)
    recent.opened.connect(library.open)
    recent.resumed.connect(library.resume)
    recent.model.connect(choose)
    window.begun.connect(lambda: QTimer.singleShot(LATER_MS, library, library.refresh))
