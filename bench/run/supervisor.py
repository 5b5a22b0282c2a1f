"""The state machine that watches a worker process. Its inputs are the bytes that the worker writes, its exit,
and ticks of a clock. Its outputs are lists of actions that the caller must carry out.

It starts no process itself. It reads the clock only to tell the worker when it was started. So it can be
driven by the signals of QProcess (the window), by a subprocess and a thread (bench.run.client), or by hand (a
test). The worker may die at any byte. Then the case that it was measuring is recorded as crashed or timed
out, a new worker is launched with the cases that are left, and no measurement is lost.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from bench.results import reading
from bench.results.kinds import Kind
from bench.results.messages import CaseStarted, Done, Hello, Log, Measured, Provisional, Start
from bench.results.records import KILLED_BY
from kernels.processes import exit_words, last_line, signal_name

TUNE = "tune"  # the stage of a case in which things are measured that later runs need no more
COMPILE = "compile"  # the stage of a case that waits for its kernel to be compiled: none of its time
RIGHT = "right"  # the stage of a case whose first answer was right, and which waits for the others
LOAD = "load"  # the stage in which a model's file is read, for all cases of the model
AWAY = "away"  # the stage of a case on a machine elsewhere that does not answer: none of its time
GRACE_S = 10.0  # how long a worker that was asked to stop may take
BARREN_LIMIT = 2  # workers in a row that died before they got anywhere
# How often one case may have a worker started anew: each of its rungs may break a device once.
RESTART_LIMIT = 30
LINE_LIMIT_NBYTES = 64 << 20
GARBAGE_LIMIT = 20  # how many lines that are no message are logged one by one
# Exit status by which a worker asks to be started anew: the device is no longer to be trusted in its process.
RESTART_STATUS = 75
# Argument that tells a worker to get ready and say Hello before it is given a job; the window starts it
# early.
WARM = "--warm"


@dataclass(frozen=True)
class LaunchWorker:
    """Start a worker, write `line` to its standard input, and leave that open."""

    line: bytes


@dataclass(frozen=True)
class Stop:
    """Close the worker's standard input. The worker then ends after its current pass."""


@dataclass(frozen=True)
class Kill:
    """Kill the worker (SIGKILL). Report its exit with `on_exit` as usual."""


@dataclass(frozen=True)
class Result:
    """A case is settled. Write `measurement` to the run folder, unless its disposition is "cancelled"."""

    measurement: Any


@dataclass(frozen=True)
class Say:
    """A message to show or to log: any message of the worker, or a Log of the supervisor."""

    message: Any


Action = LaunchWorker | Stop | Kill | Result | Say


@dataclass
class _Watch:
    """What is known of the running worker. since: when it began its current case or last said something, in
    seconds. spent: seconds by the key of a case."""

    since: float
    case: Any = None
    stage: str = ""
    measured_any: bool = False
    done: Done | None = None
    killed_for: str = ""  # why it was killed: "timed_out", "silent", "stopped", "done"
    pausing: bool = False  # asked to stop for a pause: its unmeasured cases stay to be run
    buffer: bytearray = field(default_factory=bytearray)
    spent: dict[str, float] = field(default_factory=dict)


