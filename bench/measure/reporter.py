"""What a worker tells while something takes long, and where long work hears that it is to end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from bench.measure.timing import Stopped
from bench.results.messages import CaseStarted, Log, Message, Progress

QUIET_S = 0.2  # progress within a stage is told no more often


class Reporter:
    """`say` takes messages; `stopped` tells that the user wants no more."""

    def __init__(self, say: Callable[[Message], None], stopped: Callable[[], bool]) -> None:
        self.say, self.stopped = say, stopped
        self._told_at = 0.0

    def go_on(self) -> None:
        """Raises Stopped where the work is to end."""
        if self.stopped():
            raise Stopped

    def turn(self, case: Any, stage: str) -> None:
        """Say that `case` is at this stage now. Raises as `go_on`."""
        self.go_on()
        self.say(CaseStarted(case=case, stage=stage))

    def warn(self, text: str) -> None:
        """Say it in the log."""
        self.say(Log(level="warning", text=text))

    def progress(self, text: str, fraction: float | None) -> None:
        """Say what is going on; with a fraction (how much of it is done, 0 to 1) only now and then, and
        at its end. Raises as `go_on`."""
        self.go_on()
        now = time.monotonic()
        if fraction in (None, 1) or now - self._told_at > QUIET_S:
            self._told_at = now
            self.say(Progress(text=text, fraction=fraction))
