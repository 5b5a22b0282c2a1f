"""Timing: warm up, take samples of several contenders in interleaved rounds, and stop when enough is known.

Terms: A pass is one run of a contender. A train is several passes in a row. One sample is the time of a
train, divided by its passes. In each round every contender has one turn, in which it takes several samples.

While one contender has its turn, the others wait: if contenders changed after every sample, two BLAS thread
pools would slow each other down. The order is drawn again for each round, so that disturbances on the machine
affect all contenders alike. Contenders that run in one thread, all on the same core, change after every few
samples instead (a part of a turn). Another program on that core stays there for longer, so it affects them
alike, too.

A contender may have several instances (the same session created again). Each turn times the next instance.
With as many instances as there are first rounds, this shows how much instances differ, and it needs no more
samples.

bench.measure.stopping decides when to stop, by the confidence interval that bench.results.stats derives from
rounds and instances. A contender and its reference go on while it is unclear which one is faster. A contender
without a reference goes on until its own median is known. docs/trust.md says how looking at the interval
after every round affects it.
"""

from __future__ import annotations

import gc
import math
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import numpy as np

from bench.measure import stopping
from bench.measure.instances import Succession
from bench.results import doubt, stats
from bench.results.records import StopReason
from engine.backend import Session, in_one_thread, parts_ns, warm_runs
from engine.isolated.client import rest
from engine.machine.cores import QUIET

# Each round after the first few takes this part of the seconds spent so far. The interval depends on the
# number of rounds: many short ones say more than few long ones, but each costs a warm-up.
GROWTH = 0.125
# The first rounds take at most half of the samples that are allowed; this many later rounds share the other
# half. Without that, passes of microseconds would take all samples within a second, in too few rounds.
LATER = 40
# ns; no pass is shorter than this. If the time for starting a train, which is subtracted, was nearly all of
# the train in the warm-up, a pass seems to take almost no time, and a sample would be minutes long.
LEAST_NS = 200.0
# Factor for the seconds of a warm-up and of the first rounds, on a GPU: the turn before kept its clock rate
# up, there are no threads to wake, and its samples take a quarter of the time of samples on the host.
ON_DEVICE = 0.5
# Factor for the seconds of a turn's warm-up, for an instance that begins within the turn: the clock rate is
# up.
NEXT_INSTANCE = 0.2
# If two contenders need about as many passes a train (up to this factor), both get the same number of passes.
ALIKE = 2.0
# Seconds for which a throttled device may cool before a part of a turn is timed again.
COOL_S = 2.0


class Stopped(BaseException):
    """The user wants to stop; raised between two samples. It is not an Exception, so `except Exception` does
    not catch it."""


@dataclass(frozen=True)
class Rules:
    """How long to sample each contender. Times are in seconds, or in ns if the name says so."""

    warmup_runs: int = 3  # passes of a warm-up at least
    warmup_s: float = 0.2  # of the warm-up before the first turn
    rewarm_s: float = 0.05  # of the warm-up before each later turn
    # The first `rounds` rounds together take at least this many samples and seconds.
    min_samples: int = 10
    min_s: float = 0.5
    # Of a contender without a reference: stop when half of the median's interval is at most this part of the
    # median. 0: do not stop for that.
    width: float = 0.01
    budget_s: float = 15.0  # of samples at most, without the warm-ups
    max_samples: int = 10_000
    rounds: int = 5  # the first ones; before their end only budget_s and max_samples stop a contender
    slice_s: float = 0.004  # after which contenders that run in one thread change, within a round
    # How long a train has to be at least, where the host's clock or the device's measures it.
    sample_ns_host: int = 4_000_000
    sample_ns_device: int = 1_000_000
    cold: bool = False  # caches are cold before each pass; then a sample is of one pass
    retries: int = 3  # how many parts of turns may be timed again because the device was throttled


