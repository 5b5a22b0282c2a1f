"""Where a comparison stands: what the window says of a run while it goes on and after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.results.records import Case, Disposition
from bench.results.rows import title


@dataclass(frozen=True)
class Ended:
    """What came of the last run: how many cases by disposition (cancelled ones left out), of how many, in how
    many seconds (without pauses), where it is kept."""

    counts: tuple[tuple[Disposition, int], ...]
    total: int
    seconds: float
    folder: Path
    cancelled: bool = False


@dataclass(frozen=True)
class Standing:
    """Where a run stands. phase: "idle", "starting", "running", "pausing", "paused", "cancelling"; words:
    what goes on; seconds_left: None while nothing tells; ended: the last run, while none is active."""

    phase: str = "idle"
    words: str = ""
    done: int = 0
    total: int = 0
    seconds_left: float | None = None
    ended: Ended | None = None

    @property
    def active(self) -> bool:
        return self.phase != "idle"


class RunClock:
    """How long a run has gone on, pauses left out, and how long it may still take. `clock`: in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._spent = 0.0
        self._since: float | None = None

    def restart(self) -> None:
        self._spent, self._since = 0.0, self._clock()

    def go_on(self) -> None:
        self._since = self._clock()

    def stop(self) -> None:
        self._spent, self._since = self.seconds, None

    @property
    def seconds(self) -> float:
        return self._spent + (self._clock() - self._since if self._since is not None else 0.0)

    def seconds_left(self, done: int, left: int) -> float | None:
        """From what the cases done since the start took; None where none is."""
        return self.seconds / done * left if done > 0 else None


def case_words(case: Case) -> str:
    """The case as one says it, a model given by path by its file's stem."""
    return case.words.replace(case.model, title(case.model), 1)
