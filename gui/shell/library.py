"""What the window does with folders of runs, ladders and profiles: list, open, resume, draw over the run
shown, fill the form, name, show the folder, delete.

Files of a run are read in threads. A folder that is no run is reported in a sentence.
"""

from __future__ import annotations

import contextlib
import datetime
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QFile, QObject, QTimer, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog

from bench.questions.ladder_questions import task_at
from bench.results import baseline, note, packed, trust
from bench.results.claim import claimed
from bench.results.folders import copy
from bench.results.kinds import kind_of
from bench.results.records import Job, Measurement, Run, stem
from bench.results.store import RUNS, new_folder
from bench.results.summaries import BESIDE_SAMPLE, SAMPLE, Summary, listed, summaries
from bench.run import elsewhere
from bench.run.kinds.comparison import KIND as COMPARISON
from gui.base.boxes import kept_list
from gui.pages.runs import RunsPage, same
from gui.sessions.comparison_session import Overlay
from gui.sessions.session import Standing
from gui.shell.notices import INTERRUPTED
from gui.widgets.question import ask
from kernels.errors import InputError, KernelscopeError

if TYPE_CHECKING:
    from gui.shell.main_window import MainWindow

MOST_KNOWN = 20  # runs from elsewhere that stay in the list
_KNOWN = "runs/opened"

_RUNNING = "runs/running"  # the folder that was measured into when the window went
GO_ON = "Resume"
TO_TRASH, FOR_GOOD, KEEP, UNDO = "Move to the trash", "Delete for good", "Keep it", "Undo"

RunFiles = tuple[Path, Run, tuple[Measurement, ...], str]


@dataclass(frozen=True)
class Listing:
    """The runs of the list. baseline_of: run → its baseline; baselines: the folders of all baselines."""

    runs: tuple[Summary, ...]
    baseline_of: Mapping[Path, Path]
    baselines: tuple[Path, ...]

    @classmethod
    def of(cls, runs: Path, known: Iterable[Path]) -> Listing:
        items = listed_runs(runs, known)
        return cls(items, baseline.of_each(runs, items), baseline.kept(runs))


