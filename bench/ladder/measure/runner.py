"""Runs a ladder in the worker: each rung checked, all that are right timed together with the reference,
checked again, and the same for whole models. One rung's failure is its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec
import numpy as np

from bench.judge import Trial, Wrong
from bench.ladder import net
from bench.ladder.measure import entrants
from bench.ladder.measure.entrants import Entrant, Reference
from bench.ladder.net import Net
from bench.ladder.records import (
    LadderMessage,
    LadderStart,
    LimitsMeasured,
    RungCase,
    RungMeasured,
    RungMeasurement,
    RungProvisional,
    RungStarted,
)
from bench.measure import environment, limits, possible, unrest
from bench.measure.answers.renewed import Renewal
from bench.measure.outcomes import Incorrect, Restart, broke_device, is_bug, outcome, trace
from bench.measure.reporter import Reporter
from bench.measure.telemetry import Sampler
from bench.measure.timing import Rules, Stopped, Timing, few, time_together
from bench.results.finding import Finding
from bench.results.machine_limits import MachineLimits
from bench.results.messages import Done, Hello, Log, Progress
from bench.results.records import Telemetry, Validity
from engine.isolated import pool
from engine.planning import tuned_defines
from kernels.cache import atomic_file
from kernels.errors import KernelscopeError, OutOfMemoryError
from kernels.registry import Rung

MAPS = "errors"  # folder of error maps in the ladder's
PROBED_AGAIN = 2  # times, where a rung seems to be faster than the machine


class LadderRunner:
    """`say` takes messages; `stopped` tells that the user wants no more."""

    def __init__(
        self, start: LadderStart, say: Callable[[LadderMessage], None], stopped: Callable[[], bool]
    ) -> None:
        self._job = start.job
        self._cases = start.cases
        self._folder = start.folder
        self._say = say
        self._stopped = stopped
        self._settled: set[str] = set()
        self._limits: MachineLimits | None = None
        reporter = Reporter(say, stopped)
        self._progress, self._go_on = reporter.progress, reporter.go_on

    def run(self) -> None:
        """Everything, from Hello to Done. Raises Restart where another process has to go on."""
        if self._job.device == "cpu":  # ready when the first rung is
            ours = any(case.scope == "rung" and not case.user for case in self._cases)
            others = any(case.scope != "rung" for case in self._cases)
            kinds = [*["engine" if self._job.op == net.OP else "rung"] * ours, *["ort"] * others, "empty"]
            pool.start_early(*kinds, alive=self._job.instances)
        self._say(Hello(environment=environment.collect()))
        reason = ""
        try:
            self._params = entrants.work_of(self._job.op, self._job.params)
            self._probe()
            entrants.compile_ahead(self._job, self._params, self._cases, self._progress)
            for scope in (("rung", "reference"), ("model",)):
                group = [case for case in self._cases if case.scope in scope]
                while group:
                    group = self._group(group)
        except Stopped:
            reason = "cancelled"
            for case in self._cases:
                if case.key not in self._settled:
                    self._settle(RungMeasurement(case=case, disposition="cancelled", reason=reason))
        except KernelscopeError as error:
            reason = str(error)
        self._say(Done(reason=reason))

    def _probe(self, again: bool = False) -> None:
        try:
            self._say(Progress(text="measuring what this machine reaches"))
            again = again or not self._job.quick
            self._limits = limits.limits(self._job.device, self._job.threads, again)
            self._say(LimitsMeasured(limits=self._limits))
        except KernelscopeError as error:
            self._say(Log(level="warning", text=f"the machine's limits are not known: {error}"))

    # ------------------------------------------------------------------------------------------------ stages

    def _group(self, cases: Sequence[RungCase]) -> list[RungCase]:
        """Check these cases and time those that are right together. Returns cases for which memory did not
        suffice beside the others."""
        ready: dict[str, Entrant] = {}
        later: list[RungCase] = []
        try:
            for case in cases:
                self._go_on()
                self._say(RungStarted(case=case, stage="prepare"))
                started_at = datetime.now(UTC).isoformat(timespec="seconds")
                try:
                    entrant = self._entrant(case, started_at)
                    ready[case.key] = entrant
                except (OutOfMemoryError, MemoryError) as error:
                    if ready:
                        later.append(case)
                    else:
                        self._fail(case, error, started_at)
                except Exception as error:
                    self._fail(case, error, started_at)
            # When each has its first: what memory is left is for the others.
            for key in tuple(ready) if self._job.instances > 1 else ():
                if not self._multiplied(ready[key]):
                    del ready[key]
            if ready:
                self._timed(ready)
        finally:
            for entrant in ready.values():
                self._close(entrant)
        return later

    def _entrant(self, case: RungCase, started_at: str) -> Entrant:
        checking = partial(self._say, RungStarted(case=case, stage="check"))
        return entrants.entrant(self._job, self._params, case, started_at, checking, self._progress)

    def _multiplied(self, entrant: Entrant) -> bool:
        """Prepare its further instances; False where that was the case's end."""
        self._go_on()
        self._say(RungStarted(case=entrant.case, stage="prepare"))
        try:
            entrant.multiply()
        except Exception as error:
            self._close(entrant)
            self._fail(entrant.case, error, entrant.started_at)
            return False
        return True

    def _timed(self, ready: dict[str, Entrant]) -> None:
        job = self._job
        devices = dict.fromkeys(ready, job.device)

        def turn(key: str, number: int) -> None:
            entrant = ready[key]
            self._say(RungStarted(case=entrant.case, stage="time"))
            last = entrant.all[(number - 1) % len(entrant.all)]
            if number and isinstance(last, Trial):
                last.check_between()  # it remembers a failure, and is timed no further
            sampler.turn(key, number)

        def taken(key: str, number: int, timing: Timing) -> None:
            # Of the first round alone: whoever draws it takes a core's time from the rounds that follow.
            if number == 0:
                self._say(RungProvisional(case=ready[key].case, median_ns=timing.median_ns))

        references = [key for key, entrant in ready.items() if entrant.case.is_reference]
        with Sampler(devices) as sampler:
            timings = time_together(
                {key: entrant.all for key, entrant in ready.items()},
                self._rules(),
                job.seed,
                judged_by={key: reference for reference in references[:1] for key in ready},
                devices=devices,
                on_turn=turn,
                on_taken=taken,
                on_part=sampler.turn,
                throttled=sampler.throttled,
                enough=self._enough,
                stopped=self._stopped,
            )
        # Who failed first is first: it may have taken the device from the others.
        for key in sorted(ready, key=lambda key: timings[key].failed_ns):
            entrant, timing = ready[key], timings[key]
            timing.load = sampler.load(key)
            try:
                if timing.error is not None:
                    raise timing.error
                self._say(RungStarted(case=entrant.case, stage="check"))
                self._check_again(entrant)
                self._settle(self._possible(entrant, self._measured(entrant, timing, sampler.result(key))))
            except Exception as error:
                self._fail(entrant.case, error, entrant.started_at)
            self._close(entrant)

    def _rules(self) -> Rules:
        """How long what is ready is sampled."""
        budget_s = self._job.budget_s
        return Rules(budget_s=budget_s, min_s=min(0.3, budget_s), cold=self._job.l2 == "cold")

    def _enough(self, timings: Mapping[str, Timing]) -> bool:
        """Whether all is known that these are timed for, before each time is: no."""
        return False

    @staticmethod
    def _check_again(entrant: Entrant) -> None:
        """The last timed passes of each instance must have been right, and so must one over other inputs."""
        entrant.check_again()
        sample = None
        for number, trial in enumerate(entrant.all):
            if not isinstance(trial, Trial):
                return
            if trial.broken is not None:
                raise trial.broken
            failure = (
                trial.failure
                or trial.spot_check("during timing", thorough=True)
                or trial.check("after timing", sample)
                or (trial.check_new("after timing") if number == 0 else None)
            )
            if failure is not None:
                raise entrants.wrong(failure, number)
            sample = trial.sample  # the others' too: its answer is known now, and they never saw it

    # ---------------------------------------------------------------------------------------------- outcomes

    def _possible(self, entrant: Entrant, made: RungMeasurement) -> RungMeasurement:
        if entrant.model is not None:
            work = possible.of_model(entrant.model.graph, self._job.batch, made.case.precision)
        else:
            assert not isinstance(self._params, Net)
            method = entrant.timed.rung.method if isinstance(entrant.timed, Trial) else ""
            work = possible.of_params(self._params, made.case.precision, method)
        cold = self._job.l2 == "cold"
        # A machine that was busy while it was probed can do more than was seen: asked again before anybody
        # is accused.
        for _ in range(PROBED_AGAIN):
            if possible.share(made, work, self._limits, cold) <= possible.BEYOND:
                break
            self._probe(again=True)
        return possible.held(made, work, self._limits, cold)

    def _measured(self, entrant: Entrant, timing: Timing, telemetry: Telemetry) -> RungMeasurement:
        timed = entrant.timed
        warnings = [*timing.warnings, *([entrant.short] if entrant.short else [])]
        warnings += timed.warnings if isinstance(timed, Trial) else []
        warnings += few(timing)
        if moved := unrest.warning(timing):
            warnings.append(moved)
        session = entrant.model.session if entrant.model else getattr(timed, "session", None)
        if session is not None and (reason := session.facts.get("stirring")):
            warnings.append(f"all timed passes were given the same inputs: {reason.removeprefix('no: ')}")
        made = RungMeasurement(
            case=entrant.case,
            disposition="ok",
            samples_ns=tuple(timing.samples_ns),
            runs_per_sample=timing.runs_per_sample,
            rounds=tuple(timing.rounds),
            instances=tuple(timing.instances),
            quantile=timing.quantile,
            load=dict(timing.load),
            telemetry=telemetry,
            validity=Validity(
                stop_reason=timing.stop_reason, retries=timing.retries, warnings=tuple(warnings)
            ),
            started_at=entrant.started_at,
        )
        renewal = entrant.model.mixings.told if entrant.model is not None else None
        if isinstance(timed, Trial) and timed.renewal.told:
            renewal = timed.renewal
        if renewal is not None:
            made = self._renewed(made, renewal)
        if isinstance(timed, Trial):
            session = timed.session
            facts, compiled = dict(session.facts), dict(session.compiled)
            facts |= self._tuned(timed.rung)
            return msgspec.structs.replace(
                made,
                error=timed.error,
                checks=timed.checks,
                notes=tuple(timed.notes),
                facts=facts,
                compiled=compiled,
                nbytes=session.moved,
            )
        if isinstance(timed, Reference):
            facts = dict(timed.session.facts) | {"backend": timed.session.backend}
            return msgspec.structs.replace(
                made, error=timed.error, checks=timed.checks, notes=tuple(timed.notes), facts=facts,
                nbytes=timed.moved,
            )  # fmt: skip
        if entrant.model is not None:
            facts = dict(session.facts) if session else {}
            entrant.model.answer("", self._progress)  # over no images: the answers that were checked
            judged = entrant.model.measured(timing, telemetry).accuracy
            assert judged is not None
            # How a whole net lies in other precisions is not told, step by step.
            known = isinstance(self._params, Net) and made.case.precision == "fp32"
            return msgspec.structs.replace(
                made, error=judged.output, checks=judged.checked, facts=facts,
                nbytes=self._params.nbytes if known else 0,
            )  # fmt: skip
        return made

    def _renewed(self, made: RungMeasurement, renewal: Renewal) -> RungMeasurement:
        """Timed over inputs that are all new, as its time hangs on how much of them changed."""
        if self._job.l2 == "cold":  # over new inputs caches are warm
            reason = renewal.untaken
            return msgspec.structs.replace(made, disposition="invalid", reason=reason, samples_ns=())
        return msgspec.structs.replace(
            made,
            samples_ns=tuple(renewal.samples_ns),
            rounds=tuple(renewal.rounds),
            instances=tuple(renewal.instances),
            notes=(renewal.told,),
        )

    def _tuned(self, rung: Rung) -> dict[str, str]:
        """What is to be known of a rung that runs with defines that were searched."""
        if isinstance(self._params, Net) or self._job.device != "cuda":
            return {}
        words = tuned_defines.words(rung, self._params)
        return {"tuned": words} if words else {}

    def _fail(self, case: RungCase, error: BaseException, started_at: str) -> None:
        if isinstance(error, Wrong):
            finding = self._kept(case, error)
            self._settle(
                RungMeasurement(
                    case=case,
                    disposition="incorrect",
                    reason=f"{finding.reason} ({finding.when}, on {finding.params})",
                    finding=finding,
                    error=finding.error,
                    started_at=started_at,
                )
            )
            return
        disposition, reason = outcome(error)
        if is_bug(error) and not isinstance(error, Incorrect):
            self._say(Log(level="error", text=f"{case.words}: {trace(error)}"))
        broken = broke_device(self._job.device, disposition)
        if broken:
            disposition = "crashed"
        self._settle(
            RungMeasurement(case=case, disposition=disposition, reason=reason, started_at=started_at)
        )
        if broken:
            raise Restart(f"{case.words} broke the device's context; the rest goes on in a new process")

    def _kept(self, case: RungCase, error: Wrong) -> Finding:
        """The finding, with its error map in the ladder's folder."""
        if not self._folder or error.error_map is None:
            return error.finding
        name = f"{MAPS}/{case.key}.npz"
        try:
            with atomic_file(Path(self._folder) / name) as path, path.open("wb") as stream:
                np.savez_compressed(stream, **error.pictures())  # type: ignore[arg-type]  # by name
        except OSError as problem:
            self._say(
                Log(level="warning", text=f"the error map of {case.words} could not be kept: {problem}")
            )
            return error.finding
        return msgspec.structs.replace(error.finding, map=name)

    def _settle(self, measurement: RungMeasurement) -> None:
        self._settled.add(measurement.case.key)
        self._say(RungMeasured(measurement=measurement))

    def _close(self, entrant: Entrant) -> None:
        try:
            entrant.close()
        except Exception as error:
            self._say(Log(level="warning", text=f"{entrant.case.words} could not be closed: {error}"))
        entrant.close = _nothing


def _nothing() -> None:
    """A case that is closed already."""
