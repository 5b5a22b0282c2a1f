"""Does the time of a kernel depend on how many of its inputs changed?

The inputs of one timed pass differ from those of the next in only a few values. A kernel can exploit this: it
compares its inputs with those of the pass before, and computes only what the changes affect. Such a kernel is
correct on every pass, but faster than its work allows. Below, "honest" means: it computes everything.

Therefore two kinds of trains (passes in a row) are mixed in at random between the timed trains: some over
inputs that are all new (NEW), others over inputs that differ in only a few values, like those of timed passes
(SAME). Everything else is equal for both (engine.stirring.Renewable). The ratio of their times shows the
effect.

What a kernel sees before a train must not tell which kind it is: no pause, no number of passes, no order.

- On the host a SAME train is one of `time_runs`, whose time is not shown. The inputs of a NEW one are made
  long before it, right after the last NEW one. So the time that this takes lies between two other trains, of
  whatever kind.
- Before each timed train the same share is drawn, whatever came before, and several may be mixed in, one
  after the other. So a SAME train lies anywhere among the timed ones. What a kernel knows about the past in a
  timed train, it knows in a SAME train, too: if it is honest in some part of the timed trains, it is honest
  in the same part of these. Over new inputs it has to do all of its work. So it does not help to be honest
  for some time after new inputs, or except for such a time.
- If there were too few, turns follow that are run only for the ratio. They begin with a warm-up as others do,
  and between two trains there are pauses like those that were between timed trains, in which the caches are
  used, as rivals use them.

A kernel whose time depends on new inputs need not be dishonest. A processor learns to predict a branch whose
values it has met a hundred times: a ReLU by NumPy's `y[y < 0] = 0` with 16,384 values is at least 1.5 times
as fast then. So there is no accusation. If the time clearly depends on new inputs, a note says so, and the
time over new inputs is shown.

If timed trains are far faster than all NEW trains, a note says so, too, whatever the ratio is: then something
did tell the kernel.
"""

from __future__ import annotations

import itertools
import secrets
import statistics
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from bench.measure.answers import timed_pass
from bench.measure.timing import Timeable, warm_up
from bench.results import stats
from bench.words import units
from engine import backend
from engine.stirring import NEW, SAME, Renewable, Witnessed

# The time depends on new inputs if the fastest NEW train takes more than HANGS times as long as the fastest
# of as many SAME ones, and if among all pairs of a NEW and a SAME train the first takes as much longer more
# often than the second. Other programs, which make single trains much longer, do that to both alike. More
# often means: by SURELY standard deviations of what MIXTURES random mixtures of these trains give (a
# permutation test; by chance in one of a hundred).
HANGS, SURELY, MIXTURES = 1.1, 2.33, 300
CERTAIN = 4.0  # standard deviations that need not be confirmed: a kernel may have become honest meanwhile
# Timed trains are "far faster" if a pass of the fastest NEW train takes at least FAR times as long, and
# FAR_NS ns longer: the time for starting a train, which is subtracted, is known only to some microseconds. On
# a GPU more often: there all inputs are written right before the passes of a NEW train.
FAR_ON_HOST, FAR, FAR_NS = 1.15, 1.5, 5_000.0
# Trains of each kind that are compared, at least and at most; and seconds for those beyond the fewest.
FEWEST, MOST, SECONDS = 5, 30, 2.0
HURRIED, LONG_S = 3, 5.0  # after LONG_S seconds, so many trains of each are enough
# Passes of a train at most, and about how many ns it takes, where none was timed before.
PASSES, TRAIN_NS = 64, 1e6
# Probability that a train is mixed in before a timed one. It is smaller if that takes longer than a timed one
# does, but not less than RARE of it (the first one on a GPU takes long, as graphs are captured for it).
MIXED, RARE = 1 / 4, 1 / 8
# The same in a turn that is run only for the ratio. A kernel may notice that it is in one, as more trains are
# over new inputs, and be honest there: then its timed trains are far faster, and that is told.
MIXED_IN_TURN = 1 / 2
# A turn that is run only for the ratio has: passes and seconds of its warm-up, at least; trains at most (both
# kinds are missing in one of a hundred such turns; then they are run at the end).
WARM, REWARM_S, TRAINS = 3, 0.05, 40
PAUSE_S = 0.03  # seconds of such a pause at most
GAPS = 64  # pauses before timed trains that are kept, the last ones
USED_NBYTES = 4 << 20  # of a cache that is used in a pause


@dataclass(frozen=True)
class Mixed:
    """The trains that were mixed into a turn (or several turns in a row) of one instance.

    instance: its number, the first is 0. new_ns: ns of a pass, one value for each train over all-new inputs.
    same_ns: the same for inputs as timed passes have them. One of them may be empty.
    """

    instance: int
    new_ns: tuple[float, ...]
    same_ns: tuple[float, ...]


