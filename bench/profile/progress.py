"""A profile's course on standard error: a line a case as it settles, and what is going on now."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from bench import tables, units
from bench.profile.records import CaseProfile, ProfileStarted
from bench.records import Log, Progress

STAGES = {
    "prepare": "starting cold",
    "time": "timing, unprofiled",
    "profile": "profiling",
    "count": "counting",
}


class ProfileProgress:
    """Hears events of bench.profile.client.run. In a terminal the current work stands in one line that goes
    away."""

    def __init__(self, total: int) -> None:
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False)
        self._total = total
        self._done = 0
        self._status: Any = None

    def __enter__(self) -> ProfileProgress:
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
            case CaseProfile():
                self._settled(event)
            case ProfileStarted():
                self._show(f"{STAGES.get(event.stage, event.stage)}: {event.case.words}")
            case Progress():
                self._show(event.text)
            case Log() if event.level in ("warning", "error"):
                self._say(f"{event.level}: {event.text}")

    def _settled(self, made: CaseProfile) -> None:
        if made.disposition == "cancelled":
            return
        self._done += 1
        words = tables.WORDS.get(made.disposition, made.disposition)
        text = f"[{self._done}/{self._total}] {made.case.words}: {words}"
        if made.reason:
            text += f" ({made.reason})"
        elif (found := made.breakdown()) is not None:
            rest = found.part("rest") / found.wall
            text += (
                f", a pass takes {units.duration(found.wall)} profiled, {units.percent(rest, 1)} unexplained"
            )
        self._say(text)

    def _show(self, text: str) -> None:
        if self._status is not None:
            self._status.update(text)

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)
