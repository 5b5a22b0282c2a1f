"""Which of our rungs is the fastest right one for each step of a model on this machine: judged, timed
together, kept (engine.choices).

All rungs of a step are fed the same inputs, the oracle's answer to which is computed once. Each is looked at
for a moment, in the ladder's order, and the best few are timed interleaved. What is known is kept after each
rung, so that one that takes the process with it is passed over by the next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import msgspec
import numpy as np

from bench import accuracy
from bench.judge.suite import words
from bench.judge.trial import Sample, draw
from bench.records import ErrorStats
from bench.timing import Rules, time_together, warm_up
from bench.tune_reference import ATTEMPTS, DeviceLost
from engine import choices, cuda_driver, planner, rung_session
from engine.backend import Options
from engine.choices import Choice, Tried
from engine.graph import Graph
from engine.planner import Chosen
from engine.rung_session import POISONS, RungSession
from kernels.errors import KernelscopeError, OutOfMemoryError
from kernels.params import Params
from kernels.registry import Rung

FIRST_S = 0.01  # of the short look at each rung
FINAL = Rules(warmup_s=0.01, rewarm_s=0.005, min_s=0.05, budget_s=0.3, width=0.03)
NEAR = 1.5  # how much slower than the best a rung may look and still be timed
MOST = 4  # rungs timed together, beside the ladder's own
TOO_SLOW = 20.0  # a first pass that takes so many times the best's is enough
HOPELESS, IN_A_ROW = 4.0, 3  # after so many in a row that are so much slower, those below are not tried
WORTH_IT = 0.02  # a rung that gains less on the ladder's own is not taken: that is noise
ENDED = "the process ended while it was tried"
BROKE = "it broke the device's context"
EDGE = 4  # images looked at, at each end and in the middle of a batch that repeats the oracle's


@dataclass(frozen=True)
class Wanted:
    """Params whose rungs were not timed yet, with the node that they are of. rungs: the candidates."""

    params: Params
    node: str
    rungs: tuple[Rung, ...]


def wanted(graph: Graph, batch: int, device: str, precision: str, options: Options) -> tuple[Wanted, ...]:
    """The distinct params of a plan with two rungs or more to choose from and no choice kept. Nodes whose
    rung is named, and models that the engine refuses, want none."""
    gpu = cuda_driver.device() if device == "cuda" else None
    if device == "cuda" and gpu is None:
        return ()
    capability = gpu.capability if gpu else None
    untold = planner.ladder_choice(replace(options, tuned=False), capability, precision)
    found: dict[tuple[Params, bool], Wanted] = {}

    def choose(on: str, params: Params, node: str, weights_known: bool) -> Chosen:
        if node not in options.rungs:
            rungs = choices.candidates(on, params, precision, weights_known, capability)
            found.setdefault((params, weights_known), Wanted(params, node, rungs))
        return untold(on, params, node, weights_known)

    try:
        planner.plan(graph, batch, device, precision, options, choose=choose)
    except KernelscopeError:
        return ()
    return tuple(item for item in found.values() if _lacks(item, device, precision, options))


def _lacks(item: Wanted, device: str, precision: str, options: Options) -> bool:
    if len(item.rungs) < 2:
        return False
    kept = choices.read(device, item.params, precision, item.rungs, options.threads)
    return kept is None or not kept.done


@dataclass
class _Ready:
    """A rung with its session."""

    rung: Rung
    session: RungSession
    first_ns: float


@dataclass
class RungTuner:
    """Times the rungs of one step. progress hears what is going on, and may raise to end it. lost: whether
    the device's context has failed, asked after a fault."""

    item: Wanted
    device: str
    precision: str
    options: Options
    progress: Callable[[str, float | None], None]
    lost: Callable[[], bool] = lambda: False
    prepare: Callable[..., RungSession] = rung_session.prepare
    _ready: list[_Ready] = field(default_factory=list)

    def run(self) -> Choice:
        """The choice, kept and returned. Raises DeviceLost, OutOfMemoryError and UnsupportedError where the
        step itself cannot be tried, KernelError where nothing can be kept, and what `progress` raises."""
        item = self.item
        kept = choices.read(self.device, item.params, self.precision, item.rungs, self.options.threads)
        self._choice = kept or Choice(ladder=item.rungs[0].name)
        self._suspect, self._attempts = self._choice.trying, self._choice.attempts
        self._sample, self._inputs = self._drawn()
        try:
            self._look()
            self._time()
        finally:
            for ready in self._ready:
                ready.session.close()
        self._put(rung=self._best(), done=True, timed_at=datetime.now(UTC).isoformat(timespec="seconds"))
        return self._choice

    def _drawn(self) -> tuple[Sample, list[np.ndarray]]:
        try:
            sample = draw(self.item.params, np.random.default_rng(0))
            return sample, sample.whole_inputs
        except MemoryError as error:
            raise OutOfMemoryError(f"memory did not suffice to try {words(self.item.params)}") from error

    # ------------------------------------------------------------------------------------------------ stages

    def _look(self) -> None:
        """Judge every rung that may win and look at it for a moment; keep the sessions of the best."""
        slow = 0
        for number, rung in enumerate(self.item.rungs):
            if slow == IN_A_ROW:
                self._note(Tried(rung=rung.name, refused="not tried: those above it are far slower"))
                continue
            self._say(f"trying {rung.name}", number / len(self.item.rungs))
            tried = self._try(rung)
            best = self._ready[0].first_ns if self._ready else None
            if tried.first_ns is not None and best is not None:
                slow = slow + 1 if tried.first_ns > HOPELESS * best else 0
            self._note(tried)

    def _try(self, rung: Rung) -> Tried:
        before = self._choice.of(rung.name)
        attempts = self._attempts + 1 if rung.name == self._suspect else 1
        if before is not None and before.refused.startswith((ENDED, BROKE)):
            return before
        if attempts > ATTEMPTS:
            return Tried(rung=rung.name, refused=ENDED)
        self._put(trying=rung.name, attempts=attempts)
        session = None
        try:
            session = self._prepared(rung)
            if reason := self._wrong(session):
                session.close()
                return Tried(rung=rung.name, refused=reason)
            first_ns = float(session.time_runs(1))
            long = first_ns > 1e9 * FIRST_S  # of a short one, a single pass says little
            if not (long and self._ready and first_ns > TOO_SLOW * self._ready[0].first_ns):
                first_ns = warm_up(session, 3, FIRST_S)
            self._hold(_Ready(rung, session, first_ns))
            return Tried(rung=rung.name, first_ns=first_ns)
        except (KernelscopeError, MemoryError) as error:
            if session is not None:
                session.close()
            return Tried(rung=rung.name, refused=str(error) or type(error).__name__)

    def _prepared(self, rung: Rung) -> RungSession:
        """Its session; where memory does not suffice beside those that are held, the slowest of them go."""
        while True:
            try:
                return self.prepare(rung, self.item.params, self._inputs, self.options.threads)
            except (OutOfMemoryError, MemoryError):
                if not self._ready:
                    raise
                self._ready.pop().session.close()

    def _hold(self, ready: _Ready) -> None:
        """Keep a session where it is among the best, beside the ladder's own; close those that are not."""
        self._ready = sorted([*self._ready, ready], key=lambda r: r.first_ns)
        limit = NEAR * self._ready[0].first_ns
        ladder = self._ladder()
        stay = [r for r in self._ready if r.first_ns <= limit][:MOST]
        for other in self._ready:
            if other not in stay and other.rung.name != ladder:
                other.session.close()
        self._ready = [r for r in self._ready if r in stay or r.rung.name == ladder]

    def _time(self) -> None:
        """The best together; the last pass of each is judged once more."""
        if len(self._ready) < 2:
            return
        self._say(f"timing {', '.join(ready.rung.name for ready in self._ready)} together", None)
        timings = time_together(
            {ready.rung.name: ready.session for ready in self._ready},
            FINAL,
            devices={ready.rung.name: self.device for ready in self._ready},
            on_turn=lambda name, _: self._say(f"timing {name}", None),
        )
        for ready in self._ready:
            timing, tried = timings[ready.rung.name], Tried(rung=ready.rung.name, first_ns=ready.first_ns)
            reason = str(timing.error) if timing.error else self._wrong(ready.session)
            time_ns = None if reason else timing.median_ns
            self._note(msgspec.structs.replace(tried, time_ns=time_ns, refused=reason))

    def _best(self) -> str:
        """The fastest by the longest look there was; the ladder's own where it is as good as that. Where none
        is right, the ladder's: the comparison then tells what is wrong with it."""
        right = [t for t in self._choice.tried if not t.refused and t.first_ns is not None]
        timed = [t for t in right if t.time_ns is not None] or right
        best = min(timed, key=_ns, default=None)
        ladder = self._ladder()
        own = next((t for t in timed if t.rung == ladder), None)
        if best is None or (own is not None and _ns(own) <= _ns(best) * (1 + WORTH_IT)):
            return ladder
        return best.rung

    # ------------------------------------------------------------------------------------------- the inside

    def _ladder(self) -> str:
        """What would be taken untimed, of the rungs that were not found wrong."""
        refused = {tried.rung for tried in self._choice.tried if tried.refused}
        names = [rung.name for rung in self.item.rungs]
        return next((name for name in names if name not in refused), names[0])

    def _wrong(self, session: RungSession) -> str:
        """Why the session's answer is none, or "": two passes on different poison, against float64, and
        nothing written beside."""
        for byte in POISONS:
            session.poison(byte)
            session.run()
            session.synchronize()
            stats = self._error(session.output())
            if not stats.ok:
                return stats.reason
        strays = session.strays()
        return strays[0].words if strays else ""

    def _error(self, got: np.ndarray) -> ErrorStats:
        sample = self._sample
        if sample.rows is None:
            return accuracy.error_stats(got, sample.expected, self.precision)
        count = len(sample.rows)
        middle = max(0, count // 2 - EDGE // 2)
        ends = [*range(EDGE), *range(middle, middle + EDGE), *range(count - EDGE, count)]
        rows = sorted({row for row in ends if 0 <= row < count})
        return accuracy.error_stats(got[rows], sample.expected[sample.rows[rows]], self.precision)

    def _note(self, tried: Tried) -> None:
        """Put what is known of a rung in the place of what was. Raises DeviceLost, the rung being known."""
        before = self._choice.of(tried.rung)
        broke = bool(tried.refused) and tried != before and self.lost()
        if broke:
            tried = msgspec.structs.replace(tried, refused=f"{BROKE}: {tried.refused}")
        known = [t for t in self._choice.tried if t.rung != tried.rung]
        self._put(tried=(*known, tried), trying="", attempts=0)
        if broke:
            raise DeviceLost(f"{self.item.params.op} {tried.rung}: {tried.refused}")

    def _put(self, **fields: object) -> None:
        self._choice = msgspec.structs.replace(self._choice, **fields)
        item = self.item
        choices.write(
            self.device, item.params, self.precision, item.rungs, self.options.threads, self._choice
        )

    def _say(self, text: str, fraction: float | None) -> None:
        self.progress(f"a kernel for {self.item.node}: {text}", fraction)


def _ns(tried: Tried) -> float:
    return tried.time_ns if tried.time_ns is not None else (tried.first_ns or float("inf"))
