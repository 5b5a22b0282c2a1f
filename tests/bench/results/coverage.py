"""How often intervals hold the truth and verdicts are right, on machines made up so that the truth is known.

`python -m tests.bench.results.coverage --series 1000` prints the tables of docs/trust.md. Everything that is
judged goes through the functions that judge real times: stats.median_interval, stats.compare,
timing.time_together.

A machine is what two contenders of one speed are timed on: logarithms of times, drawn for a whole timeline of
rounds in which each contender has a turn of samples (the order drawn anew each round) behind a warm-up that
is not sampled.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np

from bench.measure import stopping as settling
from bench.measure.instances import Growing
from bench.measure.timing import Rules, Timing, time_together
from bench.results import stats
from bench.results.stats import Verdict

ROUNDS, SAMPLES, GAP = 5, 40, 20  # of the fixed plan; GAP: passes of a warm-up before a turn
LINE, LINES = 4000, 100  # passes of a timeline that is looked at in time; so many are drawn at once
TRUE = 1.05  # the difference to be found
REFERENCE = {"one": "other"}
RARELY = 4  # one of so many series is also sampled at BOUND, which takes its whole budget
BOUND = 1 + stats.SAME_BOUND  # the one at which to stop when a verdict is clear does the most harm
WRONG = (Verdict.FASTER, Verdict.SLOWER)


@dataclass(frozen=True)
class Machine:
    """noise: a series of S timelines, (S, N) logarithms about 0. turn, shared, instance: standard deviations
    of what a turn, both turns of a round, an instance add. instances: how many of each contender take turns;
    most: how many there may be once a verdict hangs on what they differ by (0: no more).
    one_thread: contenders change over after every pass, as those that take one thread do; only where time
    goes on (`stopping`). truth: the logarithm of the median; steady: it is that however long is looked;
    outlasts: what disturbs it may last longer than anybody looks, so that no median tells of it. pass_ns: a
    pass, tick_ns: of the clock it is read from."""

    name: str
    noise: Callable[[np.random.Generator, int, int], np.ndarray]
    turn: float = 0.0
    shared: float = 0.0
    instance: float = 0.0
    instances: int = 1
    most: int = 0
    one_thread: bool = False
    truth: float = 0.0
    steady: bool = True
    outlasts: bool = False
    pass_ns: float = 1e7
    tick_ns: float = 0.0


def white(sd: float) -> Callable[[np.random.Generator, int, int], np.ndarray]:
    return lambda rng, series, count: sd * rng.standard_normal((series, count))


def autoregressive(phi: float, sd: float) -> Callable[[np.random.Generator, int, int], np.ndarray]:
    """Each sample phi times the last and something new, sd in all."""

    def drawn(rng: np.random.Generator, series: int, count: int) -> np.ndarray:
        steps = math.sqrt(1 - phi**2) * sd * rng.standard_normal((series, count))
        steps[:, 0] /= math.sqrt(1 - phi**2)
        for i in range(1, count):
            steps[:, i] += phi * steps[:, i - 1]
        return steps

    return drawn


def ramp(rng: np.random.Generator, series: int, count: int) -> np.ndarray:
    """10 % slower from the first pass to the last, as a device that gets hot."""
    return np.linspace(-0.05, 0.05, count) + 0.01 * rng.standard_normal((series, count))


SLOW, STEP, MODE = 0.3, 0.1, 0.005


def bimodal(rng: np.random.Generator, series: int, count: int) -> np.ndarray:
    """Three samples of ten take 10 % longer."""
    return STEP * (rng.random((series, count)) < SLOW) + MODE * rng.standard_normal((series, count))


BESIDE = 0.25  # the part of time that others take, and by up to how much they make a pass longer
LEAST, MOST = 0.1, 1.0


def disturbed(shortest: int, longest: int) -> Callable[[np.random.Generator, int, int], np.ndarray]:
    """Others take a quarter of the time, for so many passes at once (of a logarithm that is drawn evenly), in
    which all passes take 1.1 to 2 times as long; never is one shorter."""
    mean = (longest - shortest) / math.log(longest / shortest) if longest > shortest else shortest
    gap = mean * (1 - BESIDE) / BESIDE

    def drawn(rng: np.random.Generator, series: int, count: int) -> np.ndarray:
        noise = MODE * rng.standard_normal((series, count))
        for line in noise:
            at = -int(rng.integers(0, longest + 1))  # what began before is there already
            while at < count:
                lasts = round(math.exp(rng.uniform(math.log(shortest), math.log(longest + 1e-9))))
                line[max(0, at) : max(0, at + lasts)] += math.log(1 + rng.uniform(LEAST, MOST))
                at += lasts + 1 + round(rng.exponential(gap))
        return noise

    return drawn


# The median of those that nobody disturbed, where the others are all above.
_DISTURBED = NormalDist(0, MODE).inv_cdf(0.5 / (1 - BESIDE))
# The median of the two modes: the quantile of the lower one that leaves half of all below.
_BIMODAL = NormalDist(0, MODE).inv_cdf(0.5 / (1 - SLOW))

MACHINES = (
    Machine("iid", white(0.02)),
    Machine("AR(0.5)", autoregressive(0.5, 0.02)),
    Machine("AR(0.9)", autoregressive(0.9, 0.02)),
    Machine("ramp of 10 %", ramp, steady=False),
    Machine("bimodal", bimodal, truth=_BIMODAL),
    Machine("turns differ by 2 %", white(0.01), turn=0.02),
    Machine("rounds drift by 5 %", white(0.01), turn=0.005, shared=0.05),
    Machine("instances differ by 2 %, 5 to 15 of them", white(0.01), instance=0.02, instances=5, most=15),
    Machine("instances differ by 2 %, 3 to 9 of them", white(0.01), instance=0.02, instances=3, most=9),
    Machine("instances differ by 1 %, 5 of them", white(0.01), instance=0.01, instances=5),
    Machine("instances differ by 1 %, 3 of them", white(0.01), instance=0.01, instances=3),
    Machine("instances differ by 1 %, 2 of them", white(0.01), instance=0.01, instances=2),
    Machine("instances differ by 1 %, 10 of them", white(0.01), instance=0.01, instances=10),
    Machine(
        "bursts of 10 to 50 ms, 10 instances", disturbed(1, 5), instance=0.003, instances=10, truth=_DISTURBED
    ),
    Machine("bursts of 10 to 50 ms, one instance", disturbed(1, 5), truth=_DISTURBED),
    Machine(
        "steal of 50 ms to 5 s, 10 instances",
        disturbed(5, 500),
        instance=0.003,
        instances=10,
        steady=False,
        outlasts=True,
    ),
    Machine(
        "steal of 50 ms to 5 s, one instance",
        disturbed(5, 500),
        steady=False,
        outlasts=True,
    ),
    Machine(
        "bursts of 10 to 50 ms, one thread",
        disturbed(1, 5),
        instance=0.003,
        instances=10,
        truth=_DISTURBED,
        one_thread=True,
    ),
    Machine(
        "steal of 50 ms to 5 s, one thread",
        disturbed(5, 500),
        instance=0.003,
        instances=10,
        steady=False,
        outlasts=True,
        one_thread=True,
    ),
    Machine("instances differ by 1 %, one thread", white(0.01), instance=0.01, instances=10, one_thread=True),
    Machine("clock of 0.5 µs, pass of 10.2 µs", white(0.01), pass_ns=10_200.0, tick_ns=500.0),
)
# What no interval can know: that another instance would have been faster or slower.
ONE_INSTANCE = Machine("instances differ by 1 %, one of them", white(0.01), instance=0.01)


def read(rng: np.random.Generator, times: np.ndarray, tick: float) -> np.ndarray:
    """Times as the difference of two readings of a clock that ticks."""
    if tick <= 0:
        return times
    starts = tick * rng.random(times.shape)
    return tick * (np.floor((starts + times) / tick) - np.floor(starts / tick))


def planned(
    machine: Machine, series: int, rng: np.random.Generator, ratio: float = 1.0, chooses: bool = True
) -> Iterator[tuple[Timing, Timing]]:
    """Pairs of series of the fixed plan; the second contender takes `ratio` times as long. chooses: a
    quantile, as on a host's clock; else they are compared by medians."""
    # As many rounds as instances; samples are as many in all.
    rounds = max(ROUNDS, machine.instances)
    samples = ROUNDS * SAMPLES // rounds
    length = GAP + samples
    noise = machine.noise(rng, series, 2 * rounds * length).reshape(series, rounds, 2, length)[..., GAP:]
    first = rng.integers(0, 2, (series, rounds))
    lines = np.arange(series)[:, None], np.arange(rounds)[None]
    labels = np.arange(rounds) % machine.instances
    shared = machine.shared * rng.standard_normal((series, rounds, 1))
    sides = []
    for order, factor in ((first, 1.0), (1 - first, ratio)):
        own = machine.instance * rng.standard_normal((series, machine.instances))[:, labels]
        own = own + machine.turn * rng.standard_normal((series, rounds))
        times = machine.pass_ns * factor * np.exp(noise[*lines, order] + own[..., None] + shared)
        sides.append(read(rng, times, machine.tick_ns).reshape(series, -1))
    starts = [i * samples for i in range(rounds)]
    instances = labels.tolist() if machine.instances > 1 else []
    for one, other in zip(*sides, strict=True):
        timed = {"one": _timing(one, starts, instances), "other": _timing(other, starts, instances)}
        if chooses:
            settling.choose_quantiles(timed, REFERENCE, timed)
        yield timed["one"], timed["other"]