def _use_caches(seconds: float) -> None:
    """Wait without giving up the core, which would need time to wake up, and use its caches, as a rival does
    in its turn."""
    end = time.monotonic() + seconds
    used = np.zeros(USED_NBYTES, np.uint8)
    part = USED_NBYTES // 64  # some microseconds
    for start in itertools.cycle(range(0, USED_NBYTES, part)):
        if time.monotonic() > end:
            break
        used[start : start + part] += 1


@dataclass
class Renewal:
    """What was measured over all-new inputs, for all instances of one contender, and what follows from it.
    told: a sentence if the time depends on how many inputs changed; "" if not, or if `settle` was not called
    yet."""

    clock: Callable[[], float] = time.monotonic  # seconds
    chance: Callable[[], float] = secrets.SystemRandom().random  # from 0 to 1
    wait: Callable[[float], None] = _use_caches  # waits for seconds
    taken: list[Mixed] = field(default_factory=list)
    timed_ns: list[float] = field(default_factory=list)  # ns of a pass, for each timed train
    count: int = 0  # passes of a timed train; 0: none was run
    cold: bool = False  # whether caches were cold there
    # Seconds between the end of a train of an instance and the beginning of its next timed one.
    gaps: deque[float] = field(default_factory=lambda: deque(maxlen=GAPS))
    told: str = ""
    numbers: itertools.count[int] = field(default_factory=itertools.count)  # of the next instance

    def settle(self, mixing: Mixing) -> None:
        """Run turns of `mixing` until it is clear whether NEW trains take more than HANGS times as long, or
        until there were enough turns. If they do, it has to be confirmed by new turns, unless that is
        certain. If they do not, compare timed trains with NEW ones. Sets `told`."""
        self._until_clear(mixing, 0)
        surely, before = _slower(self.taken), len(self.taken)
        if SURELY < surely <= CERTAIN:
            self._until_clear(mixing, before)
            surely = _slower(self.taken[before:])
        if surely <= SURELY:
            self.told = self._timed_too_fast(mixing.far)
            return
        found = _ratio(self.taken)
        new = statistics.median(ns for one in self.taken for ns in one.new_ns)
        same = statistics.median(ns for one in self.taken for ns in one.same_ns)
        self.told = (
            f"is faster where few of its inputs changed: {units.duration(same)} against "
            f"{units.duration(new)} over inputs all new, which take {found.low:.2f} to {found.high:.2f} "
            "times as long; its time is the one over new inputs"
        )

    def _timed_too_fast(self, far: float) -> str:
        """The note if all NEW trains take `far` times as long as timed trains; else ""."""
        if len(self.timed_ns) < FEWEST:
            return ""
        typical, new = statistics.median(self.timed_ns), min(ns for one in self.taken for ns in one.new_ns)
        if new < max(far * typical, typical + FAR_NS):
            return ""
        return (
            f"is faster in timed passes, where few inputs changed ({units.duration(typical)}), than over "
            f"inputs all new ({units.duration(new)} and more); its time is the one over new inputs"
        )

    def _until_clear(self, mixing: Mixing, start: int) -> None:
        """Run turns until it is clear by taken[start:] whether NEW trains take more than HANGS times as
        long."""
        started = self.clock()
        while (count := _trains(self.taken[start:])) < FEWEST:
            if count >= HURRIED and self.clock() - started > LONG_S:
                break
            mixing.turn()
        end = self.clock() + SECONDS
        while 0 < _slower(self.taken[start:]) <= SURELY:
            if _trains(self.taken[start:]) >= MOST or self.clock() > end:
                break
            mixing.turn()

    @property
    def samples_ns(self) -> list[float]:
        """ns of a pass over new inputs, for all trains; each Mixed of `taken` that has some is a round."""
        return [round(ns, 1) for one in self.taken for ns in one.new_ns]

    @property
    def _of_new(self) -> list[Mixed]:
        return [one for one in self.taken if one.new_ns]

    @property
    def rounds(self) -> list[int]:
        """Index in samples_ns at which each round begins."""
        return [0, *itertools.accumulate(len(one.new_ns) for one in self._of_new)][:-1]

    @property
    def instances(self) -> list[int]:
        """Number of each round's instance; [] if all are of the same one."""
        found = [one.instance for one in self._of_new]
        return found if len(set(found)) > 1 else []


