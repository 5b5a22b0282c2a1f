"""Timing: warm up, sample in interleaved rounds until what is asked is known well enough, say why it stopped.

Contenders take their samples in a row within a round while the others idle (sample by sample, two BLAS
thread pools slow each other down), and the order is drawn anew each round, so that what the machine does in
the meantime falls on all of them alike. Those that run in one thread, all on the same core, change over
after every few samples instead: whoever else is on that core stays there for longer than that, and falls on
them alike. A contender may have several instances (the same session created again), which take its rounds in
turn: with as many as there are rounds at first, what instances differ by is known as well as what rounds
differ by, at no further second of samples.

Stopping (bench.measure.stopping) looks at the interval that bench.results.stats derives from rounds and
instances. A pair goes on while its verdict is unclear; who is compared with nobody, until the own median is
known. What it costs an interval that it was looked at after each round is in docs/trust.md.
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
from bench.results import stats
from bench.results.records import StopReason
from engine.backend import Session, in_one_thread, parts_ns, warm_runs
from engine.isolated.client import rest
from engine.machine.cores import QUIET

# Rounds after the first few take this part of the seconds spent so far: the interval is that of rounds, of
# which many short ones say more than few long ones, but each costs a warm-up.
GROWTH = 0.125
# The first rounds take half of the samples allowed at most, and this many later ones share the other half:
# passes of microseconds would else have taken them all within a second, in rounds too few to tell anything.
LATER = 40
# No pass of ours or of ONNX Runtime's is shorter. Where what is taken off a train (its trigger) was nearly
# all of it in the warm-up, samples would be of minutes.
LEAST_NS = 200.0
# Of the seconds of a warm-up and of the first rounds, on a device: whoever had the turn before kept its clock
# up, it has no threads to wake, and its samples take a quarter of the host's.
ON_DEVICE = 0.5
# Of the seconds that a turn's warm-up takes, for an instance that is new within the turn: its clock is up.
NEXT_INSTANCE = 0.2
# Contenders whose trains would be so much longer or shorter than another's have trains as long as that one's.
ALIKE = 2.0
# A throttled device is given this long to cool before a turn is taken again.
COOL_S = 2.0


class Stopped(BaseException):
    """The user wants no more; raised between two samples. It is no error: handlers of errors let it pass."""


@dataclass(frozen=True)
class Rules:
    """How long to sample. Times in seconds unless the name says ns.

    width: the half-width of the median's interval to reach where nothing is compared (0: it is not asked).
    sample_ns: how long one sample lasts at least, on the host's clock and on a device's. rounds: in how many
    turns the first min_s and min_samples are taken. slice_s: after how long those that run in one thread
    change over, within a round.
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
    slice_s: float = 0.004
    sample_ns_host: int = 4_000_000
    sample_ns_device: int = 1_000_000
    cold: bool = False
    retries: int = 3


@dataclass
class Timing:
    """What came of one contender: ns a pass (mean over `runs_per_sample` passes in a row), where rounds start
    among the samples, which instance each round was of (empty where there is one), why sampling stopped.
    `error` where it failed, and `failed_ns` when, on the clock by which seconds are spent: after a device is
    lost others fail as well, and it was the first."""

    samples_ns: list[float] = field(default_factory=list)
    runs_per_sample: int = 1
    at_once: int = 1  # passes that are timed at once: of one thread, several samples
    rounds: list[int] = field(default_factory=list)
    instances: list[int] = field(default_factory=list)
    quantile: float = stats.MEDIAN
    load: Mapping[str, float] = field(default_factory=dict)
    stop_reason: StopReason = ""
    retries: int = 0
    warnings: list[str] = field(default_factory=list)
    error: Exception | None = None
    failed_ns: float = math.inf
    spent_s: float = 0.0
    sample_s: float = 0.0  # what those timed at once take, judged by the warm-up
    due: int = 0  # after how many rounds the median is known (0: not foreseen)

    @property
    def median_ns(self) -> float:
        return statistics.median(self.samples_ns)


def few(timed: Timing) -> list[str]:
    """What is to be said where the budget had room for few samples."""
    count = len(timed.samples_ns)
    if count >= Rules.min_samples:
        return []
    fit = "sample fits" if count == 1 else "samples fit"
    return [f"only {count} {fit} the budget; a larger --budget helps"]


class Timeable(Protocol):
    """What samples are taken of: a session, or whatever else runs."""

    def time_runs(self, count: int, cold: bool = False) -> int: ...


Instances = Sequence[Timeable] | Succession[Timeable]


def first_run(session: Session) -> int:
    """Nanoseconds on the host's clock of one pass from its start to its end; meant for the very first."""
    started = time.perf_counter_ns()
    session.run()
    session.synchronize()
    return time.perf_counter_ns() - started


def one_pass(session: Session, inputs: Mapping[str, np.ndarray]) -> float:
    """A pass over these inputs; the seconds that it took."""
    session.bind(inputs)
    return first_run(session) / 1e9