def _timing(samples: np.ndarray, rounds: list[int], instances: list[int]) -> Timing:
    return Timing(samples_ns=samples.tolist(), rounds=rounds, instances=instances)


class Bench:
    """A machine in time, for time_together: its clock goes on by what passes take."""

    def __init__(
        self,
        machine: Machine,
        lines: Iterator[np.ndarray],
        rng: np.random.Generator,
        ratio: float,
        cost_ns: float = 0.0,
    ) -> None:
        self.now = 0.0
        self.level = 0.0
        self._machine, self._rng, self._cost = machine, rng, cost_ns
        self._round, self._shared = -1, 0.0
        self._lines, self._noise, self._at = lines, next(lines), 0
        self.sessions = {"one": self._instances(ratio), "other": self._instances(1.0)}

    def clock(self) -> int:
        return round(self.now)

    def turn(self, key: str, number: int) -> None:
        machine = self._machine
        if number != self._round:
            self._round, self._shared = number, machine.shared * self._rng.standard_normal()
        self.level = self._shared + machine.turn * self._rng.standard_normal()

    def run(self, factor: float, count: int) -> int:
        machine = self._machine
        self._at += count
        if self._at > LINE:
            self._noise, self._at = next(self._lines), (self._at - 1) % LINE + 1
        time = machine.pass_ns * factor * math.exp(self._noise[self._at - 1] + self.level)
        self.now += count * time + self._cost
        if machine.tick_ns:
            return round(float(read(self._rng, np.array(count * time), machine.tick_ns)))
        return round(count * time)

    def _instances(self, ratio: float) -> Sequence[Session]:
        def another(number: int) -> Session:
            own = self._machine.instance * self._rng.standard_normal()
            return Session(self, ratio * math.exp(own), self._machine.one_thread)

        first, *others = map(another, range(self._machine.instances))
        return Growing(first, others, another, self._machine.most, math.inf)


