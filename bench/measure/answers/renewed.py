"""Does the time of a kernel depend on how many of its inputs changed?

Timed passes differ from each other in few values. So a kernel that compares its inputs with those of the pass
before, and computes only what the changes touch, is right on every pass and faster than its work allows.
Therefore some of the timed trains, drawn at random, are over inputs that are all new, and others over inputs
as the timed passes have them, with everything else the same (engine.stirring.Renewable).

A kernel that is honest over new inputs, and for some time after them, gains nothing. The trains over old
inputs are drawn to lie anywhere among the timed ones: what a kernel knows about the past when it is timed, it
also knows in these. So however it decides when to be honest, it is honest in the same part of these as of the
timed ones; and over new inputs it has to do all of its work. No train over new inputs comes right before one
over old inputs.

Nobody is accused. A processor predicts a branch that depends on values which it met a hundred times (a relu
by NumPy's `y[y < 0] = 0`, 16,384 values, is 1.5 times as fast and more), and such a kernel is honest. If the
time clearly depends on new inputs, a note says so, and the time over new inputs is shown.

One thing could still tell a kernel which train is which: writing all values takes time, so there is a pause
before these trains, which a clock shows. So the same pause, in which nothing is done, comes before some of
the timed trains, too. A kernel that is slower after it was honest only after pauses, and a note says so.
(Caches tell, too: after such a pause they are full of what was written. If timed trains are far faster than
all trains over new inputs, a note says that, as well.)
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

HANGS = 1.1  # times as long over new inputs, by the whole interval
WAITED = 8  # timed trains after a pause, at least, of which something is said; as many again where it is
# So many times as long as the timed trains, and so much longer, takes even the fastest of those over new
# inputs: what goes before a train differs, and what is taken off is known to some microseconds alone.
FAR, FAR_NS = 1.5, 5_000.0
PAUSED_NS = 1_000.0  # by so much, too, a pass takes longer after a pause
FEWEST, MOST, SECONDS = 5, 30, 1.0  # turns of which it is known; and for how long more than the fewest
ASKED = 10  # turns in which both kinds are asked for at the latest at the end; later ones take what is drawn
HURRIED, LONG_S = 3, 5.0  # turns at least, of what takes so long
PASSES, TRAIN_NS = 64, 1e6  # of a train at most; and about how long one is of what nobody has timed yet
# How likely a train of each kind is to go before a timed one; less where it takes longer than that. The first
# of a turn, before which there may be no other chance, is met by one over old inputs more often.
MIXED, FIRST = 1 / 8, 1 / 3
# Of a turn that is taken to know more: warming up, and how many timed trains there are at most.
REWARM_S, MOST_WARM, TIMED = 0.05, 50, 16
PAUSE_S = 0.25  # at most


@dataclass(frozen=True)
class Mixed:
    """What was measured in a turn of an instance, in nanoseconds a pass: trains over new inputs, and those
    over inputs as timed passes have them."""

    instance: int
    new_ns: tuple[float, ...]
    same_ns: tuple[float, ...]


def _waited(seconds: float) -> None:
    """The core is kept: one that idles takes long to be awake again, and that is no kernel's doing."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


