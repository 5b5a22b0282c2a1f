"""Ladders of the window: a question becomes a plan, Run a folder and a worker, a saved kernel a rung's rerun.

What was saved is run alone, and once its verdict is shown timed again together with what it is compared with;
the next save drops that. One thing is timed at a time: while `blocked` says why not (a comparison runs),
nothing starts, and what was saved meanwhile is run afterwards.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from PySide6.QtCore import QObject, QTemporaryDir, QTimer, Signal

from bench.kinds.naming import RUNS
from bench.ladder import again
from bench.ladder.kind import KIND as LADDER
from bench.ladder.kind import LadderFolder
from bench.ladder.questions import (
    DESCRIBE,
    AssemblyAnswer,
    LadderAnswer,
    LadderQuestion,
    assembly_command,
)
from bench.ladder.records import Ladder, RungCase, RungMeasurement
from bench.results.messages import Provisional
from bench.run.client import worker_command
from gui.sessions.asker import Asker
from gui.sessions.ladder_state import LadderState
from gui.sessions.own_kernels import KernelWatch, OwnKernels
from gui.sessions.session import Session
from kernels.errors import InputError

IDLE_MS = 15_000  # after an answer, until the process that plans ladders is ended
WAIT_MS = 150  # whoever steps through rungs does not have each of them compiled
COMPILE_MS = 120_000
RETRY_MS = 1000  # until what was saved is tried again, while something else is timed


class LadderSession(Session):
    """Signals beside Session's: `saved_rungs` with the names of the user's rungs that were saved, `created`
    with a new template's path."""

    saved_rungs = Signal(object)
    created = Signal(Path)

    busy_words = "A ladder is running"
    each = "rung"

    def __init__(
        self,
        question: LadderQuestion,
        parent: QObject | None = None,
        runs: Path = RUNS,
        blocked: Callable[[], str] = lambda: "",
        worker: Sequence[str] | None = None,
        describer: Sequence[str] | None = None,
    ) -> None:
        super().__init__(LADDER, parent, runs, worker)
        self.state = LadderState(question, self)
        self.blockers.append(blocked)
        command = describer or [*worker_command(LADDER.worker), DESCRIBE]
        # Between questions its models' weights stay in memory, which is not worth it for long.
        self._describer = Asker(command, LadderAnswer, self, idle_ms=IDLE_MS)
        self._describer.answered.connect(self._on_answer)
        self._describer.failed.connect(self._on_no_answer)
        self.assembly = Asker(assembly_command(), AssemblyAnswer, self, wait_ms=WAIT_MS, limit_ms=COMPILE_MS)
        self._watch = KernelWatch(self)
        self._watch.changed.connect(self._on_saved)
        self._quick = False
        self._together = False  # it is timed beside what it is compared with; its verdict is shown already
        self._held: list[RungMeasurement] = []  # of these, until the last is there
        self._spare: list[QTemporaryDir] = []  # folders of reruns: their error maps are looked at
        self._own = OwnKernels()
        self._wanted = False  # to be run as soon as it is planned
        self._retry = QTimer(self, singleShot=True, interval=RETRY_MS)
        self._retry.timeout.connect(self.run_due)

    @property
    def writing(self) -> Path | None:
        return None if self._quick else super().writing

    @property
    def planning(self) -> bool:
        """Whether an answer is awaited, or a folder is read."""
        return self._describer.busy or self.background.busy

    # ------------------------------------------------------------------------------------ what the user wants

    def ask(self, question: LadderQuestion) -> None:
        """Show the ladder of another choice. Refused, in words, while one is measured."""
        if self.active:
            self.told.emit(f"{self.busy_words}; cancel it or wait for its end to look at another.")
            self.state.changed.emit()  # whoever shows the choice shows the old one again
            return
        before, self.state.question = self.state.question, question
        self.state.leave()
        if question.kernel_dirs != before.kernel_dirs:
            self._own.added("Your kernels were run")
            question = msgspec.structs.replace(question, rungs=())  # those of the folder among them
            self.state.question = question
            self._watch.watch([Path(folder) for folder in question.kernel_dirs])
        self._plan(question)
        self.state.changed.emit()

    def start_watching(self) -> None:
        """Watch the folders of the question that the session began with."""
        self._watch.watch([Path(folder) for folder in self.state.question.kernel_dirs])

    def write_template(self, folder: Path) -> None:
        """Have a commented kernel that compiles and passes written into a folder, and the folder added."""
        if self.active:
            self.told.emit(f"{self.busy_words}; cancel it or wait for its end.")
            return
        self.state.leave()
        known = self.state.question.kernel_dirs
        dirs = known if str(folder) in known else (*known, str(folder))
        self.state.question = msgspec.structs.replace(self.state.question, kernel_dirs=dirs, rungs=())
        self._own.added()
        self._plan(msgspec.structs.replace(self.state.question, new_in=str(folder)))
        self.state.changed.emit()

    def run(self) -> None:
        """The whole ladder, into a folder of its own; one that is being planned, once it is. What hinders it
        is told."""
        if self.active:
            return
        if reason := self.blocked():
            self.told.emit(reason)
            return
        if self.state.opened is not None:
            self.ask(self.state.question)  # as it is here and now, not as it was recorded
        self._wanted = self.planning
        if self.state.only_read and not self._wanted:
            self.told.emit(self.state.reading_words)
            return
        ladder = self.state.ladder
        if ladder is None or self._wanted:
            return
        try:
            folder = self.new_folder(ladder)
        except InputError as error:
            self.told.emit(str(error))
            return
        self._own.due.clear()
        self._run(folder, folder.cases)

    def run_due(self) -> None:
        """The rungs that were saved while something else was measured, if that is over."""
        ladder = self.state.ladder
        if self._over or not self._own.due or ladder is None or self.active or self.state.opened:
            return
        if self.state.only_read:
            return
        if self.blocked():
            self._stand(ended="Saved. It is run as soon as nothing else is timed.")
            self._retry.start()
            return
        if cases := self._own.take(ladder.cases):
            self._run_quickly(ladder, cases)

    def _run_quickly(self, ladder: Ladder, cases: Sequence[RungCase], together: bool = False) -> None:
        """These cases of a ladder, into a folder that goes with the window."""
        spare = QTemporaryDir()
        self._spare.append(spare)
        ladder = msgspec.structs.replace(ladder, job=again.quick(ladder.job), cases=tuple(cases))
        folder = LADDER.create(Path(spare.path()) / "ladder", ladder)
        self._run(folder, cases, quick=True, together=together)

    def note(self, words: str) -> None:
        """Say a sentence where the last ladder's end is told."""
        if not self.active:
            self._stand(ended=words)

    def warm_up(self) -> None:
        """Have a worker ready, unless something is being measured."""
        if not self.active and not self.blocked():
            super().warm_up()

    def quit(self) -> None:
        self._retry.stop()
        self._describer.quit()
        self.assembly.quit()
        super().quit()

    # ------------------------------------------------------------------------------------------ the answers

    def _plan(self, question: LadderQuestion) -> None:
        """Ask what ladder there is; a template that the question before it wants is not forgotten."""
        waiting = self._describer.waiting
        if waiting is not None and waiting.new_in and not question.new_in:
            question = msgspec.structs.replace(question, new_in=waiting.new_in)
        self._describer.ask(question)

    def _on_answer(self, _question: LadderQuestion, answer: LadderAnswer) -> None:
        # What made a template is heard in any case: the file is there.
        if self._over or (self._describer.busy and not answer.created):
            return
        self.state.take(answer)
        if answer.created:
            self._own.words = (
                f"A kernel that passes is in {answer.created}: it is run whenever you save it; run"
            )
            self.created.emit(Path(answer.created))
            self._watch.watch([Path(folder) for folder in self.state.question.kernel_dirs])
        changed = self._own.look(answer, last=not self._describer.busy)
        if changed is not None:
            self.saved_rungs.emit(changed)
        if self._wanted and not self.planning:
            self.run()
        self.run_due()
        self.warm_up()

    def _on_no_answer(self, _question: LadderQuestion, reason: str) -> None:
        self._wanted = False
        words = f"The ladder could not be planned: {reason}."
        self.state.fail(words)
        self.told.emit(words)

    def _on_saved(self, paths: Sequence[Path]) -> None:
        if not self._over:
            self._own.saved(paths)
            if not self.active:
                self.state.leave()
                self._plan(self.state.question)
            elif self._together:
                self.cancel()

    # ---------------------------------------------------------------------------------------- the measuring

    def _opened(self, folder: LadderFolder, measurements: tuple[RungMeasurement, ...]) -> None:
        self._wanted = False
        path, ladder = folder.path.absolute(), folder.header
        self.state.show(path, ladder, measurements)
        when = ladder.created_at.replace("T", " ")[:16]
        self.note(f"Opened from {path.name}, of {when}. Run measures what is chosen above.")
        self._plan(self.state.question)

    def _run(
        self, folder: LadderFolder, cases: Sequence[RungCase], quick: bool = False, together: bool = False
    ) -> None:
        self._quick, self._together, self._held = quick, together, []
        if not together:  # else what is known stays on the screen until it is known anew
            self.state.begin(cases)
        if not quick:
            self.state.keep(folder.path.absolute())
        self.begin(folder, cases)

    def _heard(self, message: Any) -> str:
        self.state.heard(message)
        return ""

    def _turned(self, case: RungCase, stage: str) -> None:
        if not self._together:
            self.state.turn(case, LADDER.stages.get(stage, stage))

    def _expected(self, message: Provisional) -> None:
        if not self._together:
            self.state.turn(message.case, median_ns=message.median_ns)

    def _written(self, measurements: Sequence[RungMeasurement]) -> None:
        if self._together:
            self._held += measurements
        else:
            self.state.settle(measurements, self._folder)

    def _stopped(self) -> None:
        self.state.wait_again()

    def _closed(self, cancelled: bool, cases: Sequence[RungCase]) -> str | None:
        together, self._together = self._together, False
        if together and not cancelled:  # a part of what is compared is nothing to compare
            self.state.settle(self._held, self._folder)
        self.state.end()
        if self._quick and not (cancelled or together) and self._beside(cases):
            return None
        if cancelled and not together:
            return "Cancelled; what was measured stays."
        if self._quick:
            return f"{self._own.words} at {datetime.datetime.now():%H:%M:%S}."
        return f"Kept in {self._runs.name}/{self._folder.name}."

    def _go_on(self) -> None:
        if self._own.touched:  # saved while it ran
            self._plan(self.state.question)
        else:
            self.run_due()
            self.warm_up()

    def _beside(self, cases: Sequence[RungCase]) -> bool:
        """Begin to time what was run alone together with what it is compared with, unless there is something
        else to do. Whether it began."""
        ladder, found = self.state.ladder, self.state.beside(cases)
        wait = self._over or self._own.touched or self._own.due or self.state.opened or self.blocked()
        if not found or wait or ladder is None:
            return False
        self._run_quickly(ladder, found, together=True)
        return True
