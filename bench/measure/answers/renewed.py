"""Does the time of a kernel depend on how many of its inputs changed?

The inputs of one timed pass differ from those of the next in only a few values. A kernel can exploit this: it
compares its inputs with those of the pass before, and computes only what the changes affect. Such a kernel is
correct on every pass, but faster than its work allows. Below, "honest" means: it computes everything.

Therefore two kinds of trains (passes in a row) are mixed in at random between the timed trains: some over
inputs that are all new (NEW), others over inputs that differ in only a few values, like those of timed passes
(SAME). Everything else is equal for both (engine.stirring.Renewable). The ratio of their times shows the
effect.

It does not help a kernel to be honest over new inputs and for some time after them. SAME trains may come
anywhere between the timed trains, and a kernel knows as much about the past in them as in timed trains. So it
is honest in the same share of both. Over new inputs it has to do all of its work. No NEW train comes right
before a SAME train.

A kernel whose time depends on new inputs need not be dishonest. A processor learns to predict a branch whose
values it has met a hundred times: a ReLU by NumPy's `y[y < 0] = 0` with 16,384 values is at least 1.5 times
as fast then. So there is no accusation. If the time clearly depends on new inputs, a note says so, and the
time over new inputs is shown.

One thing could still tell a kernel which trains are mixed in: before them all values are written, and a clock
shows that pause. So some timed trains come after a pause of the same length, in which nothing is done. If a
kernel is slower in these, it was honest only after pauses, and a note says so. (Caches could tell, too: the
pause fills them with the written values. If timed trains are far faster than all NEW trains, a note says so.)
"""

from __future__ import annotations

import itertools
import secrets
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bench.measure.answers import timed_pass
from bench.measure.timing import Timeable
from bench.results import stats
from bench.words import units
from engine import backend
from engine.stirring import NEW, SAME, Renewable, Witnessed

HANGS = 1.1  # the time depends on new inputs if the whole interval of the ratio new / same is above this
WAITED = 8  # timed trains after a pause that are needed for a note; it has to be confirmed by as many again
# Timed trains are "far faster" if a pass of the fastest NEW train takes at least FAR times as long, and
# FAR_NS ns longer. The margin is wide: different things go before the trains, and the time for starting one,
# which is subtracted, is known only to some microseconds.
FAR, FAR_NS = 1.5, 5_000.0
# There is a note if passes after a pause take more than HANGS times as long, and PAUSED_NS ns longer.
PAUSED_NS = 1_000.0
# Turns from which the ratio is computed: at least, at most; and seconds for those beyond the fewest.
FEWEST, MOST, SECONDS = 5, 30, 1.0
# In the first ASKED turns, a kind of train that was not drawn is run at the end of the turn.
ASKED = 10
HURRIED, LONG_S = 3, 5.0  # after LONG_S seconds, so many turns are enough
# Passes of a train at most; and about how many ns a train takes if none was timed before.
PASSES, TRAIN_NS = 64, 1e6
# Probability that a train of each kind comes before a timed one; smaller if it takes longer than a timed one.
# FIRST: that a SAME train comes before the first timed train of a turn, which may be the only one.
MIXED, FIRST = 1 / 8, 1 / 3
# A turn that is run only for the ratio has at most: seconds of warm-up, warm-up trains, and timed trains.
REWARM_S, MOST_WARM, TIMED = 0.05, 50, 16
PAUSE_S = 0.25  # seconds of a pause at most


@dataclass(frozen=True)
class Mixed:
    """The trains that were mixed into a turn (or several turns in a row) of one instance.

    instance: its number, the first is 0. new_ns: ns of a pass, one value for each train over all-new inputs.
    same_ns: the same for inputs as timed passes have them. Neither is empty.
    """

    instance: int
    new_ns: tuple[float, ...]
    same_ns: tuple[float, ...]


