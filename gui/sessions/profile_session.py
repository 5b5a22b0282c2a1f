"""Profiles of the window: a job becomes a folder and a worker a case; folders are opened, events read off the
GUI thread, traces written.

Nothing else is timed meanwhile: while `blocked` says why not (a comparison runs), no profile starts.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
from PySide6.QtCore import QObject, Signal

from bench.profile.kind import KIND as PROFILE
from bench.profile.kind import ProfileFolder
from bench.profile.records import (
    CaseProfile,
    Profile,
    ProfileJob,
    ProfileLimits,
    ProfileMessage,
    ProfileModel,
    ProfileStarted,
    planned,
)
from bench.results.messages import Hello, Log, Progress
from bench.results.records import stem
from bench.run import client
from bench.run.supervisor import Supervisor
from gui.base.background import Background
from gui.sessions.export import Exporter, Order
from gui.sessions.profile_state import ProfileState, Read, read_cases
from gui.sessions.run_writer import RunWriter
from gui.sessions.session import RUNS
from gui.sessions.worker_process import WorkerProcess
from kernels.errors import InputError

STAGES = {"prepare": "starting cold", "time": "timing, without a profiler", "profile": "profiling"}


@dataclass(frozen=True)
class ProfileStanding:
    """Where a profile stands. phase: "idle", "running", "cancelling"; words: what goes on; ended: what came
    of the last one, in a sentence."""

    phase: str = "idle"
    words: str = ""
    done: int = 0
    total: int = 0
    ended: str = ""

    @property
    def active(self) -> bool:
        return self.phase != "idle"


class ProfileSession(QObject):
    """Signals: `stands` whenever the standing changed, `told` with what the user should know, `logged` with a
    Log, `ended` when nothing is measured any more."""

    stands = Signal(object)
    told = Signal(str)
    logged = Signal(object)
    ended = Signal()

    def __init__(
        self,
        parent: QObject | None = None,
        runs: Path = RUNS,
        blocked: Callable[[], str] = lambda: "",
        worker: Sequence[str] | None = None,
    ) -> None:
        super().__init__(parent)
        self.state = ProfileState(self)
        self.standing = ProfileStanding()
        self.background = Background(self.told.emit, self)
        self._runs = runs
        self._blocked = blocked
        self._worker = WorkerProcess(self, worker or client.worker_command(PROFILE.worker))
        self._worker.said.connect(self._on_said)
        self._worker.settled.connect(self._on_settled)
        self._worker.wrote_errors.connect(self._on_errors)
        self._worker.finished.connect(self._on_finished)
        self._exporter = Exporter(self)
        self._exporter.failed.connect(self.told)
        self._exporter.made.connect(
            lambda order, _: self.told.emit(f"Saved {order.where}; ui.perfetto.dev opens it.")
        )
        self._writer: RunWriter | None = None
        self._supervisor: Supervisor | None = None
        self._reading: tuple[str, ...] = ()

    @property
    def active(self) -> bool:
        return self._supervisor is not None

    # ------------------------------------------------------------------------------------ what the user wants

    def run(self, job: ProfileJob, command: str = "") -> None:
        """Profile the job's cases into a folder of their own. What hinders it is told."""
        if self.active:
            self.told.emit("A profile is being taken; cancel it or wait for its end.")
            return
        if reason := self._blocked():
            self.told.emit(reason)
            return
        stamp = datetime.datetime.now().astimezone()
        profile = Profile(
            job=job,
            cases=planned(job),
            command=command,
            created_at=stamp.isoformat(timespec="seconds"),
        )
        try:
            folder = PROFILE.create(_new_folder(self._runs, stamp, job.model), profile)
        except InputError as error:
            self.told.emit(str(error))
            return
        path = folder.path.absolute()
        self._writer = RunWriter(folder, self)
        self._writer.written.connect(self._on_written)
        self._writer.failed.connect(self._on_write_failed)
        self._writer.closed.connect(self._on_closed)
        self._supervisor = Supervisor(PROFILE, job, profile.cases, str(path))
        self._reading = ()
        self.state.show(path, profile)
        self._stand(phase="running", words="starting the worker", done=0, total=len(profile.cases), ended="")
        self._worker.run(self._supervisor)

    def cancel(self) -> None:
        if self.standing.phase == "running":
            self._stand(phase="cancelling", words="cancelling")
            self._worker.cancel()

    def open(self, path: Path) -> None:
        """Show a profile that was made before."""
        if self.active:
            self.told.emit("A profile is being taken; cancel it or wait for its end to look at another.")
            return

        def work() -> tuple[ProfileFolder, tuple[CaseProfile, ...]]:
            folder = PROFILE.open(path)
            return folder, folder.measurements()

        def then(found: tuple[ProfileFolder, tuple[CaseProfile, ...]]) -> None:
            if not self.active:
                self._reading = ()
                self.state.show(path.absolute(), found[0].header, found[1])

        self.background.start("open a profile", work, then)

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
        self._worker.quit()
        self._exporter.quit()
        self._supervisor = None
        if self._writer is not None:
            self._writer.finish()
            self._writer.wait()
            self._writer = None

    # ---------------------------------------------------------------------------------------- the measuring

    def _on_said(self, messages: Sequence[ProfileMessage]) -> None:
        words, profile = "", self.state.profile
        for message in messages:
            match message:
                case Hello(environment=environment) if profile is not None:
                    profile = msgspec.structs.replace(profile, environment=environment)
                    self._heard(message)
                case ProfileModel(model=model) if profile is not None:
                    profile = msgspec.structs.replace(profile, model=model)
                    self._heard(message)
                case ProfileLimits(limits=limits) if profile is not None:
                    profile = msgspec.structs.replace(
                        profile, limits=profile.limits | {limits.device: limits}
                    )
                    self._heard(message)
                case ProfileStarted(case=case, stage=stage):
                    words = f"{STAGES.get(stage, stage)}: {case.words}"
                case Progress(text=text):
                    words = text
                case Log():
                    self.logged.emit(message)
        if profile is not None and profile is not self.state.profile:
            self.state.heard(profile)
        if words and self.standing.phase == "running":
            self._stand(words=words)

    def _heard(self, message: object) -> None:
        if self._writer is not None:
            self._writer.heard(message)

    def _on_settled(self, cases: Sequence[CaseProfile]) -> None:
        if self._writer is not None:
            for case in cases:
                self._writer.append(case)

    def _on_written(self, cases: Sequence[CaseProfile]) -> None:
        for case in cases:
            if case.disposition not in ("ok", "cancelled"):
                self.told.emit(f"{case.case.words}: {case.reason or case.disposition.replace('_', ' ')}")
        self.state.settle(cases)
        self._stand(done=self.standing.done + len(cases))

    def _on_errors(self, data: bytes) -> None:
        if self._writer is not None:
            self._writer.log(data)

    def _on_write_failed(self, reason: str) -> None:
        self.told.emit(reason)
        self.cancel()

    def _on_finished(self) -> None:
        if self._supervisor is not None and self._supervisor.reason:
            reason = self._supervisor.reason
            self.told.emit(reason[:1].upper() + reason[1:])
        if self._writer is not None:
            self._writer.finish()

    def _on_closed(self) -> None:
        machine, self._supervisor, self._writer = self._supervisor, None, None
        where = f"kept in {self._runs.name}/{self.state.folder.name}" if self.state.folder is not None else ""
        words = (
            f"Cancelled; what was measured is {where}."
            if machine and machine.cancelled
            else f"Profile {where}."
        )
        self.standing = ProfileStanding(ended=words)
        self.stands.emit(self.standing)
        self.state.changed.emit()
        self.ended.emit()

    def _stand(self, **fields: object) -> None:
        new = replace(self.standing, **fields)  # type: ignore[arg-type]  # fields of it
        if new != self.standing:
            self.standing = new
            self.stands.emit(new)


def _new_folder(runs: Path, stamp: datetime.datetime, model: str) -> Path:
    base = runs / f"{stamp:%Y%m%d-%H%M%S}-profile-{stem(model)}"
    number, path = 1, base
    while path.exists():
        number += 1
        path = base.with_name(f"{base.name}-{number}")
    return path
