"""What a ladder or a profile is doing, on standard error: a line a case as it settles, and in a terminal one
more with what is going on now, which goes away."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from bench.results.records import Log, Progress
from bench.show import tables


class Status:
    """Feed it the client's events; `with` it for as long as the work goes. What is peculiar to a kind of work
    a subclass hears first (`heard`)."""

    def __init__(self, total: int) -> None:
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._total = total
        self._done = 0
        self._status: Any = None

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._status = self._console.status("starting the worker")
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def __call__(self, event: Any) -> None:
        self.heard(event)
        match event:
            case Progress():
                self.show(event.text)
            case Log() if event.level in ("warning", "error"):
                self.say(f"{event.level}: {event.text}")

    def heard(self, event: Any) -> None:
        """An event of this kind of work."""

    def settled(self, measurement: Any, more: str = "", words: Mapping[str, str] = tables.WORDS) -> None:
        """A case's line: how it came out, and why or `more`. One that was cancelled has none."""
        if measurement.disposition == "cancelled":
            return
        self._done += 1
        came_of_it = words.get(measurement.disposition, measurement.disposition)
        reason = f" ({measurement.reason})" if measurement.reason else more
        self.say(f"[{self._done}/{self._total}] {measurement.case.words}: {came_of_it}{reason}")

    def show(self, text: str) -> None:
        """What is going on now."""
        if self._status is not None:
            self._status.update(text)

    def say(self, text: str) -> None:
        """A line that stays."""
        self._console.print(text, markup=False, soft_wrap=True)