def _busy_wait(seconds: float) -> None:
    """Wait without giving up the core: an idle core needs time to wake up, which would slow the next train
    down."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


@dataclass
class Renewal:
    """What was measured over all-new inputs, for all instances of one contender, and what follows from it.
    told: a sentence if the time depends on how many inputs changed; "" if not, or if `settle` was not called
    yet."""

    clock: Callable[[], float] = time.monotonic  # seconds
    chance: Callable[[], float] = secrets.SystemRandom().random  # from 0 to 1
    wait: Callable[[float], None] = _busy_wait  # waits for seconds
    taken: list[Mixed] = field(default_factory=list)
    timed_ns: list[float] = field(default_factory=list)  # ns of a pass, for each timed train
    # (ns of a pass in a timed train, ns of a pass in the next train, which came after a pause)
    paused_ns: list[tuple[float, float]] = field(default_factory=list)
    told: str = ""
    numbers: itertools.count[int] = field(default_factory=itertools.count)  # of the next instance

    def settle(self, mixing: Mixing) -> None:
        """Run turns of `mixing` until it is clear whether the ratio of the times new / same is above HANGS,
        or until there were enough turns. A ratio above HANGS has to be confirmed by new turns. If it is not
        above, compare timed trains with those after a pause. Sets `told`."""
        self._until_clear(mixing, 0)
        if not _clearly_slower(self.taken):
            self.told = self._timed_too_fast(mixing)
            return
        before = len(self.taken)
        self._until_clear(mixing, before)
        if not _clearly_slower(self.taken[before:]):
            self.told = self._timed_too_fast(mixing)
            return
        found = _ratio(self.taken)
        new = statistics.median(ns for one in self.taken for ns in one.new_ns)
        same = statistics.median(ns for one in self.taken for ns in one.same_ns)
        self.told = (
            f"is faster where few of its inputs changed: {units.duration(same)} against "
            f"{units.duration(new)} over inputs all new, which take {found.low:.2f} to {found.high:.2f} "
            "times as long; its time is the one over new inputs"
        )

    def _timed_too_fast(self, mixing: Mixing) -> str:
        """The note if timed trains are faster than trains after a pause, or far faster than all trains over
        new inputs; else "". Runs further trains after pauses."""
        if len(self.timed_ns) < FEWEST:
            return ""
        for enough in (WAITED, 2 * WAITED):
            while len(self.paused_ns) < enough and mixing.pause(beside=True):
                pass
            if not (found := self._slower_after_pauses()):
                break
        else:
            return found
        typical, new = statistics.median(self.timed_ns), min(ns for one in self.taken for ns in one.new_ns)
        if new < max(FAR * typical, typical + FAR_NS):
            return ""
        return (
            f"is faster in timed passes, where few inputs changed ({units.duration(typical)}), than over "
            f"inputs all new ({units.duration(new)} and more); its time is the one over new inputs"
        )

    def _slower_after_pauses(self) -> str:
        """The note if trains take longer after a pause; else "". Disturbances only make trains longer, so the
        lower quartile and the fastest train are compared."""
        timed, paused = (
            (sorted(of) for of in zip(*self.paused_ns, strict=True)) if self.paused_ns else ([], [])
        )
        if len(paused) < WAITED:
            return ""
        of, after = timed[len(timed) // 4], paused[len(paused) // 4]
        if min(after / of, paused[0] / timed[0]) <= HANGS or after - of <= PAUSED_NS:
            return ""
        return (
            f"is faster in timed passes ({units.duration(of)}) than in those that a pause goes before "
            f"({units.duration(after)}), as before inputs all new; its time is the one over these"
        )

    def _until_clear(self, mixing: Mixing, start: int) -> None:
        """Run turns until it is clear whether the ratio of taken[start:] is above HANGS."""
        started = self.clock()
        while len(self.taken) < start + FEWEST:
            mixing.turn()
            if len(self.taken) >= start + HURRIED and self.clock() - started > LONG_S:
                break
        end = self.clock() + SECONDS
        while (found := _ratio(self.taken[start:])).low <= HANGS < found.value:
            if len(self.taken) >= start + MOST or self.clock() > end:
                break
            mixing.turn()

    @property
    def untaken(self) -> str:
        """Why the case has no time if caches are to be cold: over new inputs they are warm. Needs `told`."""
        return f"{self.told}, which is not taken with cold caches"

    @property
    def samples_ns(self) -> list[float]:
        """ns of a pass over new inputs, for all trains; each Mixed of `taken` is a round."""
        return [round(ns, 1) for one in self.taken for ns in one.new_ns]

    @property
    def rounds(self) -> list[int]:
        """Index in samples_ns at which each round begins."""
        return [0, *itertools.accumulate(len(one.new_ns) for one in self.taken)][:-1]

    @property
    def instances(self) -> list[int]:
        """Number of each round's instance; [] if all are of the same one."""
        found = [one.instance for one in self.taken]
        return found if len(set(found)) > 1 else []


