"""A sweep: which of several variants that do the same is the fastest one that is right.

Each is prepared, judged and looked at for a moment. What takes far longer than the best so far is not judged,
and after some such in a row the rest is not tried. The best are timed together, interleaved, by
bench.measure.timing. The winner is judged once more, thoroughly or in a new session, and where that finds it
wrong the next best takes its place; what was let go for being slower than a wrong one is tried again.

All that is known is stored before a variant runs, and with it the variant's name: the next process goes on
from there, and passes over one that has twice taken the process with it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Generic, Protocol, TypeVar

import msgspec

from bench.measure.timing import Rules, Timeable, time_together, warm_up
from engine.planning.choices import Choice, Tried, V
from kernels.errors import KernelError, KernelscopeError, OutOfMemoryError

ATTEMPTS = 2  # times that a variant may take the process with it
CLEAR = 1.5  # of a single pass: so much slower is not near, and needs no longer look
FAR, IN_A_ROW = 4.0, 3  # a first pass so much slower is enough; after so many in a row the rest are not tried
BEHIND = 1.33  # so many times as slow in another case that is near: not tried where another is right
PASSES = 3  # of which the fastest counts, where passes are short

ENDED = "the process ended while it was tried"
SLOWER = "far slower than the best, and not judged"
UNTRIED = "not tried: those above it, or it at a batch size near this one, are far slower"

Progress = Callable[[str, float | None], None]


class Tryable(Timeable, Protocol):
    """A session of a variant."""

    def close(self) -> None: ...


S = TypeVar("S", bound=Tryable)


class DeviceLost(KernelError):
    """The device's context in this process has failed; another process goes on where this one stopped."""


@dataclass(frozen=True)
class Looks:
    """How closely variants are looked at. first_s: seconds of the first look at what may win; final: how the
    best are timed together; near: how many times as slow as the best by the first look one may be for that;
    most: how many these are. short_ns: of shorter passes the fastest of a few is the first. far: how many
    times as slow a first pass is enough to let a variant go unjudged (infinity: all are judged). worth: the
    gain on the default below which the default is kept: noise. default: it is timed with the best however
    slow it looks. open: the sessions of the best stay open from the first look to the end; else each is
    closed after each look, and the winner is judged again in a new one."""

    final: Rules
    first_s: float
    near: float = 1.2
    most: int = 4
    short_ns: float = math.inf
    far: float = math.inf
    worth: float = 0.0
    default: bool = False
    open: bool = False


class Judge(Generic[V, S]):
    """Whether variants are right; this one asks nothing. Methods may raise KernelscopeError and MemoryError,
    which refuses the variant."""

    def first(self, session: S, tried: Tried[V]) -> Tried[V]:
        """What a first look at the answer says: `refused`, and how far off it is."""
        return tried

    def timed(self, session: S) -> str:
        """Why the answer after the timed passes is none; "" where it is one."""
        return ""

    def closely(self, tried: Tried[V], whole: bool = False) -> Tried[V]:
        """`strict`: whether all parts of the variant are right. whole: look at all of them though one is
        wrong."""
        return msgspec.structs.replace(tried, strict=True)

    def again(self, session: S) -> tuple[str, str]:
        """Of the winner: why it gives no answer after all, and why that is not within the bound; "" where it
        does and is."""
        return "", ""