class Library(QObject):
    """The folders of one window. runs: where new runs are written. `listed` carries the runs of the list."""

    listed = Signal(object)
    thrown = Signal(bool)  # whether there is a deletion to be undone

    def __init__(self, window: MainWindow, runs: Path = RUNS) -> None:
        super().__init__(window)
        self._window = window
        self.runs = runs
        self._running: Path | None = None
        self._thrown: list[Thrown] = []  # in the trash, the last one at the end
        self._closing = False
        window.closing.connect(self._on_closing)
        self.background = window.session.background
        verbs: dict[str, Callable[[Path], object]] = {
            "open": self.open,
            "resume": self.resume,
            "retry": self.retry,
            "overlay": self.lay_over,
            "take off": window.state.take_off,
            "form": self.fill_form,
            "reveal": reveal,
            "delete": self.delete,
        }
        self._page = page = window.page_of(RunsPage)
        page.list_wanted.connect(self.refresh)
        page.noted.connect(self.set_note)
        page.wanted.connect(lambda verb, path: verbs[verb](path))
        window.session.ended.connect(self._on_ended)
        window.session.opened.connect(self._on_opened)
        window.session.stands.connect(self._on_standing)
        for session in window.sessions:
            session.interrupted.connect(self._on_interrupted)
        QTimer.singleShot(0, self, self._offer_interrupted)

    # --------------------------------------------------------------------------------------------- opening

    def ask_open(self, title: str = "Open a run folder") -> None:
        """Ask for the folder of a run of any kind, and show it."""
        if path := self._ask(title):
            self.open(path)

    def ask_packed(self) -> None:
        """Ask for the file of a run, and show it."""
        file, _ = QFileDialog.getOpenFileName(
            self._window, "Open a packed run", "", f"Runs (*{packed.SUFFIX})"
        )
        if file:
            self.open(Path(file))

    def ask_overlay(self) -> None:
        """Ask for a run folder, and draw it over the run shown."""
        if path := self._ask("Lay a run over this one"):
            self.lay_over(path)

    def open_sample(self) -> None:
        """Show the sample run, with its ladder and its profile on their pages."""
        self._window.session.open(SAMPLE)
        for path in BESIDE_SAMPLE:
            kind = kind_of(path)
            if kind is not None and kind.name in self._window.showers:
                self._window.showers[kind.name](path, False)

    def open(self, path: Path) -> None:
        """Show a run on the pages of its kind; one in a file is unpacked beside the others first. Of a task,
        show the ladder. Errors are shown in the banner."""
        if packed.is_packed(path):
            target = self.runs / path.stem
            if target.exists():
                target = new_folder(self.runs, datetime.datetime.now(), path.stem)
            self.background.start("unpack", lambda: copy(path, target), self.open)
            return
        kind = kind_of(path)
        show = self._window.showers.get(kind.name) if kind is not None else None
        if kind is None and task_at(path) is not None:
            self._window.ladders.open_task(path)
        elif show is None:
            self._window.session.open(path)  # which says what is wrong with it
        else:
            self._remember(path)
            show(path)

    def retry(self, path: Path) -> None:
        """Measure again what crashed or timed out, and what is missing."""
        self.resume(path, retry=True)

    def resume(self, path: Path, retry: bool = False) -> None:
        """Measure what a run or a ladder lacks. retry: also what crashed or timed out. Errors are shown in
        the banner."""
        kind = kind_of(path)
        begin = self._window.resumers.get(kind.name) if kind is not None else None
        try:
            if begin is None:
                raise InputError(f"{path.absolute().name} is nothing that can be gone on with")
            begin(path, retry=retry)
        except KernelscopeError as error:
            self._window.tell(str(error), "failed")
            return
        if begin == self._window.session.go_on and self._window.session.active:
            self._window.tabs.setCurrentIndex(0)

    def fill_form(self, path: Path, trusted: bool = False) -> None:
        """Put a run's settings into the form. Kernels of somebody else are only taken if the user agrees."""

        def then(job: Job) -> None:
            if not trusted and (reason := trust.doubt(path, job.kernel_dirs)):
                self._window.doubt(reason, lambda: self.fill_form(path, trusted=True))
                return
            form = self._window.form
            gone = [m for m in job.models if m not in form.models.keys and not Path(m).is_file()]
            models = tuple(m for m in job.models if m not in gone)
            name = path.absolute().name
            if not models:
                self._window.tell(f"No model of {name} is here any more, so it cannot fill the form.")
                return
            form.set_job(msgspec.structs.replace(job, models=models))
            self._window.form_dock.show()
            missing = f", but for {', '.join(map(stem, gone))}, which is not here any more" if gone else ""
            self._window.tell(f"The form has the settings of {name}{missing}; F5 runs them.")

        self.background.start("settings", lambda: COMPARISON.open(path).job, then)

    def set_note(self, path: Path, noted: note.Note) -> None:
        """Store the name and note of a run. Legends and the list use the name."""

        def then(stored: note.Note) -> None:
            for overlay in self._window.state.overlays:
                if same(overlay.folder, path):
                    overlay.called = stored.name
                    self._window.state.lay_over(overlay)
            self._window.name_window()
            self.refresh()

        self.background.start("note", lambda: note.write(path, noted), then)

    def lay_over(self, path: Path) -> None:
        """Draw a run over the run shown. Errors are shown in the banner."""
        window = self._window
        if window.state.folder is not None and same(window.state.folder, path):
            window.tell(f"{path.absolute().name} is the run shown; lay another over it.")
        else:
            self.background.start("overlay", lambda: read(path), self._on_overlay)

    def _on_opened(self, folder: Path) -> None:
        window = self._window
        window.state.take_off(folder)
        if folder != SAMPLE:
            self._remember(folder)
        if window.state.empty:
            window.tell(f"{folder.absolute().name} holds no measurement.")
        if isinstance(window.page, RunsPage):
            window.tabs.setCurrentIndex(0)

    def _on_interrupted(self, folder: Path, count: int) -> None:
        self._offer(folder, f"{folder.absolute().name} was interrupted", count)

    def _offer(self, folder: Path, what: str, count: int) -> None:
        cases = "1 case is" if count == 1 else f"{count:,} cases are"
        place = elsewhere.of_run(folder)
        told = f" What {place} measured meanwhile is fetched first." if place else ""
        words = f"{what}: {cases} not measured yet.{told}"
        self._window.banner.ask(words, GO_ON, lambda: self.resume(folder), INTERRUPTED)

    def _on_closing(self) -> None:
        self._closing = True

    def _on_standing(self, standing: Standing) -> None:
        """Store which run is being measured, in case the window ends before the run does."""
        writing = self._window.session.writing
        if standing.active and writing is not None and self._running != writing:
            self._running = writing
            self._window.settings.setValue(_RUNNING, str(writing))
            self._window.settings.sync()

    def _offer_interrupted(self) -> None:
        """Offer to continue the run that was being measured when the window last closed."""
        path = str(self._window.settings.value(_RUNNING, "") or "")
        self._window.settings.remove(_RUNNING)
        if not path or self._window.session.active:
            return

        def then(run: Summary | None) -> None:
            if run is not None and run.resumable and run.cases and not self._window.session.active:
                self._offer(run.path, f"{run.name} was interrupted when the window closed", run.left)

        self.background.start("interrupted", lambda: left_behind(Path(path)), then)

    def _on_overlay(self, files: RunFiles) -> None:
        window = self._window
        overlay = Overlay(*files)
        folder = overlay.folder
        self._remember(folder)
        window.state.lay_over(overlay)
        models = set(window.state.models)
        if models and not models & overlay.models:
            window.tell(
                f"{overlay.name} and the run shown have no model in common, so there is nothing to lay over."
            )
        elif models and isinstance(window.page, RunsPage):
            window.tabs.setCurrentIndex(0)

    # --------------------------------------------------------------------------------------------- the list

    def refresh(self) -> None:
        """Read the list of runs again."""
        runs, known = self.runs, self._known()
        self.background.start("list", lambda: Listing.of(runs, known), self._on_list)

    def delete(self, path: Path) -> None:
        """Ask the user, then move a folder to the trash. Where there is no trash, ask again: then the run's
        own files are deleted for good."""
        window = self._window
        if any(same(folder, path) for folder in self._being_written()):
            window.tell(f"{path.absolute().name} is being measured; cancel it before deleting it.")
            return
        name, runs = path.absolute().name, self.runs
        if ask(window, "Delete a run", f"Move {name} to the trash?", (TO_TRASH,), KEEP) != TO_TRASH:
            return

        def then(thrown: Thrown | None) -> None:
            if thrown is not None:
                self._on_deleted(path)
                self._thrown.append(thrown)
                self.thrown.emit(True)
                window.banner.ask(
                    f"{name} is in the trash.", UNDO, lambda: self._take_back(thrown), str(path)
                )
                return
            words = f"There is no trash here. Delete {name} for good? You cannot get it back."
            if ask(window, "Delete a run for good", words, (FOR_GOOD,), KEEP) == FOR_GOOD:
                self.background.start("delete", lambda: destroy(path, runs), lambda _: self._on_deleted(path))

        self.background.start("delete", lambda: throw_away(path, runs), then)

    def undo(self) -> None:
        """Undo the last deletion."""
        if self._thrown:
            self._take_back(self._thrown[-1])

    def _take_back(self, thrown: Thrown) -> None:
        self._thrown = [other for other in self._thrown if other is not thrown]
        self.thrown.emit(bool(self._thrown))

        def then(_: None) -> None:
            self._window.banner.replace(str(thrown.path), ())  # that it is in the trash
            self._window.tell(f"{thrown.path.absolute().name} is back.")
            self.refresh()

        self.background.start("take back", lambda: take_back(thrown, self.runs), then)

    def _on_deleted(self, path: Path) -> None:
        """Remove a deleted run from overlays and pages."""
        state = self._window.state
        state.take_off(path)
        for session in self._window.sessions:
            session.forget(path)
        if state.folder is not None and same(state.folder, path) and not self._window.session.active:
            state.open(Run(job=Job(models=(), backends=()), cases=()))
        self.refresh()

    def _being_written(self) -> list[Path]:
        """The folders into which something is being measured."""
        return [session.writing for session in self._window.sessions if session.writing is not None]

    def _on_list(self, listing: Listing) -> None:
        runs = listing.runs
        self.listed.emit(runs)
        for overlay in self._window.state.overlays:
            if not overlay.folder.exists():  # deleted by somebody else
                self._window.state.take_off(overlay.folder)
        self._page.show_runs(runs, self.runs, listing.baseline_of, listing.baselines)

    def _on_ended(self) -> None:
        if not self._closing:  # else the run was interrupted, and is offered at the next start
            self._running = None
            self._window.settings.remove(_RUNNING)
        if self._page.isVisible():
            self.refresh()

    def _known(self) -> list[Path]:
        return [Path(path) for path in kept_list(self._window.settings, _KNOWN)]

    def _remember(self, path: Path) -> None:
        """Keep a run from elsewhere in the list."""
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
    """All records of a run. Raises InputError if it is none."""
    folder = COMPARISON.open(path)
    return folder.path, folder.header, folder.measurements(), note.read(path).name


