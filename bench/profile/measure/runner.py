"""Profiles one case in its worker: a cold start told apart, unprofiled passes, then a session profiled from
its creation to its close, and everything put into one CaseProfile.

Nothing is timed with a profiler on: the samples come first, from a process in which it was never loaded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter_ns

import numpy as np

from bench.measure import environment, limits, unrest
from bench.measure.loaded_model import LoadedModel
from bench.measure.outcomes import broke_device, is_bug, outcome, trace
from bench.measure.reporter import Reporter
from bench.measure.telemetry import Sampler
from bench.measure.timing import Rules, Stopped, first_run, time_together
from bench.measure.tuned import tuning
from bench.profile import event_files as profile_store
from bench.profile import parts as profile_parts
from bench.profile.measure import counters as profile_counters
from bench.profile.measure import counters_run
from bench.profile.measure import session as profile_session
from bench.profile.measure.case_inputs import asked, batch_inputs
from bench.profile.measure.cold import PREPARING, ColdStart
from bench.profile.measure.merge import Profiling
from bench.profile.measure.process import GpuPeak, process_use
from bench.profile.records import CaseProfile, ProfileJob
from bench.results.messages import (
    CaseStarted,
    Hello,
    LimitsMeasured,
    Log,
    Measured,
    Message,
    ModelLoaded,
    Start,
)
from bench.results.records import Case, Telemetry
from engine import backends
from engine.backend import Backend, Options, Part, Parted, Session, is_ort
from kernels.errors import KernelscopeError, UnavailableError
from kernels.spans import recorded

PASSES, PASS_S, STEADY_S = (5, 200), 0.5, 0.05  # host-to-host passes: at least, at most, for how many seconds
ROUNDS, PAUSE_S = 5, 0.02  # of those that two profiles are compared by: as many as a comparison has at first


@dataclass(frozen=True)
class Passes:
    """Wall times of host-to-host passes, and where a round of them starts; of one session."""

    samples_ns: tuple[float, ...]
    rounds: tuple[int, ...] = ()
    instances: tuple[int, ...] = ()


class ProfileRunner:
    """`say` takes messages; `stopped` tells that the user wants no more."""

    def __init__(
        self,
        start: Start[ProfileJob, Case],
        say: Callable[[Message], None],
        stopped: Callable[[], bool],
        entered_ns: int,
    ) -> None:
        self._job = start.job
        self._case = start.cases[0]
        self._folder = Path(start.folder) if start.folder else None
        self._say = say
        self._stopped = stopped
        reporter = Reporter(say, stopped)
        self._progress, self._go_on = reporter.progress, reporter.go_on
        self._origin = start.started_ns or entered_ns
        self._cold = ColdStart(self._origin, entered_ns, perf_counter_ns())
        self._started_at = datetime.now(UTC).isoformat(timespec="seconds")

    def run(self) -> None:
        """The case, whatever becomes of it."""
        case = self._case
        peak = GpuPeak()
        try:
            made = self._profile(case, peak)
        except Stopped:
            made = CaseProfile(case=case, disposition="cancelled", reason="cancelled")
        except Exception as error:
            disposition, reason = outcome(error)
            if broke_device(backends.get(case.backend).device, disposition):
                disposition = "crashed"
            if is_bug(error):
                self._say(Log(level="error", text=f"{case.words}: {trace(error)}"))
            made = CaseProfile(case=case, disposition=disposition, reason=reason, started_at=self._started_at)
        finally:
            peak.close()
        self._say(Hello(environment=environment.collect()))
        self._say(Measured(measurement=made))

    def _profile(self, case: Case, peak: GpuPeak) -> CaseProfile:
        self._say(CaseStarted(case=case, stage="prepare"))
        backend = backends.get(case.backend)
        if reason := backend.unavailable():
            raise UnavailableError(reason)
        cold = self._cold
        profile_session.load_libraries(backend)
        cold.until("libraries")
        loaded = self._loaded(case)
        inputs = batch_inputs(loaded, case.batch)
        cold.until("model and images")
        if backend.device == "cuda":
            peak.watch()
            cold.until("NVML")
            profile_session.start_device()
            cold.until("CUDA context")
        options = tuning.options(backend, loaded, self._asked)
        session = self._prepare_cold(backend, loaded, case, options)
        try:
            self._first_passes(session, inputs)
            cold.steady(passes(session, inputs, STEADY_S))
            self._go_on()
            self._say(CaseStarted(case=case, stage="time"))
            samples, telemetry, warnings = self._samples(session, backend.device)
            facts = dict(session.facts)
            profiled = profile_session.options_of(backend, options, self._job.apart)
            # Held against its like: a session of the same options, and passes as warm as the profiled ones.
            warm = self._job.warm_up > 0
            plain = in_rounds(session, inputs) if warm and profiled == options else None
            inside = _inside(session) if plain else ()
        finally:
            session.close()
        self._go_on()
        if plain is None:
            other = backends.prepared_within(backend, loaded.graph, case.batch, case.precision, profiled)
            try:
                # Where nothing is warmed up, the first passes of a session from host to host.
                first = (_pass(other, inputs) for _ in range(self._job.runs))
                plain = in_rounds(other, inputs) if warm else Passes(tuple(first))
                inside = _inside(other)
            finally:
                other.close()
        self._go_on()
        self._say(CaseStarted(case=case, stage="profile"))
        recorded = profile_session.record(
            backend, loaded, case, profiled, inputs, self._job, self._origin, inside
        )
        use = process_use(self._origin, peak.peak_nbytes)
        # Only now: what this imports to look at the machine is no part of what the case used.
        self._say(ModelLoaded(model=loaded.info()))
        self._limits(backend.device)
        self._count(backend, case, recorded)
        file = ""
        if self._folder is not None:
            file = profile_store.write_events(self._folder, case.key, recorded.events)
        events = recorded.events
        return CaseProfile(
            case=case,
            disposition="ok",
            device=backend.device,
            samples_ns=samples,
            pass_ns=plain.samples_ns,
            pass_rounds=plain.rounds,
            unrest=unrest.warning(plain) if plain.rounds else "",
            profiled_ns=recorded.pass_ns,
            cold=tuple(self._cold.marks),
            breakdowns=profile_parts.breakdowns(events),
            operators=recorded.operators,
            attributed=recorded.attributed,
            dropped=recorded.dropped,
            clocks=recorded.clocks,
            process=use,
            gpu=recorded.gpu,
            telemetry=telemetry,
            facts=facts | recorded.facts,
            notes=(*recorded.notes, *warnings),
            events={
                "activities": len(events.activities),
                "calls": len(events.calls),
                "intervals": len(events.intervals),
            },
            file=file,
            started_at=self._started_at,
        )

    # ------------------------------------------------------------------------------------------------ stages

    def _loaded(self, case: Case) -> LoadedModel:
        self._asked = asked(self._job, case)
        return LoadedModel(self._job.model, self._asked, (case.batch,), self._progress)

    def _prepare_cold(self, backend: Backend, loaded: LoadedModel, case: Case, options: Options) -> Session:
        ort = is_ort(backend)
        with recorded(*PREPARING.get("ort" if ort else case.backend, ())) as spans:
            session = backends.prepared_within(backend, loaded.graph, case.batch, case.precision, options)
        self._cold.prepared(session.phases, spans, ort)
        return session

    def _first_passes(self, session: Session, inputs: Mapping[str, np.ndarray]) -> None:
        session.bind(inputs)
        self._cold.until("inputs bound")
        first_run(session)
        self._cold.until("first run")

    def _samples(self, session: Session, device: str) -> tuple[tuple[float, ...], Telemetry, tuple[str, ...]]:
        key, job = self._case.key, self._job
        with Sampler({key: device}) as sampler:
            timings = time_together(
                {key: session},
                Rules(budget_s=job.budget_s, min_s=min(0.3, job.budget_s)),
                job.seed,
                devices={key: device},
                on_turn=sampler.turn,
                throttled=sampler.throttled,
                stopped=self._stopped,
            )
        timing = timings[key]
        if timing.error is not None:
            raise timing.error
        return tuple(timing.samples_ns), sampler.result(key), tuple(timing.warnings)

    def _limits(self, device: str) -> None:
        try:
            self._say(LimitsMeasured(limits=limits.limits(device, self._job.threads, again=False)))
        except KernelscopeError as error:
            self._say(Log(level="warning", text=f"the machine's limits are not known: {error}"))

    def _count(self, backend: Backend, case: Case, recorded: Profiling) -> None:
        """Where it was asked for, have the hardware count in a pass of another process."""
        if not self._job.counters:
            return
        if backend.device != "cuda":
            recorded.notes = (*recorded.notes, "hardware counters are not read: it takes an NVIDIA GPU")
            return
        self._say(CaseStarted(case=case, stage="count"))
        try:
            counted = counters_run.take(self._job, case, self._stopped)
        except KernelscopeError as error:
            self._go_on()
            recorded.notes = (*recorded.notes, str(error))
            return
        self._go_on()
        recorded.events, words, note = profile_counters.attached(recorded.events, counted)
        recorded.facts["counters"] = words
        recorded.notes = (*recorded.notes, *filter(None, [note]))


def _inside(session: Session) -> tuple[Part, ...]:
    """What the steps take in a kernel that does several: here, as the profiled session keeps no stamps."""
    return session.launch_parts() if isinstance(session, Parted) else ()


def passes(session: Session, inputs: Mapping[str, np.ndarray], seconds: float = PASS_S) -> tuple[float, ...]:
    """Wall times of host-to-host passes: bind, run, wait, fetch; the first two, which warm up, left out."""
    least, most = PASSES
    found: list[float] = []
    end = time.perf_counter() + seconds
    while len(found) < least + 2 or (time.perf_counter() < end and len(found) < most):
        found.append(_pass(session, inputs))
    return tuple(found[2:])


def in_rounds(session: Session, inputs: Mapping[str, np.ndarray]) -> Passes:
    """Passes of a warm session in ROUNDS rounds, a pause between them: what one round has of luck with the
    machine, another has not. The first pass of each is left out."""
    found: list[float] = []
    starts: list[int] = []
    for _ in range(ROUNDS):
        time.sleep(PAUSE_S)
        _pass(session, inputs)
        starts.append(len(found))
        end = time.perf_counter() + PASS_S / ROUNDS
        found.append(_pass(session, inputs))
        while time.perf_counter() < end and len(found) - starts[-1] < PASSES[1] // ROUNDS:
            found.append(_pass(session, inputs))
    return Passes(tuple(found), tuple(starts))


def _pass(session: Session, inputs: Mapping[str, np.ndarray]) -> float:
    started = perf_counter_ns()
    session.bind(inputs)
    session.run()
    session.synchronize()
    session.fetch()
    return float(perf_counter_ns() - started)