@dataclass
class Sweep(Generic[V, S]):
    """variants: the one that is taken unmeasured first. prepare: a session of one, its inputs bound. store:
    keeps the choice as it grows. label: what is chosen, for who follows. known: an earlier sweep that did not
    end. order: in which they are tried, if not as they stand. paces: how many times as slow as the best they
    were in a case that is near. progress hears what is going on, and may raise to end it. lost: whether the
    device's context has failed, asked after a fault."""

    variants: Sequence[V]
    prepare: Callable[[V], S]
    judge: Judge[V, S]
    store: Callable[[Choice[V]], None]
    looks: Looks
    label: str
    progress: Progress
    device: str = "cpu"
    known: Choice[V] | None = None
    order: Iterable[V] | None = None
    paces: Mapping[V, float] = field(default_factory=dict)
    name: Callable[[V], str] = str
    lost: Callable[[], bool] = lambda: False

    def __post_init__(self) -> None:
        self.choice = self._before = self.known or Choice(default=self.variants[0])
        self._stored = True
        self._open: dict[V, S] = {}
        self._passes = {t.variant: t.first_ns for t in self.choice.tried if t.first_ns and not t.refused}
        self._confirmed_once: set[V] = set()
        self._dropped = False  # whether one that was taken for right was refused

    def run(self) -> Choice[V]:
        """The choice, stored and returned. Raises DeviceLost, and what `store` and `progress` raise."""
        try:
            if self._before.trying is not None and self._before.attempts >= ATTEMPTS:
                self._note(Tried(variant=self._before.trying, refused=ENDED))
            before = None
            while self.choice.tried != before:
                before = self.choice.tried
                self._screen()
                self._time_best()
                lenient = next((v for v in self._by_time() if self._confirmed(v)), None)
                best = next((v for v in self._by_time() if self._right_again(v)), None)
                self._put_back()
            # The next one is looked at, too, for the case in which the winner comes wrong later.
            next((v for v in self._by_time() if v != best and self._right(v)), None)
            if lenient != best and (loose := self.choice.of(lenient)) is not None:
                self._note(self.judge.closely(loose, whole=True))  # for the record: what is furthest off
            now = datetime.now(UTC).isoformat(timespec="seconds")
            self._put(best=best, lenient=lenient, done=True, chosen_at=now, trying=None, attempts=0)
            return self.choice
        finally:
            self._keep_open(())
            self._flush()

    # ------------------------------------------------------------------------------------------- screening

    def _screen(self) -> None:
        """Try every variant that may win and is not known yet."""
        slow = 0
        for number, variant in enumerate(self.variants if self.order is None else self.order):
            if self.choice.of(variant) is not None:
                continue
            pace = self.paces.get(variant, 0.0)
            # One that was far slower elsewhere too stands behind those that were less so.
            enough = 1 if pace >= FAR else IN_A_ROW
            behind = slow >= enough or (pace >= BEHIND and bool(self._passes))
            if behind and variant != self.variants[0]:
                tried = Tried(variant=variant, refused=UNTRIED)
            else:
                total = len(self.variants)
                what = f"{self.name(variant)} ({number + 1} of {total})"
                self.progress(f"trying {self.label}: {what}", number / total)
                tried = self._tried(variant)
                if tried.first_ns is not None:
                    slow = slow + 1 if tried.refused == SLOWER else 0
            self._note(tried)
            self._keep_open(self._finalists() if self.looks.open else ())

    def _tried(self, variant: V) -> Tried[V]:
        """One variant prepared, judged and looked at for a moment."""
        self._begin(variant)
        tried: Tried[V] = Tried(variant=variant)
        try:
            session = self._session(variant)
            best = min(self._passes.values(), default=math.inf)
            one_ns = self._first_pass(session, best)
            if one_ns > self.looks.far * best:
                tried = msgspec.structs.replace(tried, first_ns=one_ns, refused=SLOWER)
            else:
                tried = self.judge.first(session, tried)
            if not tried.refused:
                near = one_ns <= CLEAR * best
                first_ns = warm_up(session, PASSES, self.looks.first_s) if near else one_ns
                tried = msgspec.structs.replace(tried, first_ns=first_ns)
                self._passes[variant] = one_ns
        except (KernelscopeError, MemoryError) as error:
            tried = msgspec.structs.replace(tried, refused=_why(error))
        if tried.refused:
            self._close(variant)
        return tried

    def _first_pass(self, session: S, best: float) -> float:
        """Nanoseconds of the first pass; of short ones the fastest of a few."""
        passes = [float(session.time_runs(1))]
        while len(passes) < PASSES and passes[-1] < self.looks.short_ns and min(passes) > best:
            passes.append(float(session.time_runs(1)))
        return min(passes)

    # ---------------------------------------------------------------------------------------------- timing

    def _finalists(self) -> list[V]:
        """What is timed together: the default where that is wanted, the fastest by the first look, the
        fastest that is right (and the next such one, where they are a field of their own), and what follows
        the fastest."""
        good = [t for t in self.choice.tried if t.first_ns is not None and not t.refused]
        good.sort(key=lambda t: t.first_ns or 0.0)
        if not good:
            return []
        near = [t.variant for t in good if self._near(t, good[0])]
        found = [t.variant for t in good if self.looks.default and t.variant == self.variants[0]] + near[:1]
        if (right := next((t for t in good if self._right(t.variant)), None)) is not None:
            rivals = (t.variant for t in good if t is not right and self._near(t, right))
            own_field = right.variant not in near
            found += [right.variant, *itertools.islice(filter(self._right, rivals), int(own_field))]
        return list(dict.fromkeys([*found, *near]))[: self.looks.most]

    def _near(self, tried: Tried[V], best: Tried[V]) -> bool:
        return (tried.first_ns or 0.0) <= self.looks.near * (best.first_ns or 0.0)

    def _time_best(self) -> None:
        """Time the best together, or where memory does not suffice for that, one after the other; not where
        all of them were, or one is the best by far."""
        best = self._finalists()
        known = [self.choice.of(variant) for variant in best]
        self._keep_open(best)
        if len(best) < 2 or all(tried is not None and tried.time_ns is not None for tried in known):
            return
        self.progress(f"timing the best of {self.label}: {', '.join(map(self.name, best))}", None)
        self._flush()
        try:
            self._time_together(best)
        except (OutOfMemoryError, MemoryError):
            for variant in best:
                self._keep_open(())
                try:
                    self._time_together([variant])
                except (KernelscopeError, MemoryError) as error:
                    self._refuse(variant, _why(error))
        self._keep_open(best if self.looks.open else ())

    def _time_together(self, variants: Sequence[V]) -> None:
        """Raises OutOfMemoryError or MemoryError where it does not suffice for all of them at once."""
        for variant in variants:
            try:
                if variant not in self._open:
                    self._open[variant] = self.prepare(variant)
            except (OutOfMemoryError, MemoryError):
                raise
            except KernelscopeError as error:
                self._refuse(variant, _why(error))
        by_name = {self.name(variant): variant for variant in variants if variant in self._open}
        timings = time_together(
            {name: self._open[variant] for name, variant in by_name.items()},
            self.looks.final,
            devices=dict.fromkeys(by_name, self.device),
            on_turn=lambda name, turn: None if turn else self.progress(f"timing {name}", None),
        )
        for name, timing in timings.items():
            variant = by_name[name]
            if isinstance(timing.error, OutOfMemoryError | MemoryError):
                raise timing.error
            reason = str(timing.error) if timing.error else self.judge.timed(self._open[variant])
            if reason:
                self._refuse(variant, reason)
            elif (tried := self.choice.of(variant)) is not None:
                self._note(msgspec.structs.replace(tried, time_ns=timing.median_ns))

    # --------------------------------------------------------------------------------------------- winners

    def _by_time(self) -> list[V]:
        """The fastest first; the default, or the first of those that follow it if it is refused, in front
        where the gain on it is noise."""
        ranked = self.choice.ranked
        refused = {tried.variant for tried in self.choice.tried if tried.refused}
        own = next((v for v in self.variants if v not in refused), None)
        limit = (1 + self.looks.worth) * (ranked[0].ns or 0.0) if ranked else 0.0
        ranked.sort(key=lambda t: t.variant != own or (t.ns or 0.0) > limit)
        return [tried.variant for tried in ranked]

    def _confirmed(self, variant: V) -> bool:
        """Whether the variant, judged once more, gives an answer at all; how far off that is decides whether
        it is still taken for right. Both are noted."""
        if variant not in self._confirmed_once:
            self._confirmed_once.add(variant)
            self.progress(f"confirming the fastest of {self.label}: {self.name(variant)}", None)
            self._begin(variant)
            off = ""
            try:
                refused, off = self.judge.again(self._session(variant))
            except (KernelscopeError, MemoryError) as error:
                refused = _why(error)
            if not self.looks.open:
                self._close(variant)
            if refused:
                self._refuse(variant, refused)
            elif off and self._right(variant) and (tried := self.choice.of(variant)) is not None:
                self._note(msgspec.structs.replace(tried, doubt=off))
                self.progress(f"{self.name(variant)} is not taken for right: {off}", None)
            self.choice = msgspec.structs.replace(self.choice, trying=None, attempts=0)
        tried = self.choice.of(variant)
        return tried is not None and not tried.refused

    def _right(self, variant: V) -> bool:
        """Whether all that was seen of it is within the bound. Its parts are looked at only where the whole
        is."""
        tried = self.choice.of(variant)
        if tried is not None and tried.eligible is None:
            self._note(tried := self.judge.closely(tried))
        return tried is not None and bool(tried.eligible)

    def _right_again(self, variant: V) -> bool:
        """The same of when it was judged once more, too."""
        return self._right(variant) and self._confirmed(variant) and self._right(variant)

    def _put_back(self) -> None:
        """After one that was taken for right was refused, those that were let go for being slower are to be
        tried once more."""
        if self._dropped:
            left = tuple(t for t in self.choice.tried if t.refused not in (SLOWER, UNTRIED))
            self.choice = msgspec.structs.replace(self.choice, tried=left)
        self._dropped = False

    # -------------------------------------------------------------------------------------------- sessions

    def _session(self, variant: V) -> S:
        """Its session; where memory does not suffice beside those that are open, the slowest of them go."""
        while variant not in self._open:
            try:
                self._open[variant] = self.prepare(variant)
            except (OutOfMemoryError, MemoryError):
                if not self._open:
                    raise
                self._close(max(self._open, key=lambda v: self._passes.get(v, math.inf)))
        return self._open[variant]

    def _close(self, variant: V) -> None:
        if (session := self._open.pop(variant, None)) is not None:
            session.close()

    def _keep_open(self, variants: Collection[V]) -> None:
        """Close the sessions of all others."""
        for variant in {*self._open} - {*variants}:
            self._close(variant)

    # --------------------------------------------------------------------------------------- what is known

    def _begin(self, variant: V) -> None:
        """It is about to run: what is known is stored with its name."""
        again = variant == self._before.trying
        self._put(trying=variant, attempts=self._before.attempts + 1 if again else 1)

    def _refuse(self, variant: V, reason: str) -> None:
        """One that was taken for right, and is not."""
        self._close(variant)
        self._passes.pop(variant, None)
        self._dropped = True
        tried = self.choice.of(variant) or Tried(variant=variant)
        self._note(msgspec.structs.replace(tried, refused=reason, time_ns=None))

    def _note(self, tried: Tried[V]) -> None:
        """Put what is known of a variant in the place of what was; it is stored with what is next, or at the
        end. Raises DeviceLost."""
        known = {t.variant: t for t in self.choice.tried} | {tried.variant: tried}
        self.choice = msgspec.structs.replace(
            self.choice, tried=tuple(known.values()), trying=None, attempts=0
        )
        self._stored = False
        if tried.refused and self.lost():
            self._flush()
            what = f"{self.label}: {self.name(tried.variant)} broke the device's context"
            raise DeviceLost(f"{what}: {tried.refused}")

    def _flush(self) -> None:
        if not self._stored:
            self._put()

    def _put(self, **fields: object) -> None:
        self.choice = msgspec.structs.replace(self.choice, **fields)
        self.store(self.choice)
        self._stored = True


def _why(error: Exception) -> str:
    return str(error) or type(error).__name__
