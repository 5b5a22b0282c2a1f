"""Is a kernel faster where few of its inputs changed?

Timed passes differ from each other in few values, so that whoever compares the inputs with those of the pass
before, and works out anew only what the changes touch, is right on every pass and faster than the work
allows. So trains over inputs that are wholly new are timed beside trains over inputs that are alike
(engine.witness.Renewable), in turn, everything else being the same.

That a kernel is faster where inputs are alike speaks against its figure, and is told. It does not yet say
why: a branch that depends on the values is foretold by a processor that met the same values a hundred times
(of a relu by NumPy's `y[y < 0] = 0`, 16,384 values, 1.5 times as fast and more), and such a kernel is honest.
It has to meet them often for that. So inputs that come in pairs are timed as well, each followed by one that
is almost the same: who is faster there knows them from meeting them once, which no processor does, and a
kernel that keeps them does.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.results import stats
from bench.words import units
from engine.witness import SAME, Renewable

NEW, PAIRS = 1, 2
ALIKE, PAIRED = 1.25, 1.2  # times as long over new inputs, by the whole interval; of pairs half are new
TRAINS = 3  # of each kind a round, of which the fastest counts: what disturbs a train makes it longer
FIRST, FEWEST, MOST, SECONDS = 2, 6, 30, 1.0  # rounds; and for how long more than the fewest
TRAIN_NS, PASSES = 2e6, 64
MOST_NBYTES = 32 << 20  # of inputs: to draw more of them anew, again and again, takes seconds
LONG_NS = 10e6  # a train that is disturbed in a part alone: one a round


@dataclass(frozen=True)
class RenewedVerdict:
    """A kernel that is faster where inputs are alike, in words. remembers: as nobody is who computes."""

    words: str
    remembers: bool


class _TrainTimes:
    """Nanoseconds a pass by kind of train, one a round."""

    def __init__(self, session: Renewable, clock: Callable[[], float]) -> None:
        self._session, self._clock = session, clock
        self._random = random.SystemRandom()
        pass_ns = max(1.0, session.time_renewed(PAIRS, SAME))
        self._count = PAIRS * max(1, min(PASSES, round(TRAIN_NS / pass_ns)) // PAIRS)
        self._trains = TRAINS
        self.ns: dict[int, list[float]] = {}

    def rounds(self, kinds: Sequence[int], count: int) -> None:
        for _ in range(count):
            found: dict[int, list[float]] = {kind: [] for kind in kinds}
            for kind in self._random.sample(self._trains * tuple(kinds), self._trains * len(kinds)):
                found[kind].append(self._session.time_renewed(self._count, kind))
            for kind, ns in found.items():
                self.ns.setdefault(kind, []).append(min(ns))
            if self._count * max(map(max, found.values())) > LONG_NS:
                self._trains = 1

    def ratio(self, kind: int, bound: float) -> stats.Interval:
        """How many times as long passes over new inputs take, until it is clear on which side of the bound
        that is, or for so long."""
        self.ns = {}
        end = self._clock() + SECONDS
        while True:
            self.rounds((NEW, kind), FEWEST if not self.ns else 1)
            new, other = self.ns[NEW], self.ns[kind]
            found = stats.ratio_interval(new, other, range(len(new)), range(len(other)))
            if not found.low <= bound <= found.high or len(new) >= MOST or self._clock() > end:
                return found


def asked(session: Renewable, clock: Callable[[], float] = time.monotonic) -> RenewedVerdict | None:
    """None where it is not clearly faster. That takes a dozen short trains; who is suspected, some
    seconds."""
    taken = _TrainTimes(session, clock)
    taken.rounds((NEW, SAME), FIRST)
    if min(taken.ns[NEW]) < ALIKE * min(taken.ns[SAME]):
        return None
    if (alike := taken.ratio(SAME, ALIKE)).low < ALIKE:
        return None
    few, new = (units.duration(statistics.median(taken.ns[kind])) for kind in (SAME, NEW))
    words = (
        f"is faster where few of its inputs changed: {few} against {new} over inputs all new, which take "
        f"{alike.low:.2f} to {alike.high:.2f} times as long"
    )
    # Twice, of others: a kernel that is right is not to be accused.
    return RenewedVerdict(words, all(taken.ratio(PAIRS, PAIRED).low > PAIRED for _ in range(2)))
