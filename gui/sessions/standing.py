"""Where a run stands, of any kind: what the window says of it while it goes on and after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.results.records import Disposition


@dataclass(frozen=True)
class Ended:
    """What came of the last comparison: how many cases by disposition (cancelled ones left out), of how many,
    in how many seconds (without pauses), where it is kept."""

    counts: tuple[tuple[Disposition, int], ...]
    total: int
    seconds: float
    folder: Path
    cancelled: bool = False


@dataclass(frozen=True)
class Standing:
    """Where a run stands. phase: "idle", "starting", "running", "pausing", "paused", "cancelling"; words:
    what goes on; left: seconds that it may still take, at the least and at the most, twice the same where
    that is an estimate, None while nothing tells; ended: what came of the last run, in a sentence, or
    all of it (`Ended`), "" while one is active."""

    phase: str = "idle"
    words: str = ""
    done: int = 0
    total: int = 0
    left: tuple[float, float] | None = None
    ended: Any = ""

    @property
    def doing(self) -> str:
        return "cancelling" if self.phase == "cancelling" else self.words

    @property
    def active(self) -> bool:
        return self.phase != "idle"


class RunClock:
    """How long a run has gone on, pauses left out. `clock`: in seconds."""

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
