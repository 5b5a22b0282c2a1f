"""Run: a profile. Also connects the Timeline page with the window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from PySide6.QtWidgets import QFileDialog

from bench.run import chosen_rungs
from bench.run.kinds.profile import KIND as PROFILE
from gui.pages.timeline import TimelinePage
from gui.sessions.profile_session import ProfileSession
from gui.shell.main_window import Actions, MainWindow

ORDER = 25
ASKED = "Open a profile's folder"


def add_to(window: MainWindow, actions: Actions) -> None:
    profiles = window.profiles = ProfileActions(window, window.page_of(TimelinePage))
    window.showers[PROFILE.name] = profiles.open
    actions.add("run", "profile", "&Take a profile…", profiles.show)
    actions.add("run", "cancel-profile", "Cancel the pro&file", profiles.session.cancel, enabled=False)
    profiles.session.stands.connect(
        lambda standing: actions.by_name["cancel-profile"].setEnabled(standing.active)
    )
    actions.add("file", "open-profile", "Open pro&file…", lambda: window.library.ask_open(ASKED))


class ProfileActions:
    """Connects the Timeline page with the window."""

    def __init__(self, window: MainWindow, page: TimelinePage) -> None:
        self._window, self._page = window, page
        self.session = ProfileSession(window, window.session.runs)
        window.join(self.session)
        page.connect_to(self.session, lambda: window.form.models.keys, self._kernels)
        wanted = {"open": lambda: window.library.ask_open(ASKED), "trace": self.ask_trace}
        page.wanted.connect(lambda what: wanted[what]())
        window.where.can_run.connect(page.show_backends)
        window.form.changed.connect(page.invalidate)

    def _kernels(self, model: str) -> tuple[Mapping[str, str], Sequence[str]]:
        """The kernels that the form has for a model: a profile runs the same kernels as F5."""
        rungs, form = self._window.form.rungs, self._window.form
        chosen = chosen_rungs.compared(rungs.rungs, [model], form.models.keys)
        return chosen, rungs.folders if chosen else ()

    def show(self) -> None:
        self._window.tabs.setCurrentWidget(self._page)

    def open(self, folder: Path, front: bool = True) -> None:
        """Show a saved profile. front: also bring its page to the front."""
        if front:
            self.show()
        self.session.open(folder)

    def ask_trace(self) -> None:
        if not self.session.state.fine or self.session.state.folder is None:
            self._window.tell("There is no profile to save a trace of; record or open one first.")
            return
        offered = self.session.state.folder / "trace.json"
        file, _ = QFileDialog.getSaveFileName(
            self._window, "Save the trace", str(offered), "Trace for Perfetto or Chrome (*.json)"
        )
        if file:
            self.session.save_trace(Path(file))
