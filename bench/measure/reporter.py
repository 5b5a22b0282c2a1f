"""What a worker's runner tells while something takes long, and where long work hears that it is to end."""

from __future__ import annotations

import time
from collections.abc import Callable

from bench.measure.timing import Stopped
from bench.results.messages import Progress

QUIET_S = 0.2  # progress within a stage is told no more often


class Reporter:
    """`say` takes a Progress; `stopped` tells that the user wants no more."""

    def __init__(self, say: Callable[[Progress], None], stopped: Callable[[], bool]) -> None:
        self._say, self._stopped = say, stopped
        self._told_at = 0.0

    def go_on(self) -> None:
        """Raises Stopped where the work is to end."""
        if self._stopped():
            raise Stopped

    def progress(self, text: str, fraction: float | None) -> None:
        """Say what is going on; with a fraction (how much of it is done, 0 to 1) only now and then. Raises as
        `go_on`."""
        self.go_on()
        now = time.monotonic()
        if fraction is None or now - self._told_at > QUIET_S:
            self._told_at = now
            self._say(Progress(text=text, fraction=fraction))
