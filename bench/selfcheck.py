"""A backend against itself: how often the comparison sees a difference where there is none.

Two contenders of one case are prepared, checked and timed together as two backends are, and judged by the
same rule. FASTER and SLOWER are then wrong, and may come about in one comparison of twenty: the intervals
are of 95 %.
"""

from __future__ import annotations

import contextlib
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from bench import cases, stats, timing
from bench.records import Case, Job
from bench.stats import Interval, Verdict
from bench.telemetry import Sampler
from bench.timing import Rules
from engine import backends
from engine.backend import Session
from kernels.errors import KernelscopeError, UnavailableError

if TYPE_CHECKING:
    from bench.material import Material

ALLOWED = 0.05
WRONG = (Verdict.FASTER, Verdict.SLOWER)
SIDES = ("one", "other")

# A context in which the two sessions of a case are ready to be timed.
Pair = Callable[[Case], contextlib.AbstractContextManager[Mapping[str, Session]]]
Progress = Callable[[str, float | None], None]


@dataclass(frozen=True)
class Comparison:
    """One case against itself. ratio: median time of the one over that of the other, with its interval."""

    case: Case
    ratio: Interval
    verdict: Verdict

    @property
    def off(self) -> float:
        """How far the ratio is from 1."""
        return abs(self.ratio.value - 1)


@dataclass(frozen=True)
class Summary:
    """Comparisons counted. half_width: the median of the ratios' intervals, to the further end, as a
    fraction; where it is large, nothing could have been told apart, nor where it is infinite: most of the
    comparisons then had one sample."""

    comparisons: int
    verdicts: Mapping[Verdict, int]
    largest_off: float
    half_width: float

    @property
    def wrong(self) -> int:
        return sum(self.verdicts.get(verdict, 0) for verdict in WRONG)

    @property
    def allowed(self) -> int:
        """The most that may be FASTER or SLOWER."""
        return math.floor(ALLOWED * self.comparisons + 1e-9)  # 0.05 is a little more or less than that

    @property
    def passed(self) -> bool:
        return self.wrong <= self.allowed


def summary(found: Sequence[Comparison]) -> Summary:
    """Of at least one comparison. ValueError without any."""
    if not found:
        raise ValueError("nothing was compared")
    return Summary(
        comparisons=len(found),
        verdicts=Counter(comparison.verdict for comparison in found),
        largest_off=max(comparison.off for comparison in found),
        half_width=statistics.median(c.ratio.relative if c.ratio.known else math.inf for c in found),
    )


def run(planned: Sequence[Case], times: int, rules: Rules, pair: Pair, seed: int = 0) -> Iterator[Comparison]:
    """`times` comparisons, the cases taking turns, so that no case has a quieter hour than another. Each has
    sessions of its own, as where memory comes to lie makes a difference too.

    Raises KernelscopeError where a case cannot be run, or runs wrong.
    """
    for number in range(times):
        case = planned[number % len(planned)]
        yield compare(case, rules, pair, seed + number)


def compare(case: Case, rules: Rules, pair: Pair, seed: int = 0) -> Comparison:
    """One case against itself; `seed` draws the order of turns. Raises as `run` does."""
    with pair(case) as sessions:
        devices = dict.fromkeys(sessions, _device(case))
        uuid = next(filter(None, (session.facts.get("gpu_uuid", "") for session in sessions.values())), "")
        with Sampler(devices, uuid) as sampler:
            timed = timing.time_together(
                sessions,
                rules,
                seed,
                devices=devices,
                on_turn=sampler.turn,
                throttled=sampler.throttled,
            )
    for timing_ in timed.values():
        if timing_.error is not None:
            raise _failure(case, timing_.error)
    one, other = (timed[side] for side in SIDES)
    ratio = stats.ratio_interval(one.samples_ns, other.samples_ns, one.rounds, other.rounds)
    return Comparison(case, ratio, stats.verdict(ratio))


def plan(job: Job, progress: Progress | None = None) -> tuple[Case, ...]:
    """The cases of a job, without images: nothing is answered here. Raises InputError as bench.cases does,
    and UnavailableError for a backend asked for by name that cannot run here."""
    found = cases.plan(msgspec.structs.replace(job, images=(1,)), progress)
    for name in dict.fromkeys(case.backend for case in found):
        if (reason := backends.get(name).unavailable()) is not None:
            raise UnavailableError(f"{name}: {reason}")
    return tuple(msgspec.structs.replace(case, images=0) for case in found)


class Contenders:
    """Pairs of contenders as a worker prepares them: checked against the oracle before they are timed."""

    def __init__(self, job: Job, progress: Progress) -> None:
        # Errors of layers are nobody's question here, and without them the oracle has little to do.
        self._job = msgspec.structs.replace(job, layers=False)
        self._progress = progress
        self._materials: dict[str, Material] = {}

    @contextlib.contextmanager
    def __call__(self, case: Case) -> Iterator[Mapping[str, Session]]:
        from bench.contender import Contender

        with contextlib.ExitStack() as stack:
            sessions = {}
            for side in SIDES:
                try:
                    entrant = Contender(case, self._material(case.model), self._job)
                    stack.callback(entrant.close)
                    entrant.prepare()
                except Exception as error:
                    raise _failure(case, error) from error
                assert entrant.session is not None
                sessions[side] = entrant.session
            yield sessions

    def _material(self, model: str) -> Material:
        from bench.material import Material

        if model not in self._materials:
            self._materials[model] = Material(model, self._job, self._job.batches_of(model), self._progress)
        return self._materials[model]


def _device(case: Case) -> str:
    return backends.get(case.backend).device


def _failure(case: Case, error: Exception) -> KernelscopeError:
    """What ended a case, as a sentence."""
    from bench.outcomes import outcome

    disposition, reason = outcome(error)
    return KernelscopeError(f"{case.words}: {disposition.replace('_', ' ')}: {reason}")
