"""Run: a profile; and what joins the Timeline page to the window."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QFileDialog

from bench.profile.kind import KIND as PROFILE
from gui.pages.timeline import TimelinePage
from gui.sessions.profile_session import ProfileSession

if TYPE_CHECKING:
    from gui.shell.actions import Actions
    from gui.shell.main_window import MainWindow

ORDER = 25


def add_to(window: MainWindow, actions: Actions) -> None:
    page = next(page for page in window.pages if isinstance(page, TimelinePage))
    profiles = ProfileActions(window, page)
    window.profiles = profiles
    window.sessions.append(profiles.session)
    window.showers[PROFILE.name] = profiles.open
    actions.add("run", "profile", "&Take a profile…", profiles.show)
    actions.add("run", "cancel-profile", "Cancel the pro&file", profiles.session.cancel, enabled=False)
    profiles.session.stands.connect(
        lambda standing: actions.by_name["cancel-profile"].setEnabled(standing.active)
    )
    actions.add("file", "open-profile", "Open pro&file…", profiles.ask_open)


class ProfileActions:
    """What the Timeline page wants of the window."""

    def __init__(self, window: MainWindow, page: TimelinePage) -> None:
        self._window, self._page = window, page
        self.session = ProfileSession(window, window.session.runs, self._blocked)
        page.connect_to(self.session, lambda: window.form.models.keys)
        page.open_wanted.connect(self.ask_open)
        page.trace_wanted.connect(self.ask_trace)
        self.session.told.connect(window.tell)
        self.session.logged.connect(window.problems.logged)
        window.session.greeted.connect(lambda hello: page.show_backends(hello.environment.backends))
        window.form.changed.connect(page.invalidate)
        window.session.blockers.append(self._profiling)
        window.running.append(lambda: "A profile is being taken" if self.session.active else "")
        window.closing.connect(self.session.quit)

    def show(self) -> None:
        self._window.tabs.setCurrentWidget(self._page)

    def ask_open(self) -> None:
        folder = QFileDialog.getExistingDirectory(
            self._window, "A profile's folder", str(self._window.session.runs)
        )
        if folder:
            self.open(Path(folder))

    def open(self, folder: Path) -> None:
        """Show a profile that was taken before."""
        self.show()
        self.session.open(folder)

    def ask_trace(self) -> None:
        if not self.session.state.fine or self.session.state.folder is None:
            self._window.tell("There is no profile to save a trace of; take or open one first.")
            return
        offered = self.session.state.folder / "trace.json"
        file, _ = QFileDialog.getSaveFileName(
            self._window, "Save the trace", str(offered), "Trace for Perfetto or Chrome (*.json)"
        )
        if file:
            self.session.save_trace(Path(file))

    def _blocked(self) -> str:
        """Why no profile may start now."""
        if self._window.session.active:
            return (
                "A comparison is running; cancel it or wait for its end, so that neither disturbs the other."
            )
        others = (blocked() for blocked in self._window.session.blockers if blocked != self._profiling)
        return next(filter(None, others), "")

    def _profiling(self) -> str:
        if self.session.active:
            return (
                "A profile is being taken; cancel it or wait for its end, so that neither disturbs the other."
            )
        return ""
