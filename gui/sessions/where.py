"""Where the window has its runs measured: on this machine, or on a place that was added."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from PySide6.QtCore import QObject, QSettings, Signal

from bench.results.records import BackendInfo
from bench.run import elsewhere
from bench.run.elsewhere import HERE, Offered
from gui.base.background import Background

_KEY = "where"
_SEEN = "where-seen"  # what each place could run when it was asked last


class Where(QObject):
    """One choice for all sessions of a window, kept in its settings; as long as nothing was chosen, it is
    what the user's configuration says. `changed`: another is chosen, or what is offered has changed.
    `can_run` carries what can run there (tuple[BackendInfo, ...]); () as long as that is not known."""

    changed = Signal()
    can_run = Signal(object)

    def __init__(self, settings: QSettings | None = None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self._background = Background(lambda sentence: None, self)
        self.offered: tuple[Offered, ...] = ()
        self.name = HERE
        self.locked = False  # something is being measured: it stays where it is
        self._seen: dict[str, tuple[BackendInfo, ...]] = {}
        if settings is not None:
            offered, kept = elsewhere.offered(), settings.value(_KEY)
            preset = elsewhere.preset(offered) if kept is None else ""
            self.name = preset or str(kept or HERE)
            self._take(offered)

    @property
    def place(self) -> Offered | None:
        """The place that is chosen, None for this machine."""
        return next((place for place in self.offered if place.name == self.name), None)

    @property
    def words(self) -> str:
        """As in "asking lab"."""
        return self.name or "this machine"

    @property
    def there(self) -> str:
        """As in "cannot run on lab"."""
        return f"on {self.name}" if self.name else "here"

    @property
    def refused(self) -> str:
        """Why nothing can be measured there, "" if it can."""
        return self.place.refused if self.place is not None else ""

    @property
    def queued(self) -> bool:
        return self.place is not None and self.place.queued

    def choose(self, name: str) -> None:
        """Have runs measured there from now on. A name that is not offered is this machine."""
        known = name if name in {place.name for place in self.offered} else HERE
        if known != self.name:
            self.name = known
            if self._settings is not None:
                self._settings.setValue(_KEY, known)
            self.changed.emit()
            self.can_run.emit(self.backends)

    @property
    def backends(self) -> tuple[BackendInfo, ...]:
        """What can run there: as a worker there said it last, else as its doctor did; () if nobody knows."""
        if self.name not in self._seen and (kept := self._kept()):
            self._seen[self.name] = kept
        if self.name in self._seen or self.place is None:
            return self._seen.get(self.name, ())
        return self.place.backends

    def see(self, on: str, backends: Sequence[BackendInfo]) -> None:
        """A worker there has said what can run."""
        before, self._seen[on] = self._seen.get(on), tuple(backends)
        if self._seen[on] == before:
            return
        if self._settings is not None and on != HERE:
            self._settings.setValue(f"{_SEEN}/{on}", msgspec.json.encode(backends).decode())
        if on == self.name:
            self.can_run.emit(self._seen[on])

    def lock(self, locked: bool) -> None:
        if locked != self.locked:
            self.locked = locked
            self.changed.emit()

    def look(self) -> None:
        """Read again which places there are: the user may have added one in a terminal."""
        if self._settings is not None:
            self._background.start("places", elsewhere.offered, self._take)

    def _kept(self) -> tuple[BackendInfo, ...]:
        text = self._settings.value(f"{_SEEN}/{self.name}") if self._settings is not None else None
        try:
            return msgspec.json.decode(text, type=tuple[BackendInfo, ...]) if isinstance(text, str) else ()
        except msgspec.DecodeError:
            return ()  # kept by another version

    def _take(self, offered: tuple[Offered, ...]) -> None:
        before = self.offered
        self.offered = offered
        self.choose(self.name)
        if offered != before:
            self.changed.emit()
