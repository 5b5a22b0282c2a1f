"""`ladder --watch`: the user's own rungs, checked and timed again whenever a file is saved.

The whole ladder runs once; from then on only what was saved does, with fewer samples, and the table is drawn
again with what is known of the others. Then, the verdict on the screen, it is timed once more together with
what it is compared with, the reference and the rung below: their old times are of another state of the
machine. The next save drops that. The next worker is started while the user types, with its libraries loaded,
so that saving costs checking and timing alone. What each save came to is kept
(bench.results.saves)."""

from __future__ import annotations

import datetime
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from bench.questions import ladder_plan
from bench.results import saves
from bench.results.ladder_records import Ladder, LadderJob, RungCase, RungMeasurement
from bench.results.ladder_rows import rows
from bench.run import elsewhere
from bench.run import watching as again
from bench.run.kinds.ladder import KIND as LADDER
from bench.run.progress import RunProgress
from bench.run.warm import Warm
from bench.run.watching import Stamps, stamps
from bench.views.tables.ladder_tables import terminal
from bench.words.exits import CANCELLED
from kernels.errors import InputError, KernelError, KernelscopeError

POLL_S = 0.05


class _Saved(threading.Event):
    """Set as soon as a file is another than it was."""

    def __init__(self, folders: Iterable[str], seen: Stamps) -> None:
        super().__init__()
        self._folders, self._seen = tuple(folders), seen

    def is_set(self) -> bool:
        if not super().is_set() and stamps(self._folders) != self._seen:
            self.set()
        return super().is_set()


class FollowedTask:
    """The task that a ladder is climbed on, if it is one, and its files."""

    def __init__(self, job: LadderJob) -> None:
        self._task = ladder_plan.task_now(job)

    def job(self, job: LadderJob) -> LadderJob:
        """The same where the task's files are as they were, else one on the task as it is now. Raises
        InputError."""
        if self._task is None:
            return job
        before = self._task
        self._task = ladder_plan.task_now(job) or before
        if self._task == before:
            return job
        return ladder_plan.on_task(job, before, self._task)


class Watch:
    """A ladder that follows its files. `known`: the last measurement of each case that still is in the
    ladder."""

    def __init__(
        self,
        job: LadderJob,
        show: Callable[[Ladder, list[RungMeasurement]], None],
        on: Sequence[str] = (),
    ) -> None:
        self._job = job
        self._show = show
        self._seen = stamps(job.kernel_dirs)
        self._warm = Warm(LADDER, elsewhere.worker_command(on[0], LADDER) if on else None)
        self._sources: dict[str, str] = {}
        self._task = FollowedTask(job)
        self.known: dict[str, RungMeasurement] = {}
        self.ladder: Ladder | None = None
        self._log = saves.SaveLog(Path(job.kernel_dirs[0])) if job.kernel_dirs else None

    def close(self) -> None:
        self._warm.close()

    def first(self) -> None:
        """The whole ladder; a file that is no rung is told, and the watch goes on."""
        self._climb(everything=True)

    def poll(self) -> bool:
        """Look at the files; where one was saved, run what it is. Whether anything was."""
        now = stamps(self._job.kernel_dirs)
        if now == self._seen:
            return False
        self._seen = now
        try:
            job = self._task.job(self._job)
        except InputError as error:
            print(error, file=sys.stderr)
            return True
        if job is not self._job:  # what is right, and on what, is another: nothing that is known holds
            self._job, self.ladder = job, None
            self.known.clear()
        self._climb(everything=self.ladder is None)
        return True

    def _climb(self, everything: bool) -> None:
        try:
            planned = ladder_plan.plan(self._job)
        except KernelscopeError as error:
            print(error, file=sys.stderr)
            return
        sources = ladder_plan.sources(self._job)
        changed = [
            case
            for case in planned.cases
            if everything or case.key not in self.known or (case.user and self._changed(case.rung, sources))
        ]
        self._sources = sources
        keys = {case.key for case in planned.cases}
        self.known = {key: m for key, m in self.known.items() if key in keys}
        limits = self.ladder.limits if self.ladder else {}
        self.ladder = msgspec.structs.replace(planned, limits=limits)
        job = self._job
        if not everything:
            job = again.quick(job)
        if changed:
            self._run(job, changed)
        self._note(() if everything else changed, sources)
        cases = () if everything else again.beside(self.ladder, self.known, changed)
        alone = {case.key for case in changed}
        if cases:
            self.known |= again.aged(self.known, alone)
        self._draw()
        if cases:
            self._run(job, cases, _Saved(self._job.kernel_dirs, self._seen))
            self._draw()

    def _draw(self) -> None:
        assert self.ladder is not None
        self._show(self.ladder, [self.known[c.key] for c in self.ladder.cases if c.key in self.known])

    def _note(self, saved: Sequence[RungCase], sources: dict[str, str]) -> None:
        """Keep what the saved rungs came to. A log that cannot be written stops no watch."""
        if self._log is None or self.ladder is None:
            return
        try:
            if saved:
                self._log.note(self.ladder, saved, self.known, sources)
            else:
                self._log.begin(self.known)
        except InputError as error:
            print(error, file=sys.stderr)
            self._log = None

    def _changed(self, rung: str, sources: dict[str, str]) -> bool:
        # A header that several rungs include may have changed as well: then all of the user's run.
        return self._sources.get(rung) != sources.get(rung) or self._sources == sources

    def _run(self, job: LadderJob, cases: Sequence[RungCase], saved: _Saved | None = None) -> None:
        """These cases; what was measured of them is known afterwards. saved: drops them."""
        assert self.ladder is not None
        ladder = msgspec.structs.replace(self.ladder, job=job, cases=tuple(cases))
        with RunProgress(LADDER, len(ladder.cases), cases=ladder.cases, job=ladder.job) as progress:
            ran = self._warm.run(ladder, progress, saved)
        dropped = saved is not None and saved.is_set()
        if not (dropped and ran.outcome.cancelled):  # a part of what is compared is nothing to compare
            self.known |= {m.case.key: m for m in ran.measurements}
        self.ladder = msgspec.structs.replace(
            self.ladder, limits=ran.header.limits, environment=ran.header.environment
        )
        if ran.outcome.reason and not dropped:
            print(ran.outcome.reason, file=sys.stderr)
        if ran.outcome.cancelled and not dropped:
            raise KeyboardInterrupt


def check(job: LadderJob) -> None:
    """Raises InputError for what no saving mends: no folder to watch, a rung or a precision that there is
    not. Where a file of the user's is no rung yet, that may be why, and it is left to the watch."""
    if not job.kernel_dirs:
        raise InputError("--watch needs a folder of your own kernels: --kernels DIR")
    broken: list[KernelError] = []
    try:
        ladder_plan.plan(job, broken)
    except InputError:
        if not broken:
            raise


def watch(job: LadderJob, on: Sequence[str] = ()) -> int:
    """Follow the files until Ctrl-C. on: the place that measures (none: this machine). The exit code. Raises
    as `check` does."""
    from bench.words.terminal import console

    check(job)

    screen = console()

    def show(ladder: Ladder, measurements: list[RungMeasurement]) -> None:
        if screen.is_terminal:
            screen.clear()
        screen.print(terminal(ladder, rows(ladder, measurements)))
        screen.print(f"{datetime.datetime.now():%H:%M:%S}: waiting for a file to be saved; Ctrl-C ends")

    following = Watch(job, show, on)
    try:
        following.first()
        while True:
            following.poll()
            time.sleep(POLL_S)
    except KeyboardInterrupt:
        return CANCELLED
    finally:
        following.close()
