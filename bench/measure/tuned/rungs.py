"""Which of our rungs is the fastest right one for each step of a model on this machine: judged, timed
together, kept (engine.planning.choices).

All rungs of a step are fed the same inputs, whose answer is computed once for all batch sizes. They are tried
in the order in which they were fast at a batch size that is near, else in the ladder's; one that took a third
longer than the fastest there is left out. One whose first pass is far slower than the best's is let go at
once; the others are judged in some images and looked at for a moment, those near the best are timed
interleaved, and the fastest is judged once more in every image: only then is it taken, and where it fails,
the next best. What is known is kept before each rung is tried, so that one that takes the process with it is
passed over by the next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import msgspec

from bench.judge.batch_check import BatchCheck
from bench.judge.samples import repeated
from bench.measure.timing import Rules, time_together, warm_up
from bench.measure.tuned.reference import DeviceLost
from bench.measure.tuned.rung_ledger import BROKE, SLOWER, UNTRIED, Ledger
from engine import rung_devices
from engine.backend import Options
from engine.graph.graph import Graph
from engine.machine import driver as cuda_driver
from engine.planning import choices, planner, step_fusion
from engine.planning.choices import Choice, TriedRung
from engine.planning.planner import Chosen
from engine.rung_rows import Given
from engine.rung_session import RungSession
from kernels.errors import KernelscopeError, OutOfMemoryError
from kernels.ops import Params
from kernels.registry import Rung

FIRST_S = 0.005  # of the short look at each rung
FINAL = Rules(warmup_s=0.005, rewarm_s=0.002, rounds=3, min_s=0.015, width=0.02, budget_s=0.1)
NEAR = 1.2  # how much slower than the best a rung may look and still be timed
CLEAR = 1.5  # of a single pass: so much slower is not near, and needs no longer look
MOST = 4  # rungs timed together
FAR, IN_A_ROW = 4.0, 3  # a first pass so much slower is enough; after so many in a row the rest are not tried
BEHIND = 1.33  # so many times as slow at a batch size that is near: not tried where another is right
SHORT_NS, PASSES = 1e6, 3  # of shorter passes the fastest of a few counts


@dataclass(frozen=True)
class Untimed:
    """Params whose rungs were not timed yet, with the node that they are of. rungs: the candidates."""

    params: Params
    node: str
    rungs: tuple[Rung, ...]


def wanted(graph: Graph, batch: int, device: str, precision: str, options: Options) -> tuple[Untimed, ...]:
    """The distinct params of a plan with two rungs or more to choose from and no choice kept; of both plans
    where times decide whether two operators are one step. Nodes whose rung is named, and models that the
    engine refuses, want none."""
    gpu = cuda_driver.device() if device == "cuda" else None
    if device == "cuda" and gpu is None:
        return ()
    capability = gpu.capability if gpu else None
    untold = planner.ladder_choice(replace(options, tuned=False), capability, precision)
    found: dict[tuple[Params, bool], Untimed] = {}

    def choose(on: str, params: Params, node: str, weights_known: bool) -> Chosen:
        if node not in options.rungs:
            rungs = choices.candidates(on, params, precision, weights_known, capability)
            found.setdefault((params, weights_known), Untimed(params, node, rungs))
        return untold(on, params, node, weights_known)

    try:
        for joins in step_fusion.ways(device, options, precision):
            planner.plan(graph, batch, device, precision, options, choose=choose, joined=joins)
    except KernelscopeError:
        return ()
    return tuple(item for item in found.values() if _lacks(item, device, precision, options))


def _lacks(item: Untimed, device: str, precision: str, options: Options) -> bool:
    if len(item.rungs) < 2:
        return False
    kept = choices.read(device, item.params, precision, item.rungs, options.threads)
    return kept is None or not kept.done


@dataclass
class _Ready:
    """A rung that was found right, with its session. one_ns: its first pass."""

    rung: Rung
    session: RungSession
    first_ns: float
    one_ns: float


@dataclass
class RungTuner:
    """Times the rungs of one step. progress hears what is going on, and may raise to end it. lost: whether
    the device's context has failed, asked after a fault."""

    item: Untimed
    device: str
    precision: str
    options: Options
    progress: Callable[[str, float | None], None]
    lost: Callable[[], bool] = lambda: False
    prepare: Callable[..., RungSession] = rung_devices.prepare
    _ready: list[_Ready] = field(default_factory=list)
    _one_ns: dict[str, float] = field(default_factory=dict)  # first passes of those that are right
    _known: set[str] = field(default_factory=set)  # what was tried in this process

    def run(self) -> Choice:
        """The choice, kept and returned. Raises DeviceLost, OutOfMemoryError and UnsupportedError where the
        step itself cannot be tried, KernelError where nothing can be kept, and what `progress` raises."""
        item = self.item
        self._ledger = Ledger(self.device, item.params, self.precision, item.rungs, self.options.threads)
        self._check, self._given = self._drawn()
        try:
            while True:
                self._look()
                self._time()
                if self._confirmed():
                    return self._ledger.finish()
        finally:
            for ready in self._ready:
                ready.session.close()
            self._ledger.flush()

    def _drawn(self) -> tuple[BatchCheck, list[Given]]:
        params = self.item.params
        try:
            sample = repeated(params)
            return BatchCheck(params, sample, self.precision), sample.given(params)
        except MemoryError as error:
            raise OutOfMemoryError(f"memory did not suffice to try {params.words}") from error

    # ------------------------------------------------------------------------------------------------ stages

    def _look(self) -> None:
        """Try every rung that may win and is not known yet; keep the sessions of the best."""
        slow, order = 0, self._order()
        for number, rung in enumerate(order):
            if rung.name in self._known:
                continue
            pace = self._ledger.paces.get(rung.name, 0.0)
            # One that was far slower elsewhere too stands behind those that were less so.
            enough = 1 if pace >= FAR else IN_A_ROW
            behind = slow >= enough or (pace >= BEHIND and bool(self._one_ns))
            if behind and rung is not self.item.rungs[0]:
                tried = TriedRung(rung=rung.name, refused=UNTRIED)
            else:
                named = f"{rung.name} ({number + 1} of {len(order)})"
                self.progress(f"checking {self.item.node}'s kernels: {named}", number / len(order))
                tried = self._try(rung)
                if tried.first_ns is not None:
                    slow = slow + 1 if tried.refused == SLOWER else 0
            self._known.add(rung.name)
            self._note(tried)

    def _order(self) -> list[Rung]:
        """The rungs as they were fast at the nearest batch size; then those that are not known from there, in
        the ladder's order, and last those that were far slower. What the ladder takes is never put back."""

        def place(item: tuple[int, Rung]) -> tuple[int, float]:
            number, rung = item
            pace = self._ledger.paces.get(rung.name)
            if pace is None:
                return (0, FAR) if number == 0 else (1, number)
            return (0 if pace < FAR or number == 0 else 2, pace)

        return [rung for _, rung in sorted(enumerate(self.item.rungs), key=place)]

    def _try(self, rung: Rung) -> TriedRung:
        if passed := self._ledger.passed_over(rung.name):
            return passed
        self._ledger.trying(rung.name)
        session = None
        try:
            session = self._prepared(rung)
            best = min(self._one_ns.values(), default=None)
            one_ns = self._first_pass(session, best)
            if best is not None and one_ns > FAR * best:
                session.close()
                return TriedRung(rung=rung.name, first_ns=one_ns, refused=SLOWER)
            if reason := self._check.somewhere(session):
                session.close()
                return TriedRung(rung=rung.name, refused=reason)
            near = best is None or one_ns <= CLEAR * best
            first_ns = warm_up(session, 3, FIRST_S) if near else one_ns
            self._hold(_Ready(rung, session, first_ns, one_ns))
            return TriedRung(rung=rung.name, first_ns=first_ns)
        except (KernelscopeError, MemoryError) as error:
            if session is not None:
                session.close()
            return TriedRung(rung=rung.name, refused=str(error) or type(error).__name__)

    @staticmethod
    def _first_pass(session: RungSession, best: float | None) -> float:
        """Nanoseconds of the first pass; of short ones the fastest of a few."""
        passes = [float(session.time_runs(1))]
        while len(passes) < PASSES and passes[-1] < SHORT_NS and not (best and min(passes) <= best):
            passes.append(float(session.time_runs(1)))
        return min(passes)

    def _prepared(self, rung: Rung) -> RungSession:
        """Its session; where memory does not suffice beside those that are held, the slowest of them go."""
        while True:
            try:
                return self.prepare(rung, self.item.params, self._given, self.options.threads)
            except (OutOfMemoryError, MemoryError):
                if not self._ready:
                    raise
                self._ready.pop().session.close()

    def _hold(self, ready: _Ready) -> None:
        """Keep a session where it is among the best; close those that are not."""
        self._one_ns[ready.rung.name] = ready.one_ns
        self._ready = sorted([*self._ready, ready], key=lambda r: r.first_ns)
        limit = NEAR * self._ready[0].first_ns
        stay = [r for r in self._ready if r.first_ns <= limit][:MOST]
        for other in self._ready[len(stay) :]:
            other.session.close()
        self._ready = stay

    def _time(self) -> None:
        """The best together."""
        known = [tried for ready in self._ready if (tried := self._ledger.choice.of(ready.rung.name))]
        if len(known) < 2 or all(tried.time_ns is not None for tried in known):
            return
        names = ", ".join(tried.rung for tried in known)
        self.progress(f"timing {self.item.node}'s best kernels: {names}", None)
        self._ledger.flush()
        timings = time_together(
            {ready.rung.name: ready.session for ready in self._ready},
            FINAL,
            devices={ready.rung.name: self.device for ready in self._ready},
        )
        for tried in known:
            timing = timings[tried.rung]
            if timing.error:
                self._out(msgspec.structs.replace(tried, time_ns=None, refused=str(timing.error)))
            else:
                self._note(msgspec.structs.replace(tried, time_ns=timing.median_ns))

    def _confirmed(self) -> bool:
        """Whether every image of the best one's answer is right. Where it is not, it is refused, and those
        that were let go for being slower than it are to be tried once more."""
        tried = self._ledger.choice.of(self._ledger.best())
        if tried is None or tried.refused:
            return True  # none is right
        self.progress(f"checking {self.item.node}'s fastest kernel in full: {tried.rung}", None)
        self._ledger.trying(tried.rung)
        reason = self._wrong_somewhere(tried.rung)
        if not reason:
            return True
        self._out(msgspec.structs.replace(tried, time_ns=None, refused=reason))
        self._known -= self._ledger.put_out()
        return False

    def _wrong_somewhere(self, name: str) -> str:
        held = next((ready.session for ready in self._ready if ready.rung.name == name), None)
        try:
            session = held or self._prepared(next(rung for rung in self.item.rungs if rung.name == name))
            try:
                return self._check.everywhere(session)
            finally:
                if held is None:
                    session.close()
        except (KernelscopeError, MemoryError) as error:
            return str(error) or type(error).__name__

    def _out(self, tried: TriedRung) -> None:
        """One that was taken for right, and is not."""
        for ready in self._ready:
            if ready.rung.name == tried.rung:
                ready.session.close()
        self._ready = [ready for ready in self._ready if ready.rung.name != tried.rung]
        self._one_ns.pop(tried.rung, None)
        self._note(tried)

    def _note(self, tried: TriedRung) -> None:
        """What is known of a rung now. Raises DeviceLost, the rung being known."""
        broke = bool(tried.refused) and tried != self._ledger.choice.of(tried.rung) and self.lost()
        if broke:
            tried = msgspec.structs.replace(tried, refused=f"{BROKE}: {tried.refused}")
        self._ledger.note(tried)
        if broke:
            raise DeviceLost(f"{self.item.params.op} {tried.rung}: {tried.refused}")