def left_behind(path: Path) -> Summary | None:
    """An interrupted run that nobody measures now; None if another program does, or if there is none."""
    run = listed(path)
    if run is None or not run.resumable:
        return None
    return None if claimed(path) else run


def listed_runs(runs: Path, known: Iterable[Path]) -> tuple[Summary, ...]:
    """The runs in a folder, and those from elsewhere that still exist."""
    there = {item.path.absolute(): item for item in summaries(runs)}
    for path in known:
        if path not in there and (item := listed(path)) is not None:
            there[path] = item
    return tuple(there.values())


@dataclass(frozen=True)
class Thrown:
    """A run in the trash. path: where it was; trashed: where it is; baseline: whether it was one."""

    path: Path
    trashed: Path
    baseline: bool


def throw_away(path: Path, runs: Path) -> Thrown | None:
    """Move a run to the trash. It is no baseline of a run in `runs` any more. None, and nothing is changed,
    where there is no trash.

    Raises InputError if it is no run.
    """
    if kind_of(path) is None:
        raise InputError(f"{path} is no run folder any more")
    was_baseline = path.resolve() in {kept.resolve() for kept in baseline.kept(runs)}
    trashed = to_trash(path.absolute())
    if trashed is None:
        return None
    baseline.clear(runs, path)
    return Thrown(path, trashed, was_baseline)


