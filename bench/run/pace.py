"""How long a run may still take, from what its cases took so far: a range until a fifth of them is done, then
an estimate that counts down.

Cases that are timed in turns end together, so what is looked at is a turn: from the first case that begins
until all that began have ended. Its three parts are counted apart, as each tells of another thing: what comes
before its timing (reading a model, judging it, tuning) is long for a model's first turn and short for the
others; the samples go by the budget; the answers and layers that are looked at then go by the model. Of each
the latest turns tell, in their middle: one that the machine held up moves nothing. Where passes are long, a
part grows with the batch size: a line through the turns of a model says by how much, once three of them tell.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.run import bounds
from models import names

TELLING = 5  # of the cases, one in so many has to be done before there is an estimate
TIMED = "time"
WIDE = (0.6, 1.7)  # of what few turns say, where a range is told
RISING = 0.5  # of a case's time, that it has to grow by with the batch size to be told from chance
LATEST = 5  # turns that tell: before them the machine may have been another
FURTHER = 0.25  # of what comes before a model's first turn, where no other has told
# By how much a model of a megabyte makes the parts of a turn longer, of what they take with one of none, as
# runs of LeNet and AlexNet had it: it tells of a model that has not had its turn yet.
HEAVIER = {"before": 0.018, "samples": 0.003, "after": 0.03}
CHANCE = 0.3  # of a part's time, by which turns differ anyway
LEAST = 0.05  # of a turn that lasts longer than was thought, which is still to come


@dataclass
class _Turn:
    """Seconds; timed: when the first of its cases was; looked: when it was over with all of their samples;
    last: when a case of it ended.
    began, left, sampled: its cases, by key."""

    model: str
    batch: int
    first: bool
    start: float
    timed: float | None = None
    looked: float | None = None
    last: float = 0.0
    end: float = 0.0
    began: set[str] = field(default_factory=set)
    left: set[str] = field(default_factory=set)
    sampled: set[str] = field(default_factory=set)

    @property
    def before(self) -> float:
        return (self.timed if self.timed is not None else self.end) - self.start

    @property
    def samples(self) -> float:
        """Of one of its cases that were timed."""
        return (self._looked - self.start - self.before) / max(1, len(self.sampled))

    @property
    def after(self) -> float:
        """Of one of its cases that were timed, once it has its samples."""
        return (self.end - self._looked) / max(1, len(self.sampled))

    @property
    def _looked(self) -> float:
        return self.looked if self.looked is not None else self.end


class Pace:
    """Tell it what happens; all times in seconds since the start, on a clock that pauses with the run. job:
    what was asked for, as far as it says how long a case is sampled; nbytes: of a model's file, 0 where that
    is not known."""

    def __init__(self, job: Any = None, nbytes: Callable[[str], int] = names.nbytes) -> None:
        self._job = job
        self._nbytes = functools.cache(nbytes)
        self._turns: list[_Turn] = []
        self._now: _Turn | None = None
        self._settled: set[str] = set()
        self._ahead: list[tuple[Any, str, float]] = []
        self._by_backend: dict[str, set[bool]] = {}  # whether cases that have ended were timed
        self._last = 0.0  # when the last turn ended

    def started(self, case: Any, stage: str, now: float) -> None:
        if case.key in self._settled:
            return
        turn = self._now
        if turn is not None and turn.timed is not None and case.key not in turn.began:
            # Of the next turn: that this one has ended is heard a moment later, where both came together.
            self._ahead.append((case, stage, now))
            return
        if turn is None:
            model = getattr(case, "model", "")
            first = all(other.model != model for other in self._timed)
            turn = self._now = _Turn(model, getattr(case, "batch", 1), first, self._last)
        turn.began.add(case.key)
        turn.left.add(case.key)
        if turn.timed is not None and turn.looked is None and stage != TIMED:
            turn.looked = now
        if stage == TIMED:
            turn.sampled.add(case.key)
            turn.timed = now if turn.timed is None else turn.timed

    def settled(self, case: Any, now: float) -> None:
        self._settled.add(case.key)
        turn = self._now
        if turn is None:
            self._last = now
            return
        self._by_backend.setdefault(_backend(case), set()).add(case.key in turn.sampled)
        turn.left.discard(case.key)
        turn.last = now
        if not turn.left and turn.began:
            turn.end = self._last = now
            self._turns.append(turn)
            self._now = None
            ahead, self._ahead = self._ahead, []
            for told in ahead:
                self.started(*told)

    def interrupted(self, now: float) -> None:
        """A worker is gone: what was under way begins anew."""
        self._now, self._last, self._ahead = None, now, []

    def left(self, cases: Sequence[Any], total: int, now: float) -> tuple[float, float] | None:
        """Seconds that the cases still to come take, at the least and at the most; the same twice where that
        is an estimate. None while nothing tells. total: how many there are with those that are done."""
        if not cases:
            return None
        guess = self._guess(cases, now)
        if guess is None:
            return self._asked_for(len(cases), now)
        if TELLING * (total - len(cases)) >= total:
            return guess, guess
        return guess * WIDE[0], guess * WIDE[1]

    def _asked_for(self, count: int, now: float) -> tuple[float, float] | None:
        """What the job says before a case is done."""
        if getattr(self._job, "budget_s", None) is None:
            return None
        least, most = bounds.estimate_s(count, self._job)
        return max(LEAST * least, least - now), max(least, most - now)

    def _guess(self, cases: Sequence[Any], now: float) -> float | None:
        if not self._timed:
            return None
        current = self._now
        under_way = current.began if current is not None else set()
        seconds = 0.0
        known = {turn.model for turn in self._timed} | ({current.model} if current else set())
        size = max(1.0, _mean(len(turn.sampled) for turn in self._timed))
        for case in cases:
            if case.key in under_way or self._by_backend.get(_backend(case)) == {False}:
                continue  # of the turn under way; or of a backend that refuses every case, and soon
            model = getattr(case, "model", "")
            seconds += sum(self._parts(model, getattr(case, "batch", 1)))
            if model in known:
                seconds += self._before(False) / size
            else:
                known.add(model)
                seconds += self._before(True, model)
        if current is not None:
            seconds += self._of_current(current, now)
        return seconds

    @property
    def _timed(self) -> list[_Turn]:
        return [turn for turn in self._turns if turn.timed is not None]

    def _of_current(self, turn: _Turn, now: float) -> float:
        size = len(turn.sampled) if turn.timed is not None else len(turn.left)
        samples, after = (part * size for part in self._parts(turn.model, turn.batch))
        if turn.timed is None:
            return _rest(self._before(turn.first, turn.model), now - turn.start) + samples + after
        if turn.looked is None:
            return _rest(samples, now - turn.timed) + after
        if done := len(turn.sampled - turn.left):  # one case of it tells of the others
            after = (turn.last - turn.looked) / done * len(turn.left)
            return _rest(after, now - turn.last)
        return _rest(after, now - turn.looked)

    def _before(self, first: bool, model: str = "") -> float:
        """What comes before the timing of a model's first turn, or of another."""
        if first:
            mega = HEAVIER["before"]
            found = [turn.before / self._weight(turn.model, mega) for turn in self._timed if turn.first]
            return _middle(found) * self._weight(model, mega)
        found = [turn.before for turn in self._timed if not turn.first]
        if found:
            return _middle(found)
        return FURTHER * _middle([turn.before for turn in self._timed])

    def _parts(self, model: str, batch: int) -> tuple[float, float]:
        """What the samples of a case take, and what comes after them, by those of its model, else by all."""
        own = [turn for turn in self._timed if turn.model == model]
        found = []
        for part in ("samples", "after"):
            if own:
                found.append(_at(batch, [(turn.batch, getattr(turn, part)) for turn in own]))
            else:
                mega = HEAVIER[part]
                light = [getattr(turn, part) / self._weight(turn.model, mega) for turn in self._timed]
                found.append(_middle(light) * self._weight(model, mega))
        return found[0], found[1]

    def _weight(self, model: str, mega: float) -> float:
        """How many times as long as with a model of no size something takes."""
        return 1 + mega * self._nbytes(model) / 1e6 if model else 1.0