class Supervisor:
    """Watches one worker after the other until every case is settled.

    Call `start` once. Then call `feed`, `tick` (several times a second) and `on_exit` as things happen, and
    carry out the actions that each call returns, in order. The run is over when `finished` is true: every
    case is settled, or nothing more can be done. Then `reason` says why it ended early ("" if it did not, or
    if the user cancelled).

    job: needs `timeout_s`, the time limit of a case in seconds. cases: those to run; if there are none, the
    worker decides and names them in its Hello, and `cases` and `pending` hold them from then on. folder: the
    path of the run folder, for the worker. now: seconds of any clock that never goes back.
    """

    def __init__(self, kind: Kind[Any, Any], job: Any, cases: Sequence[Any] = (), folder: str = "") -> None:
        self._kind = kind
        self.job = job
        self.cases = tuple(cases)
        self.finished = False
        self.cancelled = False
        self.paused = False
        self.reason = ""
        self._folder = folder
        self._pending = {case.key: case for case in cases}
        self._watch: _Watch | None = None
        self._failed_starts = 0
        self._restarts: Counter[str] = Counter()  # by case
        self._noise_lines = 0
        self._stop_by: float | None = None
        self._decoder = msgspec.json.Decoder(kind.says)

    @property
    def pending(self) -> tuple[Any, ...]:
        """The cases that are not settled yet, in order."""
        return tuple(self._pending.values())

    def start(self, now: float) -> list[Action]:
        """Launch a worker for all cases that are not settled. Call it for the first worker only: `on_exit`
        and `resume` launch the later ones."""
        self._watch = _Watch(since=now)
        self._stop_by = None
        start = Start(
            job=self.job, cases=self.pending, folder=self._folder, started_ns=time.perf_counter_ns()
        )
        return [LaunchWorker(msgspec.json.encode(start) + b"\n")]

    def feed(self, data: bytes, now: float) -> list[Action]:
        """Take bytes that the worker wrote, in pieces of any size."""
        watch = self._watch
        if watch is None:
            return []
        watch.buffer += data
        actions: list[Action] = []
        if b"\n" in data:
            *lines, watch.buffer = watch.buffer.split(b"\n")
            for line in lines:
                if line.strip():
                    actions += self._take_line(watch, bytes(line), now)
        if len(watch.buffer) > LINE_LIMIT_NBYTES:
            actions += self._warn_of_noise(bytes(watch.buffer[:200]))
            watch.buffer.clear()
        return actions

    def tick(self, now: float) -> list[Action]:
        """Check the time limits. The worker is killed if its case takes longer than `timeout_s`, if it has no
        case and says nothing for as long, and if it was to end and did not within GRACE_S."""
        watch = self._watch
        if watch is None or watch.killed_for:
            return []
        if self._stop_by is not None:
            if now < self._stop_by:
                return []
            watch.killed_for = "stopped"
            return [Kill()]
        if watch.done is not None:
            if now - watch.since < GRACE_S:
                return []
            watch.killed_for = "done"  # it said it was done and did not end
            return [Kill()]
        if self._spent(watch, now) <= self.job.timeout_s:
            return []
        watch.killed_for = "timed_out" if watch.case else "silent"
        return [Kill()]

    def cancel(self, now: float) -> list[Action]:
        """The user cancels: the worker is asked to stop. Measured cases stay; the others are reported as
        cancelled. It is killed at once if it is reading a model's file."""
        if self.finished or self.cancelled:
            return []
        self.cancelled = True
        if self._watch is None:
            return self._finish("cancelled")
        if self._watch.stage == LOAD:  # which may never hear of it, and has nothing to bring in order
            self._watch.killed_for = "stopped"
            return [Kill()]
        self._stop_by = now + GRACE_S
        return [Stop()]

    def pause(self, now: float) -> list[Action]:
        """Free the machine: the worker is asked to stop after its current pass. Measured cases stay. The case
        that was being measured starts again after `resume`."""
        if self.finished or self.cancelled or self.paused:
            return []
        self.paused = True
        if self._watch is None:
            return []
        self._watch.pausing = True
        self._stop_by = now + GRACE_S
        return [Stop()]

    def resume(self, now: float) -> list[Action]:
        """Go on after a pause: at once, or as soon as the worker that was asked to stop has ended."""
        if self.finished or self.cancelled or not self.paused:
            return []
        self.paused = False
        return [] if self._watch is not None else self.start(now)

    def on_exit(self, code: int, stderr: str, now: float) -> list[Action]:
        """The worker has ended. code: its exit status (negative: minus the number of the signal that killed
        it). stderr: the last part of its standard error.

        The case that it was measuring is settled as crashed or timed out, unless the worker asked to be
        started anew (RESTART_STATUS). Then a worker for the remaining cases is launched, unless the run is
        over or paused.
        """
        watch = self._watch
        if watch is None:
            return []
        actions: list[Action] = []
        if watch.buffer.strip():
            actions += self._warn_of_noise(bytes(watch.buffer[:200]))
        self._watch = None
        if self.cancelled:
            return actions + self._finish("cancelled")
        if watch.pausing:
            if self.cases and not self._pending:
                return actions + self._finish("")
            return actions if self.paused else actions + self.start(now)
        if watch.done is not None:
            return actions + self._finish(watch.done.reason or self._unsettled())
        words = exit_words(code)
        last = last_line(stderr)
        if watch.case is not None and code == RESTART_STATUS:
            case = watch.case
            self._restarts[case.key] += 1
            if self._restarts[case.key] > RESTART_LIMIT:
                reason = f"it had the worker started anew {RESTART_LIMIT} times (at: {watch.stage})"
                actions += self._settle(self._kind.lost(case, "crashed", reason))
        elif watch.case is not None:
            case = watch.case
            if watch.killed_for == "timed_out":
                reason = (
                    f"given up after {self.job.timeout_s:g} s (at: {watch.stage}); "
                    "a loop may never end, or it needs a larger --timeout"
                )
                settled = self._kind.lost(case, "timed_out", reason)
            else:
                reason = f"the worker {words} (at: {watch.stage})" + (f": {last}" if last else "")
                settled = self._kind.lost(case, "crashed", reason)
                # By its own fault or from outside: a resume looks at the signal.
                if code < 0 and not watch.killed_for:
                    settled = msgspec.structs.replace(settled, facts={KILLED_BY: signal_name(code)})
            actions += self._settle(settled)
            if watch.stage == LOAD:  # the next worker would only fare the same with the file
                for other in [other for other in self.pending if other.model == case.model]:
                    actions += self._settle(msgspec.structs.replace(settled, case=other))
        elif not watch.measured_any:
            self._failed_starts += 1
            if watch.killed_for == "silent":
                words = f"said nothing for {self.job.timeout_s:g} s"
            actions.append(
                Say(Log(level="error", text=f"the worker {words}" + (f": {last}" if last else "")))
            )
            if self._failed_starts >= BARREN_LIMIT:
                reason = f"the worker {words} before it began a case, {self._failed_starts} times" + (
                    f": {last}" if last else ""
                )
                return actions + self._finish(reason)
        if watch.measured_any or watch.case is not None:
            self._failed_starts = 0
        if self.cases and not self._pending:
            return actions + self._finish("")
        return actions + self.start(now)

    # ------------------------------------------------------------------------------------------ the inside

    def _take_line(self, watch: _Watch, line: bytes, now: float) -> list[Action]:
        """Take one line of the worker, which should be a message."""
        try:
            message = reading.decoded(line, self._decoder)
        except reading.Unreadable:
            return self._warn_of_noise(line)
        match message:
            case Hello():
                if not self.cases:
                    self.cases = message.cases
                    self._pending = {case.key: case for case in message.cases}
                watch.since = now
            case CaseStarted():
                if message.case.key not in self._pending:
                    return self._warn_of_noise(line)
                if watch.stage not in (TUNE, COMPILE, LOAD, AWAY):
                    self._charge(watch, now)
                watch.since = now
                watch.case, watch.stage = message.case, message.stage
            case Measured():
                return self._measured(watch, message.measurement, now)
            case Provisional() if message.case.key not in self._pending:
                return self._warn_of_noise(line)
            case Done():
                self._charge(watch, now)
                watch.case = None
                watch.done = message
            case _ if watch.case is None or watch.stage in (TUNE, COMPILE, AWAY):
                # A download tells that it moves: not silent. What is measured once for this machine is not
                # charged to the case that happens to be the first to need it.
                watch.since = now
        return [Say(message)]

    def _measured(self, watch: _Watch, measurement: Any, now: float) -> list[Action]:
        """Take a measurement of the worker; one of a case that is settled already is not kept."""
        key = measurement.case.key
        if key not in self._pending:
            return [Say(Log(level="warning", text=f"a second measurement of {key} was not kept"))]
        if watch.pausing and measurement.disposition == "cancelled":
            return []
        if watch.case is not None and watch.case.key == key:
            self._charge(watch, now)
            watch.case = None
        watch.measured_any = True
        return self._settle(measurement)

    def _settle(self, measurement: Any) -> list[Action]:
        """The case of this measurement is done."""
        self._pending.pop(measurement.case.key, None)
        return [Result(measurement)]

    def _finish(self, reason: str) -> list[Action]:
        """End the run. The remaining cases are reported as cancelled; they are not written, so that a resume
        runs them."""
        self.finished = True
        self.reason = "" if self.cancelled else reason
        rest = list(self._pending.values())
        actions: list[Action] = []
        for case in rest:
            actions += self._settle(self._kind.lost(case, "cancelled", reason))
        return actions

    def _unsettled(self) -> str:
        """Why the run ended early, if the worker is done and cases are left; else ""."""
        if not self._pending:
            return ""
        return f"the worker ended without measuring {next(iter(self._pending.values())).words}"

    def _charge(self, watch: _Watch, now: float) -> None:
        """Add the time since `since` to the case that was being measured, and begin to count anew."""
        if watch.case is not None:
            watch.spent[watch.case.key] = self._spent(watch, now)
        watch.since = now

    def _spent(self, watch: _Watch, now: float) -> float:
        """The seconds that the current case has had so far. If there is none, the seconds of silence."""
        before = watch.spent.get(watch.case.key, 0.0) if watch.case else 0.0
        return before + now - watch.since

    def _warn_of_noise(self, line: bytes) -> list[Action]:
        """Warn of a line that is no message; of the first GARBAGE_LIMIT lines only."""
        self._noise_lines += 1
        if self._noise_lines > GARBAGE_LIMIT:
            return []
        text = line[:200].decode("utf-8", "replace").strip()
        last = "; further ones are passed over" if self._noise_lines == GARBAGE_LIMIT else ""
        return [Say(Log(level="warning", text=f"the worker wrote what is no message{last}: {text!r}"))]
