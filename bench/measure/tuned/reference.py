"""A sweep for the configuration in which a reference backend runs a case fastest: whatever its error, and
with every layer within the precision's bound.

Each configuration is prepared, checked against float64 and looked at for a moment, the shorter the clearer
it loses. Layers are checked in the order of that look until a configuration has them all right. The best few
are timed together, interleaved, by bench.measure.timing. The winners are confirmed in a session created anew:
cuDNN chooses its algorithms in each session for itself, and a configuration that is right in one may be wrong
in the next; then the next fastest is taken. What is known is kept after each step, so that a configuration
that takes the process with it is passed over by the next one. Sessions are made one at a time: while one
captures its CUDA graph, no other thread may allocate on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

import msgspec

from bench.measure.answers import accuracy, oracle
from bench.measure.loaded_model import ORACLE, LoadedModel
from bench.measure.timing import Rules, time_together, warm_up
from bench.measure.tuned.layers import LayerChecks
from bench.results.records import ErrorStats
from engine.backend import Backend, Options, Session
from engine.options import Configuration
from engine.ort.tuning import Sweep, Tried
from kernels.errors import KernelError, KernelscopeError, OutOfMemoryError, UnsupportedError

GLANCE_S = 0.01  # of the first look at each configuration,
FIRST_S = 0.05  # and of the longer one at what does not lose clearly by it
CLEARLY = 1.5  # by how much the first look may be off: what is slower than the best so far by more has lost
NEAR = 1.25  # by how much the longer look may be off: what is slower than the best by more is not timed
MOST = 4  # timed together
ATTEMPTS = 2  # times that a configuration may take the process with it
FINAL = Rules(
    warmup_s=0.1, rewarm_s=0.02, min_s=0.3, budget_s=0.8, width=0.03
)  # the fastest, not by how much

ANEW = "in a second session"

Keep = Callable[[Sweep], None]


class DeviceLost(KernelError):
    """The device's context in this process has failed; another process goes on where this one stopped."""


@dataclass(frozen=True)
class Subject:
    """What is tuned: `backend` on a model at one batch size and precision. options: with no configuration.
    lost: whether the device is still there after a failure."""

    backend: Backend
    loaded: LoadedModel
    batch: int
    precision: str
    options: Options
    lost: Callable[[], bool] = lambda: False

    @property
    def words(self) -> str:
        return f"{self.backend.name}, {self.loaded.graph.name}, {self.precision}, batch {self.batch}"


