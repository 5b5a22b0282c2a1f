"""File: open run folders, or draw one over another. Run: measure again what crashed or timed out."""

from __future__ import annotations

from gui.shell.library import Library
from gui.shell.main_window import Actions, MainWindow

ORDER = 20
RESUME = "Res&ume the run shown"
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
