"""One comparison after another: a job becomes a run folder, a worker, and measurements in the run state.

The window tells it what the user wants (start, pause, cancel, quit) and shows what it says.
"""

from __future__ import annotations

import datetime
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from bench.comparison.kind import KIND as COMPARISON
from bench.comparison.kind import RunFolder
from bench.results import trust
from bench.results.messages import CaseStarted, Hello, Log, ModelLoaded, Progress, Provisional, WorkerMessage
from bench.results.records import Case, Disposition, Job, Measurement, Run
from bench.results.rows import title
from bench.run.supervisor import Supervisor
from gui.sessions.run_state import RunState
from gui.sessions.run_writer import RunWriter
from gui.sessions.standing import Ended, RunClock, Standing, case_words
from gui.sessions.worker_process import WorkerProcess
from kernels.errors import InputError

RUNS = Path("runs")
STAGES = {
    "load": "reading the model of",
    "tune": "tuning",
    "prepare": "preparing",
    "check": "checking",
    "time": "timing",
    "layers": "measuring the layers of",
}


class Session(QObject):
    """Signals: `stands` whenever the standing changed, `greeted` with a worker's Hello, `told` with what the
    user should know (a sentence), `logged` with a Log, `doubted` with why a run's kernels are not run unasked
    and what runs them, `ended` when a run is over."""

    stands = Signal(object)
    greeted = Signal(object)
    told = Signal(str)
    logged = Signal(object)
    doubted = Signal(str, object)
    ended = Signal()

    def __init__(
        self,
        state: RunState,
        parent: QObject | None = None,
        command: Sequence[str] | None = None,
        runs: Path = RUNS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(parent)
        self._state = state
        self._runs = runs
        self._clock = RunClock(clock)
        self.standing = Standing()
        self._worker = WorkerProcess(self, command)
        self._worker.greeted.connect(self.greeted)
        self._worker.said.connect(self._on_said)
        self._worker.settled.connect(self._on_settled)
        self._worker.wrote_errors.connect(self._on_errors)
        self._worker.stopped.connect(self._on_stopped)
        self._worker.finished.connect(self._on_finished)
        self._writer: RunWriter | None = None
        self._supervisor: Supervisor | None = None
        self._case_words = ""
        self._done = 0
        self._before = 0  # cases that were done before this start
        self._over = False
        self._came: Counter[Disposition] = Counter()
        self._folder = runs
        self.blockers: list[Callable[[], str]] = []  # each: why nothing may start now, "" if it may

    @property
    def active(self) -> bool:
        return self._supervisor is not None

    @property
    def runs(self) -> Path:
        """The folder that new runs are made in."""
        return self._runs

    @property
    def worker(self) -> WorkerProcess:
        return self._worker

    def warm_up(self) -> None:
        """Have a worker ready; it tells what the machine can do."""
        if not self._over:
            self._worker.warm_up()

    def start(self, job: Job, folder: Path | None = None) -> Path:
        """Begin a new run in `folder` (None: a new one under the runs folder); its path.

        Raises InputError where the folder cannot be made or something else is being timed; RuntimeError while
        a run is active.
        """
        self._check_free()
        stamp = datetime.datetime.now().astimezone()
        run = Run(
            job=job,
            cases=(),
            command=COMPARISON.command_line(job),
            created_at=stamp.isoformat(timespec="seconds"),
        )
        held = COMPARISON.create(folder or new_folder(self._runs, stamp, title(job.models[0])), run)
        trust.remember(held.path, job.kernel_dirs)
        self._begin(held, (), ())
        return held.path

    def go_on(self, folder: Path, trusted: bool = False) -> None:
        """Run what is missing of a run. Kernels that it names and the user did not record here are run only
        where he has agreed (`trusted`). Raises InputError where it cannot be read or nothing is missing."""
        self._check_free()
        held = COMPARISON.open(folder)
        held.claim()
        missing = held.missing()
        if not missing and held.header.cases:
            self._state.open(held.header, held.path, held.measurements())
            self.told.emit(f"Every case of {held.path.name} is measured already.")
            return
        if not trusted and (reason := trust.doubt(held.path, held.header.job.kernel_dirs)):
            self.doubted.emit(reason, lambda: self.go_on(folder, trusted=True))
            return
        trust.remember(held.path, held.header.job.kernel_dirs)
        self._begin(held, missing, held.measurements())

    def pause(self) -> None:
        if self._supervisor is not None and self.standing.phase in ("running", "starting"):
            self._clock.stop()
            self._stand("pausing")
            self._worker.pause()

    def resume(self) -> None:
        if self._supervisor is not None and self.standing.phase in ("paused", "pausing"):
            self._clock.go_on()
            self._stand("running")
            self._worker.resume()

    def cancel(self) -> None:
        if self._supervisor is not None and self.standing.phase != "cancelling":
            self._stand("cancelling")
            self._worker.cancel()

    def quit(self) -> None:
        """End whatever runs, for good, and keep what was measured."""
        self._over = True
        self._worker.quit()
        self._supervisor = None
        if self._writer is not None:
            self._writer.finish()
            self._writer.wait()
            self._writer = None

    # ------------------------------------------------------------------------------------------ the inside

    def _check_free(self) -> None:
        reason = next(filter(None, (blocked() for blocked in self.blockers)), "")
        if reason:
            raise InputError(reason)

    def _begin(self, held: RunFolder, cases: Sequence[Case], before: Sequence[Measurement]) -> None:
        if self._supervisor is not None:
            raise RuntimeError("a run is active")
        self._state.open(held.header, held.path, before)
        self._writer = RunWriter(held, self)
        self._writer.written.connect(self._on_written)
        self._writer.failed.connect(self._on_write_failed)
        self._writer.closed.connect(self._on_closed)
        self._supervisor = Supervisor(COMPARISON, held.header.job, cases, str(held.path.absolute()))
        self._done = self._before = len(before)
        self._came = Counter(m.disposition for m in before)
        self._folder = held.path
        self._clock.restart()
        self._case_words = ""
        self._stand("starting", "starting the worker")
        self._worker.run(self._supervisor)

    def _on_said(self, messages: Sequence[WorkerMessage]) -> None:
        words = None
        for message in messages:
            match message:
                case Hello():
                    self.greeted.emit(message)
                    self._state.describe(environment=message.environment, cases=message.cases)
                    if self._writer is not None:
                        self._writer.heard(message)
                    words = "reading the models"
                case ModelLoaded(model=model):
                    self._state.describe(model=model)
                    if self._writer is not None:
                        self._writer.heard(message)
                case CaseStarted(case=case, stage=stage):
                    self._case_words = f"{STAGES.get(stage, stage)} {case_words(case)}"
                    words = self._case_words
                case Progress(text=text, fraction=fraction):
                    part = f" ({fraction:.0%})" if fraction is not None else ""
                    words = f"{self._case_words}: {text}{part}" if self._case_words else f"{text}{part}"
                case Provisional():
                    self._state.expect(message)
                case Log():
                    self.logged.emit(message)
        if words is not None and self.standing.phase in ("starting", "running"):
            self._stand("running", words)

    def _on_settled(self, measurements: Sequence[Measurement]) -> None:
        if self._writer is not None:
            for measurement in measurements:
                self._writer.append(measurement)

    def _on_written(self, measurements: Sequence[Measurement]) -> None:
        # A case that the user cancelled has nothing to show.
        self._state.add([m for m in measurements if m.disposition != "cancelled"])
        self._came.update(m.disposition for m in measurements)
        self._done += len(measurements)
        self._stand()

    def _on_errors(self, data: bytes) -> None:
        if self._writer is not None:
            self._writer.log(data)

    def _on_write_failed(self, reason: str) -> None:
        self.told.emit(reason)
        self.cancel()

    def _on_stopped(self) -> None:
        self._state.settle()  # whatever was being measured begins anew
        if self.standing.phase == "pausing":
            self._stand("paused")

    def _on_finished(self) -> None:
        if self._supervisor is not None and self._supervisor.reason:
            self.told.emit(_sentence(self._supervisor.reason))
        if self._writer is not None:
            self._writer.finish()

    def _on_closed(self) -> None:
        self._clock.stop()
        ended = Ended(
            counts=tuple((name, count) for name, count in self._came.items() if name != "cancelled"),
            total=len(self._state.run.cases),
            seconds=self._clock.seconds,
            folder=self._folder,
            cancelled=self._supervisor is not None and self._supervisor.cancelled,
        )
        self._supervisor = self._writer = None
        self._state.settle()
        self.standing = Standing(ended=ended)
        self.stands.emit(self.standing)
        self.ended.emit()
        self.warm_up()

    def _stand(self, phase: str | None = None, words: str | None = None) -> None:
        phase = self.standing.phase if phase is None else phase
        if phase == "pausing" and not self._worker.process_id:
            phase = "paused"
        total = len(self._state.run.cases)
        left = self._clock.seconds_left(self._done - self._before, total - self._done) if total else None
        new = Standing(
            phase=phase,
            words=self.standing.words if words is None else words,
            done=self._done,
            total=total,
            seconds_left=left,
        )
        if new != self.standing:
            self.standing = new
            self.stands.emit(new)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def new_folder(runs: Path, stamp: datetime.datetime, name: str) -> Path:
    """A path in `runs` that nothing has yet, by the time and the name."""
    base = runs / f"{stamp:%Y%m%d-%H%M%S}-{name}"
    number, path = 1, base
    while path.exists():
        number += 1
        path = base.with_name(f"{base.name}-{number}")
    return path