class Mixing:
    """A session that is timed in the place of another one, and mixes NEW and SAME trains in between the timed
    ones. There is one for each instance.

    session: the one that is wrapped. If it is not Renewable, nothing is mixed in, nor if `mixes` is False.
    renewal: collects the times of all instances (None: a new one). afresh: called before each turn that
    `turn` runs, to change the inputs. host: whether the session runs on the host. Else what it recorded of
    timed passes is lost when a train is mixed in; seen: what was fetched of it before.
    """

    def __init__(
        self,
        session: Timeable,
        renewal: Renewal | None = None,
        afresh: Callable[[], None] = lambda: None,
        host: bool = False,
        mixes: bool = True,
    ) -> None:
        self.renewal = renewal or Renewal()
        self.seen: list[timed_pass.Seen] = []
        self.far = FAR_ON_HOST if host else FAR
        self._session, self._afresh, self._host = session, afresh, host
        # Checked only once: isinstance with a protocol takes longer than starting a train.
        self._renewable = session if mixes and isinstance(session, Renewable) else None
        self._instance = next(self.renewal.numbers)
        # ns of a pass of the trains that were mixed in and are not in renewal.taken yet
        self._found: dict[int, list[float]] = {NEW: [], SAME: []}
        self._made: int | None = None  # of which kind the train is whose inputs are made; None: they are not
        self._begun = False  # whether a timed train of this turn was run
        self._ended: float | None = None  # when the last train of this turn ended
        # Seconds of a timed train, and of those that were mixed in, making the next inputs included.
        self._sample_s, self._mixed_in_s = 0.0, deque[float](maxlen=GAPS)

    @property
    def one_thread(self) -> bool:
        """Whether the session's passes use one thread only (engine.backend.in_one_thread)."""
        return backend.in_one_thread(self._session)

    @property
    def parts_ns(self) -> Sequence[float]:
        """ns of a pass in each part of the last samples, for a session of one thread
        (engine.backend.parts_ns)."""
        return backend.parts_ns(self._session)

    def time_runs(self, count: int, cold: bool = False) -> int:
        """Time `count` passes of the session; returns ns, all together. Before that, trains may be mixed in;
        their times are not in the result. cold: with cold caches."""
        renewal, session = self.renewal, self._renewable
        renewal.count, renewal.cold = count, cold
        if session is not None:
            if self._ended is not None:
                renewal.gaps.append(renewal.clock() - self._ended)
            often = self._sample_s / statistics.mean(self._mixed_in_s) if self._mixed_in_s else 1.0
            while self._mixes_in(session, MIXED * min(1.0, max(RARE, often))):
                pass
        taken = self._timed()
        renewal.timed_ns.append(taken / count)
        if session is not None and self._made is None:
            self._make(session)
        return taken

    def warm_runs(self, count: int) -> int:
        """End the turn before, and run `count` warm-up passes; returns their ns (engine.backend.Warmed).
        Every turn begins with this call."""
        self.end_turn()
        if self._renewable is not None and self._made is None and self.renewal.count:
            self._make(self._renewable)
        return backend.warm_runs(self._session, count)

    def end_turn(self) -> None:
        """Finish the current turn: add the trains that were mixed in to `renewal.taken`. Other inputs may be
        bound now."""
        if not self._begun:
            return
        self._begun, self._made, self._ended, found = False, None, None, self._found
        if any(found.values()):
            self.renewal.taken.append(Mixed(self._instance, tuple(found[NEW]), tuple(found[SAME])))
            self._found = {NEW: [], SAME: []}

    def turn(self) -> None:
        """Run one more turn, only to mix trains in; the samples of its timed trains are not kept. The session
        has to be Renewable."""
        session, renewal = self._renewable, self.renewal
        assert session is not None
        self.end_turn()
        if not renewal.count:
            renewal.count = max(1, min(PASSES, round(TRAIN_NS / max(1, self._session.time_runs(1)))))
        self._afresh()
        self._made = None
        warm_up(self, WARM, REWARM_S, lambda: int(renewal.clock() * 1e9), rough=True)
        for _ in range(TRAINS):
            if renewal.gaps:
                renewal.wait(min(PAUSE_S, renewal.gaps[int(renewal.chance() * len(renewal.gaps))]))
            if not self._mixes_in(session, MIXED_IN_TURN):
                taken = self._timed()
                if self._host:  # it is as a SAME train is
                    self._found[SAME].append(taken / renewal.count)
            if all(self._found.values()):
                break
        for alike in (SAME, NEW):
            while not self._found[alike]:
                self._make(session, alike)
                self._mix_in(session)
        self._begun = True
        self.end_turn()

    def _timed(self) -> int:
        """A timed train; returns ns, all together."""
        clock, renewal = self.renewal.clock, self.renewal
        began = clock()
        taken = self._session.time_runs(renewal.count, renewal.cold)
        self._ended, self._begun = clock(), True
        self._sample_s = self._ended - began
        return taken

    def _make(self, session: Renewable, alike: int | None = None) -> None:
        """Make the inputs of the next train that is mixed in. alike: NEW or SAME (None: one of them, at
        random)."""
        self._made = (SAME if self.renewal.chance() < 0.5 else NEW) if alike is None else alike
        session.renew(self.renewal.count, self._made)

    def _mixes_in(self, session: Renewable, share: float) -> bool:
        """At random, in this share of all cases: mix a train in. Returns whether one was."""
        if self._made is None or self.renewal.chance() >= share:
            return False
        self._mix_in(session)
        return True

    def _mix_in(self, session: Renewable) -> None:
        """Run the train whose inputs are made, note its time, and make those of the next one."""
        clock, alike = self.renewal.clock, self._made
        assert alike is not None
        if not self._host and isinstance(session, Witnessed):
            self.seen = timed_pass.thinned([*self.seen, *timed_pass.seen(session)])
        began = clock()
        taken = session.time_renewed(self.renewal.count, self.renewal.cold)
        self._ended = clock()
        if taken:
            self._found[alike].append(taken)
        self._make(session)
        self._mixed_in_s.append(clock() - began)


