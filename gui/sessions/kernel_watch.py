"""Tells when kernel sources in folders are saved, however the editor saves: in place, or by a new file in the
old one's name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QFileSystemWatcher, QObject, QTimer, Signal

from bench.results.sources import Stamps, stamps

SETTLE_MS = 50  # without news, before it is looked at what has changed: a save may be several events


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
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SETTLE_MS)
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
