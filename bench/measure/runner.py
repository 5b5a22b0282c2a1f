"""The loop that all kinds of runs share. It takes the cases group by group. In each group it prepares and
checks every case, times the correct ones together, checks them again, and closes them. If one contender
fails, the others go on.

A contender is the object that runs one case. A subclass of Runner decides which groups there are, and which
contender runs a case. It also lists recorders, which keep more of a case than its times. A recorder is
called with (contender, Timing, folder, Reporter) after the contender was timed and found correct. folder: of
the run; "" means that no files are written. The recorder fills fields of the record
(`contender.recorded`), or raises an error if it finds an answer wrong.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

import msgspec

from bench.measure import unrest
from bench.measure.answers.renewed import Renewal
from bench.measure.outcomes import Restart, broke_device, is_bug, outcome, trace
from bench.measure.reporter import Reporter
from bench.measure.telemetry import Sampler
from bench.measure.timing import Instances, Stopped, Timing, time_together, too_few_samples
from bench.results.messages import CaseStarted, Done, Log, Measured, Message, Provisional, Start
from bench.results.records import Disposition, Telemetry, Validity
from kernels import confine
from kernels.errors import KernelscopeError, OutOfMemoryError

Recorder = Callable[[Any, Timing, str, Reporter], None]


class Contender:
    """Runs one case, from its preparation to its record. Runner calls the methods in this order: `prepare`,
    `multiply` (only if the job asks for several instances), `check_between` before each turn of timing,
    `check_again`, `close`, `measured`. If one of them raises, the case ends: Runner calls `close`, and the
    record is what `failed` returns.

    case: the case, as messages and records show it. device: "cpu" or "cuda". job: what the user asked for.
    An instance is a session, or an object that holds one, created once for this case. first, others: the
    open instances. recorded: fields of the record that recorders fill, by name. warnings: sentences for the
    record.
    """

    record: ClassVar[Any]  # the type of the record
    last_stage: ClassVar[str] = "check"  # the stage that messages name after timing
    # What is recorded of it takes long: its figures are shown before that.
    shown_early: ClassVar[bool] = False

    def __init__(self, case: Any, device: str, job: Any) -> None:
        self.case, self.device = case, device
        self.first: Any = None
        self.others: list[Any] = []
        self.recorded: dict[str, Any] = {}
        self.warnings: list[str] = []
        self.job = job
        self._facts: dict[str, str] = {}
        self._started_at = datetime.now(UTC).isoformat(timespec="seconds")

    @property
    def is_reference(self) -> bool:
        """Whether other contenders are compared with its answers. After timing it is checked before them."""
        return False

    @property
    def session(self) -> Any:
        """The session of the first instance; None if no instance is open."""
        return self.first

    @property
    def facts(self) -> dict[str, str]:
        """What the session of the first instance really uses, by name (for example the GPU). After `close`,
        what it used."""
        return dict(self.session.facts) if self.session is not None else self._facts

    @property
    def opened(self) -> list[Any]:
        """The open instances, the first one first."""
        return [instance for instance in (self.first, *self.others) if instance is not None]

    @property
    def timed(self) -> Instances:
        """All instances to be timed: the open ones, and those that are created during timing."""
        return self.opened

    def prepare(self) -> None:
        """Create the first instance, and check its answer. Raises an error if it cannot run, or Incorrect if
        its answer is wrong."""
        raise NotImplementedError

    def multiply(self) -> None:
        """Create and check the further instances that the job asks for. Raises the same errors as
        `prepare`."""

    def check_between(self, turn: int) -> None:
        """Check the passes of the turn before this one. turn: number of the turn that comes next, from 0. An
        error is not raised here, but when the contender is timed next."""

    def check_again(self) -> None:
        """Check the timed passes, and further passes, after timing. Raises an error (mostly Incorrect) if an
        answer was or is wrong."""

    def measured(self, timing: Timing, telemetry: Telemetry) -> Any:
        """The record of a case that was timed, found correct and closed."""
        own, renewal = self._own(), self._renewal
        shown = renewal or timing
        warnings = [
            *timing.warnings,
            *self.warnings,
            *too_few_samples(timing),
            *filter(None, [unrest.warning(timing)]),
        ]
        if reason := self.facts.get("stirring"):
            warnings.append(f"all timed passes were given the same inputs: {reason.removeprefix('no: ')}")
        return self._made(
            "ok",
            samples_ns=tuple(shown.samples_ns),
            runs_per_sample=timing.runs_per_sample,
            rounds=tuple(shown.rounds),
            instances=tuple(shown.instances),
            quantile=timing.quantile,
            load=dict(timing.load),
            telemetry=telemetry,
            validity=Validity(
                stop_reason=timing.stop_reason,
                retries=timing.retries,
                warnings=(*warnings, *self._doubts()),
            ),
            **self.recorded,
            **own,
        )

    def failed(self, error: BaseException) -> Any:
        """The record of a closed case that ended with `error`."""
        disposition, reason = outcome(error)
        return self._made(disposition, reason=reason)

    def close(self, but: int = 0) -> None:
        """Close the open instances, but keep the first `but` of them (0 or 1) open. The first instance is
        closed last. A second call does nothing."""
        with contextlib.ExitStack() as stack:
            for instance in self.opened[but:]:
                stack.callback(instance.close)
            self.others = []
            if not but:
                self._facts, self.first = self.facts, None

    # What a subclass adds to the times:

    @property
    def _renewal(self) -> Renewal | None:
        """The measured passes over all-new inputs, if the time depends on how many input values changed; else
        None."""
        return None

    def _own(self) -> dict[str, Any]:
        """Further fields of the record, by name."""
        return {}

    def _doubts(self) -> list[str]:
        """Further warnings for the record: reasons to doubt the answers or the times."""
        return []

    def _made(self, disposition: Disposition, **fields: Any) -> Any:
        return self.record(case=self.case, disposition=disposition, started_at=self._started_at, **fields)


class Runner:
    """Runs all cases of a job. start: the job, its cases, and the run's folder. say: is called with each
    message. stopped: returns True once the user wants to stop."""

    record: ClassVar[Any]  # the type of the record of a case
    recorders: ClassVar[Sequence[Recorder]] = ()  # called in this order

    def __init__(
        self, start: Start[Any, Any], say: Callable[[Message], None], stopped: Callable[[], bool]
    ) -> None:
        self._job, self._cases, self._folder = start.job, start.cases, start.folder
        # A kernel could write other figures, or what its rivals do.
        for folder in filter(None, (start.folder, *getattr(self._job, "kernel_dirs", ()))):
            confine.keep_unwritten(folder)
        self._say, self._stopped = say, stopped
        self._reporter = Reporter(say, stopped)
        self._progress, self._go_on = self._reporter.progress, self._reporter.go_on
        self._turn = self._reporter.turn
        self._settled: set[str] = set()

    def run(self) -> None:
        """Measure all cases, and send Done at the end. If the user stops, the cases without a record get the
        record "cancelled". Raises Restart if the device is lost, so that another process has to go on."""
        reason = ""
        try:
            self.measure()
        except Stopped:
            reason = "cancelled"
            for case in self._cases:
                if case.key not in self._settled:
                    self._settle(self.record(case=case, disposition="cancelled", reason=reason))
        except KernelscopeError as error:
            reason = str(error)
        self._say(Done(reason=reason))

    def measure(self) -> None:
        """Measure all groups. Raises Stopped if the user stops, Restart if the device is lost, and
        KernelscopeError if no case can be prepared."""
        for group in self._groups():
            while group:
                group = self._group(group)

    # ----------------------------------------------------------------------------- what a subclass defines

    def _groups(self) -> Iterator[Sequence[Any]]:
        """Yields the cases of one group (timed together), after all that they share is prepared."""
        raise NotImplementedError

    def _contender(self, case: Any) -> Contender:
        """A new contender for this case, not prepared yet."""
        raise NotImplementedError

    def _timing(self, ready: dict[str, Contender]) -> dict[str, Any]:
        """Further arguments of bench.measure.timing.time_together for these contenders, by name. ready:
        contenders by the key of their case."""
        raise NotImplementedError

    def _found_right(self, case: Any) -> None:
        """Called when the first instance of a case is there, and its answer was right."""

    def _before(self, ready: dict[str, Any]) -> Mapping[str, Exception]:
        """Called when the first instances of a group are ready. Returns the errors of those that failed, by
        key of the case."""
        return {}

    def _possible(self, contender: Contender, measured: Any) -> Any:
        """The record; marked as invalid if its time is shorter than the machine can make it."""
        return measured

    # ------------------------------------------------------------------------------------------------ stages

    def _group(self, cases: Sequence[Any]) -> list[Any]:
        """Measure one group. Returns the cases for which there was not enough memory beside the others; they
        are measured after this group."""
        ready: dict[str, Contender] = {}
        later: list[Any] = []
        todo = list(cases)
        try:
            for case in todo:
                self._turn(case, "prepare")
                try:
                    contender = ready[case.key] = self._contender(case)
                    contender.prepare()
                    self._found_right(case)
                except Exception as error:
                    unready = ready.pop(case.key, None)
                    if ready and isinstance(error, OutOfMemoryError | MemoryError):
                        later.append(case)
                        self._close(unready)
                    else:
                        todo += self._unready(case, unready, error)
            for key, failure in self._before(ready).items():
                self._fail(ready[key].case, ready.pop(key), failure)
            # Only now, when each contender has its first instance: the memory that is left is for further
            # ones.
            for key, contender in tuple(ready.items()) if getattr(self._job, "instances", 1) > 1 else ():
                self._turn(contender.case, "prepare")
                try:
                    contender.multiply()
                except Exception as error:
                    self._fail(contender.case, ready.pop(key), error)
            if ready:
                self._time(ready)
        finally:
            for contender in ready.values():
                self._close(contender)
        return later

    def _unready(self, case: Any, contender: Contender | None, error: Exception) -> Sequence[Any]:
        """Write the record of a case whose preparation failed. Returns cases to be prepared instead of it."""
        self._fail(case, contender, error)
        return ()

    def _time(self, ready: dict[str, Contender]) -> None:
        devices = {key: contender.device for key, contender in ready.items()}
        uuid = next(filter(None, (contender.facts.get("gpu_uuid", "") for contender in ready.values())), "")

        def turn(key: str, number: int) -> None:
            self._say(CaseStarted(case=ready[key].case, stage="time"))
            ready[key].check_between(number)
            sampler.turn(key, number)

        def taken(key: str, number: int, timing: Timing) -> None:
            # Only after the first round: drawing a message takes time of a core from the rounds that follow.
            if number == 0:
                self._say(Provisional(case=ready[key].case, median_ns=timing.median_ns))

        with Sampler(devices, uuid) as sampler:
            timings = time_together(
                {key: contender.timed for key, contender in ready.items()},
                seed=self._job.seed,
                devices=devices,
                on_turn=turn,
                on_taken=taken,
                on_part=sampler.turn,
                throttled=sampler.throttled,
                stopped=self._stopped,
                **self._timing(ready),
            )
        # The contender that failed first comes first: it may have broken the device for the others. Then
        # comes the reference, with whose answers the others are compared.
        order = sorted(ready, key=lambda key: (timings[key].failed_ns, not ready[key].is_reference))
        first = [key for key in order if ready[key].shown_early]
        # What takes long comes last: all are checked, and their figures shown, before anything is recorded.
        right = [key for key in first if self._checked(ready[key], timings[key], sampler, key)]
        for key in right:
            contender, timing = ready[key], timings[key]
            try:
                measured = self._possible(contender, contender.measured(timing, sampler.result(key)))
            except Exception:
                continue  # `_finish` comes to it as well, and its case says so
            if measured.disposition == "ok":
                told = Provisional(case=contender.case, median_ns=timing.median_ns, measurement=measured)
                self._say(told)
        for key in order:
            contender, timing = ready[key], timings[key]
            if key in first and key not in right:
                continue
            if key in right or self._checked(contender, timing, sampler, key):
                try:
                    self._finish(contender, timing, sampler.result(key))
                except Exception as error:
                    self._fail(contender.case, contender, error)

    def _checked(self, contender: Contender, timing: Timing, sampler: Sampler, key: str) -> bool:
        """Check the timed passes; False where that was the end of the case."""
        timing.load = sampler.load(key)
        timing.warnings += filter(None, [sampler.others(key)])
        try:
            if timing.error is not None:
                raise timing.error
            self._turn(contender.case, contender.last_stage)
            contender.check_again()
        except Exception as error:
            self._fail(contender.case, contender, error)
            return False
        return True

    def _finish(self, contender: Contender, timing: Timing, telemetry: Telemetry) -> None:
        self._turn(contender.case, contender.last_stage)
        for recorder in self.recorders:
            recorder(contender, timing, self._folder, self._reporter)
        self._close(contender)
        self._settle(self._possible(contender, contender.measured(timing, telemetry)))

    # ---------------------------------------------------------------------------------------------- outcomes

    def _settle(self, measurement: Any) -> None:
        self._settled.add(measurement.case.key)
        self._say(Measured(measurement=measurement))

    def _fail(self, case: Any, contender: Contender | None, error: Exception) -> None:
        """Write the record of a case that ended with `error`. contender: None if the case never had one.
        Raises Restart if the device is lost."""
        if is_bug(error):
            self._say(Log(level="error", text=f"{case.words}: {trace(error)}"))
        if contender is None:
            disposition, reason = outcome(error)
            self._settle(self.record(case=case, disposition=disposition, reason=reason))
            return
        self._close(contender)
        measurement = contender.failed(error)
        broken = broke_device(contender.device, measurement.disposition)
        if broken:
            measurement = msgspec.structs.replace(measurement, disposition="crashed")
        self._settle(measurement)
        if broken:
            raise Restart(f"{case.words} broke the device's context; the rest goes on in a new process")

    def _close(self, contender: Contender | None) -> None:
        try:
            if contender is not None:
                contender.close()
        except Exception as error:
            assert contender is not None
            self._say(Log(level="warning", text=f"{contender.case.words} could not be closed: {error}"))
