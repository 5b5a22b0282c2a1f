"""Comparisons of the window: a job becomes a run folder, a worker, and measurements in the run state."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal

from bench.comparison.kind import KIND as COMPARISON
from bench.comparison.kind import RunFolder
from bench.kinds import folders
from bench.kinds.naming import RUNS
from bench.results import trust
from bench.results.messages import Hello, Provisional
from bench.results.records import Case, Disposition, Job, Measurement, Run
from gui.sessions.run_state import RunState
from gui.sessions.session import Session
from gui.sessions.standing import Ended
from kernels.errors import InputError


class ComparisonSession(Session):
    """Signal beside Session's: `opened` with the folder of one that is shown."""

    opened = Signal(Path)

    busy_words = "A comparison is running"

    def __init__(
        self,
        state: RunState,
        parent: QObject | None = None,
        command: Sequence[str] | None = None,
        runs: Path = RUNS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(COMPARISON, parent, runs, command, clock)
        self._state = state
        self._came: Counter[Disposition] = Counter()

    def start(self, job: Job, folder: Path | None = None) -> Path:
        """Begin a new run in `folder` (None: a new one under the runs folder); its path.

        Raises InputError where the folder cannot be made or something else is being timed; RuntimeError while
        a run is active.
        """
        self._check_free()
        run = Run(job=job, cases=())
        held = folders.begin(COMPARISON, run, folder, self._runs, COMPARISON.command_line(job))
        self._show_and_begin(held, (), ())
        return held.path

    def go_on(self, folder: Path, trusted: bool = False, retry: bool = False) -> None:
        """Run what is missing of a run, with `retry` also what crashed or timed out. Kernels that it names
        and the user did not record here are run only where he has agreed (`trusted`). Raises InputError where
        it cannot be read or nothing is missing."""
        self._check_free()
        held = COMPARISON.open(folder)
        held.claim()
        missing = held.missing(retry)
        if not missing and held.cases:
            self._state.open(held.header, held.path, held.measurements())
            self.told.emit(f"Every case of {held.path.name} is measured already.")
            return
        if not trusted and (reason := trust.doubt(held.path, held.job.kernel_dirs)):
            self.doubted.emit(reason, lambda: self.go_on(folder, True, retry))
            return
        trust.remember(held.path, held.job.kernel_dirs)
        self._show_and_begin(held, missing, held.measurements())

    # ------------------------------------------------------------------------------------------ the inside

    def _opened(self, folder: RunFolder, measurements: tuple[Measurement, ...]) -> None:
        self._state.open(folder.header, folder.path, measurements)
        self.opened.emit(folder.path)

    def _check_free(self) -> None:
        if reason := self.blocked():
            raise InputError(reason)

    def _show_and_begin(self, held: RunFolder, cases: Sequence[Case], before: Sequence[Measurement]) -> None:
        if self.active:
            raise RuntimeError("a run is active")
        self._state.open(held.header, held.path, before)
        self._came = Counter(m.disposition for m in before if m.case not in cases)
        self.begin(held, cases)

    def _heard(self, message: Any) -> str:
        self._state.heard(message)
        return "reading the models" if isinstance(message, Hello) else ""

    def _expected(self, message: Provisional) -> None:
        self._state.expect(message)

    def _written(self, measurements: Sequence[Measurement]) -> None:
        # A case that the user cancelled has nothing to show.
        self._state.add([m for m in measurements if m.disposition != "cancelled"])
        self._came.update(m.disposition for m in measurements)

    def _stopped(self) -> None:
        self._state.settle()

    def _closed(self, cancelled: bool, cases: Sequence[Case]) -> Ended:
        self._state.settle()
        return Ended(
            counts=tuple((name, count) for name, count in self._came.items() if name != "cancelled"),
            total=len(self._state.run.cases),
            seconds=self._clock.seconds,
            folder=self._folder,
            cancelled=cancelled,
        )

    def _go_on(self) -> None:
        self.warm_up()