def _backend(case: Any) -> str:
    return str(getattr(case, "backend", case.key))


def _rest(wanted: float, spent: float) -> float:
    """Of a part of a turn; one that lasts longer than was thought is soon over, as far as anybody knows."""
    return max(wanted - spent, LEAST * wanted)


def _middle(values: Sequence[float]) -> float:
    """The median of the latest."""
    return statistics.median(values[-LATEST:]) if values else 0.0


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found) if found else 0.0


def _at(batch: int, points: Sequence[tuple[int, float]]) -> float:
    """What is to be thought of at a batch size: on the line through the points where they rise by much; where
    they rise by less, of that rise what chance would not bring about, and no further than twice their
    largest batch size."""
    middle = _middle([y for _, y in points])
    xs, ys = [float(x) for x, _ in points], [y for _, y in points]
    if len(set(xs)) < 2 or middle <= 0:
        return middle
    slope, flat = statistics.linear_regression(xs, ys)
    rise = slope * (max(xs) - min(xs)) / middle
    if rise <= 0:
        return middle
    if len(set(xs)) > 2 and rise >= RISING:
        return flat + slope * batch if flat >= 0 else _mean(ys) / _mean(xs) * batch
    sure = rise**2 / (rise**2 + 2 * CHANCE**2)
    return max(0.0, _mean(ys) + sure * slope * (min(batch, 2 * max(xs)) - _mean(xs)))
