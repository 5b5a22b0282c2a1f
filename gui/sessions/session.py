"""A run behind the window, of any kind: a folder, a worker, its messages, what is written, and where the
run stands.

The window tells a session what the user wants (start, continue, pause, cancel, open, quit) and shows
its signals. A subclass adds what is special to its kind: how a run begins, what is shown of a message
(`_heard`, `_turned`, `_expected`) and of written measurements (`_written`), and the words at the end
(`_closed`).
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal

from bench.results import folders, trust
from bench.results.folder import Folder
from bench.results.kinds import Kind
from bench.results.messages import CaseStarted, Hello, Log, Progress, Provisional
from bench.results.records import Disposition
from bench.results.store import RUNS, to_run_again
from bench.run import beforehand, elsewhere
from bench.run.client import worker_command
from bench.run.elsewhere import HERE
from bench.run.pace import Pace
from bench.run.past import Past
from bench.run.supervisor import AWAY, RIGHT, Supervisor
from bench.words.called import command_line
from gui.base.background import Background, timer
from gui.sessions.processes import WorkerProcess
from gui.sessions.where import Where
from kernels.errors import InputError, KernelscopeError

_Order = Callable[[], None]
MOST_TOLD = 50  # measurements in one signal at most, so that its receiver is quick


class RunWriter(QObject):
    """Writes a run's measurements to the disk, in a thread. Call `finish` when nothing more comes;
    `closed` is emitted when everything is written. Raises InputError if another process writes into the
    folder."""

    written = Signal(object)  # tuple[Measurement, ...], as many as were written since the last emission
    failed = Signal(str)  # once: why nothing can be written any more
    closed = Signal()

    def __init__(self, folder: Folder[Any, Any], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.folder = folder
        folder.claim()
        self._orders: queue.SimpleQueue[_Order | None] = queue.SimpleQueue()
        self._written: list[Any] = []
        self._broken = False
        self._thread = threading.Thread(target=self._work, name="run writer", daemon=True)
        self._thread.start()

    def append(self, measurement: Any) -> None:
        """Write a measurement. A cancelled one is passed on but not written, so that a resume runs its
        case."""
        self._orders.put(lambda: self._append(measurement))

    def take_message(self, message: object) -> None:
        """Write what a message of the worker says about the whole run."""
        self._orders.put(lambda: self.folder.take_message(message))

    def log(self, data: bytes) -> None:
        """Add output of the worker's standard error to the run's log."""
        self._orders.put(lambda: self._log(data))

    def beside(self, write: _Order) -> None:
        """Call this in the thread, after all that came before."""
        self._orders.put(write)

    def finish(self) -> None:
        """Write what is left, then end the thread."""
        self._orders.put(None)

    def wait(self) -> None:
        """Wait for the end of the thread, after `finish`."""
        self._thread.join()

    def _append(self, measurement: Any) -> None:
        if measurement.disposition != "cancelled":
            self.folder.append(measurement)
        self._written.append(measurement)

    def _log(self, data: bytes) -> None:
        try:
            with self.folder.log.open("ab") as file:
                file.write(data)
        except OSError:
            pass  # the run is more important than its log

    def _work(self) -> None:
        order = self._orders.get()
        while order is not None:
            self._tried(order)
            if (self._written and self._orders.empty()) or len(self._written) >= MOST_TOLD:
                self._tell()
            order = self._orders.get()
        self._tell()
        self._tried(self.folder.check)
        self.folder.close()
        self.closed.emit()

    def _tried(self, order: _Order) -> None:
        if self._broken:
            return
        try:
            order()
        except KernelscopeError as error:
            self._broken = True
            self.failed.emit(str(error))

    def _tell(self) -> None:
        if self._written:
            written, self._written = tuple(self._written), []
            self.written.emit(written)


@dataclass(frozen=True)
class Ended:
    """How the last comparison ended: the number of cases by disposition (without cancelled ones), of how
    many, its seconds without pauses, and its folder."""

    counts: tuple[tuple[Disposition, int], ...]
    total: int
    seconds: float
    folder: Path
    cancelled: bool = False


@dataclass(frozen=True)
class Standing:
    """Where a run stands. phase: "idle", "starting", "running", "pausing", "paused" or "cancelling";
    words: what is being done; part: how much is done of the cases that are begun, in cases; left: the least
    and the most seconds that remain (equal for an estimate), None if unknown; ended: how the last run ended,
    as a sentence or as `Ended`, "" while one is active."""

    phase: str = "idle"
    words: str = ""
    done: int = 0
    total: int = 0
    part: float = 0.0
    left: tuple[float, float] | None = None
    ended: Any = ""

    @property
    def doing(self) -> str:
        return "cancelling" if self.phase == "cancelling" else self.words

    @property
    def active(self) -> bool:
        return self.phase != "idle"


class RunClock:
    """The seconds that a run has lasted, without pauses. clock: returns the time in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._spent = 0.0
        self._since: float | None = None

    def restart(self) -> None:
        self._spent, self._since = 0.0, self._clock()

    def go_on(self) -> None:
        self._since = self._clock()

    def stop(self) -> None:
        self._spent, self._since = self.seconds, None

    @property
    def seconds(self) -> float:
        return self._spent + (self._clock() - self._since if self._since is not None else 0.0)


