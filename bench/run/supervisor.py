"""The state machine that watches a worker: bytes, exits and ticks of a clock in, actions out.

It starts no process, and reads a clock only to tell a worker when it was started. So the window drives it by
QProcess signals, the headless client by subprocess and a thread, and a test by hand. The worker may die at
any byte: the case in flight is then recorded (crashed, timed out), a new worker is launched with the cases
left, and nothing measured is lost.
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
LOAD = "load"  # the stage in which a model's file is read, for all cases of the model
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
    """Start a worker and write `line` to its standard input, which stays open."""

    line: bytes


@dataclass(frozen=True)
class Stop:
    """Close the worker's standard input: it ends after the pass it is in."""


@dataclass(frozen=True)
class Kill:
    """Kill the worker (SIGKILL); its exit is awaited as any other."""


@dataclass(frozen=True)
class Result:
    """A case is settled. To be written to the run unless it is cancelled."""

    measurement: Any


@dataclass(frozen=True)
class Say:
    """Something to show or log."""

    message: Any


Action = LaunchWorker | Stop | Kill | Result | Say


@dataclass
class _Watch:
    """The worker now running: the case in flight, since when, and the doom decided for it."""

    since: float
    case: Any = None
    stage: str = ""
    advanced: bool = False
    done: Done | None = None
    doom: str = ""  # why it was killed: "timed_out", "silent", "stopped", "done"
    halted: bool = False  # asked to stop for a pause: its unmeasured cases stay to be run
    buffer: bytearray = field(default_factory=bytearray)
    spent: dict[str, float] = field(default_factory=dict)


