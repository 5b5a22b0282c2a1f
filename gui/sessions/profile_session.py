"""Profiles of the window: a job becomes a folder and a worker a case; folders are opened, events read off the
GUI thread, traces written. And the state that the page shows: a profile, its cases, the events read.

Nothing else is timed meanwhile: while `blocked` says why not (a comparison runs), no profile starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal

from bench.kinds.folder import heard
from bench.kinds.naming import RUNS
from bench.profile.event_files import events_in
from bench.profile.events import Events
from bench.profile.kind import KIND as PROFILE
from bench.profile.kind import ProfileFolder
from bench.profile.records import CaseProfile, Profile, ProfileJob, planned
from gui.sessions.export import Exporter, Order
from gui.sessions.session import Session
from gui.sessions.timeline_lanes import LaneGroup, group
from kernels.errors import InputError


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
            self.profile = heard(self.profile, message)
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


class ProfileSession(Session):
    busy_words = "A profile is being recorded"

    def __init__(
        self,
        parent: QObject | None = None,
        runs: Path = RUNS,
        blocked: Callable[[], str] = lambda: "",
        worker: Sequence[str] | None = None,
    ) -> None:
        super().__init__(PROFILE, parent, runs, worker)
        self.state = ProfileState(self)
        self.blockers.append(blocked)
        self._exporter = Exporter(self)
        self._exporter.failed.connect(self.told)
        self._exporter.made.connect(
            lambda order, _: self.told.emit(f"Saved {order.where}; ui.perfetto.dev opens it.")
        )
        self._reading: tuple[str, ...] = ()

    def run(self, job: ProfileJob) -> None:
        """Profile the job's cases into a folder of their own. What hinders it is told."""
        if reason := self.occupied() or self.blocked():
            self.told.emit(reason)
            return
        profile = Profile(job=job, cases=planned(job))
        try:
            folder = self.new_folder(profile)
        except InputError as error:
            self.told.emit(str(error))
            return
        self._reading = ()
        self.state.show(folder.path.absolute(), folder.header)
        self.begin(folder, profile.cases)

    def read(self, cases: Sequence[CaseProfile]) -> None:
        """Have the events of these cases read, those that are not yet."""
        state = self.state
        missing = [case for case in cases if state.read(case) is None]
        keys = tuple(case.case.key for case in missing)
        if not missing or keys == self._reading or state.folder is None or state.profile is None:
            return
        self._reading = keys  # also where it fails: it is told once
        folder = state.folder

        def then(found: list[Read]) -> None:
            if state.folder == folder:
                state.keep(found)

        self.background.start("read events", lambda: read_cases(folder, missing), then)

    def save_trace(self, file: Path) -> None:
        """Write all cases as a trace for Perfetto or Chrome, in a process of its own."""
        if self.state.folder is None or not self.state.fine:
            self.told.emit("There is no profile to save a trace of.")
            return
        arguments = ("profile", "--load", str(self.state.folder), "--trace", str(file.absolute()))
        quiet = ("--format", "csv", "--table", "cold")
        self._exporter.start(Order((*arguments, *quiet), f"the trace {file.name}", file))

    def quit(self) -> None:
        super().quit()
        self._exporter.quit()

    # ---------------------------------------------------------------------------------------- the measuring

    def _opened(self, folder: ProfileFolder, measurements: tuple[CaseProfile, ...]) -> None:
        self._reading = ()
        self.state.show(folder.path.absolute(), folder.header, measurements)

    def _heard(self, message: Any) -> str:
        self.state.heard(message)
        return ""

    def _written(self, cases: Sequence[CaseProfile]) -> None:
        for case in cases:
            if case.disposition not in ("ok", "cancelled"):
                self.told.emit(f"{case.case.words}: {case.reason or case.disposition.replace('_', ' ')}")
        self.state.settle(cases)

    def _closed(self, cancelled: bool, cases: Sequence[Any]) -> str:
        self.state.changed.emit()
        where = f"kept in {self._runs.name}/{self._folder.name}"
        return f"Cancelled; what was measured is {where}." if cancelled else f"Profile {where}."
