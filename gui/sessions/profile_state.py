"""The profile that the window shows: its folder, its cases, and the events of those that were read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from bench.profile.event_files import events_in
from bench.profile.events import Events
from bench.profile.kind import KIND as PROFILE
from bench.profile.records import CaseProfile, Profile
from gui.sessions.timeline_lanes import LaneGroup, group


@dataclass(frozen=True)
class Read:
    """A case's events, and their lanes."""

    case: CaseProfile
    events: Events
    lanes: LaneGroup


class ProfileState(QObject):
    """`changed` when anything is otherwise than before."""

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.folder: Path | None = None
        self.profile: Profile | None = None
        self._cases: dict[str, CaseProfile] = {}
        self._read: dict[str, Read] = {}

    @property
    def cases(self) -> list[CaseProfile]:
        """All that are done, in the order of the profile."""
        planned = self.profile.cases if self.profile is not None else ()
        return [self._cases[case.key] for case in planned if case.key in self._cases]

    @property
    def fine(self) -> list[CaseProfile]:
        return [case for case in self.cases if case.disposition == "ok"]

    @property
    def batches(self) -> list[int]:
        """Of the cases that are fine."""
        return sorted({case.case.batch for case in self.fine})

    def at(self, batch: int) -> list[CaseProfile]:
        """The fine cases of a batch size, one a backend."""
        return [case for case in self.fine if case.case.batch == batch]

    def read(self, case: CaseProfile) -> Read | None:
        """The events of a case, None while they are not read."""
        return self._read.get(case.case.key)

    def show(self, folder: Path, profile: Profile, cases: Iterable[CaseProfile] = ()) -> None:
        """Another profile, with these of its cases."""
        self.folder, self.profile = folder, profile
        self._cases, self._read = {case.case.key: case for case in cases}, {}
        self.changed.emit()

    def heard(self, message: object) -> None:
        """What a worker told of the whole."""
        if self.profile is not None:
            self.profile = PROFILE.heard(self.profile, message)
            self.changed.emit()

    def settle(self, cases: Sequence[CaseProfile]) -> None:
        """Cases that are done."""
        self._cases |= {case.case.key: case for case in cases}
        self.changed.emit()

    def keep(self, found: Iterable[Read]) -> None:
        """Events that were read."""
        self._read |= {read.case.case.key: read for read in found if read.case.case.key in self._cases}
        self.changed.emit()


def read_cases(folder: Path, cases: Sequence[CaseProfile]) -> list[Read]:
    """The events of these cases, from the disk (on a thread). Raises InputError, which names the file."""
    made = []
    for case in cases:
        events = events_in(folder, case)
        title = f"{case.case.backend}, {case.case.precision}, batch {case.case.batch:,}"
        made.append(Read(case, events, group(case, events, title)))
    return made
