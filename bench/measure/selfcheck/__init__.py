"""A backend against itself: how often the interval of the ratio misses the 1 that it is.

Two contenders of one case are prepared, checked and timed together as two backends are, and judged by the
same rule. The intervals are of 95 %: one of twenty may miss, and FASTER and SLOWER, which are wrong, come
about less often still. What was found is kept in a file after each comparison, so that many of them can be
spread over several calls.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from bench.measure import timing
from bench.measure.instances import Succession
from bench.measure.selfcheck.planted import SlowedInstances, busy
from bench.measure.telemetry import Sampler
from bench.measure.timing import Rules, Timeable, Timing
from bench.questions import model_questions
from bench.results import rates, stats
from bench.results.messages import Message
from bench.results.records import Case, Environment, Job, Record, StopReason
from bench.results.stats import Interval, Verdict
from bench.results.store import read_file, write_atomically
from engine import backends
from kernels.errors import InputError, KernelscopeError, UnavailableError, UnsupportedError, system_words

if TYPE_CHECKING:
    from bench.measure.loaded_model import LoadedModel

SCHEMA = 1
ALLOWED = 0.05
SIDES = ("one", "other")

# A context in which the two contenders of a case are ready to be timed, each one session or its instances.
Pair = Callable[[Case], contextlib.AbstractContextManager[Mapping[str, Timeable | Sequence[Timeable]]]]
Progress = Callable[[str, float | None], None]


class Side(Record, frozen=True):
    """What was taken of one of the two, as in bench.results.records.Measurement."""

    samples_ns: tuple[float, ...] = ()
    runs_per_sample: int = 1
    rounds: tuple[int, ...] = ()
    instances: tuple[int, ...] = ()
    quantile: float = 0.5
    load: dict[str, float] = msgspec.field(default_factory=dict)


class Condition(NamedTuple):
    """What is compared, and beside what: see SelfComparison."""

    case: Case
    slower: float = 1.0
    busy: int = 0


class SelfComparison(Record, frozen=True):
    """One case against itself. ratio: time of the one over that of the other, with its interval;
    round_ratios: what it was in each round. slower: how many times as long the one was made to take; busy:
    how many processes were kept busy beside the two. sides: what was taken of the one and of the other."""

    case: Case
    ratio: Interval
    verdict: Verdict
    round_ratios: tuple[float, ...] = ()
    stop_reason: StopReason = ""
    slower: float = 1.0
    busy: int = 0
    sides: tuple[Side, ...] = ()

    @property
    def off(self) -> float:
        """How far the ratio is from the true one."""
        return abs(self.ratio.value / self.slower - 1)

    @property
    def missed(self) -> bool:
        """Whether the interval does not hold the true ratio."""
        return not self.ratio.low <= self.slower <= self.ratio.high

    @property
    def wrong(self) -> bool:
        """Whether the verdict is decided, and not as it has to be."""
        right = Verdict.SLOWER if self.slower > 1 + stats.SAME_BOUND else Verdict.SAME
        return self.verdict not in (Verdict.UNCLEAR, right)

    @property
    def condition(self) -> Condition:
        return Condition(self.case, self.slower, self.busy)


class Selfcheck(Record, frozen=True):
    """The file: what was asked (times: comparisons in all; slower, busy: of SelfComparison, each with each;
    whole: each side spends its whole budget, whatever is clear before), on which machine, and what was found
    so far."""

    job: Job
    times: int
    instances: int = 1
    slower: tuple[float, ...] = (1.0,)
    busy: tuple[int, ...] = (0,)
    whole: bool = False
    sample_ms: float = 4.0
    turn_ms: float = 0.0
    environment: Environment = Environment()
    comparisons: tuple[SelfComparison, ...] = ()
    schema: int = SCHEMA


@dataclass(frozen=True)
class SelfcheckSummary:
    """Comparisons counted. half_width: the median of the ratios' intervals, to the further end, as a
    fraction; where it is large, nothing could have been told apart, nor where it is infinite: most of the
    comparisons then had one sample."""

    comparisons: int
    verdicts: Mapping[Verdict, int]
    missed: int
    wrong: int
    largest_off: float
    half_width: float

    @property
    def passed(self) -> bool:
        """Whether so many misses are nothing that intervals of 95 % would not come to in one such check of
        twenty. Whoever asks for at most 5 % to be counted fails an honest 5 % in one check of three."""
        return rates.at_least(self.missed, self.comparisons) <= ALLOWED


def summary(found: Sequence[SelfComparison]) -> SelfcheckSummary:
    """Of at least one comparison. ValueError without any."""
    if not found:
        raise ValueError("nothing was compared")
    return SelfcheckSummary(
        comparisons=len(found),
        verdicts=Counter(comparison.verdict for comparison in found),
        missed=sum(comparison.missed for comparison in found),
        wrong=sum(comparison.wrong for comparison in found),
        largest_off=max(comparison.off for comparison in found),
        half_width=statistics.median(c.ratio.relative if c.ratio.known else math.inf for c in found),
    )


def run(
    planned: Sequence[Condition],
    times: int,
    rules: Rules,
    pair: Pair,
    seed: int = 0,
    done: Sequence[SelfComparison] = (),
    refused: Callable[[str], None] = lambda why: None,
    whole: bool = False,
) -> Iterator[SelfComparison]:
    """Comparisons until there are `times` with those `done` before, the cases taking turns, so that no case
    has a quieter hour than another. Each has sessions of its own, as where memory comes to lie makes a
    difference too. A case that its backend does not support is told to `refused` and left out.

    Raises KernelscopeError where a case cannot be run, or runs wrong, or none is supported.
    """
    left = list(planned)
    counts = Counter(comparison.condition for comparison in done)
    for number in range(len(done), times):
        found = None
        while found is None:
            condition = min(left, key=lambda condition: counts[condition])
            try:
                found = compare(condition, rules, pair, seed + number, whole)
            except UnsupportedError as error:
                left = [other for other in left if other.case != condition.case]
                if not left:
                    raise
                refused(str(error))
        counts[found.condition] += 1
        yield found


def compare(
    condition: Condition, rules: Rules, pair: Pair, seed: int = 0, whole: bool = False
) -> SelfComparison:
    """One case against itself; `seed` draws the order of turns. Raises as `run` does."""
    case = condition.case
    with pair(case) as sessions, contextlib.ExitStack() as stack:
        devices = dict.fromkeys(sessions, _device(case))
        timed_by: dict[str, timing.Timeable | timing.Instances] = dict(sessions)
        every = [one for of in sessions.values() for one in (of if isinstance(of, Sequence) else (of,))]
        facts: list[Mapping[str, str]] = [getattr(one, "facts", {}) for one in every]
        uuid = next(filter(None, (told.get("gpu_uuid", "") for told in facts)), "")
        if condition.slower != 1:
            one_side = sessions[SIDES[0]]
            instances = one_side if isinstance(one_side, Sequence) else (one_side,)
            timed_by[SIDES[0]] = SlowedInstances(instances, condition.slower)
        stack.enter_context(busy(condition.busy))
        sampler = stack.enter_context(Sampler(devices, uuid))
        timed = timing.time_together(
            timed_by,
            rules,
            seed,
            references={} if whole else dict([SIDES]),
            judged_by=dict([SIDES]),
            devices=devices,
            on_turn=sampler.turn,
            on_part=sampler.turn,
            throttled=sampler.throttled,
        )
    for timing_ in timed.values():
        if timing_.error is not None:
            raise _failure(case, timing_.error)
    one, other = (_side(timed[side], sampler.load(side)) for side in SIDES)
    found = stats.compare(one, other)
    return SelfComparison(
        case=case,
        ratio=found.ratio,
        verdict=found.verdict,
        round_ratios=stats.round_ratios(one, other),
        stop_reason=timed[SIDES[0]].stop_reason,
        slower=condition.slower,
        busy=condition.busy,
        sides=(one, other),
    )


def _side(timed: Timing, load: dict[str, float]) -> Side:
    return Side(
        samples_ns=tuple(timed.samples_ns),
        runs_per_sample=timed.runs_per_sample,
        rounds=tuple(timed.rounds),
        instances=tuple(timed.instances),
        quantile=timed.quantile,
        load=load,
    )


FILE = "selfcheck.json"  # in the folder of a worker


class Compared(Message, frozen=True, tag="compared"):
    """What such a worker says: one more was made."""

    comparison: SelfComparison


def missing(
    held: Selfcheck, planned: Sequence[Case], progress: Progress, refused: Callable[[str], None]
) -> Iterator[SelfComparison]:
    """The comparisons that are missing of what was asked, of these cases. Raises as `run` does."""
    pairs = Contenders(held.job, progress, held.instances)
    return run(
        conditions(planned, held),
        held.times,
        rules(held),
        pairs,
        held.job.seed,
        held.comparisons,
        refused=refused,
        whole=held.whole,
    )


def keep(path: Path, held: Selfcheck) -> None:
    """Write the file, as a whole or not at all. Raises InputError."""
    write_atomically(path, msgspec.json.encode(held) + b"\n")


def held_in(path: Path) -> Selfcheck:
    """What an earlier call left in its file. Raises InputError where that is none."""
    try:
        return read_file(path, Selfcheck, SCHEMA)
    except OSError as error:
        raise InputError(f"cannot read {path}: {system_words(error)}") from error


def rules(held: Selfcheck) -> Rules:
    """How what it asks for is sampled."""
    found = Rules(budget_s=held.job.budget_s, cold=held.job.l2 == "cold")
    found = dataclasses.replace(found, sample_ns_host=round(held.sample_ms * 1e6))
    if held.turn_ms:
        turns = max(1, round(1000 * held.job.budget_s / held.turn_ms))
        found = dataclasses.replace(found, rounds=turns, min_s=held.job.budget_s)
    return dataclasses.replace(found, width=0.0) if held.whole else found


def conditions(cases: Sequence[Case], held: Selfcheck) -> tuple[Condition, ...]:
    """Each case with each planted difference beside each number of busy processes."""
    return tuple(Condition(*one) for one in itertools.product(cases, held.slower, held.busy))


def plan(job: Job, progress: Progress | None = None) -> tuple[Case, ...]:
    """The cases of a job, without images: nothing is answered here. Raises InputError as bench.measure.cases
    does, and UnavailableError for a backend asked for by name that cannot run here.
    """
    found = model_questions.cases(msgspec.structs.replace(job, images=(1,)), progress)
    for name in dict.fromkeys(case.backend for case in found):
        if (reason := backends.get(name).unavailable()) is not None:
            raise UnavailableError(f"{name}: {reason}")
    return tuple(msgspec.structs.replace(case, images=0) for case in found)


class Contenders:
    """Pairs of contenders as a worker prepares them: checked against the oracle before they are timed, and
    again, with what was timed, after it."""

    def __init__(self, job: Job, progress: Progress, instances: int = 1) -> None:
        # Errors of layers are nobody's question here, and without them the oracle has little to do.
        self._job = msgspec.structs.replace(job, layers=False, instances=instances)
        self._progress = progress
        self._models: dict[str, LoadedModel] = {}

    @contextlib.contextmanager
    def __call__(self, case: Case) -> Iterator[Mapping[str, Sequence[Timeable]]]:
        from bench.measure.net_contender import NetContender

        with contextlib.ExitStack() as stack:
            entrants = {}
            try:
                for side in SIDES:
                    entrant = entrants[side] = NetContender(case, self._loaded(case.model), self._job)
                    stack.callback(entrant.close)
                    entrant.prepare()
                for entrant in entrants.values():
                    entrant.multiply()
            except Exception as error:
                raise _failure(case, error) from error
            yield {
                side: entrant.opened if isinstance(entrant.timed, Succession) else entrant.timed
                for side, entrant in entrants.items()
            }
            try:
                for entrant in entrants.values():
                    entrant.check_again()
            except Exception as error:
                raise _failure(case, error) from error

    def _loaded(self, model: str) -> LoadedModel:
        from bench.measure.loaded_model import LoadedModel

        if model not in self._models:
            self._models[model] = LoadedModel(model, self._job, self._job.batches_of(model), self._progress)
        return self._models[model]


def _device(case: Case) -> str:
    return backends.get(case.backend).device


def _failure(case: Case, error: Exception) -> KernelscopeError:
    """What ended a case, as a sentence."""
    from bench.measure.outcomes import outcome

    disposition, reason = outcome(error)
    kind = UnsupportedError if disposition == "unsupported" else KernelscopeError
    return kind(f"{case.words}: {disposition.replace('_', ' ')}: {reason}")
