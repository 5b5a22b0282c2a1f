"""What is known of the rungs of one step while they are tried, and kept of them (engine.planning.choices).

The name of a rung is on the disk before it runs, and with it all that is known of those before: one that
takes the process with it is passed over by the next process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from bench.measure.tuned.reference import ATTEMPTS
from engine.planning import choices
from engine.planning.choices import Choice, TriedRung
from kernels.ops import Params
from kernels.registry import Rung

ENDED = "the process ended while it was tried"
BROKE = "it broke the device's context"
SLOWER = "far slower than the best, and not judged"
UNTRIED = "not tried: those above it, or it at a batch size near this one, are far slower"
FADES = 0.6  # of a pace at each batch size where its rung is not tried, so that it is again before long
WORTH_IT = 0.02  # a rung that gains less on the ladder's own is not taken: that is noise


@dataclass
class Ledger:
    """The choice for some params. paces: how many times as long as the fastest each rung took at the nearest
    batch size, where one is near."""

    device: str
    params: Params
    precision: str
    rungs: Sequence[Rung]
    threads: int | None

    def __post_init__(self) -> None:
        kept = choices.read(self.device, self.params, self.precision, self.rungs, self.threads)
        self.choice = kept or Choice(ladder=self.rungs[0].name)
        self._suspect, self._attempts = self.choice.trying, self.choice.attempts
        self._on_disk = True
        self.paces = choices.nearby(self.device, self.params, self.precision, self.rungs, self.threads)

    def passed_over(self, rung: str) -> TriedRung | None:
        """Why this rung is not to run in this process; None where it is."""
        before = self.choice.of(rung)
        if before is not None and before.refused.startswith((ENDED, BROKE)):
            return before
        return TriedRung(rung=rung, refused=ENDED) if self._attempt(rung) > ATTEMPTS else None

    def _attempt(self, rung: str) -> int:
        return self._attempts + 1 if rung == self._suspect else 1

    def trying(self, rung: str) -> None:
        """It is about to run. Raises KernelError where that cannot be kept, as what follows does."""
        self._put(trying=rung, attempts=self._attempt(rung))

    def note(self, tried: TriedRung) -> None:
        """Put what is known of a rung in the place of what was; it is kept with the next that is written."""
        known = [t for t in self.choice.tried if t.rung != tried.rung]
        self.choice = msgspec.structs.replace(self.choice, tried=(*known, tried), trying="", attempts=0)
        self._on_disk = False

    def flush(self) -> None:
        """Keep all that is known."""
        if not self._on_disk:
            self._put()

    def finish(self) -> Choice:
        """The choice is made."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._put(rung=self.best(), done=True, timed_at=now, trying="", attempts=0)
        times = {t.rung: _ns(t) for t in self.choice.tried if t.first_ns and t.refused in ("", SLOWER)}
        if best := min(times.values(), default=0.0):
            left = {t.rung for t in self.choice.tried if t.refused == UNTRIED}
            faded = {name: pace * FADES for name, pace in self.paces.items() if name in left}
            taken = {name: ns / best for name, ns in times.items()}
            paces = {name: round(pace, 3) for name, pace in {**faded, **taken}.items()}
            choices.remember(self.device, self.params, self.precision, self.rungs, self.threads, paces)
        return self.choice

    def _put(self, **fields: object) -> None:
        self.choice = msgspec.structs.replace(self.choice, **fields)
        choices.write(self.device, self.params, self.precision, self.rungs, self.threads, self.choice)
        self._on_disk = True

    def put_out(self) -> set[str]:
        """Rungs that were let go for being slower than the best."""
        return {tried.rung for tried in self.choice.tried if tried.refused in (SLOWER, UNTRIED)}

    def best(self) -> str:
        """The fastest by the longest look there was; the ladder's own where it is as good as that. Where none
        is right, the ladder's: the comparison then tells what is wrong with it."""
        right = [t for t in self.choice.tried if not t.refused and t.first_ns is not None]
        ladder = self._ladder()
        if not right:
            return ladder
        # The best by the first look was timed unless it was alone: then it is the best by far.
        timed = [t for t in right if t.time_ns is not None]
        if min(right, key=lambda t: t.first_ns or 0.0) not in timed:
            timed = right
        best = min(timed, key=_ns)
        own = next((t for t in timed if t.rung == ladder), None)
        return ladder if own is not None and _ns(own) <= _ns(best) * (1 + WORTH_IT) else best.rung

    def _ladder(self) -> str:
        """What would be taken untimed, of the rungs that were not refused."""
        refused = {tried.rung for tried in self.choice.tried if tried.refused}
        names = [rung.name for rung in self.rungs]
        return next((name for name in names if name not in refused), names[0])


def _ns(tried: TriedRung) -> float:
    return tried.time_ns if tried.time_ns is not None else (tried.first_ns or float("inf"))