class Mixing:
    """A session that is timed in the place of another one, and mixes NEW and SAME trains in between the timed
    ones. There is one for each instance.

    session: the one that is wrapped. If it is not Renewable, nothing is mixed in. renewal: collects the times
    of all instances (None: a new one). afresh: called before each turn that `turn` runs, to change the
    inputs. pauses: whether some trains come after a pause; only for a user's kernel on the host, because an
    idle GPU needs time to wake up. seen: recorded timed passes that were fetched before a train was mixed in;
    after it the session has them no more.
    """

    def __init__(
        self,
        session: Timeable,
        renewal: Renewal | None = None,
        afresh: Callable[[], None] = lambda: None,
        pauses: bool = False,
    ) -> None:
        self.renewal = renewal or Renewal()
        self.seen: list[timed_pass.Seen] = []
        self._session, self._afresh, self._pauses = session, afresh, pauses
        # Checked only once: isinstance with a protocol takes longer than starting a train.
        self._renewable = session if isinstance(session, Renewable) else None
        self._instance = next(self.renewal.numbers)
        # ns of a pass of the trains that were mixed in and are not in renewal.taken yet
        self._found: dict[int, list[float]] = {NEW: [], SAME: []}
        self._begun = False  # whether a timed train of this turn was run
        self._count = 1  # passes of the last timed train
        self._last_ns = 0.0  # and what one of these took
        # Seconds of a timed train, and of one that is mixed in, writing its inputs included; 0: none yet.
        self._sample_s, self._mixed_in_s = 0.0, 0.0

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
        """Time `count` passes of the session; returns ns, all together. Before that, a train may be mixed in,
        or one after a pause; their times are not in the result. cold: with cold caches."""
        self._count = 1 if cold else count
        if self._renewable is not None and self._sample_s:
            self._maybe_mix_in(self._renewable)
        clock = self.renewal.clock
        began = clock()
        taken = self._session.time_runs(count, cold)
        self._sample_s, self._begun = clock() - began, True
        if not cold:
            self._last_ns = taken / count
            self.renewal.timed_ns.append(self._last_ns)
        return taken

    def warm_runs(self, count: int) -> int:
        """End the turn before, and run `count` warm-up passes; returns their ns (engine.backend.Warmed).
        Every turn begins with this call."""
        self.end_turn()
        return backend.warm_runs(self._session, count)

    def end_turn(self) -> None:
        """Finish the current turn: in the first turns, run the kinds of trains that were not drawn. If there
        are trains of both kinds, add them to `renewal.taken`."""
        session = self._renewable
        if not self._begun or session is None:
            return
        self._begun, found = False, self._found
        # In this order: NEW never comes right before SAME.
        for alike in (SAME, NEW) if len(self.renewal.taken) < ASKED else ():
            if not found[alike]:
                self._mix_in(session, alike)
        if not all(found.values()):
            return
        self.renewal.taken.append(Mixed(self._instance, tuple(found[NEW]), tuple(found[SAME])))
        self._found = {NEW: [], SAME: []}

    def turn(self) -> None:
        """Run one more turn, only to mix trains in; the samples of its timed trains are not kept. The session
        has to be Renewable."""
        session = self._renewable
        assert session is not None
        self.end_turn()
        if not self._sample_s:
            self._count = max(1, min(PASSES, round(TRAIN_NS / max(1, self._session.time_runs(1)))))
        self._afresh()
        began = self.renewal.clock()
        for _ in range(MOST_WARM):
            backend.warm_runs(self._session, self._count)
            if self.renewal.clock() - began > REWARM_S:
                break
        for _ in range(TIMED):
            self._maybe_mix_in(session)
            self._session.time_runs(self._count)
            self._begun = True
            if all(self._found.values()):
                break
        for alike in (SAME, NEW):
            if not self._found[alike]:
                self._mix_in(session, alike)
        self.end_turn()

    def _maybe_mix_in(self, session: Renewable) -> None:
        """Before a timed train: run a SAME train, a NEW train, a train after a pause, or nothing, at
        random."""
        rare = min(1.0, self._sample_s / self._mixed_in_s) if self._mixed_in_s else 1.0
        chance, drawn = MIXED * rare, self.renewal.chance()
        old = chance if self._begun else FIRST * rare
        if drawn < old:
            self._mix_in(session, SAME)
        elif drawn < old + chance:
            self._mix_in(session, NEW)
        elif drawn < old + 2 * chance and self._last_ns:
            self.pause()

    def pause(self, beside: bool = False) -> bool:
        """Run a train after a pause that is as long as writing all inputs takes. Its time is compared with
        the timed train before it; both go to `renewal.paused_ns`. beside: first run a train without a pause,
        to compare with. Returns False, and runs nothing, if there are no pauses for this session or their
        length is not known yet."""
        if not self._pauses or not self._mixed_in_s:
            return False
        if beside:
            self._last_ns = self._session.time_runs(self._count) / self._count
        self.renewal.wait(min(self._mixed_in_s, PAUSE_S))
        taken = self._session.time_runs(self._count) / self._count
        self.renewal.paused_ns.append((self._last_ns, taken))
        return True

    def _mix_in(self, session: Renewable, alike: int) -> None:
        """Run a train, and note its time. alike: NEW or SAME."""
        if isinstance(session, Witnessed):
            self.seen = timed_pass.thinned([*self.seen, *timed_pass.seen(session)])
        began = self.renewal.clock()
        self._found[alike].append(session.time_renewed(min(self._count, PASSES), alike))
        self._mixed_in_s = self.renewal.clock() - began


