"""A sweep finds the fastest correct one of several variants that compute the same.

1. First look: each variant is prepared, timed for a moment, and its answer is checked. If it is far slower
than the best so far, its answer is not checked. After a few such variants in a row, the rest is not tried.
2. The best variants are timed together, interleaved, by bench.measure.timing.
3. The winner is checked once more, thoroughly or in a new session. If it is wrong, the next best takes its
place. Then the variants that were dropped because the wrong one was faster are tried again.

Before a variant runs, all results so far are stored, with the variant's name. If the process crashes, the
next process goes on from there. A variant during which the process ended twice is refused.
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

ATTEMPTS = 2  # the process may end this often while a variant is tried; then the variant is refused
CLEAR = 1.5  # a first pass this many times as slow as the best one is not measured for longer
# FAR: a variant whose first pass is this many times as slow as the best one is not checked.
# IN_A_ROW: after so many of them in a row the rest are not tried.
FAR, IN_A_ROW = 4.0, 3
BEHIND = 1.33  # not tried if it was this many times as slow in a similar case, and another variant is correct
PASSES = 3  # of short passes the fastest of so many counts

ENDED = "the process ended while it was tried"
SLOWER = "far slower than the best, and not judged"
UNTRIED = "not tried: those above it, or it at a batch size near this one, are far slower"

Progress = Callable[[str, float | None], None]  # words, and which part of the work is done (None: unknown)


class Tryable(Timeable, Protocol):
    """A session of a variant: it can be timed and closed."""

    def close(self) -> None:
        """Free what it holds."""


S = TypeVar("S", bound=Tryable)


class DeviceLost(KernelError):
    """The device's context in this process is broken. The sweep has stored its results; a new process has to
    go on."""


@dataclass(frozen=True)
class Looks:
    """How variants are timed. "Times as slow" is a ratio to the time of the best variant so far."""

    final: Rules  # of timing the best variants together
    first_s: float  # seconds of the first look at a variant that may win
    near: float = 1.2  # timed with the best: at most this many times as slow by the first look
    most: int = 4  # how many are timed together at most
    # If a first pass is shorter than this, and slower than the best, a few more are run: the fastest counts.
    short_ns: float = math.inf
    # A variant whose first pass is more than this many times as slow is not checked (inf: all are checked).
    far: float = math.inf
    worth: float = 0.0  # the default variant is kept unless another is faster by more than this part
    default: bool = False  # the default variant is timed with the best, even if it looks slow
    # Whether the sessions of the best stay open from the first look to the end. Else a session is closed
    # after each look, and the winner is checked again in a new one.
    open: bool = False


class Judge(Generic[V, S]):
    """Checks whether variants are correct. This base class accepts all; subclasses override the methods. If
    one of them raises KernelscopeError or MemoryError, the variant is refused. (If `timed` runs out of memory
    while several sessions are open, the variants are first timed again, one after the other.)"""

    def first(self, session: S, tried: Tried[V]) -> Tried[V]:
        """Check the answer of the session's last pass. Returns `tried` with the result: `refused` if the
        variant is no use, and its errors."""
        return tried

    def timed(self, session: S) -> str:
        """Check the answer after the timed passes. Returns why the variant is refused; "" if it is not."""
        return ""

    def closely(self, tried: Tried[V], whole: bool = False) -> Tried[V]:
        """Check all parts (such as layers) of the variant. Returns `tried` with `strict`: whether all are
        right. whole: check all parts, even after one is found wrong."""
        return msgspec.structs.replace(tried, strict=True)

    def again(self, session: S) -> tuple[str, str]:
        """Check the winner once more. Returns two reasons, each "" if there is none: why the variant is
        refused, and why its answer is not within the bound. With the second alone it may still be
        Choice.lenient."""
        return "", ""


@dataclass
class Sweep(Generic[V, S]):
    """One sweep. `run` does all of it; `choice` has the results so far."""

    variants: Sequence[V]  # at least one; the first is the default, which is used where nothing was measured
    prepare: Callable[[V], S]  # creates a session of a variant, with its inputs bound
    judge: Judge[V, S]
    store: Callable[[Choice[V]], None]  # called with the results so far, to keep them on disk
    looks: Looks
    label: str  # what is chosen, for messages
    progress: Progress  # called with what is going on; may raise to end the sweep
    device: str = "cpu"  # or "cuda"
    known: Choice[V] | None = None  # results of an earlier sweep that did not end
    order: Iterable[V] | None = None  # in which variants are tried (None: as in `variants`)
    # Variant → its time divided by the best one's, in a similar case (such as another batch size).
    paces: Mapping[V, float] = field(default_factory=dict)
    name: Callable[[V], str] = str  # of a variant, for messages
    lost: Callable[[], bool] = lambda: False  # whether the device's context is broken; called after an error

    def __post_init__(self) -> None:
        self.choice = self._choice_at_start = self.known or Choice(default=self.variants[0])
        self._stored = True  # whether `store` has all of `choice`
        self._open: dict[V, S] = {}
        self._first_pass_ns = {
            t.variant: t.first_ns for t in self.choice.tried if t.first_ns and not t.refused
        }
        self._confirmed_once: set[V] = set()
        self._accepted_refused = False  # whether a variant was refused that had been accepted before

    def run(self) -> Choice[V]:
        """Do the sweep, store the choice, and return it. `best` is None if no variant is correct. Raises
        DeviceLost, and what `store` and `progress` raise."""
        try:
            at_start = self._choice_at_start
            if at_start.trying is not None and at_start.attempts >= ATTEMPTS:
                self._note(Tried(variant=at_start.trying, refused=ENDED))
            before = None
            while self.choice.tried != before:
                before = self.choice.tried
                self._screen()
                self._time_best()
                lenient = next((v for v in self._by_time() if self._confirmed(v)), None)
                best = next((v for v in self._by_time() if self._right_again(v)), None)
                self._forget_slower()
            # The next best is checked, too: it is used if the winner is found wrong later.
            next((v for v in self._by_time() if v != best and self._right(v)), None)
            while lenient != best and (loose := self.choice.of(lenient)) is not None:
                # For the record: which part has the largest error.
                if not self._checked_closely(loose, whole=True).refused:
                    break
                lenient = next((v for v in self._by_time() if self._confirmed(v)), None)
            now = datetime.now(UTC).isoformat(timespec="seconds")
            self._update_and_store(
                best=best, lenient=lenient, done=True, chosen_at=now, trying=None, attempts=0
            )
            return self.choice
        finally:
            self._keep_open(())
            self._flush()

    # ------------------------------------------------------------------------------------------- screening

    def _screen(self) -> None:
        """Have a first look at every variant that may win and has no result yet."""
        slow = 0
        for number, variant in enumerate(self.variants if self.order is None else self.order):
            if self.choice.of(variant) is not None:
                continue
            pace = self.paces.get(variant, 0.0)
            # A variant that was far slower in a similar case, too, is not tried after one that is far slower
            # here.
            enough = 1 if pace >= FAR else IN_A_ROW
            behind = slow >= enough or (pace >= BEHIND and bool(self._first_pass_ns))
            if behind and variant != self.variants[0]:
                tried = Tried(variant=variant, refused=UNTRIED)
            else:
                total = len(self.variants)
                what = f"{self.name(variant)} ({number + 1} of {total})"
                self.progress(f"trying {self.label}: {what}", number / total)
                tried = self._first_look(variant)
                if tried.first_ns is not None:
                    slow = slow + 1 if tried.refused == SLOWER else 0
            self._note(tried)
            self._keep_open(self._finalists() if self.looks.open else ())

    def _first_look(self, variant: V) -> Tried[V]:
        """Prepare a variant, check its answer, and time it for a moment."""
        self._store_trying(variant)
        tried: Tried[V] = Tried(variant=variant)
        try:
            session = self._session(variant)
            best = min(self._first_pass_ns.values(), default=math.inf)
            one_ns = self._first_pass(session, best)
            if one_ns > self.looks.far * best:
                tried = msgspec.structs.replace(tried, first_ns=one_ns, refused=SLOWER)
            else:
                tried = self.judge.first(session, tried)
            if not tried.refused:
                near = one_ns <= CLEAR * best
                first_ns = warm_up(session, PASSES, self.looks.first_s) if near else one_ns
                tried = msgspec.structs.replace(tried, first_ns=first_ns)
                self._first_pass_ns[variant] = one_ns
        except (KernelscopeError, MemoryError) as error:
            tried = msgspec.structs.replace(tried, refused=_why(error))
        if tried.refused:
            self._close(variant)
        return tried

    def _first_pass(self, session: S, best: float) -> float:
        """ns of the first pass. If it is short and slower than `best` (ns), of the fastest of a few."""
        passes = [float(session.time_runs(1))]
        while len(passes) < PASSES and passes[-1] < self.looks.short_ns and min(passes) > best:
            passes.append(float(session.time_runs(1)))
        return min(passes)

    # ---------------------------------------------------------------------------------------------- timing

    def _finalists(self) -> list[V]:
        """The variants to be timed together, at most looks.most: the default if `looks` asks for it; the
        fastest by the first look; the fastest that is right; and those about as fast as the fastest. If the
        fastest that is right is far slower than the fastest, also the next right one that is near it."""
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
        refused = {tried.variant for tried in self.choice.tried if tried.refused}  # some of them just now
        return [v for v in dict.fromkeys([*found, *near]) if v not in refused][: self.looks.most]

    def _near(self, tried: Tried[V], best: Tried[V]) -> bool:
        return (tried.first_ns or 0.0) <= self.looks.near * (best.first_ns or 0.0)

    def _time_best(self) -> None:
        """Time the best variants together; if there is not enough memory for that, one after the other.
        Nothing is timed if all have been timed before, or if only one is left."""
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
        """Raises OutOfMemoryError or MemoryError if there is not enough memory for all of them at once."""
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
            try:
                reason = _why(timing.error) if timing.error else self.judge.timed(self._open[variant])
            except (OutOfMemoryError, MemoryError):
                raise
            except KernelscopeError as error:
                reason = _why(error)
            if reason:
                self._refuse(variant, reason)
            elif (tried := self.choice.of(variant)) is not None:
                self._note(msgspec.structs.replace(tried, time_ns=timing.median_ns))

    # --------------------------------------------------------------------------------------------- winners

    def _by_time(self) -> list[V]:
        """The variants that are not refused, the fastest first. But the default (if it is refused: the next
        one in `variants`) comes first if the fastest gains no more than looks.worth on it."""
        ranked = self.choice.ranked
        refused = {tried.variant for tried in self.choice.tried if tried.refused}
        own = next((v for v in self.variants if v not in refused), None)
        limit = (1 + self.looks.worth) * (ranked[0].ns or 0.0) if ranked else 0.0
        ranked.sort(key=lambda t: t.variant != own or (t.ns or 0.0) > limit)
        return [tried.variant for tried in ranked]

    def _confirmed(self, variant: V) -> bool:
        """Check the variant once more, if that was not done yet. Returns whether it is still not refused. If
        its answer is not within the bound, that is noted as a doubt: then `_right` is False."""
        if variant not in self._confirmed_once:
            self._confirmed_once.add(variant)
            self.progress(f"confirming the fastest of {self.label}: {self.name(variant)}", None)
            self._store_trying(variant)
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
        """Whether all answers of the variant that were checked are within the bound. Its parts are checked
        only if the whole is right."""
        tried = self.choice.of(variant)
        if tried is not None and tried.eligible is None:
            tried = self._checked_closely(tried)
        return tried is not None and bool(tried.eligible)

    def _checked_closely(self, tried: Tried[V], whole: bool = False) -> Tried[V]:
        """Check all parts of a variant, and note the result, which is returned. If that fails, the variant is
        refused."""
        try:
            checked = self.judge.closely(tried, whole)
        except (KernelscopeError, MemoryError) as error:
            self._refuse(tried.variant, _why(error))
            return self.choice.of(tried.variant) or tried
        self._note(checked)
        return checked

    def _right_again(self, variant: V) -> bool:
        """Whether it is right, and still is when it is checked once more."""
        return self._right(variant) and self._confirmed(variant) and self._right(variant)

    def _forget_slower(self) -> None:
        """If a variant was refused that had been accepted before, forget the variants that were refused for
        being slower, so that they are tried again."""
        if self._accepted_refused:
            left = tuple(t for t in self.choice.tried if t.refused not in (SLOWER, UNTRIED))
            self.choice = msgspec.structs.replace(self.choice, tried=left)
        self._accepted_refused = False

    # -------------------------------------------------------------------------------------------- sessions

    def _session(self, variant: V) -> S:
        """The open session of a variant, or a new one. If there is not enough memory beside the open
        sessions, the slowest of them are closed."""
        while variant not in self._open:
            try:
                self._open[variant] = self.prepare(variant)
            except (OutOfMemoryError, MemoryError):
                if not self._open:
                    raise
                self._close(max(self._open, key=lambda v: self._first_pass_ns.get(v, math.inf)))
        return self._open[variant]

    def _close(self, variant: V) -> None:
        if (session := self._open.pop(variant, None)) is not None:
            session.close()

    def _keep_open(self, variants: Collection[V]) -> None:
        """Close the sessions of all other variants."""
        for variant in {*self._open} - {*variants}:
            self._close(variant)

    # --------------------------------------------------------------------------------------- what is known

    def _store_trying(self, variant: V) -> None:
        """Store the results so far, and that this variant is about to run."""
        again = variant == self._choice_at_start.trying
        self._update_and_store(trying=variant, attempts=self._choice_at_start.attempts + 1 if again else 1)

    def _refuse(self, variant: V, reason: str) -> None:
        """Refuse a variant that had been accepted before."""
        self._close(variant)
        self._first_pass_ns.pop(variant, None)
        self._accepted_refused = True
        tried = self.choice.of(variant) or Tried(variant=variant)
        self._note(msgspec.structs.replace(tried, refused=reason, time_ns=None))

    def _note(self, tried: Tried[V]) -> None:
        """Replace the result of a variant in `choice`. It is stored later, before the next variant runs or at
        the end. Raises DeviceLost if the variant was refused and the device's context is broken."""
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
            self._update_and_store()

    def _update_and_store(self, **fields: object) -> None:
        self.choice = msgspec.structs.replace(self.choice, **fields)
        self.store(self.choice)
        self._stored = True


def _why(error: Exception) -> str:
    return str(error) or type(error).__name__