class Supervisor:
    """Feeds on what happens to a worker; `finished` once every case is settled, or nothing more can be done.

    With no `cases` the worker decides which the job means and says so in its Hello; `cases` and `pending`
    hold them from then on. `now` is any clock in seconds that never goes back.
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
        self._barren = 0
        self._restarts: Counter[str] = Counter()  # by case
        self._garbage = 0
        self._stop_by: float | None = None
        self._decoder = msgspec.json.Decoder(kind.says)

    @property
    def pending(self) -> tuple[Any, ...]:
        """The cases not settled yet, in order."""
        return tuple(self._pending.values())

    def start(self, now: float) -> list[Action]:
        """Launch the first worker."""
        self._watch = _Watch(since=now)
        self._stop_by = None
        start = Start(
            job=self.job, cases=self.pending, folder=self._folder, started_ns=time.perf_counter_ns()
        )
        return [LaunchWorker(msgspec.json.encode(start) + b"\n")]

    def feed(self, data: bytes, now: float) -> list[Action]:
        """Take what the worker wrote, cut anywhere."""
        watch = self._watch
        if watch is None:
            return []
        watch.buffer += data
        actions: list[Action] = []
        if b"\n" in data:
            *lines, watch.buffer = watch.buffer.split(b"\n")
            for line in lines:
                if line.strip():
                    actions += self._line(watch, bytes(line), now)
        if len(watch.buffer) > LINE_LIMIT_NBYTES:
            actions += self._noise(bytes(watch.buffer[:200]))
            watch.buffer.clear()
        return actions

    def tick(self, now: float) -> list[Action]:
        """Look at the clock: kill the worker for a case beyond its time limit, for silence, or where it does
        not stop."""
        watch = self._watch
        if watch is None or watch.doom:
            return []
        if self._stop_by is not None:
            if now < self._stop_by:
                return []
            watch.doom = "stopped"
            return [Kill()]
        if watch.done is not None:
            if now - watch.since < GRACE_S:
                return []
            watch.doom = "done"  # it said it was done and did not end
            return [Kill()]
        if self._spent(watch, now) <= self.job.timeout_s:
            return []
        watch.doom = "timed_out" if watch.case else "silent"
        return [Kill()]

    def cancel(self, now: float) -> list[Action]:
        """The user cancels: ask the worker to stop. Measured cases stay; the others become cancelled."""
        if self.finished or self.cancelled:
            return []
        self.cancelled = True
        if self._watch is None:
            return self._finish("cancelled")
        if self._watch.stage == LOAD:  # which may never hear of it, and has nothing to bring in order
            self._watch.doom = "stopped"
            return [Kill()]
        self._stop_by = now + GRACE_S
        return [Stop()]

    def pause(self, now: float) -> list[Action]:
        """Free the machine: the worker is asked to stop after the current pass. Measured cases stay; the
        current case begins again after `resume`."""
        if self.finished or self.cancelled or self.paused:
            return []
        self.paused = True
        if self._watch is None:
            return []
        self._watch.halted = True
        self._stop_by = now + GRACE_S
        return [Stop()]

    def resume(self, now: float) -> list[Action]:
        """Go on after a pause: now, or when the worker that was asked to stop has ended."""
        if self.finished or self.cancelled or not self.paused:
            return []
        self.paused = False
        return [] if self._watch is not None else self.start(now)

    def on_exit(self, code: int, stderr: str, now: float) -> list[Action]:
        """The worker has ended with this exit status (negative: a signal). stderr: the end of its standard
        error."""
        watch = self._watch
        if watch is None:
            return []
        actions: list[Action] = []
        if watch.buffer.strip():
            actions += self._noise(bytes(watch.buffer[:200]))
        self._watch = None
        if self.cancelled:
            return actions + self._finish("cancelled")
        if watch.halted:
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
            if watch.doom == "timed_out":
                reason = (
                    f"given up after {self.job.timeout_s:g} s (at: {watch.stage}); "
                    "a loop may never end, or it needs a larger --timeout"
                )
                settled = self._kind.lost(case, "timed_out", reason)
            else:
                reason = f"the worker {words} (at: {watch.stage})" + (f": {last}" if last else "")
                settled = self._kind.lost(case, "crashed", reason)
                if code < 0 and not watch.doom:  # by its own fault or from outside: whoever resumes asks
                    settled = msgspec.structs.replace(settled, facts={KILLED_BY: signal_name(code)})
            actions += self._settle(settled)
            if watch.stage == LOAD:  # the next worker would only fare the same with the file
                for other in [other for other in self.pending if other.model == case.model]:
                    actions += self._settle(msgspec.structs.replace(settled, case=other))
        elif not watch.advanced:
            self._barren += 1
            if watch.doom == "silent":
                words = f"said nothing for {self.job.timeout_s:g} s"
            actions.append(
                Say(Log(level="error", text=f"the worker {words}" + (f": {last}" if last else "")))
            )
            if self._barren >= BARREN_LIMIT:
                reason = f"the worker {words} before it began a case, {self._barren} times" + (
                    f": {last}" if last else ""
                )
                return actions + self._finish(reason)
        if watch.advanced or watch.case is not None:
            self._barren = 0
        if self.cases and not self._pending:
            return actions + self._finish("")
        return actions + self.start(now)

    # ------------------------------------------------------------------------------------------ the inside

    def _line(self, watch: _Watch, line: bytes, now: float) -> list[Action]:
        try:
            message = reading.decoded(line, self._decoder)
        except reading.Unreadable:
            return self._noise(line)
        match message:
            case Hello():
                if not self.cases:
                    self.cases = message.cases
                    self._pending = {case.key: case for case in message.cases}
                watch.since = now
            case CaseStarted():
                if message.case.key not in self._pending:
                    return self._noise(line)
                if watch.stage not in (TUNE, LOAD):
                    self._charge(watch, now)
                watch.since = now
                watch.case, watch.stage = message.case, message.stage
            case Measured():
                return self._measured(watch, message.measurement, now)
            case Provisional() if message.case.key not in self._pending:
                return self._noise(line)
            case Done():
                self._charge(watch, now)
                watch.case = None
                watch.done = message
            case _ if watch.case is None or watch.stage == TUNE:
                # A download tells that it moves: not silent. What is measured once for this machine is not
                # charged to the case that happens to be the first to need it.
                watch.since = now
        return [Say(message)]

    def _measured(self, watch: _Watch, measurement: Any, now: float) -> list[Action]:
        key = measurement.case.key
        if key not in self._pending:
            return [Say(Log(level="warning", text=f"a second measurement of {key} was not kept"))]
        if watch.halted and measurement.disposition == "cancelled":
            return []
        if watch.case is not None and watch.case.key == key:
            self._charge(watch, now)
            watch.case = None
        watch.advanced = True
        return self._settle(measurement)

    def _settle(self, measurement: Any) -> list[Action]:
        self._pending.pop(measurement.case.key, None)
        return [Result(measurement)]

    def _finish(self, reason: str) -> list[Action]:
        """Mark the remaining cases as cancelled; they are not written, so that a resume runs them."""
        self.finished = True
        self.reason = "" if self.cancelled else reason
        rest = list(self._pending.values())
        actions: list[Action] = []
        for case in rest:
            actions += self._settle(self._kind.lost(case, "cancelled", reason))
        return actions

    def _unsettled(self) -> str:
        if not self._pending:
            return ""
        return f"the worker ended without measuring {next(iter(self._pending.values())).words}"

    def _charge(self, watch: _Watch, now: float) -> None:
        """Add the time since the last switch to the case that was running."""
        if watch.case is not None:
            watch.spent[watch.case.key] = self._spent(watch, now)
        watch.since = now

    def _spent(self, watch: _Watch, now: float) -> float:
        """The seconds that the current case has had; where there is none, the seconds of silence."""
        before = watch.spent.get(watch.case.key, 0.0) if watch.case else 0.0
        return before + now - watch.since

    def _noise(self, line: bytes) -> list[Action]:
        self._garbage += 1
        if self._garbage > GARBAGE_LIMIT:
            return []
        text = line[:200].decode("utf-8", "replace").strip()
        last = "; further ones are passed over" if self._garbage == GARBAGE_LIMIT else ""
        return [Say(Log(level="warning", text=f"the worker wrote what is no message{last}: {text!r}"))]
