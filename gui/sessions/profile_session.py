"""Profiles of the window: a job becomes a folder and a worker a case; folders are opened, events read off the
GUI thread, traces written.

Nothing else is timed meanwhile: while `blocked` says why not (a comparison runs), no profile starts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject

from bench.kinds import folders
from bench.kinds.naming import RUNS
from bench.profile.kind import KIND as PROFILE
from bench.profile.kind import ProfileFolder
from bench.profile.records import CaseProfile, Profile, ProfileJob, planned
from gui.sessions.export import Exporter, Order
from gui.sessions.profile_state import ProfileState, Read, read_cases
from gui.sessions.session import Session
from kernels.errors import InputError


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

    def run(self, job: ProfileJob, command: str = "") -> None:
        """Profile the job's cases into a folder of their own. What hinders it is told."""
        if self.active:
            self.told.emit(f"{self.busy_words}; cancel it or wait for its end.")
            return
        if reason := self.blocked():
            self.told.emit(reason)
            return
        profile = Profile(job=job, cases=planned(job))
        command = command or PROFILE.command_line(job)
        try:
            folder = folders.begin(PROFILE, profile, None, self._runs, command)
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
