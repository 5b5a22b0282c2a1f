"""Does a kernel's time hang on how much of its inputs changed?

Timed passes differ from each other in few values, so that whoever compares the inputs with those of the pass
before, and works out anew only what the changes touch, is right on every pass and faster than the work
allows. So among the timed trains there are some, unannounced, over inputs that are wholly new, and beside
them some over inputs as the timed ones have them, everything else being the same (engine.witness.Renewable).
A kernel cannot be honest in those alone: it meets them when it is timed.

Nobody is accused for it. A branch that depends on the values is foretold by a processor that met the same
values a hundred times (of a relu by NumPy's `y[y < 0] = 0`, 16,384 values, 1.5 times as fast and more), and
such a kernel is honest. Whoever's time clearly hangs on it is told so, and the time that is shown is that
over new inputs.

A kernel may be honest for a while after it met new inputs, and so in the trains beside these as well. Then
those over new inputs are far slower than the timed ones: that is told, too.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bench.results import stats
from bench.words import units
from engine.witness import NEW, SAME, Renewable

HANGS = 1.1  # times as long over new inputs, by the whole interval
# So many times as long as the timed trains, and so much longer, takes even the fastest of those over new
# inputs: what goes before a train differs, and what is taken off is known to some microseconds alone.
FAR, FAR_NS = 1.5, 5_000.0
TRAINS = 2  # of each kind at once, of which the faster counts: what disturbs a train makes it longer
FEWEST, MOST, SECONDS = 6, 30, 1.0  # times that it is asked; and for how long more than the fewest
HURRIED, LONG_S = 3, 5.0  # times at least, of what takes so long
TRAIN_NS, PASSES, FEW = 1e6, 64, 8
LONG_NS = 10e6  # a train that is disturbed in a part alone: one at once


@dataclass(frozen=True)
class Mixed:
    """What was measured at once of one instance, in nanoseconds a pass: trains over new inputs, and the
    faster one over inputs as timed passes have them."""

    instance: int
    new_ns: tuple[float, ...]
    same_ns: float


@dataclass
class Renewal:
    """Of all instances of a rung. told: in words, that its time hangs on how much changed."""

    clock: Callable[[], float] = time.monotonic
    taken: list[Mixed] = field(default_factory=list)
    timed_ns: list[float] = field(default_factory=list)  # a pass of each timed train
    told: str = ""
    numbers: itertools.count[int] = field(default_factory=itertools.count)

    def ask(self, session: Renewable, instance: int = 0, pass_ns: float = 0.0) -> None:
        """Some trains of each kind. pass_ns: what a pass takes, about."""
        pass_ns = pass_ns or self._about(session)
        count = max(1, min(PASSES, round(TRAIN_NS / max(1.0, pass_ns))))
        trains = range(1 if count * pass_ns > LONG_NS else TRAINS)
        same = min(session.time_renewed(count, SAME) for _ in trains)
        self.taken.append(Mixed(instance, tuple(session.time_renewed(count, NEW) for _ in trains), same))

    def _about(self, session: Renewable) -> float:
        if self.taken:
            return min(one.same_ns for one in self.taken)
        alone = session.time_renewed(1, SAME)
        return alone if alone > TRAIN_NS / FEW else session.time_renewed(FEW, SAME)

    def settle(self, session: Renewable, instance: int = 0) -> None:
        """Ask until it is clear on which side of HANGS the ratio is, or for so long; and who seems to be
        beyond it once more, by trains of their own."""
        self._until_clear(session, instance, 0)
        if not _beyond(self.taken):
            self.told = self._beside_timed()
            return
        before = len(self.taken)
        self._until_clear(session, instance, before)
        if not _beyond(self.taken[before:]):
            self.told = self._beside_timed()
            return
        found = _ratio(self.taken)
        new = statistics.median(ns for one in self.taken for ns in one.new_ns)
        same = statistics.median(one.same_ns for one in self.taken)
        self.told = (
            f"is faster where few of its inputs changed: {units.duration(same)} against "
            f"{units.duration(new)} over inputs all new, which take {found.low:.2f} to {found.high:.2f} "
            "times as long; its time is the one over new inputs"
        )

    def _beside_timed(self) -> str:
        """What is told where timed trains are far faster than all over new inputs; else ""."""
        if len(self.timed_ns) < FEWEST:
            return ""
        timed, new = statistics.median(self.timed_ns), min(ns for one in self.taken for ns in one.new_ns)
        if new < max(FAR * timed, timed + FAR_NS):
            return ""
        return (
            f"is faster in timed passes, where few inputs changed ({units.duration(timed)}), than over "
            f"inputs all new ({units.duration(new)} and more); its time is the one over new inputs"
        )

    def _until_clear(self, session: Renewable, instance: int, start: int) -> None:
        """By what was taken from there on."""
        started = self.clock()
        while len(self.taken) < start + FEWEST:
            self.ask(session, instance)
            if len(self.taken) >= start + HURRIED and self.clock() - started > LONG_S:
                break
        end = self.clock() + SECONDS
        while (found := _ratio(self.taken[start:])).low <= HANGS < found.value:
            if len(self.taken) >= start + MOST or self.clock() > end:
                break
            self.ask(session, instance)

    @property
    def samples_ns(self) -> list[float]:
        """Of passes over new inputs, a round each time that it was asked."""
        return [round(ns, 1) for one in self.taken for ns in one.new_ns]

    @property
    def rounds(self) -> list[int]:
        """Where these begin among the samples."""
        return [0, *itertools.accumulate(len(one.new_ns) for one in self.taken)][:-1]

    @property
    def instances(self) -> list[int]:
        """Whose each round is; () where there is one alone."""
        found = [one.instance for one in self.taken]
        return found if len(set(found)) > 1 else []


def _ratio(taken: Sequence[Mixed]) -> stats.Interval:
    """How many times as long passes over new inputs take."""
    new, same = [min(one.new_ns) for one in taken], [one.same_ns for one in taken]
    return stats.ratio_interval(new, same, range(len(new)), range(len(same)))


def _beyond(taken: Sequence[Mixed]) -> bool:
    """By the whole interval, and by the fastest of all: what disturbs a train makes it longer, so that on a
    busy machine these tell more than their mean."""
    fastest = min(min(one.new_ns) for one in taken) / min(one.same_ns for one in taken)
    return min(_ratio(taken).low, fastest) > HANGS