class ReferenceSweep:
    """Runs one. `known`: an earlier one that did not end; `keep` is given the sweep as it grows; `progress`
    hears what is going on, and may raise to end it (what was kept then stands)."""

    def __init__(
        self,
        subject: Subject,
        configurations: Sequence[Configuration],
        keep: Keep,
        progress: Callable[[str, float | None], None],
        known: Sweep | None = None,
        rules: Rules | None = None,
    ) -> None:
        self._subject = subject
        self._configurations = configurations
        self._keep = keep
        self._progress = progress
        self._rules = rules or FINAL
        self._sweep = known or Sweep()
        self._layers = _checks(subject, progress)
        self._sessions_anew: set[Configuration] = set()
        self._placement = subject.loaded.placement(subject.batch, seed=0)

    def run(self) -> Sweep:
        """The whole sweep, kept and returned. Raises DeviceLost, and what `progress` raises."""
        for number, configuration in enumerate(self._configurations):
            self._say(f"trying {configuration.words}", number / len(self._configurations))
            if self._sweep.of(configuration) is None:
                self._try(configuration)
        fastest, strict = self._winners()
        if fastest != strict and fastest is not None:
            self._examine(fastest, whole=True)  # for the record: which layer is furthest off
        self._put(
            fastest=fastest,
            strict=strict,
            done=True,
            tuned_at=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        return self._sweep

    # ------------------------------------------------------------------------------------------------ stages

    def _winners(self) -> tuple[Configuration | None, Configuration | None]:
        """The fastest whatever its error and the fastest that is right, each confirmed. Where that
        leaves one of them open, those that follow are timed, too."""
        raced: set[Configuration] = set()
        while True:
            finalists = [each for each in self._finalists() if each not in raced]
            if finalists:
                self._say(f"timing the best {len(finalists)} together", None)
                self._time(finalists)
                raced.update(finalists)
            timed = sorted(
                (t for t in self._sweep.tried if t.time_ns is not None and not t.refused),
                key=lambda t: t.time_ns or 0.0,
            )
            by_time = [t.configuration for t in timed]
            fastest = next((each for each in by_time if self._confirmed(each)), None)
            strict = next((each for each in by_time if self._right_again(each)), None)
            if not finalists or (fastest is not None and strict is not None):
                # The next one, too: for the case in which the winner comes wrong (see tuned.doubted).
                next((c for c in by_time if c != strict and self._right(c)), None)
                return fastest, strict

    def _confirmed(self, configuration: Configuration) -> bool:
        """Whether a session created anew, once in a sweep, gives an answer at all; how far off it is decides
        whether the configuration is still taken for right. Both are noted."""
        if configuration not in self._sessions_anew:
            self._sessions_anew.add(configuration)
            self._say(f"confirming {configuration.words} in a second session", None)
            refused, off, session = "", "", None
            try:
                session = self._prepared(configuration)
                stats, within = self._checked(session)
                refused, off = stats.reason, within.reason
            except (KernelscopeError, MemoryError) as error:
                refused = str(error)
            finally:
                _close(session)
            if refused:
                self._refuse(configuration, f"{ANEW}: {refused}")
            elif off and self._right(configuration):
                self._doubt(configuration, f"{ANEW}: {off}")
        tried = self._sweep.of(configuration)
        return tried is not None and not tried.refused

    def _try(self, configuration: Configuration) -> None:
        """One configuration prepared, checked and looked at for a moment."""
        again = self._sweep.trying == configuration
        attempts = self._sweep.attempts + 1 if again else 1
        if attempts > ATTEMPTS:
            self._note(Tried(configuration=configuration, refused="the process ended while it was tried"))
            return
        self._put(trying=configuration, attempts=attempts)
        tried = Tried(configuration=configuration)
        session = None
        try:
            session = self._prepared(configuration)
            stats, within = self._checked(session)
            tried = msgspec.structs.replace(
                tried, error=stats.rel_l2, refused=stats.reason, within=stats.ok and within.ok
            )
            if stats.ok:
                tried = msgspec.structs.replace(tried, first_ns=self._look(session))
        except (KernelscopeError, MemoryError) as error:
            tried = msgspec.structs.replace(tried, refused=str(error))
        finally:
            _close(session)
        self._note(tried)

    def _look(self, session: Session) -> float:
        """Nanoseconds a pass, as far as a moment tells."""
        best = min((t.first_ns for t in self._sweep.tried if t.first_ns and not t.refused), default=None)
        glance = warm_up(session, 3, min(GLANCE_S, FIRST_S))
        if best is not None and glance > CLEARLY * best:
            return glance
        return warm_up(session, 3, FIRST_S)

    def _finalists(self) -> list[Configuration]:
        """At most MOST by the short look: the configuration untold, the fastest, the fastest whose layers are
        right (and the next such one, where they are a field of their own), and what follows the fastest."""
        good = sorted(
            (t for t in self._sweep.tried if t.first_ns is not None and not t.refused),
            key=lambda t: t.first_ns or 0.0,
        )
        near = [t for t in good if _near(t, good[0])]
        found = [t for t in good if t.configuration == self._configurations[0]] + near[:1]
        strict = next((t for t in good if self._right(t.configuration)), None)
        if strict is not None:
            rivals = [] if strict in near else [t for t in good if t != strict and _near(t, strict)]
            rival = next((t for t in rivals if self._right(t.configuration)), None)
            found += [t for t in (strict, rival) if t is not None]
        return list(dict.fromkeys(t.configuration for t in found + near))[:MOST]

    def _right(self, configuration: Configuration) -> bool:
        """Whether all that was seen of it is within the precision's bound. Its layers are looked at only
        where the whole model's output is."""
        tried = self._sweep.of(configuration)
        return tried is not None and tried.eligible is not False and self._examine(configuration, whole=False)

    def _right_again(self, configuration: Configuration) -> bool:
        """The same of its second session, too."""
        return self._right(configuration) and self._confirmed(configuration) and self._right(configuration)

    def _examine(self, configuration: Configuration, whole: bool) -> bool:
        """Whether every layer is right, at this batch; noted. whole: look at all even where one is not."""
        tried = self._sweep.of(configuration)
        assert tried is not None
        if tried.strict is not None and not (whole and tried.strict is False):
            return tried.strict
        found: list[tuple[str, ErrorStats]] = []
        try:
            for name, stats in self._layers.errors(configuration) if self._layers else ():
                found.append((name, stats))
                if not stats.ok and not whole:
                    break
        except (OutOfMemoryError, MemoryError):
            found = []  # beside the inputs of the whole model: then nothing is said of the layers
        right = bool(found) and all(stats.ok for _, stats in found)
        name, worst = max(found, key=lambda item: item[1].rel_l2, default=("", None))
        layer_error = worst.rel_l2 if worst else None
        self._note(msgspec.structs.replace(tried, strict=right, layer=name, layer_error=layer_error))
        return right

    def _time(self, finalists: Sequence[Configuration]) -> None:
        """All together; where memory does not suffice for that, one after the other."""
        try:
            self._time_together(finalists)
        except (OutOfMemoryError, MemoryError):
            for configuration in finalists:
                try:
                    self._time_together([configuration])
                except (KernelscopeError, MemoryError) as error:
                    self._refuse(configuration, str(error))

    def _time_together(self, finalists: Sequence[Configuration]) -> None:
        ready: dict[str, Session] = {}
        by_key = {configuration.words: configuration for configuration in finalists}
        try:
            for key, configuration in by_key.items():
                try:
                    ready[key] = self._prepared(configuration)
                except (OutOfMemoryError, MemoryError):
                    raise
                except KernelscopeError as error:
                    self._refuse(configuration, str(error))
            timings = time_together(
                ready,
                self._rules,
                devices=dict.fromkeys(ready, self._subject.backend.device),
                on_turn=lambda key, _: self._say(f"timing {key}", None),
            )
            for key, timing in timings.items():
                if isinstance(timing.error, OutOfMemoryError | MemoryError):
                    raise timing.error
                if timing.error is not None:
                    self._refuse(by_key[key], str(timing.error))
                    continue
                stats = self._check(ready[key])
                if not stats.ok:
                    self._refuse(by_key[key], stats.reason)
                    continue
                tried = self._sweep.of(by_key[key]) or Tried(configuration=by_key[key])
                self._note(msgspec.structs.replace(tried, time_ns=timing.median_ns))
        finally:
            for session in ready.values():
                _close(session)

    # ------------------------------------------------------------------------------------------- the inside

    def _prepared(self, configuration: Configuration) -> Session:
        subject = self._subject
        options = replace(subject.options, ort=configuration)
        session = subject.backend.prepare(subject.loaded.graph, subject.batch, subject.precision, options)
        try:
            session.bind(self._placement.inputs)
            session.run()
            session.synchronize()
        except BaseException:
            _close(session)
            raise
        return session

    def _check(self, session: Session) -> ErrorStats:
        """A pass over what is bound, which timed passes change, against float64; what is beyond even the
        loosest bound is no answer."""
        return self._checked(session)[0]

    def _checked(self, session: Session) -> tuple[ErrorStats, ErrorStats]:
        """The same, and by the precision's own bound, which a case is held against before it is timed."""
        session.run()
        session.synchronize()
        outputs = session.fetch()
        check = partial(self._subject.loaded.check, outputs, self._placement, lossy=True)
        stats = check(accuracy.LOOSEST)
        return stats, check(self._subject.precision) if stats.ok else stats

    def _doubt(self, configuration: Configuration, reason: str) -> None:
        tried = self._sweep.of(configuration) or Tried(configuration=configuration)
        self._note(msgspec.structs.replace(tried, doubt=reason))
        self._say(f"{configuration.words} is not taken for right: {reason}", None)

    def _refuse(self, configuration: Configuration, reason: str) -> None:
        tried = self._sweep.of(configuration) or Tried(configuration=configuration)
        self._note(msgspec.structs.replace(tried, refused=reason, time_ns=None))

    def _note(self, tried: Tried) -> None:
        """Put what is known of a configuration in the place of what was. Raises DeviceLost."""
        known = [t for t in self._sweep.tried if t.configuration != tried.configuration]
        order = {configuration: place for place, configuration in enumerate(self._configurations)}
        known.append(tried)
        known.sort(key=lambda t: order.get(t.configuration, len(order)))
        self._put(tried=tuple(known), trying=None, attempts=0)
        if tried.refused and self._subject.lost():
            raise DeviceLost(f"{self._subject.words}: {tried.configuration.words} broke the device's context")

    def _put(self, **fields: object) -> None:
        self._sweep = msgspec.structs.replace(self._sweep, **fields)
        self._keep(self._sweep)

    def _say(self, text: str, fraction: float | None) -> None:
        self._progress(text, fraction)


def _checks(subject: Subject, progress: Callable[[str, float | None], None]) -> LayerChecks | None:
    """The checks of layers; None where another than the oracle had to judge, which has no inner tensors."""
    loaded = subject.loaded
    golden = loaded.golden()
    if loaded.judge != ORACLE:
        return None
    try:
        golden = oracle.golden(loaded.graph, golden.inputs)
    except (UnsupportedError, OutOfMemoryError):
        return None
    return LayerChecks(
        graph=loaded.graph,
        backend=subject.backend,
        batch=subject.batch,
        precision=subject.precision,
        options=subject.options,
        golden=golden,
        say=lambda text: progress(text, None),
    )


def _near(tried: Tried, best: Tried) -> bool:
    return (tried.first_ns or 0.0) <= NEAR * (best.first_ns or 0.0)


def _close(session: Session | None) -> None:
    if session is not None:
        session.close()
