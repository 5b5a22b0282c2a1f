"""The loop that every kind of run shares: cases come group by group; each is made ready and checked, those
that are right are timed together, checked again, and closed. One contender's failure is its own.

What differs is which groups there are and who runs a case (a subclass says both), and what is kept of a case
beside its times (recorders).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import msgspec

from bench.measure.contender import Contender
from bench.measure.outcomes import Restart, broke_device, is_bug, outcome, trace
from bench.measure.recorder import Recorder
from bench.measure.reporter import Reporter
from bench.measure.telemetry import Sampler
from bench.measure.timing import Stopped, Timing, time_together
from bench.results.messages import CaseStarted, Done, Log, Measured, Message, Provisional, Start
from bench.results.records import Telemetry
from kernels.errors import KernelscopeError, OutOfMemoryError


class Runner:
    """start: the job, its cases, and the run's folder; say: takes messages; stopped: tells that the user
    wants no more."""

    record: ClassVar[Any]  # the type of what came of a case

    def __init__(
        self, start: Start[Any, Any], say: Callable[[Message], None], stopped: Callable[[], bool]
    ) -> None:
        self._job, self._cases, self._folder = start.job, start.cases, start.folder
        self._say, self._stopped = say, stopped
        self._reporter = Reporter(say, stopped)
        self._progress, self._go_on = self._reporter.progress, self._reporter.go_on
        self._turn = self._reporter.turn
        self._recorders: Sequence[Recorder] = ()
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

    def _quiet(self) -> None:
        """Called before the first time is taken of a group: ends what is done beside it."""

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
            self._quiet()
            for recorder in self._recorders:
                for key, failure in recorder.before(ready).items():
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
        for recorder in self._recorders:
            recorder.record(contender, timing)
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