class Mixings:
    """The Mixing of each instance of a whole model. Only sessions with a kernel that a user wrote have one;
    other sessions are timed as they are. host: see Mixing."""

    def __init__(self, host: bool) -> None:
        self._renewal = Renewal()
        self._host = host
        self._held: dict[int, Mixing] = {}

    def of(self, session: Timeable) -> Timeable:
        """What is to be timed instead of the session: its Mixing, or the session itself. The same object at
        each call."""
        if not (isinstance(session, Renewable) and getattr(session, "users", False)):
            return session
        if id(session) not in self._held:
            self._held[id(session)] = Mixing(session, self._renewal, host=self._host)
        return self._held[id(session)]

    def drop(self, session: Timeable) -> None:
        """Forget the Mixing of a session that is about to be closed."""
        self._held.pop(id(session), None)

    def end_turn(self, session: Timeable) -> None:
        """Finish the current turn of the session (Mixing.end_turn), before its timed passes are checked."""
        if (mixing := self._held.get(id(session))) is not None:
            mixing.end_turn()

    def seen(self, session: Timeable) -> list[timed_pass.Seen]:
        """Recorded timed passes of the session (see Mixing); [] if it has no Mixing."""
        mixing = self._held.get(id(session))
        return mixing.seen if mixing is not None else []

    def settle(self, session: Timeable) -> bool:
        """Call Renewal.settle for the session. Returns False, and does nothing, if it has no Mixing."""
        mixing = self._held.get(id(session))
        if mixing is None:
            return False
        self._renewal.settle(mixing)
        return True

    @property
    def told(self) -> Renewal | None:
        """What was measured, if the time depends on how many inputs changed; else None."""
        return self._renewal if self._renewal.told else None


def _ratio(taken: Sequence[Mixed]) -> stats.Interval:
    """The ratio of the times new / same, with its interval, by the turns that have both. Disturbances only
    make trains longer, so the fastest train of each kind counts in each turn."""
    both = [one for one in taken if one.new_ns and one.same_ns]
    new, same = [min(one.new_ns) for one in both], [min(one.same_ns) for one in both]
    return stats.ratio_interval(new, same, range(len(new)), range(len(same)))


def _trains(taken: Sequence[Mixed]) -> int:
    """How many trains there are of the kind of which there are fewer."""
    return min(sum(len(one.new_ns) for one in taken), sum(len(one.same_ns) for one in taken))


def _slower(taken: Sequence[Mixed]) -> float:
    """By how many standard deviations NEW trains take more than HANGS times as long as SAME ones more often
    than the other way round. 0 where the fastest of them does not."""
    new = [ns for one in taken for ns in one.new_ns]
    same = sorted(ns for one in taken for ns in one.same_ns)
    fastest = round((len(same) + 1) / (len(new) + 1))  # the rank that is expected of as many as are new
    if min(new) <= HANGS * same[max(0, fastest - 1)]:
        return 0.0
    times = np.array(new + same)
    longer = (times[:, None] > HANGS * times).astype(np.int64)
    longer -= longer.T

    def more_often(order: np.ndarray) -> int:
        return int(longer[np.ix_(order[: len(new)], order[len(new) :])].sum())

    random = np.random.default_rng(len(times))
    mixtures = [more_often(random.permutation(len(times))) for _ in range(MIXTURES)]
    return more_often(np.arange(len(times))) / max(1e-9, float(np.std(mixtures)))
