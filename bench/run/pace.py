"""How long a run may still take, from what its cases took so far: a range until a fifth of them is done, then
an estimate that counts down.

Cases that are timed in turns end together, so what is looked at is a turn: from the first case that begins
until all that began have ended. Its three parts are counted apart, as each tells of another thing: what comes
before its timing (reading a model, judging it, tuning) is long for a model's first turn and short for the
others; the samples go by the budget; the answers and layers that are looked at then go by the model. Each
grows with the model and the batch size: bench.run.expected learns by how much from the turns that are over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.run import bounds, expected
from models import names

TELLING = 5  # of the cases, one in so many has to be done before there is an estimate
TIMED = "time"
WIDE = (0.6, 1.7)  # of what few turns say, where a range is told
LEAST = 0.05  # of a part that lasts longer than was thought, which is still to come
STEADY = 0.03  # of the time left, by which what is said may differ from what is thought before it moves


@dataclass
class _Turn:
    """Seconds; timed: when the first of its cases was; looked: when it was over with all of their samples;
    last: when a case of it ended.
    began, left, sampled: its cases, by key; ends: of those that had samples, the backend and what came after
    them, in seconds."""

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
    ends: list[tuple[str, float]] = field(default_factory=list)

    @property
    def before(self) -> float:
        return (self.timed if self.timed is not None else self.end) - self.start

    @property
    def samples(self) -> float:
        """Of one of its cases that were timed."""
        return (self._looked - self.start - self.before) / max(1, len(self.sampled))

    def took(self, part: str) -> list[tuple[str, float]]:
        """Seconds of a part of it, and of which backend, where that is told apart."""
        if part == "after":
            return self.ends
        if part == "samples":
            return [("", self.samples)]
        return [("", self.before)] if self.first == (part == "first") else []

    @property
    def _looked(self) -> float:
        return self.looked if self.looked is not None else self.end


class Pace:
    """Tell it what happens; all times in seconds since the start, on a clock that pauses with the run. job:
    what was asked for, as far as it says how long a case is sampled; nbytes: of a model's file, 0 where that
    is not known."""

    def __init__(self, job: Any = None, nbytes: Callable[[str], int] = names.nbytes) -> None:
        self._job = job
        self._nbytes = nbytes
        self._known_nbytes: dict[str, int] = {}
        self._turns: list[_Turn] = []
        self._now: _Turn | None = None
        self._settled: set[str] = set()
        self._ahead: list[tuple[Any, str, float]] = []
        self._by_backend: dict[str, set[bool]] = {}  # whether cases that have ended were timed
        self._last = 0.0  # when the last turn ended
        self._lines: dict[tuple[str, str, str], expected.Line] = {}  # by part, model and backend
        self._said: tuple[float, float] | None = None  # when, and how long it takes from then

    def started(self, case: Any, stage: str, now: float) -> None:
        if case.key in self._settled:
            return
        turn = self._now
        if turn is not None and turn.timed is not None and case.key not in turn.began:
            # Of the next turn: that this one has ended is heard a moment later, where both came together.
            self._ahead.append((case, stage, now))
            return
        if turn is None:
            model = _model(case)
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
        if case.key in turn.sampled:
            turn.ends.append((_backend(case), now - max(turn.last, turn.looked or now)))
        turn.last = now
        if not turn.left and turn.began:
            turn.end = self._last = now
            self._turns.append(turn)
            self._lines.clear()
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
            steady = self._steady(guess, now)
            return steady, steady
        return guess * WIDE[0], guess * WIDE[1]

    def _steady(self, guess: float, now: float) -> float:
        """What is said goes down with the clock, until something else is thought by much."""
        said = self._said[1] - (now - self._said[0]) if self._said is not None else guess
        if abs(said - guess) > STEADY * guess:
            said = guess
        self._said = now, said
        return said

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
        known = {turn.model for turn in self._timed} | ({current.model} if current else set())
        turns: dict[tuple[str, int, str], list[str]] = {}  # to come, and the backends of each
        for case in cases:
            if case.key in under_way or self._by_backend.get(_backend(case)) == {False}:
                continue  # of the turn under way; or of a backend that refuses every case, and soon
            which = (_model(case), getattr(case, "batch", 1), getattr(case, "precision", ""))
            turns.setdefault(which, []).append(_backend(case))
        seconds = 0.0
        for (model, batch, _), members in turns.items():
            seconds += self._part("before" if model in known else "first", model, batch)
            seconds += self._cases(members, model, batch)
            known.add(model)
        if current is not None:
            seconds += self._of_current(current, [case for case in cases if case.key in current.left], now)
        return seconds

    @property
    def _timed(self) -> list[_Turn]:
        return [turn for turn in self._turns if turn.timed is not None]

    def _of_current(self, turn: _Turn, cases: Sequence[Any], now: float) -> float:
        """cases: those of it that have not ended."""
        where = turn.model, turn.batch
        members = [_backend(case) for case in cases if turn.timed is None or case.key in turn.sampled]
        if turn.timed is None:
            before = self._part("first" if turn.first else "before", *where)
            return _rest(before, now - turn.start) + self._cases(members, *where)
        after = self._after(members, *where)
        if turn.looked is None:
            return _rest(len(turn.sampled) * self._part("samples", *where), now - turn.timed) + after
        return _rest(after, now - max(turn.last, turn.looked))

    def _cases(self, members: Sequence[str], model: str, batch: int) -> float:
        """What cases of a turn take on these backends, once it is timed."""
        samples = len(members) * self._part("samples", model, batch)
        return samples + self._after(members, model, batch)

    def _after(self, members: Sequence[str], model: str, batch: int) -> float:
        """What comes after their samples."""
        return sum(self._part("after", model, batch, backend) for backend in members)

    def _part(self, part: str, model: str, batch: int, backend: str = "") -> float:
        """What a part is expected to take, by the turns that are over."""
        which = part, model, backend
        if which not in self._lines:
            line = self._lines[which] = expected.line(part, self._job)
            largest = 0
            for turn in sorted(self._timed, key=lambda turn: turn.model == model):
                own = turn.model == model
                x = expected.taken(self._megabytes(turn.model), turn.batch)
                for where, seconds in turn.took(part):
                    differs = expected.differs(own, where == backend)
                    line.learn(x, seconds, differs, own and turn.batch > largest > 0)
                largest = max(largest, turn.batch if own else 0)
        return self._lines[which].at(expected.taken(self._megabytes(model), batch))

    def _megabytes(self, model: str) -> float:
        if model and model not in self._known_nbytes and (nbytes := self._nbytes(model)):
            self._known_nbytes[model] = nbytes  # one that is still to be built has none yet
        if not model:
            return 0.0
        return self._known_nbytes[model] / 1e6 if model in self._known_nbytes else expected.UNKNOWN


def _model(case: Any) -> str:
    return str(getattr(case, "model", ""))


def _backend(case: Any) -> str:
    return str(getattr(case, "backend", case.key))


def _rest(wanted: float, spent: float) -> float:
    """Of a part of a turn; one that lasts longer than was thought is soon over, as far as anybody knows."""
    return max(wanted - spent, LEAST * wanted)