def answers(session: Session, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What a pass over these inputs leaves."""
    one_pass(session, inputs)
    return session.fetch()


def warm_up(
    session: Timeable,
    runs: int,
    seconds: float,
    clock: Callable[[], int] = time.perf_counter_ns,
    rough: bool = False,
) -> float:
    """At least `runs` passes and `seconds`; returns nanoseconds a pass, judged by the later half. rough: they
    are good enough to say how many passes make a sample (engine.backend.Warmed)."""
    timed = partial(warm_runs, session) if rough else session.time_runs
    end = clock() + int(seconds * 1e9)
    count, done = 1, 0
    times: list[float] = [timed(1)]
    while (done := done + count) < runs or clock() < end:
        # Trains that grow: a short net is warm in its train as it will be timed, a long one is not run for
        # longer than need be.
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
    """Samples of all contenders, interleaved in rounds; inputs are bound, first passes done.

    sessions: one a contender, or its instances (at least one), of which each round takes the next; those of
    a Succession are timed one after the other, and a pair of Growing ones has more of both where its verdict
    hangs on what they differ by.
    references: whom a contender is compared with, by key: both go on while their verdict is unclear and
    neither has spent what it may; a contender with nobody goes on until its own median is known. judged_by:
    on whose samples the quantile is chosen that a contender is compared by (None: its reference's). devices:
    "cpu" or "cuda" by key ("cpu" where absent): whose clock a sample is on. on_turn hears of each turn (key,
    round) before it, on_part (key) before each further part of it, on_taken of the turn and of what was taken
    so far after it. throttled says, after each part, why the device was held back in it ("": it was not):
    the part is taken again, at most `rules.retries` times in all, and then kept and flagged. enough: asked
    after each round, once the first ones are taken, whether all is known that these are timed for. clock:
    nanoseconds, by which seconds are spent.
    Raises Stopped between samples once `stopped` says so; an error of a contender's is in its Timing.
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
            else:  # one contender's failure is its own
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
        # A contender that is done takes part no longer; each is paired round by round with any other.
        active = [key for key in active if not timings[key].stop_reason and timings[key].error is None]
    return timings


@dataclass(frozen=True)
class _Share:
    """What a turn takes: at least so many samples and so many seconds of them, but no more than `most`, and
    beyond `within` seconds by less than one sample."""

    least: int
    most: int
    seconds: float
    within: float


@dataclass
class _Parts:
    """Of the turns of those that change over: how long a part takes, and how many each has, which is known
    once one of them has its share."""

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
        """A turn of each; says who has had it, or failed at it."""
        alike = [
            key
            for key in keys
            if self._on_host(key) and isinstance(of := instances[key], Sequence) and in_one_thread(of[0])
        ]
        groups = {key: alike if key in alike[:1] else [key] for key in keys if key not in alike[1:]}
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
        """A turn, in parts: whoever is next in it has the machine to itself until it yields. Each part is
        kept as a round of its own."""
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
                # In turn; one that came later catches up first.
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
        """Before part `number` of a turn. new: the session may not have been timed before."""
        rules = self._rules
        scale = self._scale(key)
        if turn == number == 0:
            per_run = warm_up(session, rules.warmup_runs, scale * rules.warmup_s, self._clock, rough=True)
            timing.at_once = timing.runs_per_sample = self._train(key, per_run)
            timing.sample_s = timing.at_once * per_run / 1e9
        elif not number or new:
            # Three passes, but of a net that takes longer than the whole warm-up and has run before just one.
            slow = timing.sample_s > rules.warmup_s and not new
            runs, seconds = 1 if slow else rules.warmup_runs, scale * rules.rewarm_s
            warm_up(session, runs, NEXT_INSTANCE * seconds if number else seconds, self._clock, rough=True)
        elif timing.at_once == 1 and not rules.cold:  # who had the core before had its caches
            session.time_runs(1)

    def _scale(self, key: str) -> float:
        """Of the seconds that rules give to a turn."""
        return 1.0 if self._on_host(key) else ON_DEVICE

    def _begin(self, say: Callable[[], None]) -> None:
        if self._stopped():
            raise Stopped
        say()
        rest()

    def _on_host(self, key: str) -> bool:
        return self._devices.get(key, "cpu") == "cpu"

    def _train(self, key: str, per_run_ns: float) -> int:
        rules = self._rules
        if rules.cold:
            return 1
        target = rules.sample_ns_host if self._on_host(key) else rules.sample_ns_device
        # 20 % more: the warm-up's passes may have been slower than those to come.
        own = max(1, math.ceil(1.2 * target / max(per_run_ns, LEAST_NS)))
        # What a train costs beside its passes is then the same for contenders that are about as fast, and so
        # is what was taken off for it, right or wrong.
        others = self._trains[self._on_host(key)]
        near = [runs for runs in others if runs / ALIKE <= own <= runs * ALIKE]
        others.append(own)
        return min(near, key=lambda runs: abs(math.log(runs / own)), default=own)

    def _share(self, timing: Timing, first: bool, first_s: float) -> _Share:
        """Of one of the first rounds, or the first of an instance that came later, which take first_s all
        together; or of a round after them."""
        rules = self._rules
        seconds = min(first_s, rules.budget_s) / self._least
        least = math.ceil(rules.min_samples / self._least)
        turns = self._least
        if timing.sample_s * rules.min_samples > rules.budget_s:
            least = 1  # what the budget has room for had better be spread over the rounds
        if not first:
            seconds, least, turns = max(seconds, GROWTH * timing.spent_s), 1, LATER
        most = max(least, rules.max_samples // (2 * turns))
        left = rules.budget_s - timing.spent_s
        # No round takes what the first ones after it need: on a busy machine samples take many times as long
        # as the warm-up's, and an instance without a round is of no use.
        within = min(left, rules.budget_s / self._least) if first else left
        return _Share(least, most, min(seconds, left), within)

    def _take(
        self, session: Timeable, timing: Timing, share: _Share, had: int, spent: float, slice_s: float
    ) -> tuple[list[float], float, bool]:
        """The next samples of a turn that had so many and spent so many seconds, up to slice_s of them; the
        seconds that these took, and whether the turn has its share."""
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
    """Collect now and not between samples."""
    enabled = gc.isenabled()
    gc.collect(0)
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