@dataclass
class Timing:
    """The samples of one contender, and how its sampling ended."""

    samples_ns: list[float] = field(default_factory=list)  # ns of a pass, each the mean of a train
    runs_per_sample: int = 1  # passes of a sample
    at_once: int = 1  # passes of one call of time_runs; in one thread such a call gives several samples
    rounds: list[int] = field(default_factory=list)  # index in samples_ns of each round's first sample
    instances: list[int] = field(default_factory=list)  # number of each round's instance; empty if only one
    quantile: float = stats.MEDIAN  # of a round's samples, by which it is compared with its reference
    load: Mapping[str, float] = field(default_factory=dict)  # who used the host's cores (Sampler.load)
    stop_reason: StopReason = ""  # "" while sampling goes on
    retries: int = 0  # parts of turns that were timed again
    warnings: list[str] = field(default_factory=list)
    error: Exception | None = None  # with which it failed
    # When it failed, on the clock of time_together: if one contender breaks the device, others fail after it.
    failed_ns: float = math.inf
    spent_s: float = 0.0  # seconds of taking samples so far
    sample_s: float = 0.0  # seconds of `at_once` passes, estimated by the warm-up
    due: int = 0  # number of rounds after which the median is known; 0: not known yet

    @property
    def median_ns(self) -> float:
        """The median of all samples, in ns. Raises StatisticsError if there are none."""
        return statistics.median(self.samples_ns)


def too_few_samples(timed: Timing) -> list[str]:
    """A warning if there are fewer than Rules.min_samples samples (the budget was too small); else []."""
    count = len(timed.samples_ns)
    if count >= Rules.min_samples:
        return []
    fit = doubt.ONE_FITS if count == 1 else f"only {count} samples fit the budget"
    return [f"{fit}; a larger --budget helps"]


class Timeable(Protocol):
    """What can be timed: a session, or any other object with this method."""

    def time_runs(self, count: int, cold: bool = False) -> int:
        """Run `count` passes in a row; returns their time in ns, all together. cold: with cold caches."""


# All instances of one contender.
Instances = Sequence[Timeable] | Succession[Timeable]


def first_run(session: Session) -> int:
    """Run one pass over the bound inputs, and wait for its end. Returns ns on the host's clock. Meant for the
    first pass of a session, but it works for any."""
    started = time.perf_counter_ns()
    session.run()
    session.synchronize()
    return time.perf_counter_ns() - started


def one_pass(session: Session, inputs: Mapping[str, np.ndarray]) -> float:
    """Bind these inputs (by name), and run one pass. Returns the seconds of the pass, without `bind`."""
    session.bind(inputs)
    return first_run(session) / 1e9


