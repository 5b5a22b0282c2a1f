"""Shows what a run is doing on standard error: a live line on a terminal, else a line for each case."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from bench.results.kinds import Kind, case_words
from bench.results.messages import CaseStarted, Hello, Log, Progress, Provisional
from bench.run.beforehand import Looked
from bench.run.pace import Pace
from bench.run.past import Past
from bench.run.supervisor import RIGHT
from bench.words import units

SILENT_S = 10.0  # after which a run that nobody sees on a terminal says in a line what it is at


class RunProgress:
    """Feed it the client's events. total: cases, of which so many are `done` already and these are to come;
    job: what was asked for; past: what such runs took before, where this one is done by one worker on this
    machine. `with` it for as long as the run goes."""

    def __init__(
        self,
        kind: Kind[Any, Any],
        total: int,
        done: int = 0,
        cases: Sequence[Any] = (),
        job: Any = None,
        past: Past | None = None,
    ) -> None:
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._kind = kind
        self._total = total
        self._done = done
        self._cases = {case.key: case for case in cases}
        self._pace = Pace(job, past=past)
        self._started = time.monotonic()
        self._slowed = 1.0
        self._bar: Any = None
        self._task: Any = None
        self._words = ""
        self._so_far: dict[str, str] = {}
        self._right: set[str] = set()  # cases that were found right and are not timed yet
        self._said = self._started

    def __enter__(self) -> RunProgress:
        if self._console.is_terminal:
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                TextColumn,
                TimeElapsedColumn,
            )
            from rich.progress import Progress as Bar
            from rich.table import Column

            self._bar = Bar(
                MofNCompleteColumn(table_column=Column(no_wrap=True, min_width=7)),
                BarColumn(bar_width=16, table_column=Column(min_width=16)),
                TimeElapsedColumn(table_column=Column(no_wrap=True, min_width=7)),
                _left_column(Column(no_wrap=True, min_width=9)),
                # The words give way where the terminal is narrow, and not the figures.
                TextColumn(
                    "{task.description}",
                    markup=False,
                    table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1),
                ),
                console=self._console,
                transient=True,
                expand=True,
            )
            self._bar.start()
            self._task = self._bar.add_task(
                "starting the worker", total=self._total, completed=self._done, left=None
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pace.keep()
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, event: Any) -> None:
        """One message of the worker, or a measurement that was just settled."""
        kind, now = self._kind, time.monotonic() - self._started
        self._pace.slowed(self._slowed)
        if isinstance(event, kind.line):
            self._cases.pop(event.case.key, None)
            self._pace.settled(event.case, now, event.disposition)
            self._settled(event)
        elif isinstance(event, CaseStarted):
            self._pace.started(event.case, event.stage, now)
            if event.stage == RIGHT:
                self._right.add(event.case.key)
                return
            self._words = kind.turn(event.case, event.stage)
            if event.stage == "time":
                self._right.clear()
                self._words += self._so_far.get(event.case.key, "")
            self._show(self._words)
        elif isinstance(event, Provisional):
            so_far = f": about {units.duration(event.median_ns)} so far"
            self._so_far[event.case.key] = so_far
            if event.measurement is None:  # else it is past its timing
                self._show(f"{kind.turn(event.case, 'time')}{so_far}")
        elif isinstance(event, Hello):
            self._pace.greeted(event.environment)
            if not self._total:  # the worker knows which cases there are
                self._total, self._cases = len(event.cases), {case.key: case for case in event.cases}
                if self._bar is not None:
                    self._bar.update(self._task, total=self._total)
        elif isinstance(event, Progress):
            if event.fraction is not None:
                self._pace.progressed(event.fraction, now)
            share = f" ({event.fraction:.0%})" if event.fraction is not None else ""
            self._show(f"{self._words}: {event.text}{share}" if self._words else f"{event.text}{share}")
        elif isinstance(event, Log) and event.level in ("warning", "error"):
            self.say(f"{event.level}: {event.text}")
        if self._bar is not None:
            span = self._pace.left(tuple(self._cases.values()), self._total, now)
            self._bar.update(self._task, left=(span, time.monotonic()) if span is not None else None)

    def looked(self, machine: Looked) -> None:
        """Take what was seen of the machine before the measurement; any thread may call it."""
        for sentence in machine.sentences:
            self.say(f"warning: {sentence}")
        self._slowed = machine.slowed

    def say(self, text: str) -> None:
        """Print a line that stays."""
        self._said = time.monotonic()
        self._console.print(text, markup=False, soft_wrap=True)

    def _settled(self, measurement: Any) -> None:
        if measurement.disposition == "cancelled":  # it did not run; how many did not is said at the end
            return
        self._done += 1
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done)
        came_of_it = self._kind.outcome(measurement.disposition)
        text = f"[{self._done}/{self._total}] {case_words(measurement.case)}: {came_of_it}"
        text += f" ({measurement.reason})" if measurement.reason else self._kind.remark(measurement)
        if self._bar is None or measurement.disposition != "ok" or not self._kind.quiet:
            self.say(text)

    def _show(self, text: str) -> None:
        if self._right:
            text = f"{len(self._right)} right so far; {text}"
        if self._bar is not None:
            self._bar.update(self._task, description=text)
        elif time.monotonic() - self._said >= SILENT_S:
            self.say(f"[{self._done}/{self._total}] {text}")


def left_words(span: tuple[float, float], since_s: float) -> str:
    """The remaining time in words, `since_s` seconds after it was estimated: it counts down without new
    messages."""
    low, high = (max(0.0, end - since_s) for end in span)
    return units.left((low, high))


def _left_column(column: Any) -> Any:
    """Drawn with the bar. The task's `left` is the estimate and when it was made, or None."""
    from rich.progress import ProgressColumn, Task
    from rich.text import Text

    class Left(ProgressColumn):
        def render(self, task: Task) -> Text:
            remaining = task.fields["left"]
            return Text(
                left_words(remaining[0], time.monotonic() - remaining[1]) if remaining is not None else ""
            )

    return Left(column)


def callback(quiet: Sequence[str] = ()) -> Any:
    """For what runs before a worker (downloads, building a model): prints each new text once on standard
    error."""
    seen = set(quiet)

    def on_progress(text: str, fraction: float | None = None) -> None:
        if text not in seen:
            seen.add(text)
            print(text, file=sys.stderr)

    return on_progress
