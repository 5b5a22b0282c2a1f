"""Timing: warm up, sample in interleaved rounds until the median is known well enough, say why it stopped.

Contenders take their samples in a row within a round while the others idle (sample by sample, two BLAS
thread pools slow each other down), and the order is drawn anew each round, so that what the machine does in
the meantime falls on all of them alike. Stopping looks at the sampling error alone; what the rounds differ by
is in the interval that bench.stats derives from `rounds`.
"""

from __future__ import annotations

import gc
import math
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np

from bench import stats
from engine.backend import Session

StopReason = Literal["interval", "budget", "max_samples", ""]
# A throttled device is given this long to cool before a turn is taken again.
COOL_S = 2.0


class Stopped(Exception):
    """The user wants no more; raised between two samples."""


@dataclass(frozen=True)
class Rules:
    """How long to sample. Times in seconds unless the name says ns.

    width: the half-width of the bootstrap interval to reach, as a fraction of the median. sample_ns: how long
    one sample lasts at least, on the host's clock and on a device's. rounds: in how many turns the first
    min_s and min_samples are taken.
    """

    warmup_runs: int = 3
    warmup_s: float = 0.2
    rewarm_s: float = 0.05
    min_samples: int = 10
    min_s: float = 0.5
    width: float = 0.01
    budget_s: float = 15.0
    max_samples: int = 10_000
    rounds: int = 5
    sample_ns_host: int = 100_000
    sample_ns_device: int = 1_000_000
    cold: bool = False
    retries: int = 3


@dataclass
class Timing:
    """What came of one contender: ns a pass (mean over `runs_per_sample` passes in a row), where rounds start
    among the samples, why sampling stopped. `error` where it failed; the others are not touched by it."""

    samples_ns: list[float] = field(default_factory=list)
    runs_per_sample: int = 1
    rounds: list[int] = field(default_factory=list)
    stop_reason: StopReason = ""
    retries: int = 0
    warnings: list[str] = field(default_factory=list)
    error: Exception | None = None
    spent_s: float = 0.0
    sample_s: float = 0.0  # what one sample takes, judged by the warm-up

    @property
    def median_ns(self) -> float:
        return statistics.median(self.samples_ns)


class Timed(Protocol):
    """What samples are taken of: a session, or whatever else runs."""

    def time_runs(self, count: int, cold: bool = False) -> int: ...


def first_run(session: Session) -> int:
    """Nanoseconds on the host's clock of one pass from its start to its end; meant for the very first."""
    started = time.perf_counter_ns()
    session.run()
    session.synchronize()
    return time.perf_counter_ns() - started