class Mixings:
    """The Mixing of each instance of a whole model. Only sessions with a kernel that a user wrote have one;
    other sessions are timed as they are."""

    def __init__(self) -> None:
        self._renewal = Renewal()
        self._held: dict[int, Mixing] = {}

    def of(self, session: Timeable) -> Timeable:
        """What is to be timed instead of the session: its Mixing, or the session itself. The same object at
        each call."""
        if not (isinstance(session, Renewable) and getattr(session, "users", False)):
            return session
        if id(session) not in self._held:
            self._held[id(session)] = Mixing(session, self._renewal, pauses=True)
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
    """The ratio of the times new / same, with its interval. Disturbances only make trains longer, so the
    fastest train of each kind counts in each turn."""
    new, same = [min(one.new_ns) for one in taken], [min(one.same_ns) for one in taken]
    return stats.ratio_interval(new, same, range(len(new)), range(len(same)))


def _clearly_slower(taken: Sequence[Mixed]) -> bool:
    """Whether passes over new inputs take more than HANGS times as long: by the whole interval of the ratio,
    and by the fastest trains of all turns. Disturbances only make trains longer, so on a busy machine the
    fastest ones say more than the mean."""
    fastest = min(min(one.new_ns) for one in taken) / min(min(one.same_ns) for one in taken)
    return min(_ratio(taken).low, fastest) > HANGS
