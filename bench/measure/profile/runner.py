"""Profiles cases in the worker, each in a process of its own: a cold start told apart, unprofiled passes, a
session profiled from its creation to its close, and everything put into one CaseProfile.

Nothing is timed with a profiler on: the samples come first, from a process in which it was never loaded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numpy as np

from bench.measure import environment, limits, unrest
from bench.measure.loaded_model import LoadedModel
from bench.measure.outcomes import Restart
from bench.measure.profile import counters as profile_counters
from bench.measure.profile import ncu
from bench.measure.profile import session as profile_session
from bench.measure.profile.cold import PREPARING, ColdStart
from bench.measure.profile.process import GpuPeak, process_use
from bench.measure.profile.session import asked, batch_inputs
from bench.measure.reporter import Reporter
from bench.measure.runner import Contender, Runner
from bench.measure.timing import Rules, Timing, first_run
from bench.measure.tuned import tuning
from bench.results import event_files as profile_store
from bench.results import parts as profile_parts
from bench.results.events import Events
from bench.results.messages import Hello, Message, ModelLoaded, Start
from bench.results.profile_records import CaseProfile, ProfileJob
from bench.results.records import Case, Telemetry
from engine import backends
from engine.backend import Part, Parted, Session, is_ort
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


class ProfiledNet(Contender):
    """A whole net from its cold start, timed without a profiler; recorders profile it in sessions of their
    own. cold: collects the phases of the start."""

    record, last_stage = CaseProfile, "profile"
    loaded: LoadedModel
    inputs: Mapping[str, np.ndarray]
    inside: Sequence[Part]  # of a kernel that does several steps: what each takes
    events: Events

    def __init__(self, case: Case, job: ProfileJob, cold: ColdStart, reporter: Reporter) -> None:
        self.backend = backends.get(case.backend)
        super().__init__(case, self.backend.device, job)
        self.cold, self._reporter = cold, reporter
        self.peak = GpuPeak()
        self.notes: list[str] = []

    def prepare(self) -> None:
        backend, case, cold = self.backend, self.case, self.cold
        if reason := backend.unavailable():
            raise UnavailableError(reason)
        profile_session.load_libraries(backend)
        cold.until("libraries")
        wanted = asked(self.job, case)
        self.loaded = LoadedModel(self.job.model, wanted, (case.batch,), self._reporter.progress)
        self.inputs = batch_inputs(self.loaded, case.batch)
        cold.until("model and images")
        if self.device == "cuda":
            self.peak.watch()
            cold.until("NVML")
            profile_session.start_device()
            cold.until("CUDA context")
        self.options = tuning.options(backend, self.loaded, wanted)
        ort = is_ort(backend)
        with recorded(*PREPARING.get("ort" if ort else case.backend, ())) as spans:
            session = self.first = self.prepared(self.options)
        cold.prepared(session.phases, spans, ort)
        session.bind(self.inputs)
        cold.until("inputs bound")
        first_run(session)
        cold.until("first run")
        cold.steady(passes(session, self.inputs, STEADY_S))

    def prepared(self, options: Any) -> Session:
        """A session of it."""
        case = self.case
        return backends.prepared_within(self.backend, self.loaded.graph, case.batch, case.precision, options)

    def free(self) -> None:
        """Close the session that is open."""
        super().close()

    def close(self, but: int = 0) -> None:
        self.peak.close()
        super().close(but)

    def measured(self, timing: Timing, telemetry: Telemetry) -> CaseProfile:
        return CaseProfile(
            **self.recorded,
            case=self.case,
            disposition="ok",
            device=self.device,
            samples_ns=tuple(timing.samples_ns),
            cold=tuple(self.cold.marks),
            telemetry=telemetry,
            notes=(*self.notes, *timing.warnings),
            started_at=self._started_at,
        )


def unprofiled(net: ProfiledNet, timing: Timing, folder: str, reporter: Reporter) -> None:
    """Host-to-host passes of the profiled session's like: a session of the same options, and passes as warm
    as the profiled ones."""
    warm, net.recorded["facts"] = net.job.warm_up > 0, net.facts
    options = profile_session.options_of(net.backend, net.options, net.job.apart)
    if not warm or options != net.options:
        net.free()
        net.first, net.options = net.prepared(options), options
    if warm:
        plain = in_rounds(net.first, net.inputs)
    else:  # where nothing is warmed up, the first passes of a session from host to host
        plain = Passes(tuple(_pass(net.first, net.inputs) for _ in range(net.job.runs)))
    # Here, as the profiled session keeps no stamps.
    net.inside = net.first.launch_parts() if isinstance(net.first, Parted) else ()
    net.free()
    told = unrest.warning(plain) if plain.rounds else ""
    net.recorded |= {"pass_ns": plain.samples_ns, "pass_rounds": plain.rounds, "unrest": told}


def profiled(net: ProfiledNet, timing: Timing, folder: str, reporter: Reporter) -> None:
    """A session under the profilers from its creation to its close, with hardware counters where these were
    asked for; and what the process used."""
    origin = net.cold.origin
    reporter.go_on()
    found = profile_session.record(
        net.backend, net.loaded, net.case, net.options, net.inputs, net.job, origin, net.inside
    )
    use = process_use(origin, net.peak.peak_nbytes)
    # Only now: what this imports to look at the machine is no part of what the case used.
    reporter.say(ModelLoaded(model=net.loaded.info()))
    limits.tell(reporter, net.device, net.job.threads, again=False)
    net.notes += found.notes
    net.recorded |= {
        "profiled_ns": found.pass_ns,
        "operators": found.operators,
        "attributed": found.attributed,
        "dropped": found.dropped,
        "clocks": found.clocks,
        "process": use,
        "gpu": found.gpu,
        "facts": net.recorded["facts"] | found.facts,
    }
    net.events = found.events


def counted(net: ProfiledNet, timing: Timing, folder: str, reporter: Reporter) -> None:
    """Where it was asked for, the hardware counts in a pass of another process."""
    if not net.job.counters:
        return
    if net.device != "cuda":
        net.notes.append("hardware counters are not read: it takes an NVIDIA GPU")
        return
    reporter.turn(net.case, "count")
    try:
        kernels = ncu.take(net.job, net.case, reporter.stopped)
    except KernelscopeError as error:
        reporter.go_on()
        net.notes.append(str(error))
        return
    reporter.go_on()
    net.events, words, note = profile_counters.attached(net.events, kernels)
    net.recorded["facts"] |= {"counters": words}
    net.notes += filter(None, [note])


def events(net: ProfiledNet, timing: Timing, folder: str, reporter: Reporter) -> None:
    """The events, in a file of their own, and what they add up to."""
    kept = net.events
    net.recorded |= {
        "breakdowns": profile_parts.breakdowns(kept),
        "events": {name: len(getattr(kept, name)) for name in ("activities", "calls", "intervals")},
        "file": profile_store.write_events(Path(folder), net.case.key, kept) if folder else "",
    }


class ProfileRunner(Runner):
    """The first case; another process has to go on with the others. entered_ns: when this one was entered
    (perf_counter_ns)."""

    record, recorders = CaseProfile, (unprofiled, profiled, counted, events)

    def __init__(
        self,
        start: Start[ProfileJob, Case],
        say: Callable[[Message], None],
        stopped: Callable[[], bool],
        entered_ns: int,
    ) -> None:
        super().__init__(start, say, stopped)
        self._cold = ColdStart(start.started_ns or entered_ns, entered_ns, perf_counter_ns())

    def _groups(self) -> Iterator[Sequence[Case]]:
        yield self._cases[:1]
        if len(self._cases) > 1:
            self._go_on()
            raise Restart

    def _contender(self, case: Case) -> ProfiledNet:
        return ProfiledNet(case, self._job, self._cold, self._reporter)

    def _timing(self, ready: dict[str, Contender]) -> dict[str, Any]:
        budget_s = self._job.budget_s
        return {"rules": Rules(budget_s=budget_s, min_s=min(0.3, budget_s))}

    def _settle(self, measurement: CaseProfile) -> None:
        if not self._settled:  # looking at the machine is no part of what the case used
            self._say(Hello(environment=environment.collect()))
        super()._settle(measurement)


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
