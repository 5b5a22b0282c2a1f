"""The loop that every kind of run shares: cases come group by group; each is made ready and checked, those
that are right are timed together, checked again, and closed. One contender's failure is its own.

What differs is which groups there are and who runs a case (a subclass of Runner says both), and what is kept
of a case beside its times: a recorder is called with a contender that was timed and found right, its Timing,
the run's folder ("" = files go nowhere) and a Reporter. It fills fields of the record
(`contender.recorded`), or raises what was wrong.
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
from bench.measure.timing import Instances, Stopped, Timing, few, time_together
from bench.results.messages import CaseStarted, Done, Log, Measured, Message, Provisional, Start
from bench.results.records import Disposition, Telemetry, Validity
from kernels.errors import KernelscopeError, OutOfMemoryError

Recorder = Callable[[Any, Timing, str, Reporter], None]


class Contender:
    """A case from its preparation to its record. The steps are called in this order: `prepare`, `multiply`,
    `check_between` before each turn, `check_again`, `close`, `measured`. What one of them raises ends the
    case: it is closed, and its record is `failed`.

    case: what it is called in messages and records; device: "cpu" or "cuda"; job: what the user asked for.
    first, others: its instances that are open. recorded: fields of the record that recorders fill; warnings:
    of the record.
    """

    record: ClassVar[Any]  # the type of the record
    last_stage: ClassVar[str] = "check"  # what it is at once it was timed

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
        """Whether its answers judge others: it is checked before them."""
        return False

    @property
    def session(self) -> Any:
        """The first instance's, None where none is open."""
        return self.first

    @property
    def facts(self) -> dict[str, str]:
        """What its session really uses, or used."""
        return dict(self.session.facts) if self.session is not None else self._facts

    @property
    def opened(self) -> list[Any]:
        """The instances that are open."""
        return [instance for instance in (self.first, *self.others) if instance is not None]

    @property
    def timed(self) -> Instances:
        """All instances, open or to come."""
        return self.opened

    def prepare(self) -> None:
        """Make it ready, and check it. Raises what is wrong with it."""
        raise NotImplementedError

    def multiply(self) -> None:
        """Prepare the further instances that the job asks for, each checked. Raises as `prepare`."""

    def check_between(self, turn: int) -> None:
        """Look at what it did in the turn before this one, by number. What is wrong is told when it is timed
        next."""

    def check_again(self) -> None:
        """Once it was timed: raises what was wrong with its passes, or is wrong now."""

    def measured(self, timing: Timing, telemetry: Telemetry) -> Any:
        """The record of a case that went well and is closed."""
        own, renewal = self._own(), self._renewal
        shown = renewal or timing
        warnings = [*timing.warnings, *self.warnings, *few(timing), *filter(None, [unrest.warning(timing)])]
        if reason := self.facts.get("stirring"):
            warnings.append(f"all timed passes were given the same inputs: {reason.removeprefix('no: ')}")
        made = self._made(
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
        if renewal is not None and self.job.l2 == "cold":  # over new inputs caches are warm
            return msgspec.structs.replace(
                made, disposition="invalid", reason=renewal.untaken, samples_ns=(), rounds=(), instances=()
            )
        return made

    def failed(self, error: BaseException) -> Any:
        """The record of a case that `error` ended, and that is closed."""
        disposition, reason = outcome(error)
        return self._made(disposition, reason=reason)

    def close(self, but: int = 0) -> None:
        """Close all instances, the first one last, or all but the first `but`; once more is no fault."""
        with contextlib.ExitStack() as stack:
            for instance in self.opened[but:]:
                stack.callback(instance.close)
            self.others = []
            if not but:
                self._facts, self.first = self.facts, None

    # What a kind of contender knows beside its times:

    @property
    def _renewal(self) -> Renewal | None:
        """Passes over inputs that are all new, where its time hangs on how much of them changed."""
        return None

    def _own(self) -> dict[str, Any]:
        """Fields of the record."""
        return {}

    def _doubts(self) -> list[str]:
        """What else speaks against its answers or its times."""
        return []

    def _made(self, disposition: Disposition, **fields: Any) -> Any:
        return self.record(case=self.case, disposition=disposition, started_at=self._started_at, **fields)


class Runner:
    """start: the job, its cases, and the run's folder; say: takes messages; stopped: tells that the user
    wants no more."""

    record: ClassVar[Any]  # the type of what came of a case
    recorders: ClassVar[Sequence[Recorder]] = ()  # in the order in which a case is asked for them

    def __init__(
        self, start: Start[Any, Any], say: Callable[[Message], None], stopped: Callable[[], bool]
    ) -> None:
        self._job, self._cases, self._folder = start.job, start.cases, start.folder
        self._say, self._stopped = say, stopped
        self._reporter = Reporter(say, stopped)
        self._progress, self._go_on = self._reporter.progress, self._reporter.go_on
        self._turn = self._reporter.turn
        self._settled: set[str] = set()

    def run(self) -> None:
        """Everything, from Hello to Done. Raises Restart where another process has to go on."""
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
        """All groups. Raises Stopped, Restart, and KernelscopeError where no case can be made ready."""
        for group in self._groups():
            while group:
                group = self._group(group)

    # ----------------------------------------------------------------------------- what a kind of run says

    def _groups(self) -> Iterator[Sequence[Any]]:
        """Cases that are timed together, once all that they share is ready."""
        raise NotImplementedError

    def _contender(self, case: Any) -> Contender:
        """Who runs a case, not prepared yet."""
        raise NotImplementedError

    def _timing(self, ready: dict[str, Contender]) -> dict[str, Any]:
        """How these are timed: arguments of bench.measure.timing.time_together."""
        raise NotImplementedError

    def _before(self, ready: dict[str, Any]) -> Mapping[str, Exception]:
        """What is done before the passes of a group are timed; who failed at it, by key."""
        return {}

    def _possible(self, contender: Contender, measured: Any) -> Any:
        """The record, invalid where its time is shorter than any can be."""
        return measured

    # ------------------------------------------------------------------------------------------------ stages

    def _group(self, cases: Sequence[Any]) -> list[Any]:
        """Measure one group. Returns cases that are measured after it: those for which memory did not suffice
        beside the others."""
        ready: dict[str, Contender] = {}
        later: list[Any] = []
        todo = list(cases)
        try:
            for case in todo:
                self._turn(case, "prepare")
                try:
                    contender = ready[case.key] = self._contender(case)
                    contender.prepare()
                except Exception as error:
                    unready = ready.pop(case.key, None)
                    if ready and isinstance(error, OutOfMemoryError | MemoryError):
                        later.append(case)
                        self._close(unready)
                    else:
                        todo += self._unready(case, unready, error)
            for key, failure in self._before(ready).items():
                self._fail(ready[key].case, ready.pop(key), failure)
            # When each has its first: what memory is left is for the others.
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
        """Settle a case that could not be made ready; returns cases to be prepared in its place."""
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
            # Of the first round alone: whoever draws it takes a core's time from the rounds that follow.
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
        # Who failed first is first: it may have taken the device from the others. Then the reference: others
        # agree, or not, with its answers.
        for key in sorted(ready, key=lambda key: (timings[key].failed_ns, not ready[key].is_reference)):
            contender, timing = ready[key], timings[key]
            timing.load = sampler.load(key)
            try:
                if timing.error is not None:
                    raise timing.error
                self._finish(contender, timing, sampler.result(key))
            except Exception as error:
                self._fail(contender.case, contender, error)

    def _finish(self, contender: Contender, timing: Timing, telemetry: Telemetry) -> None:
        self._turn(contender.case, contender.last_stage)
        contender.check_again()
        for recorder in self.recorders:
            recorder(contender, timing, self._folder, self._reporter)
        self._close(contender)
        self._settle(self._possible(contender, contender.measured(timing, telemetry)))

    # ---------------------------------------------------------------------------------------------- outcomes

    def _settle(self, measurement: Any) -> None:
        self._settled.add(measurement.case.key)
        self._say(Measured(measurement=measurement))

    def _fail(self, case: Any, contender: Contender | None, error: Exception) -> None:
        """Settle a case that `error` ended; contender: None where it never had one. Raises Restart where the
        device is lost."""
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