# How much of a case is done when a stage of it begins and ends. Images are as much as the samples.
PARTS = {
    "tune": (0.0, 0.05),
    "prepare": (0.05, 0.15),
    "time": (0.15, 0.5),
    "check": (0.5, 0.9),
    "layers": (0.9, 1.0),
}
RECKON_S = 0.2  # seconds between two estimates of the time left, if only the words change


class Session(QObject):
    """Runs one kind of run. Signals: `stands` (Standing) on each change; `greeted` (Hello) by a worker;
    `message` (a sentence for the user); `looked` (sentences) at each start, with what disturbs
    measuring now; `doubted` (why, and a function that runs them) if a run has kernels that the user did
    not agree to; `opened` (folder) when a run is shown; `interrupted` (folder, number of cases that are
    not measured); `logged` (Log); `ended` when nothing is measured any more. blockers: functions that
    return why nothing may start now, "" if it may."""

    stands = Signal(object)
    greeted = Signal(object)
    message = Signal(str)
    doubted = Signal(str, object)
    looked = Signal(object)
    opened = Signal(Path)
    interrupted = Signal(object, int)
    logged = Signal(object)
    ended = Signal()

    busy_words = "A run is active"
    each = "case"  # what one of its cases is called

    def __init__(
        self,
        kind: Kind[Any, Any],
        parent: QObject | None = None,
        runs: Path = RUNS,
        command: Sequence[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(parent)
        self.kind = kind
        self.standing = Standing()
        self.blockers: list[Callable[[], str]] = []
        self.background = Background(self.message.emit, self)
        self.runs = runs
        self._clock = RunClock(clock)
        self.where = Where(parent=self)
        self.on = HERE  # where its worker is started
        self.leaves = False  # whether a worker elsewhere goes on when this ends
        self._warms = False  # whether a worker is to wait for the next run
        self._command = list(command or worker_command(kind.worker))  # of a worker on this machine
        self.worker = WorkerProcess(self, self._command)
        self.worker.greeted.connect(self.greeted)
        self.worker.messages.connect(self._on_messages)
        self.worker.settled.connect(self._on_settled)
        self.worker.wrote_errors.connect(self._on_errors)
        self.worker.stopped.connect(self._on_stopped)
        self.worker.finished.connect(self._on_finished)
        self._writer: RunWriter | None = None
        self._supervisor: Supervisor | None = None
        self._folder = runs
        self._turn = ""  # what the worker is at
        self._at: tuple[Any, str] | None = None  # the same as a case and its stage
        self._parts: dict[str, float] = {}  # of cases that are begun, how much of each is done
        self._before = 0  # cases that were done before this start
        self._announced = beforehand.Announced(kind.verb)
        self.warned: tuple[str, ...] = ()  # the warnings shown about the machine
        self._pace = Pace()
        self._reckoned = 0.0  # when the time left was, by the clock
        # The time left goes down while nothing is heard, too.
        self._counting = timer(self, 1000, self._stand, repeats=True)
        self._over = False

    @property
    def active(self) -> bool:
        return self._supervisor is not None

    @property
    def writing(self) -> Path | None:
        """The folder into which the active run is written, None if there is none."""
        return self._folder if self.active else None

    def occupied(self) -> str:
        """Why others may not start while this session measures, "" if they may."""
        rest = "; cancel it or wait for its end, so that neither disturbs the other."
        return self.busy_words + rest if self.active else ""

    def blocked(self) -> str:
        """Why this session may not start now, "" if it may."""
        return self.where.refused or self._blocked_by_others()

    # ------------------------------------------------------------------------------------ what the user wants

    def follow(self, where: Where) -> None:
        """Measure where this says, from the next run on."""
        self.where = where
        where.changed.connect(self._on_where)
        self._on_where()

    def warm_up(self) -> None:
        """Start a worker that waits for a job. It says what the machine can do. Where it might have to wait
        in a queue, none is started before there is a job."""
        self._warms = True
        if not (self._over or self.where.refused or self.where.queued):
            self.worker.warm_up()

    def open(self, path: Path) -> None:
        """Show a run that was measured before. Errors are sent as a message."""
        if self.active:
            self.message.emit(f"{self.busy_words}; cancel it or wait for its end to look at another.")
            return

        def work() -> tuple[Folder[Any, Any], tuple[Any, ...], int]:
            folder = self.kind.open(path)
            measurements = folder.measurements()
            measured = {m.case.key for m in measurements if not to_run_again(m, retry=False)}
            return folder, measurements, sum(case.key not in measured for case in folder.cases)

        def then(contents: tuple[Folder[Any, Any], tuple[Any, ...], int]) -> None:
            if self.active or self._over:  # it may have started meanwhile
                return
            folder, measurements, missing = contents
            self._opened(folder, measurements)
            self.opened.emit(folder.path)
            if missing and self.kind.resumes:
                self.interrupted.emit(folder.path, missing)

        self.background.start(f"open {self.kind.a}", work, then)

    def go_on(self, path: Path, trusted: bool = False, retry: bool = False) -> None:
        """Measure what a run lacks, into its folder. retry: also what crashed or timed out; trusted: the
        user has agreed to run its kernels, if they were not recorded here. Raises InputError if the run
        cannot be read or if something else is being timed."""
        if reason := self.occupied() or self._blocked_by_others():
            raise InputError(reason)
        folder = self.kind.open(path)
        folder.claim()
        measured, missing = folder.measurements(), folder.missing(retry)
        unfinished = bool(missing) or not folder.cases  # one that ended before its cases were known
        if unfinished and not trusted and (doubt := trust.doubt(folder.path, folder.job.kernel_dirs)):
            folder.close()
            self.doubted.emit(doubt, lambda: self.go_on(path, True, retry))
            return
        if unfinished:
            try:
                self._measure_on(elsewhere.of_run(path))  # which may have what nobody has fetched yet
            except KernelscopeError:
                folder.close()
                raise
        trust.remember(folder.path, folder.job.kernel_dirs)
        self._opened(folder, measured)
        if unfinished:
            self._run(folder, missing)
        else:
            folder.close()
            self.message.emit(f"Every {self.each} of {folder.path.name} is measured already.")

    def pause(self) -> None:
        if self.active and self.standing.phase in ("running", "starting"):
            self._clock.stop()
            self._stand(phase="pausing")
            self.worker.order(Supervisor.pause)

    def resume(self) -> None:
        if self.active and self.standing.phase in ("paused", "pausing"):
            self._clock.go_on()
            self._stand(phase="running")
            self.worker.order(Supervisor.resume)

    def cancel(self) -> None:
        if self.active and self.standing.phase != "cancelling":
            self._stand(phase="cancelling")
            self.worker.order(Supervisor.cancel)

    def quit(self) -> None:
        """End everything for good. What was measured is kept; what a machine elsewhere still measures is
        fetched by `go_on`, if `leaves` is set."""
        self._over = True
        self._counting.stop()
        self._announced.leave()
        self.worker.quit(self.leaves)
        self._supervisor = None
        if self._writer is not None:
            self._writer.beside(self._pace.keep)
            self._writer.finish()
            self._writer.wait()
            self._writer = None

    def forget(self, folder: Path) -> None:
        """A run was deleted: do not say any more that it is kept."""
        if not self.active and self.standing.ended and self._folder == folder.absolute():
            self.standing = Standing()
            self.stands.emit(self.standing)

    # ------------------------------------------------------------------------------------ what a kind adds

    def _opened(self, folder: Folder[Any, Any], measurements: tuple[Any, ...]) -> None:
        """Show a run that was read."""

    def _run(self, folder: Folder[Any, Any], cases: Sequence[Any]) -> None:
        """Run these cases of a folder whose measurements are shown."""
        self.begin(folder, cases)

    def _heard(self, message: Any) -> str:
        """Handle a message about the whole run; it is kept in the folder, too. Returns words to show, ""
        for none."""
        return ""

    def _turned(self, case: Any, stage: str, fraction: float | None = None) -> None:
        """The worker has begun this stage of a case, or has done this part of it."""

    def _expected(self, message: Any) -> None:
        """Show what a case takes so far."""

    def _written(self, measurements: Sequence[Any]) -> None:
        """These measurements are on the disk, or were cancelled."""

    def _stopped(self) -> None:
        """A worker has ended: the case that it measured begins again."""

    def _closed(self, cancelled: bool, cases: Sequence[Any]) -> Any:
        """Everything is on the disk. Returns what the standing says about the end, None if another run has
        begun."""
        return ""

    # ------------------------------------------------------------------------------------------ the inside

    def _blocked_by_others(self) -> str:
        return next(filter(None, (blocked() for blocked in self.blockers)), "")

    def _on_where(self) -> None:
        if not (self.active or self.where.refused):
            self._measure_on(self.where.name)

    def _measure_on(self, on: str) -> None:
        """Start workers there from now on. Raises KernelscopeError where none can be started."""
        if on != self.on:
            command = elsewhere.worker_command(on, self.kind) if on else self._command
            self.on = on
            self.worker.use(command)
            if self._warms:
                self.warm_up()

    def new_folder(self, header: Any, folder: Path | None = None) -> Folder[Any, Any]:
        """Make the folder of a new run: `folder`, or a new one below the runs folder. Raises InputError."""
        command = command_line([*self.kind.arguments(header.job), *elsewhere.arguments(self.on)])
        return folders.begin(self.kind, header, folder, self.runs, command)

    def begin(self, folder: Folder[Any, Any], cases: Sequence[Any]) -> None:
        """Run these cases into a folder. Raises InputError if another process writes into it."""
        if self.active:
            raise RuntimeError("a run is active")
        self._folder = folder.path.absolute()
        self._writer = RunWriter(folder, self)
        self._writer.written.connect(self._on_written)
        self._writer.failed.connect(self._on_write_failed)
        self._writer.closed.connect(self._on_closed)
        self._supervisor = Supervisor(self.kind, folder.job, cases, str(self._folder))
        self._before = len(folder.cases) - len(cases) if folder.cases else 0
        self._turn, self._at, self._parts = "", None, {}
        self._clock.restart()
        self._look()
        self._pace = Pace(folder.job, past=Past(self.kind.verb, folder.job))
        self._counting.start()
        self.standing = Standing()
        words = f"starting the worker on {self.on}" if self.on else "starting the worker"
        self._stand(phase="starting", words=words, done=self._before)
        self.worker.run(self._supervisor)

    def _look(self) -> None:
        """Check in a thread what disturbs measuring, and tell other programs of ours that this one
        measures. Elsewhere neither matters."""
        if self.on:
            self._warn(beforehand.Looked())
            return
        self._announced = announced = beforehand.Announced(self.kind.verb)

        def work() -> beforehand.Looked:
            announced.enter()
            return beforehand.look()

        self.background.start("look at the machine", work, self._warn)

    def _warn(self, machine: beforehand.Looked) -> None:
        """Emit what disturbs measuring now. It stops nothing."""
        self._pace.slowed(machine.slowed)
        self.warned += machine.sentences
        self.looked.emit(machine.sentences)

    def _on_messages(self, messages: Sequence[Any]) -> None:
        words = ""
        for message in messages:
            if isinstance(message, Log):
                self.logged.emit(message)
            elif isinstance(message, Progress):
                part = f" ({message.fraction:.0%})" if message.fraction is not None else ""
                words = f"{self._turn}: {message.text}{part}" if self._turn else f"{message.text}{part}"
                if message.fraction is not None and self._at is not None:
                    self._moved(*self._at, message.fraction)
            elif isinstance(message, CaseStarted) and message.stage == AWAY:
                words = f"no answer from {self.on}; measuring goes on there"
            elif isinstance(message, CaseStarted):
                if message.stage != RIGHT:  # which it is, and the worker is at the next one
                    words = self._turn = self.kind.turn(message.case, message.stage)
                self._pace.started(message.case, message.stage, self._clock.seconds)
                self._at = message.case, message.stage
                self._moved(message.case, message.stage)
            elif isinstance(message, Provisional):
                self._expected(message)
            else:
                if isinstance(message, Hello):
                    self._pace.greeted(message.environment)
                    self.greeted.emit(message)
                words = self._heard(message) or words
                if self._writer is not None:
                    self._writer.take_message(message)
        if words and self.standing.phase in ("starting", "running"):
            self._stand(phase="running", words=words)

    def _moved(self, case: Any, stage: str, fraction: float | None = None) -> None:
        """A stage of a case has begun, or so much of it is done."""
        low, high = PARTS.get(stage, (0.0, 0.0))
        part = low + (high - low) * (fraction or 0.0)
        self._parts[case.key] = max(part, self._parts.get(case.key, 0.0))
        if fraction is not None:
            self._pace.progressed(fraction, self._clock.seconds)
        self._turned(case, stage, fraction)

    def _on_settled(self, measurements: Sequence[Any]) -> None:
        for measurement in measurements:
            self._parts.pop(measurement.case.key, None)
            self._pace.settled(measurement.case, self._clock.seconds, measurement.disposition)
            if self._writer is not None:
                self._writer.append(measurement)

    def _on_written(self, measurements: Sequence[Any]) -> None:
        self._written(measurements)
        self._stand(done=self.standing.done + len(measurements))

    def _on_errors(self, data: bytes) -> None:
        if self._writer is not None:
            self._writer.log(data)

    def _on_write_failed(self, reason: str) -> None:
        self.message.emit(reason)
        self.cancel()

    def _on_stopped(self) -> None:
        self._stopped()
        self._parts = {}
        self._pace.interrupted(self._clock.seconds)
        if self.standing.phase in ("pausing", "paused"):
            # Estimate again: the clock stands still, and the case will begin again.
            self._reckoned = -math.inf
            self._stand(phase="paused")

    def _on_finished(self) -> None:
        if self._supervisor is not None and (reason := self._supervisor.reason):
            named = bool(self.on) and reason.startswith(self.on)  # a name is written as the user wrote it
            self.message.emit(reason if named else reason[:1].upper() + reason[1:])
        if self._writer is not None:
            self._writer.beside(self._pace.keep)
            self._writer.finish()

    def _on_closed(self) -> None:
        self._clock.stop()
        self._counting.stop()
        self._announced.leave()
        machine, self._supervisor, self._writer = self._supervisor, None, None
        ended = self._closed(
            machine is not None and machine.cancelled, machine.cases if machine is not None else ()
        )
        if ended is None:
            return
        self.standing = Standing(ended=ended)
        self._on_where()  # a run that was gone on with may have been measured elsewhere
        self.stands.emit(self.standing)
        self.ended.emit()
        if not self._over:
            self._go_on()

    def _go_on(self) -> None:
        """A run has ended, and the window stays."""

    def _stand(self, **fields: Any) -> None:
        machine = self._supervisor
        new = replace(self.standing, **fields)
        if new.phase == "pausing" and not self.worker.process_id:
            new = replace(new, phase="paused")
        if machine is not None:
            new = replace(new, total=self._before + len(machine.cases), part=sum(self._parts.values()))
            now = self._clock.seconds
            # If only the words change, estimate seldom: there may be 1,000 changes a second.
            if replace(new, words=self.standing.words) != self.standing or now - self._reckoned > RECKON_S:
                self._reckoned = now
                left = self._pace.left(machine.pending, new.total, now) if new.total else None
                new = replace(new, left=left)
        if new != self.standing:
            self.standing = new
            self.stands.emit(new)