@dataclass
class Renewal:
    """Of all instances of what is judged. told: in words, that its time hangs on how much changed."""

    clock: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = secrets.SystemRandom().random
    wait: Callable[[float], None] = _waited
    taken: list[Mixed] = field(default_factory=list)
    timed_ns: list[float] = field(default_factory=list)  # a pass of each timed train
    # Of a timed train, and of the next, which a pause went before.
    paused_ns: list[tuple[float, float]] = field(default_factory=list)
    told: str = ""
    numbers: itertools.count[int] = field(default_factory=itertools.count)

    def settle(self, mixing: Mixing) -> None:
        """Take turns until it is clear on which side of HANGS the ratio is, or for so long; and who seems to
        be beyond it once more, by turns of their own."""
        self._until_clear(mixing, 0)
        if not _beyond(self.taken):
            self.told = self._beside_timed(mixing)
            return
        before = len(self.taken)
        self._until_clear(mixing, before)
        if not _beyond(self.taken[before:]):
            self.told = self._beside_timed(mixing)
            return
        found = _ratio(self.taken)
        new = statistics.median(ns for one in self.taken for ns in one.new_ns)
        same = statistics.median(ns for one in self.taken for ns in one.same_ns)
        self.told = (
            f"is faster where few of its inputs changed: {units.duration(same)} against "
            f"{units.duration(new)} over inputs all new, which take {found.low:.2f} to {found.high:.2f} "
            "times as long; its time is the one over new inputs"
        )

    def _beside_timed(self, mixing: Mixing) -> str:
        """What is told where timed trains are faster than after a pause, or far faster than all over new
        inputs; else ""."""
        if len(self.timed_ns) < FEWEST:
            return ""
        for enough in (WAITED, 2 * WAITED):
            while len(self.paused_ns) < enough and mixing.pause(beside=True):
                pass
            if not (found := self._after_pauses()):
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

    def _after_pauses(self) -> str:
        """What is told where trains take longer after a pause. What disturbs a train makes it longer: the
        faster ones count, and the fastest."""
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
        """By what was taken from there on."""
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
        """Why there is no time, where caches are to be cold: over new inputs they are warm."""
        return f"{self.told}, which is not taken with cold caches"

    @property
    def samples_ns(self) -> list[float]:
        """Of passes over new inputs, a round each turn."""
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


class Mixing:
    """One instance while it is timed, with the trains that `renewal` asks for among the others. seen: timed
    passes of it that can be looked at no more once such a train was run. afresh: what is done between two
    turns; pauses: whether some trains come after a pause (of what a user wrote, on the host: a device that
    idles takes long to be awake again). Of what is no Renewable nothing is asked."""

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
        # Asked once: of a protocol it takes longer than to start a train.
        self._renewable = session if isinstance(session, Renewable) else None
        self._instance = next(self.renewal.numbers)
        self._found: dict[int, list[float]] = {NEW: [], SAME: []}  # since there was some of both
        self._begun = False  # whether a timed train of this turn was run
        self._count = 1  # passes of the last timed train
        self._last_ns = 0.0  # and what one of these took
        self._sample_s, self._asked_s = 0.0, 0.0  # seconds that one takes, and one that is mixed in

    @property
    def one_thread(self) -> bool:
        """See engine.backend.in_one_thread."""
        return backend.in_one_thread(self._session)

    @property
    def parts_ns(self) -> Sequence[float]:
        return backend.parts_ns(self._session)

    def time_runs(self, count: int, cold: bool = False) -> int:
        """As the session's."""
        self._count = 1 if cold else count
        if self._renewable is not None and self._sample_s:
            self._draw(self._renewable)
        clock = self.renewal.clock
        began = clock()
        taken = self._session.time_runs(count, cold)
        self._sample_s, self._begun = clock() - began, True
        if not cold:
            self._last_ns = taken / count
            self.renewal.timed_ns.append(self._last_ns)
        return taken

    def warm_runs(self, count: int) -> int:
        """See engine.backend.Warmed: a turn begins with it."""
        self.end_turn()
        return backend.warm_runs(self._session, count)

    def end_turn(self) -> None:
        """What has yet to be known of this turn is asked now."""
        session = self._renewable
        if not self._begun or session is None:
            return
        self._begun, found = False, self._found
        for alike in (SAME, NEW) if len(self.renewal.taken) < ASKED else ():  # in this order: see the module
            if not found[alike]:
                self._ask(session, alike)
        if not all(found.values()):
            return
        self.renewal.taken.append(Mixed(self._instance, tuple(found[NEW]), tuple(found[SAME])))
        self._found = {NEW: [], SAME: []}

    def turn(self) -> None:
        """One that nobody keeps the samples of, but for what is asked among them."""
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
            self._draw(session)
            self._session.time_runs(self._count)
            self._begun = True
            if all(self._found.values()):
                break
        for alike in (SAME, NEW):
            if not self._found[alike]:
                self._ask(session, alike)
        self.end_turn()

    def _draw(self, session: Renewable) -> None:
        """Before a timed train: one of either kind, or none."""
        rare = min(1.0, self._sample_s / self._asked_s) if self._asked_s else 1.0
        chance, drawn = MIXED * rare, self.renewal.chance()
        old = chance if self._begun else FIRST * rare
        if drawn < old:
            self._ask(session, SAME)
        elif drawn < old + chance:
            self._ask(session, NEW)
        elif drawn < old + 2 * chance and self._last_ns:
            self.pause()

    def pause(self, beside: bool = False) -> bool:
        """A timed train, which nobody keeps the samples of, after as long a pause as goes before the others.
        Whether it has pauses, and it is known how long they are. beside: what it is held against is run now,
        too."""
        if not self._pauses or not self._asked_s:
            return False
        if beside:
            self._last_ns = self._session.time_runs(self._count) / self._count
        self.renewal.wait(min(self._asked_s, PAUSE_S))
        taken = self._session.time_runs(self._count) / self._count
        self.renewal.paused_ns.append((self._last_ns, taken))
        return True

    def _ask(self, session: Renewable, alike: int) -> None:
        if isinstance(session, Witnessed):
            self.seen = timed_pass.thinned([*self.seen, *timed_pass.seen(session)])
        began = self.renewal.clock()
        self._found[alike].append(session.time_renewed(min(self._count, PASSES), alike))
        self._asked_s = self.renewal.clock() - began