@dataclass
class Session:
    bench: Bench
    factor: float
    one_thread: bool = False
    parts_ns: Sequence[float] = ()

    def time_runs(self, count: int, cold: bool = False) -> int:
        taken = self.bench.run(self.factor, count)
        self.parts_ns = [taken / count]
        return taken


def drawn(machine: Machine, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Timelines without end."""
    while True:
        yield from machine.noise(rng, LINES, LINE)


def sampled(
    machine: Machine,
    lines: Iterator[np.ndarray],
    rng: np.random.Generator,
    ratio: float = 1.0,
    paired: bool = True,
    rules: Rules | None = None,
    chooses: bool = True,
) -> tuple[Timing, Timing]:
    """One pair sampled until it is settled; `paired`: until the verdict is clear; `chooses`: see planned."""
    cold = machine.tick_ns > 0
    bench = Bench(machine, lines, rng, ratio, cost_ns=1e6 if cold else 0.0)
    timed = time_together(
        bench.sessions,
        rules or Rules(cold=cold),
        int(rng.integers(2**31)),
        references=REFERENCE if paired else None,
        judged_by=None if chooses else {},
        on_turn=bench.turn,
        clock=bench.clock,
    )
    return timed["one"], timed["other"]


@dataclass
class Count:
    """How many of how many."""

    hits: int = 0
    of: int = 0

    def add(self, hit: bool) -> None:
        self.hits, self.of = self.hits + hit, self.of + 1

    @property
    def rate(self) -> float:
        return self.hits / max(self.of, 1)

    def __str__(self) -> str:
        return f"{100 * self.rate:.1f}" if self.of else "–"


@dataclass
class Found:
    """Of equals: how often the median's and the ratio's interval hold the truth, how often a verdict is
    FASTER or SLOWER. Of a difference of 5 %: how often it is found, and how often denied. Of one of 2 %, the
    bound: how often the ratio's interval holds it."""

    median: Count = field(default_factory=Count)
    ratio: Count = field(default_factory=Count)
    false: Count = field(default_factory=Count)
    power: Count = field(default_factory=Count)
    denied: Count = field(default_factory=Count)
    bound: Count = field(default_factory=Count)
    seconds: list[float] = field(default_factory=list)

    def at_bound(self, slower: Timing, faster: Timing) -> None:
        ratio = stats.compare(slower, faster)[0]
        self.bound.add(ratio.low <= BOUND <= ratio.high)

    def equals(self, one: Timing, other: Timing) -> None:
        ratio, verdict, *_ = stats.compare(one, other)
        self.ratio.add(ratio.low <= 1.0 <= ratio.high)
        self.false.add(verdict in WRONG)

    def alone(self, machine: Machine, own: Timing) -> None:
        interval = stats.median_interval(own.samples_ns, own.rounds, instances=own.instances)
        self.median.add(interval.low <= machine.pass_ns * math.exp(machine.truth) <= interval.high)

    def differs(self, slower: Timing, faster: Timing) -> None:
        verdict = stats.compare(slower, faster)[1]
        self.power.add(verdict is Verdict.SLOWER)
        self.denied.add(verdict in (Verdict.SAME, Verdict.FASTER))


def fixed(machine: Machine, series: int, seed: int = 0, chooses: bool = True) -> Found:
    """200 samples in five rounds, or in as many as there are instances, whatever they show."""
    rng = np.random.default_rng(seed)
    found = Found()
    for one, other in planned(machine, series, rng, chooses=chooses):
        found.equals(one, other)
        if not machine.outlasts:
            found.alone(machine, one)
    for faster, slower in planned(machine, series, rng, TRUE, chooses):
        found.differs(slower, faster)
    return found


def stopping(machine: Machine, series: int, seed: int = 0, chooses: bool = True) -> Found:
    """Sampled until the verdict is clear (a median alone: until it is known within 1 %), at most 15 s."""
    rng = np.random.default_rng(seed)
    lines = drawn(machine, rng)
    found = Found()
    for number in range(series):
        one, other = sampled(machine, lines, rng, chooses=chooses)
        found.equals(one, other)
        found.seconds.append(one.spent_s)
        found.differs(*sampled(machine, lines, rng, TRUE, chooses=chooses))
        if number % RARELY == 0:
            found.at_bound(*sampled(machine, lines, rng, BOUND, chooses=chooses))
        if machine.steady:
            found.alone(machine, sampled(machine, lines, rng, paired=False)[1])
    return found


def table(
    machines: Sequence[Machine], judge: Callable[..., Found], series: int, chooses: bool = True
) -> Iterator[str]:
    """Markdown, a row a machine as it is done; per cent of the series."""
    timed = judge is stopping
    heads = ["machine", "median", "ratio", "false", "5 % found", "5 % denied"]
    heads += ["ratio at 2 %", "seconds"] if timed else []
    yield "| " + " | ".join(heads) + " |"
    yield "|---|" + "---:|" * (len(heads) - 1)
    for machine in machines:
        if machine.one_thread and not timed:
            continue
        found = judge(machine, series, chooses=chooses)
        cells = [machine.name, found.median, found.ratio, found.false, found.power, found.denied]
        cells += [found.bound, f"{np.mean(found.seconds):.1f}"] if timed else []
        yield "| " + " | ".join(map(str, cells)) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--series", type=int, default=1000, help="of each machine")
    parser.add_argument("--only", default="", help="machines whose name contains this")
    parser.add_argument(
        "--by-medians", action="store_true", help="compare by medians, as on a device's clock"
    )
    asked = parser.parse_args()
    machines = [machine for machine in (*MACHINES, ONE_INSTANCE) if asked.only in machine.name]
    for judge in (fixed, stopping):
        print(f"{judge.__doc__ or ''} {asked.series} series.\n")
        for line in table(machines, judge, asked.series, not asked.by_medians):
            print(line, flush=True)
        print()


if __name__ == "__main__":
    main()
