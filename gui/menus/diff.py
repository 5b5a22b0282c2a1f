"""File: the run shown held against its baseline. And what the window does with two runs of its list: hold one
against the other, keep a baseline, and say of a run that has just been measured how it stands to it."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, QTimer

from bench.results import baseline
from bench.results.folders import open_folder
from bench.views.diff.between import between, with_baseline
from bench.views.diff.records import Diff
from bench.views.sentences import diff_sentences as sentences
from gui.pages.runs import RunsPage
from gui.sessions.session import Session
from gui.shell.actions import Actions
from gui.shell.library import Library
from gui.shell.main_window import MainWindow

ORDER = 21  # behind the runs, whose library it reads with
SHOW = "Show the difference"


def add_to(window: MainWindow, actions: Actions) -> None:
    comparing = Comparing(window, window.library)
    actions.add("file", "diff-baseline", "Diff with the &baseline", comparing.with_baseline)


class Comparing(QObject):
    """One a window; the baseline is kept where new runs are written."""

    def __init__(self, window: MainWindow, library: Library) -> None:
        super().__init__(window)
        self._window, self._library = window, library
        self._into: dict[Session, Path] = {}  # what each session measured into last
        for page in window.pages:
            if isinstance(page, RunsPage):
                page.diff_wanted.connect(self.compare)
                page.baseline_wanted.connect(self.keep)
        QTimer.singleShot(0, self, self._listen)  # other kinds' sessions join while the menus are made

    def compare(self, a: Path, b: Path) -> None:
        """Show B held against A; what hinders it is told."""
        self._library.background.start("diff", lambda: between(a, b), self.show)

    def with_baseline(self) -> None:
        """Show the run on the pages held against its baseline."""
        folder, runs = self._window.state.folder, self._library.runs
        if folder is None:
            self._window.tell("There is no run to hold against a baseline; F5 makes one.")
            return

        def then(found: Diff | None) -> None:
            if found is not None:
                self.show(found)
            else:
                name = folder.absolute().name
                self._window.tell(f"{name} has no baseline; the Runs page sets one (Ctrl+6).")

        self._library.background.start("diff", lambda: with_baseline(folder, runs), then)

    def keep(self, run: Path, wanted: bool) -> None:
        """Make a run the baseline of what it is of, or let go of it."""
        runs = self._library.runs

        def work() -> str:
            if not wanted:
                baseline.clear(runs, run)
                return f"{run.absolute().name} is no baseline any more."
            made = baseline.keep(runs, run)
            of = ", ".join(filter(None, (*made.models, made.node)))
            return f"{run.absolute().name} is now what every {made.kind} of {of} is held against."

        def then(said: str) -> None:
            self._window.tell(said)
            self._library.refresh()

        self._library.background.start("baseline", work, then)

    def show(self, diff: Diff) -> None:
        from gui.pages.runs.diff_window import DiffWindow

        shown = DiffWindow(diff, self._window.theming, self._window)
        shown.finished.connect(shown.deleteLater)
        shown.show()

    # ------------------------------------------------------------------------------------------ a fresh run

    def _listen(self) -> None:
        for session in self._window.sessions:
            session.stands.connect(lambda _, session=session: self._on_standing(session))
            session.ended.connect(lambda session=session: self._on_ended(session))

    def _on_standing(self, session: Session) -> None:
        if session.writing is not None:
            self._into[session] = session.writing

    def _on_ended(self, session: Session) -> None:
        folder, runs = self._into.pop(session, None), self._library.runs
        if folder is None:
            return

        def work() -> Diff | None:
            # Half a run would seem to have lost cases.
            return None if open_folder(folder).missing() else with_baseline(folder, runs)

        def then(found: Diff | None) -> None:
            if found is None:
                return
            banner, said = self._window.banner, sentences.summary(found)
            if banner.text:  # what was said of the run itself stays
                said = f"{banner.text}\n{said}"
            banner.ask(said, SHOW, lambda: self.show(found))

        self._library.background.start("held against the baseline", work, then)
