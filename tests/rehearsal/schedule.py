"""Which step runs when: what it needs first, several side by side, some alone, none once the time is over."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

from tests.rehearsal import report
from tests.rehearsal.plan import needs, with_needs
from tests.rehearsal.running import Runner
from tests.rehearsal.state import State
from tests.rehearsal.steps import Outcome, Step


def tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Schedule:
    """Runs steps and keeps what came of each. steps: all that there are. deadline: the time.monotonic() from
    which on nothing is started. kept: called whenever something more is."""

    def __init__(
        self,
        steps: Sequence[Step],
        state: State,
        folder: Path,
        runner: Runner,
        jobs: int = 1,
        deadline: float | None = None,
        say: Callable[[str], None] = tell,
        kept: Callable[[], None] = lambda: None,
    ) -> None:
        self._known = {step.name: step for step in steps}
        self._state = state
        self._folder = folder
        self._runner = runner
        self._jobs = jobs
        self._deadline = deadline
        self._say, self._on_kept = say, kept
        self._pool = ThreadPoolExecutor(jobs)
        self._running: dict[Future[Outcome], Step] = {}

    def close(self) -> None:
        """Wait for what still runs; the runner was told to stop it."""
        self._pool.shutdown(cancel_futures=True)

    def run(self, wanted: Sequence[Step]) -> None:
        """Every step that was not done yet, and before it what it needs. Ctrl-C raises KeyboardInterrupt."""
        pending = self._pending(wanted)
        total = len(pending)
        while pending or self._running:
            while (step := self._next(pending)) is not None:
                pending.remove(step)
                if (failed := self._lacks(step)) is not None:
                    self._keep(failed, total, len(pending))
                    continue
                self._running[self._pool.submit(self._runner.run, step, self._known)] = step
            if not self._running:
                return  # the time is over
            finished, _ = wait(self._running, timeout=0.5, return_when=FIRST_COMPLETED)
            for future in finished:
                step = self._running.pop(future)
                self._keep(self._came_of(future, step), total, len(pending) + len(self._running))

    def _came_of(self, future: Future[Outcome], step: Step) -> Outcome:
        """A fault of the rehearsal's own costs the step alone, too."""
        try:
            return future.result()
        except Exception as error:
            reason = f"the rehearsal itself failed: {type(error).__name__}: {error}"
            return Outcome(name=step.name, outcome="failed", reason=reason)

    def _pending(self, wanted: Sequence[Step]) -> list[Step]:
        """What is left of `wanted`, with what it needs that is not there (on another machine all of it)."""
        runnable = [
            step for step in wanted if report.settled(step) is None and not self._state.done(step.name)
        ]
        missing = [
            step
            for step in self._known.values()
            if not (self._state.done(step.name) and self._runner.made(step)) and report.settled(step) is None
        ]
        found = with_needs(runnable, missing)
        awaited = {name for step in found for name in needs(step)}
        # What others wait for, and what takes long, is not left for the end, where it would run by itself.
        return sorted(found, key=lambda s: (not s.alone, s.name not in awaited, not s.long))

    def _next(self, pending: Sequence[Step]) -> Step | None:
        """The first that may be started now."""
        if self._deadline is not None and time.monotonic() >= self._deadline:
            return None
        running = list(self._running.values())
        if len(running) >= self._jobs or any(step.alone for step in running):
            return None
        awaited = {step.name for step in (*running, *pending)}
        for step in pending:
            if not awaited.intersection(needs(step)) or step.name in needs(step):
                return None if step.alone and running else step
            if step.alone:
                return None  # it keeps its place: what comes behind it does not overtake it
        return None

    def _lacks(self, step: Step) -> Outcome | None:
        """The outcome of a step that cannot be run, as what it needs was not made."""
        for name in needs(step):
            if not self._state.done(name):
                return Outcome(name=step.name, outcome="failed", reason=f"it needs “{name}”, which failed")
        return None

    def _keep(self, outcome: Outcome, total: int, left: int) -> None:
        kept = self._state.add(outcome)
        self._state.save(self._folder)
        self._on_kept()
        why = f" ({kept.reason})" if kept.reason else ""
        self._say(f"[{total - left}/{total}] {kept.name}: {kept.outcome}, {kept.seconds:.1f} s{why}")
        if kept.outcome == "failed" and (told := self._runner.told(self._known[kept.name])):
            self._say(told)
