"""A backend against itself: how often the interval of the ratio misses the 1 that it is.

Two contenders of one case are prepared, checked and timed together as two backends are, and judged by the
same rule. The intervals are of 95 %: one of twenty may miss, and FASTER and SLOWER, which are wrong, come
about less often still. What was found is kept in a file after each comparison, so that many of them can be
spread over several calls.
"""

from __future__ import annotations

import contextlib
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bench.measure import timing
from bench.measure.instances import Succession
from bench.measure.telemetry import Sampler
from bench.measure.timing import Rules
from bench.questions import model_questions
from bench.results import rates, stats
from bench.results.records import Case, Environment, Job, Record, StopReason
from bench.results.stats import Interval, Verdict
from bench.results.store import read_file, write_atomically
from engine import backends
from engine.backend import Session
from kernels.errors import InputError, KernelscopeError, UnavailableError, UnsupportedError, system_words

if TYPE_CHECKING:
    from bench.measure.loaded_model import LoadedModel

SCHEMA = 1
ALLOWED = 0.05
WRONG = (Verdict.FASTER, Verdict.SLOWER)
SIDES = ("one", "other")

# A context in which the two contenders of a case are ready to be timed, each one session or its instances.
Pair = Callable[[Case], contextlib.AbstractContextManager[Mapping[str, Session | Sequence[Session]]]]
Progress = Callable[[str, float | None], None]


class SelfComparison(Record, frozen=True):
    """One case against itself. ratio: time of the one over that of the other, with its interval;
    round_ratios: what it was in each round."""

    case: Case
    ratio: Interval
    verdict: Verdict
    round_ratios: tuple[float, ...] = ()
    stop_reason: StopReason = ""

    @property
    def off(self) -> float:
        """How far the ratio is from 1."""
        return abs(self.ratio.value - 1)

    @property
    def missed(self) -> bool:
        """Whether the interval does not hold 1."""
        return not self.ratio.low <= 1.0 <= self.ratio.high


class Selfcheck(Record, frozen=True):
    """The file: what was asked (times: comparisons in all), on which machine, and what was found so far."""

    job: Job
    times: int
    instances: int = 1
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
    largest_off: float
    half_width: float

    @property
    def wrong(self) -> int:
        return sum(self.verdicts.get(verdict, 0) for verdict in WRONG)

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
        largest_off=max(comparison.off for comparison in found),
        half_width=statistics.median(c.ratio.relative if c.ratio.known else math.inf for c in found),
    )


def run(
    planned: Sequence[Case],
    times: int,
    rules: Rules,
    pair: Pair,
    seed: int = 0,
    done: Sequence[SelfComparison] = (),
    refused: Callable[[str], None] = lambda why: None,
) -> Iterator[SelfComparison]:
    """Comparisons until there are `times` with those `done` before, the cases taking turns, so that no case
    has a quieter hour than another. Each has sessions of its own, as where memory comes to lie makes a
    difference too. A case that its backend does not support is told to `refused` and left out.

    Raises KernelscopeError where a case cannot be run, or runs wrong, or none is supported.
    """
    left = list(planned)
    counts = Counter(comparison.case for comparison in done)
    for number in range(len(done), times):
        found = None
        while found is None:
            case = min(left, key=lambda case: counts[case])
            try:
                found = compare(case, rules, pair, seed + number)
            except UnsupportedError as error:
                left.remove(case)
                if not left:
                    raise
                refused(str(error))
        counts[found.case] += 1
        yield found


def compare(case: Case, rules: Rules, pair: Pair, seed: int = 0) -> SelfComparison:
    """One case against itself; `seed` draws the order of turns. Raises as `run` does."""
    with pair(case) as sessions:
        devices = dict.fromkeys(sessions, _device(case))
        every = [one for of in sessions.values() for one in (of if isinstance(of, Sequence) else (of,))]
        uuid = next(filter(None, (session.facts.get("gpu_uuid", "") for session in every)), "")
        with Sampler(devices, uuid) as sampler:
            timed = timing.time_together(
                sessions,
                rules,
                seed,
                references=dict([SIDES]),
                devices=devices,
                on_turn=sampler.turn,
                throttled=sampler.throttled,
            )
    for timing_ in timed.values():
        if timing_.error is not None:
            raise _failure(case, timing_.error)
    one, other = (timed[side] for side in SIDES)
    ratio, verdict, _ = stats.compare(one, other)
    return SelfComparison(
        case=case,
        ratio=ratio,
        verdict=verdict,
        round_ratios=stats.round_ratios(one, other),
        stop_reason=one.stop_reason,
    )


def keep(path: Path, held: Selfcheck) -> None:
    """Write the file, as a whole or not at all. Raises InputError."""
    write_atomically(path, msgspec.json.format(msgspec.json.encode(held), indent=2) + b"\n")


def held_in(path: Path) -> Selfcheck:
    """What an earlier call left in its file. Raises InputError where that is none."""
    try:
        return read_file(path, Selfcheck, SCHEMA)
    except OSError as error:
        raise InputError(f"cannot read {path}: {system_words(error)}") from error


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
    def __call__(self, case: Case) -> Iterator[Mapping[str, Sequence[Session]]]:
        from bench.measure.contender import Contender

        with contextlib.ExitStack() as stack:
            entrants = {}
            try:
                for side in SIDES:
                    entrant = entrants[side] = Contender(case, self._loaded(case.model), self._job)
                    stack.callback(entrant.close)
                    entrant.prepare()
                for entrant in entrants.values():
                    entrant.prepare_others()
            except Exception as error:
                raise _failure(case, error) from error
            yield {
                side: entrant.sessions if isinstance(entrant.timed, Succession) else entrant.timed
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
