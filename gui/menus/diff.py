"""Compares two runs: the run shown with its baseline (File), two runs of the list, and a run that has just
been measured with its baseline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, QTimer

from bench.results import baseline
from bench.results.folders import open_folder
from bench.views.diff.between import between, with_baseline
from bench.views.diff.records import Diff
from bench.views.diff.several import Several, several
from bench.views.sentences import diff_sentences as sentences
from gui.pages.runs import RunsPage
from gui.sessions.session import Session
from gui.shell.library import Library
from gui.shell.main_window import Actions, MainWindow
from gui.shell.notices import BASELINE

ORDER = 21  # after `runs`, because it uses the library made there
SHOW = "Show the difference"


def add_to(window: MainWindow, actions: Actions) -> None:
    comparing = Comparing(window, window.library)
    actions.add("file", "diff-baseline", "Diff with the &baseline", comparing.with_baseline)


class Comparing(QObject):
    """Compares runs for one window. Baselines are stored where new runs are written."""

    def __init__(self, window: MainWindow, library: Library) -> None:
        super().__init__(window)
        self._window, self._library = window, library
        self._into: dict[Session, Path] = {}  # the folder into which each session measured last
        page = window.page_of(RunsPage)
        page.diff_wanted.connect(self.compare)
        page.several_wanted.connect(self.beside)
        page.baseline_wanted.connect(self.keep)
        # Later, because other sessions join while the menus are made.
        QTimer.singleShot(0, self, self._listen)

    def compare(self, a: Path, b: Path) -> None:
        """Show how run B differs from run A. What prevents it is shown in the banner."""
        self._library.background.start("diff", lambda: between(a, b), self.show)

    def beside(self, paths: Sequence[Path]) -> None:
        """Show several runs side by side, each held against the first. What prevents it is told."""
        from gui.pages.runs.several_window import SeveralWindow

        def then(found: Several) -> None:
            dialog = SeveralWindow(found, self._window.theming, self._window)
            dialog.finished.connect(dialog.deleteLater)
            dialog.show()

        self._library.background.start("several", lambda: several(paths[0], paths[1:]), then)

    def with_baseline(self) -> None:
        """Show how the run on the pages differs from its baseline."""
        folder, runs = self._window.state.folder, self._library.runs
        if folder is None:
            self._window.tell("There is no run to hold against a baseline; F5 makes one.")
            return

        def then(diff: Diff | None) -> None:
            if diff is not None:
                self.show(diff)
            else:
                name = folder.absolute().name
                self._window.tell(f"{name} has no baseline; the Runs page sets one (Ctrl+6).")

        self._library.background.start("diff", lambda: with_baseline(folder, runs), then)

    def keep(self, run: Path, wanted: bool) -> None:
        """Make a run the baseline for its models (and node), or, without `wanted`, no longer."""
        runs = self._library.runs

        def work() -> str:
            if not wanted:
                baseline.clear(runs, run)
                return f"{run.absolute().name} is no baseline any more."
            record = baseline.keep(runs, run)
            of = ", ".join(filter(None, (*record.models, record.node)))
            return f"{run.absolute().name} is now what every {record.kind} of {of} is held against."

        def then(sentence: str) -> None:
            self._window.tell(sentence)
            self._library.refresh()

        self._library.background.start("baseline", work, then)

    def show(self, diff: Diff) -> None:
        from gui.pages.runs.diff_window import DiffWindow

        dialog = DiffWindow(diff, self._window.theming, self._window)
        dialog.finished.connect(dialog.deleteLater)
        dialog.show()

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
            # An incomplete run would look as if it had lost cases.
            return None if open_folder(folder).missing() else with_baseline(folder, runs)

        def then(diff: Diff | None) -> None:
            if diff is None:
                return
            self._window.banner.ask(sentences.summary(diff), SHOW, lambda: self.show(diff), BASELINE)

        self._library.background.start("held against the baseline", work, then)
