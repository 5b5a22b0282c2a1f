"""A ladder's course on standard error: a line a rung as it settles, and what is going on now."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from bench.ladder.records import RungMeasurement, RungStarted
from bench.ladder.tables import WORDS
from bench.records import Log, Progress

STAGES = {"prepare": "preparing", "check": "checking", "time": "timing"}


class LadderProgress:
    """Hears events of bench.ladder.client.run. In a terminal the current work stands in one line that goes
    away."""

    def __init__(self, total: int) -> None:
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False)
        self._total = total
        self._done = 0
        self._status: Any = None

    def __enter__(self) -> LadderProgress:
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
        match event:
            case RungMeasurement():
                self._settled(event)
            case RungStarted():
                self._show(f"{STAGES.get(event.stage, event.stage)} {event.case.words}")
            case Progress():
                self._show(event.text)
            case Log() if event.level in ("warning", "error"):
                self._say(f"{event.level}: {event.text}")

    def _settled(self, measurement: RungMeasurement) -> None:
        if measurement.disposition == "cancelled":
            return
        self._done += 1
        words = WORDS.get(measurement.disposition, measurement.disposition)
        text = f"[{self._done}/{self._total}] {measurement.case.words}: {words}"
        self._say(f"{text} ({measurement.reason})" if measurement.reason else text)

    def _show(self, text: str) -> None:
        if self._status is not None:
            self._status.update(text)

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)