def answers(session: Session, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Bind these inputs, run one pass, and return its outputs. Both are arrays by name."""
    one_pass(session, inputs)
    return session.fetch()


def warm_up(
    session: Timeable,
    runs: int,
    seconds: float,
    clock: Callable[[], int] = time.perf_counter_ns,
    rough: bool = False,
) -> float:
    """Run at least `runs` passes, for at least `seconds`. Returns ns of one pass: the median of the later
    half of the trains. clock: gives ns. rough: use the session's warm_runs where it has one
    (engine.backend.Warmed): it is cheaper, and its times are exact enough to choose the passes of a
    sample."""
    timed = partial(warm_runs, session) if rough else session.time_runs
    end = clock() + int(seconds * 1e9)
    count, done = 1, 0
    times: list[float] = [timed(1)]
    while (done := done + count) < runs or clock() < end:
        # Each train is up to twice as long as the one before. So a fast net is warmed up in long trains, as
        # it is timed later, and a slow one is not run for longer than needed.
        left = max(0, end - clock())
        per_run = max(LEAST_NS, min(times))
        count = max(1, min(2 * count, runs - done if left == 0 else math.ceil(left / per_run)))
        times.append(timed(count) / count)
    return statistics.median(times[len(times) // 2 :])


def time_together(
    sessions: Mapping[str, Timeable | Instances],
    rules: Rules | None = None,
    seed: int = 0,
    *,
    references: Mapping[str, str] | None = None,
    judged_by: Mapping[str, str] | None = None,
    devices: Mapping[str, str] | None = None,
    on_turn: Callable[[str, int], None] = lambda key, turn: None,
    on_part: Callable[[str], None] = lambda key: None,
    on_taken: Callable[[str, int, Timing], None] = lambda key, turn, timing: None,
    throttled: Callable[[str], str] = lambda key: "",
    enough: Callable[[Mapping[str, Timing]], bool] = lambda timings: False,
    stopped: Callable[[], bool] = lambda: False,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> dict[str, Timing]:
    """Take samples of all contenders, interleaved in rounds. Returns a Timing for each key of `sessions`.

    The inputs must be bound, and each session must have run once. Keys name contenders.

    sessions: the session of each contender, or its instances (at least one). Each round times the next
      instance. Those of a Succession are timed one after the other, for some rounds each. If only the
      difference between instances keeps a contender and its reference from a clear verdict, and both have
      Growing instances, one more of each is created.
    rules: how long to sample (None: the defaults).
    seed: for the order within a round.
    references: key of a contender → key of its reference. Both go on while it is unclear which is faster, and
      neither has used up its budget. A contender without a reference goes on until its own median is known.
    judged_by: key of a contender → key of the one whose samples choose the quantile by which the contender is
      compared (None: as in `references`).
    devices: key → "cpu" (the default) or "cuda": whose clock measures the samples.
    on_turn(key, round): called before each turn.
    on_part(key): called before each further part of a turn.
    on_taken(key, round, timing): called after a turn, with all samples so far.
    throttled(key): called after each part; says why the device was throttled, or "". A throttled part is
      timed again, at most `rules.retries` times for a contender; after that it is kept, with a warning.
    enough(timings): called after each round, from the last of the first rounds on; True ends the sampling of
      all.
    stopped(): True once the user wants to stop.
    sleep: waits for seconds. clock: gives ns.

    Raises Stopped, between two samples, after `stopped` returned True. If a contender fails, its error is in
    its Timing, and the others go on.
    """
    rules = rules or Rules()
    instances: dict[str, Instances] = {
        key: of if isinstance(of, Sequence | Succession) else (of,) for key, of in sessions.items()
    }
    order = random.Random(seed)
    least = max(rules.rounds, *map(len, instances.values())) if instances else 0
    sampler = _Sampler(rules, least, devices or {}, on_turn, on_part, throttled, stopped, sleep, clock)
    timings = {key: Timing() for key in sessions}
    active = list(sessions)
    turn = 0
    while active:
        order.shuffle(active)
        QUIET.forget()
        for key, error in sampler.round(tuple(active), instances, timings, turn):
            if error is None:
                on_taken(key, turn, timings[key])
            else:  # the others go on
                timings[key].error, timings[key].failed_ns = error, clock()
                active.remove(key)
        turn += 1
        if turn == least:
            hosts = [key for key in active if (devices or {}).get(key, "cpu") == "cpu"]
            stopping.choose_quantiles(timings, references or {} if judged_by is None else judged_by, hosts)
        stopping.settle(timings, active, references or {}, rules, turn >= least)
        stopping.go_on_with_more(timings, active, references or {}, instances)
        if turn >= least and enough(timings):
            for key in active:
                timings[key].stop_reason = timings[key].stop_reason or "verdict"
        # A contender that is done has no more turns. So the first n rounds of any two can be paired.
        active = [key for key in active if not timings[key].stop_reason and timings[key].error is None]
    return timings


@dataclass(frozen=True)
class _Share:
    """How long a turn is: at least `least` samples and `seconds` seconds of them, but at most `most` samples.
    It ends with the sample in which `within` seconds are over."""

    least: int
    most: int
    seconds: float
    within: float


@dataclass
class _Parts:
    """The parts of the turns of contenders that change within a round. seconds: of a part. most: how many
    parts each of them has; known once the first of them has its share."""

    seconds: float
    most: float = math.inf


class _Sampler:
    def __init__(
        self,
        rules: Rules,
        least: int,
        devices: Mapping[str, str],
        on_turn: Callable[[str, int], None],
        on_part: Callable[[str], None],
        throttled: Callable[[str], str],
        stopped: Callable[[], bool],
        sleep: Callable[[float], None],
        clock: Callable[[], int],
    ) -> None:
        self._rules = rules
        self._least = least
        self._devices = devices
        self._on_turn, self._on_part = on_turn, on_part
        self._throttled = throttled
        self._stopped = stopped
        self._sleep = sleep
        self._clock = clock
        self._trains: dict[bool, list[int]] = {True: [], False: []}

    def round(
        self,
        keys: Sequence[str],
        instances: Mapping[str, Instances],
        timings: Mapping[str, Timing],
        number: int,
    ) -> Iterator[tuple[str, Exception | None]]:
        """One turn of each contender. Yields (key, None) after a turn, and (key, error) if the contender
        failed."""
        one_thread = [
            key
            for key in keys
            if self._on_host(key) and isinstance(of := instances[key], Sequence) and in_one_thread(of[0])
        ]
        groups = {
            key: one_thread if key in one_thread[:1] else [key] for key in keys if key not in one_thread[1:]
        }
        for group in groups.values():
            parts = _Parts(self._rules.slice_s if len(group) > 1 else math.inf)
            turns = {key: self._turn(key, instances[key], timings[key], number, parts) for key in group}
            while turns:
                for key, turn in tuple(turns.items()):
                    try:
                        next(turn)
                    except StopIteration:
                        yield key, None
                    except Exception as error:
                        yield key, error
                    else:
                        continue
                    del turns[key]
                turns = dict(reversed(turns.items()))

    def _turn(
        self, key: str, instances: Instances, timing: Timing, turn: int, parts: _Parts
    ) -> Iterator[None]:
        """One turn, in parts: between two parts it yields, and another contender has the machine. In
        `timing.rounds` each part counts as a round."""
        rules = self._rules
        share, spent, number, samples = None, 0.0, 0, 0
        while number < parts.most:
            if number:
                yield
                if number >= parts.most:
                    break
            self._begin(partial(self._on_part, key) if number else partial(self._on_turn, key, turn))
            taken = Counter(timing.instances)
            if isinstance(instances, Succession):
                instance, session = instances.at(turn, self._least)
            else:
                # The one with the fewest rounds: an instance that was added later comes first until it has as
                # many.
                instance = min(range(len(instances)), key=lambda number: taken[number])
                session = instances[instance]
            new = len(instances) > 1 and not taken[instance]
            self._warm(key, session, timing, turn, number, new or turn < len(instances))
            share = share or self._share(timing, turn < self._least or new, self._scale(key) * rules.min_s)
            part, seconds, done = self._take(session, timing, share, samples, spent, parts.seconds)
            while reason := self._throttled(key):
                if timing.retries >= rules.retries:
                    if reason not in timing.warnings:
                        timing.warnings.append(reason)
                    break
                timing.retries += 1
                self._sleep(COOL_S)
                part, seconds, done = self._take(session, timing, share, samples, spent, parts.seconds)
            number, samples, spent = number + 1, samples + len(part), spent + seconds
            timing.spent_s += seconds
            timing.rounds.append(len(timing.samples_ns))
            if len(instances) > 1:
                timing.instances.append(instance)
            timing.samples_ns += part
            if done:
                parts.most = min(parts.most, number)

    def _warm(self, key: str, session: Timeable, timing: Timing, turn: int, number: int, new: bool) -> None:
        """Warm up before part `number` of a turn. new: this instance may not have been timed before."""
        rules = self._rules
        scale = self._scale(key)
        if turn == number == 0:
            per_run = warm_up(session, rules.warmup_runs, scale * rules.warmup_s, self._clock, rough=True)
            timing.at_once = timing.runs_per_sample = self._passes_of_train(key, per_run)
            timing.sample_s = timing.at_once * per_run / 1e9
        elif not number or new:
            # Three passes; but only one if it takes longer than a whole warm-up, and the instance has run
            # before.
            slow = timing.sample_s > rules.warmup_s and not new
            runs, seconds = 1 if slow else rules.warmup_runs, scale * rules.rewarm_s
            warm_up(session, runs, NEXT_INSTANCE * seconds if number else seconds, self._clock, rough=True)
        elif timing.at_once == 1 and not rules.cold:  # the contender before had the core's caches
            session.time_runs(1)

    def _scale(self, key: str) -> float:
        """Factor for the seconds of `rules`."""
        return 1.0 if self._on_host(key) else ON_DEVICE

    def _begin(self, say: Callable[[], None]) -> None:
        if self._stopped():
            raise Stopped
        say()
        rest()

    def _on_host(self, key: str) -> bool:
        return self._devices.get(key, "cpu") == "cpu"

    def _passes_of_train(self, key: str, per_run_ns: float) -> int:
        """How many passes of `per_run_ns` are timed at once."""
        rules = self._rules
        if rules.cold:
            return 1
        target = rules.sample_ns_host if self._on_host(key) else rules.sample_ns_device
        # 20 % more: the warm-up's passes may have been slower than those to come.
        own = max(1, math.ceil(1.2 * target / max(per_run_ns, LEAST_NS)))
        # Contenders that are about as fast get the same number of passes. Then starting a train costs each
        # the same part of a sample, and so does an error in what is subtracted for it.
        others = self._trains[self._on_host(key)]
        near = [runs for runs in others if runs / ALIKE <= own <= runs * ALIKE]
        others.append(own)
        return min(near, key=lambda runs: abs(math.log(runs / own)), default=own)

    def _share(self, timing: Timing, first: bool, first_s: float) -> _Share:
        """How long the next turn is. first: it is one of the first rounds, which take first_s seconds all
        together, or the first turn of an instance that was added later."""
        rules = self._rules
        seconds = min(first_s, rules.budget_s) / self._least
        least = math.ceil(rules.min_samples / self._least)
        turns = self._least
        if timing.sample_s * rules.min_samples > rules.budget_s:
            least = 1  # the few samples that the budget allows are spread over the rounds
        if not first:
            seconds, least, turns = max(seconds, GROWTH * timing.spent_s), 1, LATER
        most = max(least, rules.max_samples // (2 * turns))
        left = rules.budget_s - timing.spent_s
        # A first round leaves enough of the budget for the other first rounds: on a busy machine a sample
        # takes many times as long as in the warm-up, and an instance without a round is of no use.
        within = min(left, rules.budget_s / self._least) if first else left
        return _Share(least, most, min(seconds, left), within)

    def _take(
        self, session: Timeable, timing: Timing, share: _Share, had: int, spent: float, slice_s: float
    ) -> tuple[list[float], float, bool]:
        """Take the next part of a turn: samples for at most about slice_s seconds. had, spent: samples and
        seconds of the turn so far. Returns (ns of a pass for each sample, seconds of this part, whether the
        turn is over)."""
        rules = self._rules
        room = min(share.most, rules.max_samples - len(timing.samples_ns)) - had
        samples: list[float] = []
        started = self._clock()
        with no_garbage_collection():
            while True:
                taken = session.time_runs(timing.at_once, cold=rules.cold)
                parts = parts_ns(session) if in_one_thread(session) else [taken / timing.at_once]
                timing.runs_per_sample = math.ceil(timing.at_once / len(parts))
                samples += [round(ns, 1) for ns in parts]
                seconds = (self._clock() - started) / 1e9
                enough = had + len(samples) >= share.least and spent + seconds >= share.seconds
                done = enough or len(samples) >= room or spent + seconds >= share.within
                if done or seconds >= slice_s:
                    return samples, seconds, done
                if self._stopped():
                    raise Stopped


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Context manager: collect the youngest garbage now, and switch the garbage collector off inside."""
    enabled = gc.isenabled()
    gc.collect(0)
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