def warm_up(session: Timed, runs: int, seconds: float) -> float:
    """At least `runs` passes and `seconds`; returns nanoseconds a pass, judged by the later half."""
    end = time.perf_counter_ns() + int(seconds * 1e9)
    count, done = 1, 0
    times: list[float] = [session.time_runs(1)]
    while (done := done + count) < runs or time.perf_counter_ns() < end:
        # Trains that grow: a short net is warm in its train as it will be timed, a long one is not run for
        # longer than need be.
        left = max(0, end - time.perf_counter_ns())
        per_run = max(1.0, min(times))
        count = max(1, min(2 * count, runs - done if left == 0 else math.ceil(left / per_run)))
        times.append(session.time_runs(count) / count)
    return statistics.median(times[len(times) // 2 :])


def time_together(
    sessions: Mapping[str, Timed],
    rules: Rules | None = None,
    seed: int = 0,
    *,
    devices: Mapping[str, str] | None = None,
    on_turn: Callable[[str, int], None] = lambda key, turn: None,
    on_taken: Callable[[str, int, Timing], None] = lambda key, turn, timing: None,
    throttled: Callable[[str], str] = lambda key: "",
    stopped: Callable[[], bool] = lambda: False,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, Timing]:
    """Samples of all contenders, interleaved in rounds; inputs are bound, first passes done.

    devices: "cpu" or "cuda" by key ("cpu" where absent): whose clock a sample is on. on_turn hears of each
    turn (key, round) before it, on_taken of it and of what was taken so far after it. throttled tells, after
    a turn, why the device was held back during it ("": it was not): that turn is taken again, at most
    `rules.retries` times in all, and then kept and flagged.
    Raises Stopped between samples once `stopped` says so; an error of a contender's is in its Timing.
    """
    rules = rules or Rules()
    order = random.Random(seed)
    sampler = _Sampler(rules, devices or {}, throttled, stopped, sleep)
    timings = {key: Timing() for key in sessions}
    active = list(sessions)
    turn = 0
    while active:
        order.shuffle(active)
        for key in tuple(active):
            on_turn(key, turn)
            try:
                sampler.turn(key, sessions[key], timings[key], turn)
            except Stopped:
                raise
            except Exception as error:  # one contender's failure is its own
                timings[key].error = error
                active.remove(key)
            else:
                on_taken(key, turn, timings[key])
        turn += 1
        for key in tuple(active):
            timings[key].stop_reason = _reason(timings[key], rules, turn)
        # A contender that is done takes part no longer; each is paired round by round with any other.
        active = [key for key in active if not timings[key].stop_reason]
    return timings


class _Sampler:
    def __init__(
        self,
        rules: Rules,
        devices: Mapping[str, str],
        throttled: Callable[[str], str],
        stopped: Callable[[], bool],
        sleep: Callable[[float], None],
    ) -> None:
        self._rules = rules
        self._devices = devices
        self._throttled = throttled
        self._stopped = stopped
        self._sleep = sleep

    def turn(self, key: str, session: Timed, timing: Timing, turn: int) -> None:
        rules = self._rules
        if self._stopped():
            raise Stopped
        if turn == 0:
            per_run = warm_up(session, rules.warmup_runs, rules.warmup_s)
            timing.runs_per_sample = self._train(key, per_run)
            timing.sample_s = timing.runs_per_sample * per_run / 1e9
        else:
            # Three passes, but of a net that takes longer than the whole warm-up just one.
            slow = timing.sample_s > rules.warmup_s
            warm_up(session, 1 if slow else rules.warmup_runs, rules.rewarm_s)
        count, seconds = self._share(timing, turn)
        samples, spent = self._take(session, timing, count, seconds)
        while reason := self._throttled(key):
            if timing.retries >= rules.retries:
                if reason not in timing.warnings:
                    timing.warnings.append(reason)
                break
            timing.retries += 1
            self._sleep(COOL_S)
            samples, spent = self._take(session, timing, count, seconds)
        timing.spent_s += spent
        timing.rounds.append(len(timing.samples_ns))
        timing.samples_ns += samples

    def _train(self, key: str, per_run_ns: float) -> int:
        rules = self._rules
        if rules.cold:
            return 1
        on_host = self._devices.get(key, "cpu") == "cpu"
        target = rules.sample_ns_host if on_host else rules.sample_ns_device
        # 20 % more: the warm-up's passes may have been slower than those to come.
        return max(1, math.ceil(1.2 * target / max(per_run_ns, 1.0)))

    def _share(self, timing: Timing, turn: int) -> tuple[int, float]:
        """At least how many samples, and how many seconds of them, this turn takes."""
        rules = self._rules
        seconds = min(rules.min_s, rules.budget_s) / rules.rounds
        count = math.ceil(rules.min_samples / rules.rounds)
        if timing.sample_s * rules.min_samples > rules.budget_s:
            count = 1  # what the budget has room for had better be spread over the rounds
        if turn >= rules.rounds:
            # The interval shrinks with the root of the count: rounds that grow get there in a few.
            seconds, count = max(seconds, 0.5 * timing.spent_s), 1
        return count, min(seconds, rules.budget_s - timing.spent_s)

    def _take(self, session: Timed, timing: Timing, count: int, seconds: float) -> tuple[list[float], float]:
        """Samples until `count` and `seconds` are reached, and the seconds they took; beyond the budget by
        less than one sample."""
        rules = self._rules
        runs = timing.runs_per_sample
        room = rules.max_samples - len(timing.samples_ns)
        samples: list[float] = []
        started = time.perf_counter()
        left = rules.budget_s - timing.spent_s
        with _no_garbage_collection():
            while True:
                samples.append(round(session.time_runs(runs, cold=rules.cold) / runs, 1))
                spent = time.perf_counter() - started
                enough = len(samples) >= count and spent >= seconds
                if enough or len(samples) >= room or spent >= left:
                    break
                if self._stopped():
                    raise Stopped
        return samples, spent


def _reason(timing: Timing, rules: Rules, turns: int) -> StopReason:
    """Why this contender has enough, or "" where it has not."""
    if len(timing.samples_ns) >= rules.max_samples:
        return "max_samples"
    enough = turns >= rules.rounds and len(timing.samples_ns) >= rules.min_samples
    if enough and stats.median_interval(timing.samples_ns).relative <= rules.width:
        return "interval"
    if timing.spent_s + 0.5 * timing.median_ns * timing.runs_per_sample / 1e9 > rules.budget_s:
        return "budget"
    return ""


@dataclass(frozen=True)
class EndToEnd:
    """Medians in ns over end-to-end passes: phases h2d, compute, d2h, sync, and the wall time they divide."""

    phases: dict[str, float]
    wall_ns: float
    passes: int


def end_to_end(
    session: Session,
    inputs: Mapping[str, np.ndarray],
    device_ns: float | None = None,
    seconds: float = 0.3,
    least: int = 5,
) -> EndToEnd:
    """Full passes as an application makes them: bind, run, wait, fetch; at least `least`, about `seconds`.

    h2d is `bind`, d2h is `fetch`. Where `run` only launches (a GPU), `device_ns` is what the pass takes on
    the device's clock: that is `compute`, and `sync` what launching it and waiting for it cost beyond. Where
    it is None, `run` is `compute` and `synchronize` is `sync`.
    """
    laps: list[tuple[int, int, int, int, int]] = []
    end = time.perf_counter() + seconds
    with _no_garbage_collection():
        while len(laps) < least or (time.perf_counter() < end and len(laps) < 1000):
            start = time.perf_counter_ns()
            session.bind(inputs)
            bound = time.perf_counter_ns()
            session.run()
            ran = time.perf_counter_ns()
            session.synchronize()
            waited = time.perf_counter_ns()
            session.fetch()
            fetched = time.perf_counter_ns()
            laps.append((bound - start, ran - bound, waited - ran, fetched - waited, fetched - start))
            if laps[-1][4] > 1e9 * seconds and len(laps) >= 3:
                break  # passes of a second and more: three tell enough
    h2d, compute, sync, d2h, wall = (float(statistics.median(column)) for column in zip(*laps, strict=True))
    if device_ns is not None:
        both = compute + sync
        compute = min(device_ns, both)
        sync = both - compute
    return EndToEnd({"h2d": h2d, "compute": compute, "d2h": d2h, "sync": sync}, wall, len(laps))


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Collect now and not between samples."""
    enabled = gc.isenabled()
    gc.collect(0)
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
