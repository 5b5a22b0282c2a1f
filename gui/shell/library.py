"""What the window does with folders of runs, ladders and profiles: lists, opens on their pages, lays over,
shows on the disk, deletes.

Everything that reads a run's files does so off the GUI thread; a folder that is none is told in a sentence.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QFile, QObject, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog, QMessageBox

from bench.comparison.kind import KIND as COMPARISON
from bench.kinds.naming import RUNS
from bench.kinds.registry import kind_of
from bench.kinds.summaries import BESIDE_SAMPLE, SAMPLE, Summary, listed, summaries
from bench.results.records import Measurement, Run
from gui.pages.runs import RunsPage, same
from gui.sessions.overlay import Overlay
from gui.widgets.labels import as_tip
from kernels.errors import InputError

if TYPE_CHECKING:
    from gui.shell.main_window import MainWindow

MOST_KNOWN = 20  # runs from elsewhere that stay in the list
_KNOWN = "runs/opened"

RunFiles = tuple[Path, Run, tuple[Measurement, ...]]


class Library(QObject):
    """One a window; `runs` is where new runs are written."""

    def __init__(self, window: MainWindow, runs: Path = RUNS) -> None:
        super().__init__(window)
        self._window = window
        self.runs = runs
        self.background = window.session.background
        self._pages = [page for page in window.pages if isinstance(page, RunsPage)]
        for page in self._pages:
            page.list_wanted.connect(self.refresh)
            page.open_wanted.connect(self.open)
            page.overlay_wanted.connect(self.lay_over)
            page.reveal_wanted.connect(reveal)
            page.delete_wanted.connect(self.delete)
        window.session.ended.connect(self._on_ended)
        window.session.opened.connect(self._on_opened)

    # --------------------------------------------------------------------------------------------- opening

    def ask_open(self) -> None:
        """Ask for a run folder and show it."""
        if path := self._ask("Open a run folder"):
            self.open(path)

    def ask_overlay(self) -> None:
        """Ask for a run folder and lay it over the run shown."""
        if path := self._ask("Lay a run over this one"):
            self.lay_over(path)

    def open_sample(self) -> None:
        """Show the run that comes with the program, with a ladder and a profile on the pages behind it."""
        self._window.session.open(SAMPLE)
        for path in BESIDE_SAMPLE:
            kind = kind_of(path)
            if kind is not None and kind.name in self._window.showers:
                self._window.showers[kind.name](path, False)

    def open(self, path: Path) -> None:
        """Show a run on the pages of its kind; what is wrong with it is told."""
        kind = kind_of(path)
        show = self._window.showers.get(kind.name) if kind is not None else None
        if show is None:
            self._window.session.open(path)  # which says what is wrong with it
        else:
            self._remember(path)
            show(path)

    def lay_over(self, path: Path | None) -> None:
        """Draw a run over the one shown, None to take it away; what is wrong with it is told."""
        window = self._window
        if path is None:
            window.state.lay_over(None)
        elif window.state.folder is not None and same(window.state.folder, path):
            window.tell(f"{path.absolute().name} is the run shown; lay another over it.")
        else:
            self.background.start("overlay", lambda: read(path), self._on_overlay)

    def _on_opened(self, folder: Path) -> None:
        window = self._window
        if window.state.overlay is not None and same(window.state.overlay.folder, folder):
            window.state.lay_over(None)
        if folder != SAMPLE:
            self._remember(folder)
        if window.state.empty:
            window.tell(f"{folder.absolute().name} holds no measurement.")
        if isinstance(window.page, RunsPage):
            window.tabs.setCurrentIndex(0)

    def _on_overlay(self, files: RunFiles) -> None:
        window = self._window
        folder, run, measurements = files
        overlay = Overlay(folder, run, measurements)
        self._remember(folder)
        window.state.lay_over(overlay)
        shown = set(window.state.models)
        if shown and not shown & overlay.models:
            window.tell(
                f"{overlay.name} and the run shown have no model in common, so there is nothing to lay over."
            )
        elif shown and isinstance(window.page, RunsPage):
            window.tabs.setCurrentIndex(0)

    # --------------------------------------------------------------------------------------------- the list

    def refresh(self) -> None:
        """Read anew which runs there are."""
        runs, known = self.runs, self._known()
        self.background.start("list", lambda: found(runs, known), self._on_list)

    def delete(self, path: Path) -> None:
        """Ask once, then move a folder to the trash, or where there is none, delete what it consists of."""
        window = self._window
        if any(same(folder, path) for folder in self._being_written()):
            window.tell(f"{path.absolute().name} is being measured; cancel it before deleting it.")
            return
        name = path.absolute().name
        buttons = QMessageBox.StandardButton
        answer = QMessageBox.question(
            window,
            "Delete a run",
            as_tip(f"Move {name} to the trash?"),
            buttons.Yes | buttons.Cancel,
            buttons.Cancel,
        )
        if answer == buttons.Yes:
            self.background.start("delete", lambda: discard(path), lambda _: self.refresh())

    def _being_written(self) -> list[Path]:
        """The folders that something is measured into now."""
        return [session.writing for session in self._window.sessions if session.writing is not None]

    def _on_list(self, runs: tuple[Summary, ...]) -> None:
        for page in self._pages:
            page.show_runs(runs, self.runs)

    def _on_ended(self) -> None:
        if any(page.isVisible() for page in self._pages):
            self.refresh()

    def _known(self) -> list[Path]:
        kept = self._window.settings.value(_KNOWN) or []
        return [Path(path) for path in ([kept] if isinstance(kept, str) else kept)]

    def _remember(self, path: Path) -> None:
        """Have a run from elsewhere in the list from now on."""
        path = path.absolute()
        if path.parent == self.runs.absolute():
            return
        known = [path, *(p for p in self._known() if p != path)][:MOST_KNOWN]
        self._window.settings.setValue(_KNOWN, [str(p) for p in known])

    def _ask(self, title: str) -> Path | None:
        start = self.runs if self.runs.is_dir() else Path.cwd()
        chosen = QFileDialog.getExistingDirectory(self._window, title, str(start.absolute()))
        return Path(chosen) if chosen else None


def read(path: Path) -> RunFiles:
    """All of a run's records. Raises InputError where it is none."""
    folder = COMPARISON.open(path)
    return folder.path, folder.header, folder.measurements()


def found(runs: Path, known: Iterable[Path]) -> tuple[Summary, ...]:
    """What lies in a folder, and what is known from elsewhere and still there."""
    there = {item.path.absolute(): item for item in summaries(runs)}
    for path in known:
        if path not in there and (item := listed(path)) is not None:
            there[path] = item
    return tuple(there.values())


def discard(path: Path) -> None:
    """To the trash; without one, delete what it consists of and the folder if nothing else is in it.

    Raises InputError where that fails.
    """
    kind = kind_of(path)
    if kind is None:
        raise InputError(f"{path} is no run folder any more")
    moved = QFile.moveToTrash(str(path.absolute()))
    if moved[0] if isinstance(moved, tuple) else moved:
        return
    try:
        for name in kind.own:
            part = path / name
            if part.is_dir():
                shutil.rmtree(part)
            else:
                part.unlink(missing_ok=True)
        if not any(path.iterdir()):
            path.rmdir()
    except OSError as error:
        raise InputError(f"cannot delete {path}: {error.strerror or error}") from error


def reveal(path: Path) -> None:
    """Show a folder in the system's file manager."""
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(path.absolute())))
