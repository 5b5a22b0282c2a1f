"""What a part of a turn is expected to take: by size (bench.run.expected), as turns of earlier runs on this
machine and of this one tell. Where an earlier run had the very same turn, that counts, too: it knows what no
size tells. What comes before and after its samples is nearly all that counts then; its samples, which are
as long as it takes until a verdict is clear and differ from run to run, count for half. Both are taken as
much slower or faster as this run is beside that one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec

from bench.run import expected
from bench.run.past import Took, Where

LEAST_S = 0.1  # beside which two times do not differ
SURE = 0.5  # times that it takes to believe half of how much slower this run is
SHARED = 2.0  # times of a model that say as much as what all models had
UNHELD = ("first", "before", "after")  # the parts that no budget holds
# How much the very turn counts beside what its size tells.
KNOWN, KNOWN_SAMPLES = 0.85, 0.5
AGED = 0.4  # by which all of a run may take longer than an earlier one, or less long


class Told:
    """earlier: turns of other runs; budget: of a case of this one, in seconds, None where there is none;
    nbytes: of a model's file, 0 where there is none; slowed: how many times as long as alone this one takes
    beside other programs. What no budget holds is reckoned as it would take alone."""

    def __init__(
        self,
        earlier: Sequence[Took],
        budget: float | None,
        nbytes: Callable[[str], int],
        slowed: float = 1.0,
    ) -> None:
        self._budget = budget
        self._nbytes = nbytes
        self._slowed = slowed
        self._known_nbytes: dict[str, int] = {}
        self._earlier = [self._at_this_budget(one.alone()) for one in earlier]
        self._known = {
            (part, one.where, one.nbytes, backend): seconds
            for one in self._earlier
            for part in expected.WEIGHTS
            for backend, seconds in one.of(part)
        }
        self._turns: list[Took] = []  # of this run
        self._lines: dict[tuple[str, str, str], expected.Line] = {}  # by part, model and backend
        self._before: dict[tuple[str, str, str], expected.Line] = {}  # the same without turns of this run
        self._times: dict[tuple[str, str], float] = {}

    def learn(self, turn: Took) -> None:
        """A turn of this run is over."""
        self._turns.append(turn.alone())
        self._lines.clear()
        self._times.clear()
        for model in [model for model, nbytes in self._known_nbytes.items() if not nbytes]:
            del self._known_nbytes[model]  # it may have been built meanwhile

    @property
    def tells(self) -> bool:
        """Whether there was a turn, in this run or in one before it."""
        return bool(self._turns or self._earlier)

    def part(self, part: str, where: Where, backend: str = "") -> float:
        """Seconds that it is expected to take."""
        return self._alone(part, where, backend) * (self._slowed if part in UNHELD else 1.0)

    def _alone(self, part: str, where: Where, backend: str) -> float:
        """What it would take if no other program used the cores."""
        nbytes = self._known_nbytes.get(where.model)
        if nbytes is None:
            nbytes = self._known_nbytes[where.model] = self._nbytes(where.model)
        by_size = self._line(part, where.model, backend).at(_x(where, nbytes))
        known = self._known.get((part, where, nbytes, backend))
        if known is None:
            return by_size
        known = (known + LEAST_S) * self._slower(part, where.model)
        counts = KNOWN_SAMPLES if part == "samples" else KNOWN
        return max(0.0, known**counts * (by_size + LEAST_S) ** (1 - counts) - LEAST_S)

    def _slower(self, part: str, model: str) -> float:
        """How many times as long as in earlier runs it takes in this one, by this model's turns; where they
        are few, by what a busy machine makes slower in all turns, which samples held to a budget are not."""
        if (part, model) not in self._times:
            own = self._logs((part,), model)
            if part == "samples":
                self._times[part, model] = math.exp(sum(own) / (len(own) + SURE))
            else:
                shared = self._logs(UNHELD)
                load = sum(shared) / (len(shared) + 1.0)
                self._times[part, model] = math.exp((sum(own) + SHARED * load) / (len(own) + SHARED))
        return self._times[part, model]

    def _logs(self, parts: Sequence[str], model: str | None = None) -> list[float]:
        """How the times of this run (of this model's turns) stand to those of earlier ones, as logarithms."""
        return [
            math.log((seconds + LEAST_S) / (known + LEAST_S))
            for one in self._turns
            if model in (None, one.where.model)
            for part in parts
            for backend, seconds in one.of(part)
            if (known := self._known.get((part, one.where, one.nbytes, backend))) is not None
        ]

    def _line(self, part: str, model: str, backend: str) -> expected.Line:
        which = part, model, backend
        if which not in self._before:
            self._before[which] = expected.line(part, self._budget)
            if self._earlier:
                _learn(self._before[which], self._earlier, *which)
                self._before[which].doubt(AGED)
        if which not in self._lines:
            self._lines[which] = self._before[which].copy()
            _learn(self._lines[which], self._turns, *which)
        return self._lines[which]

    def _at_this_budget(self, turn: Took) -> Took:
        """Passes take what they take; what is sampled beside that goes by the budget."""
        if turn.samples is None:
            return turn
        more = expected.sampling_s(self._budget) - expected.sampling_s(turn.budget_s)
        return msgspec.structs.replace(turn, samples=max(0.0, turn.samples + more))


def _learn(line: expected.Line, turns: Sequence[Took], part: str, model: str, backend: str) -> None:
    """What these tell of a part, those of its own model last."""
    largest = 0
    for turn in sorted(turns, key=lambda turn: turn.where.model == model):
        own, batch = turn.where.model == model, turn.where.batch
        for on, seconds in turn.of(part):
            differs = expected.differs(part, own, on == backend)
            line.learn(_x(turn.where, turn.nbytes), seconds, differs, own and batch > largest > 0)
        largest = max(largest, batch if own else 0)


def _x(where: Where, nbytes: int) -> expected.Weights:
    megabytes = nbytes / 1e6 if nbytes else expected.UNKNOWN
    return expected.taken(megabytes if where.model else 0.0, where.batch)
