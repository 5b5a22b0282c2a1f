"""Comparisons of the window: a job becomes a run folder, a worker, and measurements in the run state."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject

from bench.results.messages import Hello, Provisional
from bench.results.records import Case, Job, Measurement, Run
from bench.results.store import RUNS
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.run.kinds.comparison import RunFolder
from gui.sessions.run_state import RunState
from gui.sessions.session import Ended, Session
from kernels.errors import InputError


class ComparisonSession(Session):
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

    def start(self, job: Job, folder: Path | None = None) -> Path:
        """Begin a new run in `folder` (None: a new one under the runs folder); its path.

        Raises InputError where the folder cannot be made or something is being timed.
        """
        if reason := self.occupied() or self.blocked():
            raise InputError(reason)
        made = self.new_folder(Run(job=job, cases=()), folder)
        self._opened(made, ())
        self.begin(made, ())
        return made.path

    # ------------------------------------------------------------------------------------------ the inside

    def _opened(self, folder: RunFolder, measurements: tuple[Measurement, ...]) -> None:
        self._state.open(folder.header, folder.path, measurements)

    def _heard(self, message: Any) -> str:
        self._state.heard(message)
        return "reading the models" if isinstance(message, Hello) else ""

    def _expected(self, message: Provisional) -> None:
        self._state.expect(message)

    def _written(self, measurements: Sequence[Measurement]) -> None:
        # A case that the user cancelled has nothing to show.
        self._state.add([m for m in measurements if m.disposition != "cancelled"])

    def _stopped(self) -> None:
        self._state.settle()

    def _closed(self, cancelled: bool, cases: Sequence[Case]) -> Ended:
        self._state.settle()
        return Ended(
            counts=tuple(Counter(m.disposition for m in self._state.measurements).items()),
            total=len(self._state.run.cases),
            seconds=self._clock.seconds,
            folder=self._folder,
            cancelled=cancelled,
        )

    def _go_on(self) -> None:
        self.warm_up()