class Mixings:
    """Of the instances of a whole model. Those without a kernel of a user's are timed as they are."""

    def __init__(self) -> None:
        self._renewal = Renewal()
        self._held: dict[int, Mixing] = {}

    def of(self, session: Timeable) -> Timeable:
        """What is timed of it, the same each time."""
        if not (isinstance(session, Renewable) and getattr(session, "users", False)):
            return session
        if id(session) not in self._held:
            self._held[id(session)] = Mixing(session, self._renewal, pauses=True)
        return self._held[id(session)]

    def drop(self, session: Timeable) -> None:
        """It is about to be closed."""
        self._held.pop(id(session), None)

    def end_turn(self, session: Timeable) -> None:
        """It is looked at now."""
        if (mixing := self._held.get(id(session))) is not None:
            mixing.end_turn()

    def seen(self, session: Timeable) -> list[timed_pass.Seen]:
        mixing = self._held.get(id(session))
        return mixing.seen if mixing is not None else []

    def settle(self, session: Timeable) -> bool:
        """See Renewal.settle. Whether there was anything to be known."""
        mixing = self._held.get(id(session))
        if mixing is None:
            return False
        self._renewal.settle(mixing)
        return True

    @property
    def told(self) -> Renewal | None:
        """Where the time hangs on how much changed."""
        return self._renewal if self._renewal.told else None


def _ratio(taken: Sequence[Mixed]) -> stats.Interval:
    """How many times as long passes over new inputs take. What disturbs a train makes it longer: of several
    in a turn the fastest counts."""
    new, same = [min(one.new_ns) for one in taken], [min(one.same_ns) for one in taken]
    return stats.ratio_interval(new, same, range(len(new)), range(len(same)))


def _beyond(taken: Sequence[Mixed]) -> bool:
    """By the whole interval, and by the fastest of all: what disturbs a train makes it longer, so that on a
    busy machine these tell more than their mean."""
    fastest = min(min(one.new_ns) for one in taken) / min(min(one.same_ns) for one in taken)
    return min(_ratio(taken).low, fastest) > HANGS