def to_trash(path: Path) -> Path | None:
    """Move a folder to the system's trash. Returns where it is now; None where there is no trash."""
    file = QFile(str(path))
    return Path(file.fileName()) if file.moveToTrash() else None


def take_back(thrown: Thrown, runs: Path) -> None:
    """Undo `throw_away`. Raises InputError if that fails."""
    name = thrown.path.absolute().name
    if thrown.path.exists():
        raise InputError(f"{name} is still in the trash: something else is at {thrown.path} now")
    try:
        shutil.move(thrown.trashed, thrown.path)
    except OSError as error:
        raise InputError(f"cannot take {name} out of the trash: {error.strerror or error}") from error
    # Where the trash is that of freedesktop.org, it keeps a note of each file in it.
    noted = thrown.trashed.parent.with_name("info") / f"{thrown.trashed.name}.trashinfo"
    with contextlib.suppress(OSError):
        noted.unlink(missing_ok=True)
    if thrown.baseline:
        baseline.keep(runs, thrown.path)


def destroy(path: Path, runs: Path) -> None:
    """Delete a run's own files, and its folder if it is empty then. It is no baseline any more.

    Raises InputError if that fails.
    """
    kind = kind_of(path)
    if kind is None:
        raise InputError(f"{path} is no run folder any more")
    baseline.clear(runs, path)
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
