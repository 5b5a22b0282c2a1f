"""How long a run may still take, from what its cases took so far: first a range, and when a fifth of them is
done an estimate that counts down.

Cases that are timed in turns end together, so a turn is the unit: from the first case that begins until all
that began have ended. A turn has three parts, because each depends on other things. What comes before the
timing (reading a model, judging it, tuning) is long for a model's first turn and short for the others; the
samples depend on the budget; the answers and layers that are looked at afterwards depend on the model. Each
grows with the model and the batch size: bench.run.turn_times learns by how much, from finished turns of this
run and of earlier ones on this machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from bench.results.records import LOST, Environment
from bench.run import bounds
from bench.run.past import Past, Took, Where
from bench.run.turn_times import ExpectedTimes
from models import names

TELLING = 5  # of the cases, one in so many has to be done before there is an estimate
TIMED = "time"
CUT_SHORT = ("cancelled", *LOST)  # how a case ends whose turn took what no other one takes
WIDE = (0.6, 1.7)  # of what few turns say, where a range is told
LEAST = 0.05  # of a part that lasts longer than was thought, which is still to come
SAYS = 0.02  # of a stage, from which on it says how long all of it takes
STEADY = 0.03  # of the time left, by which what is said may differ from what is thought before it moves


@dataclass
class _Turn:
    """Seconds; timed: when the first of its cases was; looked: when it was over with all of their samples;
    last: when a case of it ended.
    began, left, sampled: its cases, by key; ends: of those that had samples, the backend and what came after
    them, in seconds. whole: nothing has cut it short."""

    where: Where
    first: bool
    start: float
    timed: float | None = None
    looked: float | None = None
    last: float = 0.0
    end: float = 0.0
    began: set[str] = field(default_factory=set)
    left: set[str] = field(default_factory=set)
    sampled: set[str] = field(default_factory=set)
    ends: dict[str, float] = field(default_factory=dict)
    whole: bool = True
    # When what it is at began, and how much of that was done when; None where it does not say.
    stage_at: float = 0.0
    moved: tuple[float, float] | None = None

    @property
    def before(self) -> float:
        return (self.timed if self.timed is not None else self.end) - self.start

    @property
    def samples(self) -> float:
        """Mean seconds of samples of its timed cases."""
        return (self._looked - self.start - self.before) / max(1, len(self.sampled))

    def took(self, nbytes: int, budget: float | None, slowed: float) -> Took:
        """All that is to be learned of it. What is heard late may seem to have begun before the turn."""
        before = max(0.0, self.before)
        return Took(
            where=self.where,
            nbytes=nbytes,
            budget_s=budget,
            slowed=slowed,
            first=before if self.first else None,
            before=None if self.first else before,
            samples=max(0.0, self.samples),
            after={backend: max(0.0, seconds) for backend, seconds in self.ends.items()},
        )

    @property
    def _looked(self) -> float:
        return self.looked if self.looked is not None else self.end


class Pace:
    """Tell it what happens; all times in seconds since the start, on a clock that pauses with the run. job:
    what was asked for, as far as it says how long a case is sampled; nbytes: of a model's file, 0 where that
    is not known; past: what earlier runs on this machine took, read as soon as a worker has said which it
    is, and added to by `keep` (None: nothing is)."""

    def __init__(
        self,
        job: Any = None,
        nbytes: Callable[[str], int] = names.nbytes,
        past: Past | None = None,
    ) -> None:
        self._job = job
        self._nbytes = nbytes
        self._past = past
        self._budget: float | None = getattr(job, "budget_s", None)
        self._earlier: tuple[Took, ...] = ()
        self._slowed = 1.0
        self._expected = ExpectedTimes((), self._budget, nbytes)
        self._turns: list[Took] = []  # that are over and were timed
        self._whole: list[Took] = []  # of them
        self._now: _Turn | None = None
        self._settled: set[str] = set()
        self._ahead: list[tuple[Any, str, float]] = []
        self._by_backend: dict[str, set[bool]] = {}  # whether cases that have ended were timed
        # By backend: cases that had a turn, and those that another spoke for
        # (bench.measure.tuned.same_configuration).
        self._own, self._spoken_for = Counter[str](), Counter[str]()
        self._last = 0.0  # when the last turn ended
        self._said: tuple[float, float] | None = None  # when, and how long it takes from then

    def greeted(self, machine: Environment) -> None:
        """A worker has said on which machine it runs."""
        if self._past is None:
            return
        self._earlier = self._past.of(machine)
        self._tell_anew()

    def slowed(self, times: float) -> None:
        """By what factor other programs made things slower when the run began (bench.run.beforehand)."""
        if times == self._slowed:
            return
        self._slowed = times
        self._turns = [msgspec.structs.replace(turn, slowed=times) for turn in self._turns]
        self._whole = [msgspec.structs.replace(turn, slowed=times) for turn in self._whole]
        self._tell_anew()

    def _tell_anew(self) -> None:
        self._expected = ExpectedTimes(self._earlier, self._budget, self._nbytes, self._slowed)
        for turn in self._turns:
            self._expected.learn(turn)

    def keep(self) -> None:
        """Store the turns of this run that were not cut short, for later runs."""
        if self._past is not None:
            self._past.keep(self._whole)

    def started(self, case: Any, stage: str, now: float) -> None:
        if case.key in self._settled:
            return
        turn = self._now
        if turn is not None and turn.timed is not None and case.key not in turn.began:
            # Of the next turn: that this one has ended is heard a moment later, where both came together.
            self._ahead.append((case, stage, now))
            return
        if turn is None:
            where = _where(case)
            first = all(other.where.model != where.model for other in self._turns)
            turn = self._now = _Turn(where, first, self._last)
        turn.began.add(case.key)
        turn.left.add(case.key)
        turn.stage_at, turn.moved = now, None
        if turn.timed is not None and turn.looked is None and stage != TIMED:
            turn.looked = now
        if stage == TIMED:
            turn.sampled.add(case.key)
            turn.timed = now if turn.timed is None else turn.timed

    def progressed(self, fraction: float, now: float) -> None:
        """So much of the stage that began last is done, from 0 to 1."""
        if self._now is not None:
            self._now.moved = fraction, now

    def settled(self, case: Any, now: float, disposition: str = "ok") -> None:
        self._settled.add(case.key)
        turn = self._now
        if disposition == "ok" and (turn is None or case.key not in turn.began):
            self._spoken_for[_backend(case)] += 1  # it took no time, and tells of none
            return
        if turn is None:
            self._last = now
            return
        self._own[_backend(case)] += 1
        self._by_backend.setdefault(_backend(case), set()).add(case.key in turn.sampled)
        turn.left.discard(case.key)
        turn.whole &= disposition not in CUT_SHORT
        if case.key in turn.sampled:
            turn.ends[_backend(case)] = now - max(turn.last, turn.looked or now)
        turn.last = now
        if not turn.left and turn.began:
            turn.end = self._last = now
            self._now = None
            if turn.timed is not None:
                self._turns.append(turn.took(self._nbytes(turn.where.model), self._budget, self._slowed))
                self._expected.learn(self._turns[-1])
                self._whole += self._turns[-1:] if turn.whole else []
            ahead, self._ahead = self._ahead, []
            for told in ahead:
                self.started(*told)

    def interrupted(self, now: float) -> None:
        """A worker has ended: the turn that was under way begins again."""
        self._now, self._last, self._ahead = None, now, []

    def left(self, cases: Sequence[Any], total: int, now: float) -> tuple[float, float] | None:
        """Seconds that the remaining cases take, at least and at most; twice the same where it is an
        estimate. None while nothing is known. total: number of all cases, done ones included."""
        if not cases:
            return None
        guess, images = self._guess(cases, now), self._of_stage(now)
        if guess is None:
            asked = self._asked_for(len(cases), now)
            return asked and (max(asked[0], images), max(asked[1], images * WIDE[1]))
        guess = max(guess, images)
        if TELLING * (total - len(cases)) >= total:
            steady = self._steady(guess, now)
            return steady, steady
        return guess * WIDE[0], guess * WIDE[1]

    def _steady(self, guess: float, now: float) -> float:
        """The estimate counts down with the clock, until a new one differs by much."""
        expected = self._said[1] - (now - self._said[0]) if self._said is not None else guess
        if abs(expected - guess) > STEADY * guess:
            expected = guess
        self._said = now, expected
        return expected

    def _of_stage(self, now: float) -> float:
        """Seconds that the images of the turn under way take at least, by how fast they go: what is left of
        those that are looked at, and as long again for each case that waits for its own. 0.0: not known."""
        turn = self._now
        if turn is None or turn.looked is None or turn.moved is None:
            return 0.0
        fraction, then = turn.moved
        if fraction < SAYS:
            return 0.0
        whole = (then - turn.stage_at) / fraction
        waiting = len(turn.left & turn.sampled) - 1
        return max(0.0, whole - (now - turn.stage_at)) + whole * max(0, waiting)

    def _asked_for(self, count: int, now: float) -> tuple[float, float] | None:
        """The estimate from the job, before a case is done."""
        if getattr(self._job, "budget_s", None) is None:
            return None
        least, most = bounds.estimate_s(count, self._job)
        return max(LEAST * least, least - now), max(least, most - now)

    def _guess(self, cases: Sequence[Any], now: float) -> float | None:
        if not self._expected.known:
            return None
        current = self._now
        under_way = current.began if current is not None else set()
        known = {turn.where.model for turn in self._turns} | ({current.where.model} if current else set())
        turns: dict[Where, list[str]] = {}  # to come, and the backends of each
        for case in cases:
            if case.key in under_way or self._by_backend.get(_backend(case)) == {False}:
                continue  # of the turn under way; or of a backend that refuses every case, and soon
            turns.setdefault(_where(case), []).append(_backend(case))
        seconds = 0.0
        for where, members in turns.items():
            seconds += self._expected.part("before" if where.model in known else "first", where)
            seconds += self._cases(members, where)
            known.add(where.model)
        if current is not None:
            seconds += self._of_current(current, [case for case in cases if case.key in current.left], now)
        return seconds

    def _of_current(self, turn: _Turn, cases: Sequence[Any], now: float) -> float:
        """Seconds left of the current turn. cases: those that have not ended."""
        members = [_backend(case) for case in cases if turn.timed is None or case.key in turn.sampled]
        if turn.timed is None:
            before = self._expected.part("first" if turn.first else "before", turn.where)
            return _rest(before, now - turn.start) + self._cases(members, turn.where)
        after = self._after(members, turn.where)
        if turn.looked is None:
            samples = len(turn.sampled) * self._expected.part("samples", turn.where)
            return _rest(samples, now - turn.timed) + after
        return _rest(after, now - max(turn.last, turn.looked))

    def _cases(self, members: Sequence[str], where: Where) -> float:
        """Seconds of the cases of a turn on these backends, once timing begins."""
        samples = self._expected.part("samples", where)
        return sum(self._share(each) * (samples + self._after([each], where)) for each in members)

    def _after(self, members: Sequence[str], where: Where) -> float:
        """Seconds of what comes after the samples."""
        return sum(self._expected.part("after", where, backend) for backend in members)

    def _share(self, backend: str) -> float:
        """The share of a backend's finished cases that were really measured."""
        own, others = self._own[backend], self._spoken_for[backend]
        return own / (own + others) if others else 1.0


def _where(case: Any) -> Where:
    model, batch = str(getattr(case, "model", "")), int(getattr(case, "batch", 1))
    return Where(model, batch, str(getattr(case, "precision", "")), int(getattr(case, "images", 0)))


def _backend(case: Any) -> str:
    return str(getattr(case, "backend", case.key))


def _rest(wanted: float, spent: float) -> float:
    """Seconds left of a part of a turn. A part that takes longer than expected is expected to end soon."""
    return max(wanted - spent, LEAST * wanted)
