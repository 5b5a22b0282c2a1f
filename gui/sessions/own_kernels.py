"""The user's own rungs of a ladder: which of them were saved or added, and have to be run; and the watch over
their folders, which sees a save however the editor saves (in place, or by a new file in the old one's
name)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QFileSystemWatcher, QObject, QTimer, Signal

from bench.questions.ladder_questions import LadderAnswer
from bench.results.ladder_records import RungCase
from bench.run.watching import Stamps, stamps

SETTLE_MS = 50  # without news, before it is looked at what has changed: a save may be several events


class OwnKernels:
    """`due`: names of the rungs to be run when nothing else is. `words`: why, as a sentence goes on with the
    time. `touched`: a file was saved, whichever, since the last answer about the files."""

    def __init__(self) -> None:
        self.due: set[str] = set()
        self.words = ""
        self.touched = False
        self._fresh = False  # the next answer may bring rungs that were saved or added
        self._seen: dict[str, str] = {}  # path of a rung → its text when it was last looked at

    def added(self, words: str = "") -> None:
        """A folder has joined, or is about to."""
        self._fresh = True
        self.words = words or self.words

    def saved(self, paths: Sequence[Path]) -> None:
        names = ", ".join(sorted({path.name for path in paths}))
        self.words = f"{names} was saved, and run again"
        self._fresh = self.touched = True

    def look(self, answer: LadderAnswer, last: bool) -> tuple[str, ...] | None:
        """The rungs that an answer brings anew, which are due from now on; None where neither they nor files
        that are no rungs are to be shown. last: no other answer is awaited."""
        own = {info.path: info for info in answer.rungs if info.case.user}
        found = None
        if self._fresh:
            changed = [i.case.rung for path, i in own.items() if self._seen.get(path) != i.source]
            # A header that several rungs include may have changed: then all of the user's run.
            if self.touched and not changed and not answer.problems:
                changed = [info.case.rung for info in own.values()]
            self.due.update(changed)
            if changed or answer.problems:
                found = tuple(changed)
        self._seen.update((path, info.source) for path, info in own.items())
        if last:
            self._fresh = self.touched = False
        return found

    def take(self, cases: Sequence[RungCase]) -> tuple[RungCase, ...]:
        """Those of a ladder's cases that are due, which they are no longer."""
        found = tuple(case for case in cases if case.user and case.rung in self.due)
        self.due.clear()
        return found


class KernelWatch(QObject):
    """`watch` folders; `changed` carries the paths (list of Path) that were saved, made or removed."""

    changed = Signal(list)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._folders: tuple[Path, ...] = ()
        self._seen: Stamps = {}
        self._watcher = QFileSystemWatcher(self)
        self._watcher.fileChanged.connect(self._on_news)
        self._watcher.directoryChanged.connect(self._on_news)
        self._timer = QTimer(self, singleShot=True, interval=SETTLE_MS)
        self._timer.timeout.connect(self._look)

    @property
    def folders(self) -> tuple[Path, ...]:
        return self._folders

    def watch(self, folders: Sequence[Path]) -> None:
        """Watch these folders and those in them from now on, and no others. One that is not there (any more)
        is watched for."""
        self._folders = tuple(Path(folder).resolve() for folder in folders)
        self._timer.stop()
        self._seen = stamps(self._folders)
        self._attend()

    def _on_news(self) -> None:
        # Anew with each event: half-written files are not read.
        self._timer.start()

    def _look(self) -> None:
        before, self._seen = self._seen, stamps(self._folders)
        self._attend()
        paths = sorted(path for path in {*before, *self._seen} if before.get(path) != self._seen.get(path))
        if paths:
            self.changed.emit(paths)

    def _attend(self) -> None:
        """Have the watcher look at what there is now: a file that was replaced is dropped by it."""
        wanted = {str(path) for path in self._seen}
        for folder in self._folders:
            if folder.is_dir():
                below = (p for p in folder.rglob("*") if p.is_dir() and p.name != "__pycache__")
                wanted |= {str(folder), *map(str, below)}
            else:
                wanted.add(str(next((p for p in folder.parents if p.is_dir()), folder)))
        now = {*self._watcher.files(), *self._watcher.directories()}
        if gone := sorted(now - wanted):
            self._watcher.removePaths(gone)
        if new := sorted(wanted - now):
            self._watcher.addPaths(new)
        # What was written between looking and watching tells nobody.
        if new and stamps(self._folders) != self._seen:
            self._timer.start()
