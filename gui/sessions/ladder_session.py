"""Ladders of the window: a question becomes a plan, Run a folder and a worker, a saved kernel a rung's rerun.

What was saved is run alone, and once its verdict is shown timed again together with what it is compared with;
the next save drops that. One thing is timed at a time: while `blocked` says why not (a comparison runs),
nothing starts, and what was saved meanwhile is run afterwards.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from PySide6.QtCore import QObject, QTemporaryDir, QTimer, Signal

from bench.ladder.kind import KIND as LADDER
from bench.ladder.kind import LadderFolder
from bench.ladder.questions import LadderAnswer, LadderQuestion
from bench.ladder.records import (
    Ladder,
    LadderMessage,
    LimitsMeasured,
    RungCase,
    RungMeasurement,
    RungProvisional,
    RungStarted,
)
from bench.results import trust
from bench.results.messages import Hello, Log, Progress
from bench.run import client
from bench.run.supervisor import Supervisor
from gui.base.background import Background
from gui.sessions.kernel_watch import KernelWatch
from gui.sessions.ladder_describer import LadderDescriber
from gui.sessions.ladder_state import LadderState
from gui.sessions.own_kernels import OwnKernels
from gui.sessions.run_writer import RunWriter
from gui.sessions.session import RUNS, new_folder
from gui.sessions.worker_process import WorkerProcess
from kernels.errors import InputError

STAGES = {"prepare": "preparing", "check": "checking", "time": "timing"}
RETRY_MS = 1000  # until what was saved is tried again, while something else is timed
QUICK_BUDGET_S = 0.3  # of samples, for a rung that was just saved


@dataclass(frozen=True)
class LadderStanding:
    """Where a ladder stands. phase: "idle", "running", "cancelling"; words: what goes on; ended: what came of
    the last one, in a sentence."""

    phase: str = "idle"
    words: str = ""
    done: int = 0
    total: int = 0
    ended: str = ""

    @property
    def active(self) -> bool:
        return self.phase != "idle"


class LadderSession(QObject):
    """Signals: `stands` whenever the standing changed, `told` with what the user should know, `logged` with a
    Log, `saved_rungs` with the names of the user's rungs that were saved, `created` with a new template's
    path, `ended` when nothing is measured any more."""

    stands = Signal(object)
    told = Signal(str)
    logged = Signal(object)
    saved_rungs = Signal(object)
    created = Signal(Path)
    ended = Signal()

    def __init__(
        self,
        question: LadderQuestion,
        parent: QObject | None = None,
        runs: Path = RUNS,
        blocked: Callable[[], str] = lambda: "",
        worker: Sequence[str] | None = None,
        describer: Sequence[str] | None = None,
    ) -> None:
        super().__init__(parent)
        self.state = LadderState(question, self)
        self.standing = LadderStanding()
        self._runs = runs
        self._blocked = blocked
        self.background = Background(self.told.emit, self)
        self._describer = LadderDescriber(self, describer)
        self._describer.answered.connect(self._on_answer)
        self._describer.failed.connect(self._on_no_answer)
        self._worker = WorkerProcess(self, worker or client.worker_command(LADDER.worker))
        self._worker.said.connect(self._on_said)
        self._worker.settled.connect(self._on_settled)
        self._worker.wrote_errors.connect(self._on_errors)
        self._worker.stopped.connect(self.state.wait_again)
        self._worker.finished.connect(self._on_finished)
        self._watch = KernelWatch(self)
        self._watch.changed.connect(self._on_saved)
        self._writer: RunWriter | None = None
        self._supervisor: Supervisor | None = None
        self._folder = runs
        self._quick = False
        self._together = False  # it is timed beside what it is compared with; its verdict is shown already
        self._held: list[RungMeasurement] = []  # of these, until the last is there
        self._spare: list[QTemporaryDir] = []  # folders of reruns: their error maps are looked at
        self._own = OwnKernels()
        self._wanted = False  # to be run as soon as it is planned
        self._retry = QTimer(self, singleShot=True, interval=RETRY_MS)
        self._retry.timeout.connect(self.run_due)
        self._over = False

    @property
    def active(self) -> bool:
        return self._supervisor is not None

    @property
    def writing(self) -> Path | None:
        """The folder that a whole ladder is measured into now."""
        return self._folder if self.active and not self._quick else None

    @property
    def planning(self) -> bool:
        """Whether an answer is awaited, or a folder is read."""
        return self._describer.busy or self.background.busy

    # ------------------------------------------------------------------------------------ what the user wants

    def ask(self, question: LadderQuestion) -> None:
        """Show the ladder of another choice. Refused, in words, while one is measured."""
        if self.active:
            self.told.emit("A ladder is running; cancel it or wait for its end to look at another.")
            self.state.changed.emit()  # whoever shows the choice shows the old one again
            return
        before, self.state.question = self.state.question, question
        self.state.leave()
        if question.kernel_dirs != before.kernel_dirs:
            self._own.added("Your kernels were run")
            question = msgspec.structs.replace(question, rungs=())  # those of the folder among them
            self.state.question = question
            self._watch.watch([Path(folder) for folder in question.kernel_dirs])
        self._describer.ask(question)
        self.state.changed.emit()

    def start_watching(self) -> None:
        """Watch the folders of the question that the session began with."""
        self._watch.watch([Path(folder) for folder in self.state.question.kernel_dirs])

    def write_template(self, folder: Path) -> None:
        """Have a commented kernel that compiles and passes written into a folder, and the folder added."""
        if self.active:
            self.told.emit("A ladder is running; cancel it or wait for its end.")
            return
        self.state.leave()
        known = self.state.question.kernel_dirs
        dirs = known if str(folder) in known else (*known, str(folder))
        self.state.question = msgspec.structs.replace(self.state.question, kernel_dirs=dirs, rungs=())
        self._own.added()
        self._describer.ask(msgspec.structs.replace(self.state.question, new_in=str(folder)))
        self.state.changed.emit()

    def open(self, path: Path) -> None:
        """Show a ladder that was climbed before, as it was recorded. What is wrong with it is told."""
        if self.active:
            self.told.emit("A ladder is running; cancel it or wait for its end to look at another.")
            return

        def work() -> tuple[LadderFolder, tuple[RungMeasurement, ...]]:
            folder = LADDER.open(path)
            return folder, folder.measurements()

        def then(found: tuple[LadderFolder, tuple[RungMeasurement, ...]]) -> None:
            if self.active or self._over:
                return  # started meanwhile
            ladder = found[0].header
            self._wanted = False
            self.state.show(path.absolute(), ladder, found[1])
            when = ladder.created_at.replace("T", " ")[:16]
            self.note(f"Opened from {path.absolute().name}, of {when}. Run climbs what is chosen above anew.")
            self._describer.ask(self.state.question)

        self.background.start("open a ladder", work, then)

    def run(self) -> None:
        """The whole ladder, into a folder of its own; one that is being planned, once it is. What hinders it
        is told."""
        if self.active:
            return
        if reason := self._blocked():
            self.told.emit(reason)
            return
        if self.state.opened is not None:
            self.ask(self.state.question)  # as it is here and now, not as it was recorded
        self._wanted = self.planning
        ladder = self.state.ladder
        if ladder is None or self._wanted:
            return
        stamp = datetime.datetime.now().astimezone()
        ladder = msgspec.structs.replace(
            ladder, command=LADDER.command_line(ladder.job), created_at=stamp.isoformat(timespec="seconds")
        )
        try:
            folder = LADDER.create(new_folder(self._runs, stamp, f"ladder-{ladder.job.op}"), ladder)
        except InputError as error:
            self.told.emit(str(error))
            return
        trust.remember(folder.path, ladder.job.kernel_dirs)
        self._own.due.clear()
        self._begin(folder, ladder, quick=False)

    def cancel(self) -> None:
        if self._supervisor is not None and self.standing.phase == "running":
            self._stand(phase="cancelling", words="cancelling")
            self._worker.cancel()

    def run_due(self) -> None:
        """The rungs that were saved while something else was measured, if that is over."""
        ladder = self.state.ladder
        if self._over or not self._own.due or ladder is None or self.active or self.state.opened:
            return
        if self._blocked():
            self._stand(ended="Saved. It is run as soon as nothing else is timed.")
            self._retry.start()
            return
        if cases := self._own.take(ladder.cases):
            self._run_quickly(ladder, cases)

    def _run_quickly(self, ladder: Ladder, cases: Sequence[RungCase], together: bool = False) -> None:
        """These cases of a ladder, into a folder that goes with the window."""
        spare = QTemporaryDir()
        self._spare.append(spare)
        job = msgspec.structs.replace(
            ladder.job, quick=True, budget_s=min(QUICK_BUDGET_S, ladder.job.budget_s)
        )
        ladder = msgspec.structs.replace(ladder, job=job, cases=tuple(cases))
        folder = LADDER.create(Path(spare.path()) / "ladder", ladder)
        self._begin(folder, ladder, quick=True, together=together)

    def note(self, words: str) -> None:
        """Say a sentence where the last ladder's end is told."""
        if not self.active:
            self._stand(ended=words)

    def warm_up(self) -> None:
        """Have a worker ready, unless something is being measured."""
        if not self._over and not self.active and not self._blocked():
            self._worker.warm_up()

    def quit(self) -> None:
        self._over = True
        self._retry.stop()
        self._describer.quit()
        self._worker.quit()
        self._supervisor = None
        if self._writer is not None:
            self._writer.finish()
            self._writer.wait()
            self._writer = None

    # ------------------------------------------------------------------------------------------ the answers

    def _on_answer(self, answer: LadderAnswer) -> None:
        if self._over:
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

    def _on_no_answer(self, reason: str) -> None:
        self._wanted = False
        self.state.fail(reason)
        self.told.emit(reason)

    def _on_saved(self, paths: Sequence[Path]) -> None:
        if not self._over:
            self._own.saved(paths)
            if not self.active:
                self.state.leave()
                self._describer.ask(self.state.question)
            elif self._together:
                self.cancel()

    # ---------------------------------------------------------------------------------------- the measuring

    def _begin(self, folder: LadderFolder, ladder: Ladder, quick: bool, together: bool = False) -> None:
        self._folder, self._quick, self._together = folder.path.absolute(), quick, together
        self._held = []
        self._writer = RunWriter(folder, self)
        self._writer.written.connect(self._on_written)
        self._writer.failed.connect(self._on_write_failed)
        self._writer.closed.connect(self._on_closed)
        self._supervisor = Supervisor(LADDER, ladder.job, ladder.cases, str(self._folder))
        if not together:  # else what is known stays on the screen until it is known anew
            self.state.begin(ladder.cases)
        if not quick:
            self.state.keep(self._folder)
        self.standing = LadderStanding()
        self._stand(phase="running", words="starting the worker", total=len(ladder.cases))
        self._worker.run(self._supervisor)

    def _on_said(self, messages: Sequence[LadderMessage]) -> None:
        words = ""
        for message in messages:
            match message:
                case Hello() | LimitsMeasured():
                    self.state.heard(message)
                    if self._writer is not None:
                        self._writer.heard(message)
                case RungStarted(case=case, stage=stage):
                    words = f"{STAGES.get(stage, stage)} {case.words}"
                    if not self._together:
                        self.state.turn(case, STAGES.get(stage, stage))
                case RungProvisional(case=case, median_ns=median_ns) if not self._together:
                    self.state.turn(case, median_ns=median_ns)
                case Progress(text=text):
                    words = text
                case Log():
                    self.logged.emit(message)
        if words and self.standing.phase == "running":
            self._stand(words=words)

    def _on_settled(self, measurements: Sequence[RungMeasurement]) -> None:
        if self._writer is not None:
            for measurement in measurements:
                self._writer.append(measurement)

    def _on_written(self, measurements: Sequence[RungMeasurement]) -> None:
        if self._together:
            self._held += measurements
        else:
            self.state.settle(measurements, self._folder)
        self._stand(done=self.standing.done + len(measurements))

    def _on_errors(self, data: bytes) -> None:
        if self._writer is not None:
            self._writer.log(data)

    def _on_write_failed(self, reason: str) -> None:
        self.told.emit(reason)
        self.cancel()

    def _on_finished(self) -> None:
        machine = self._supervisor
        if machine is not None and machine.reason:
            self.told.emit(machine.reason[:1].upper() + machine.reason[1:])
        if self._writer is not None:
            self._writer.finish()

    def _on_closed(self) -> None:
        machine, self._supervisor, self._writer = self._supervisor, None, None
        cancelled = machine is not None and machine.cancelled
        together, self._together = self._together, False
        if together and not cancelled:  # a part of what is compared is nothing to compare
            self.state.settle(self._held, self._folder)
        self.state.end()
        finished = machine is not None and self._quick and not (cancelled or together)
        alone = [case for case in machine.cases if isinstance(case, RungCase)] if machine and finished else ()
        if alone and self._beside(alone):
            return
        if cancelled and not together:
            words = "Cancelled; what was measured stays."
        elif self._quick:
            words = f"{self._own.words} at {datetime.datetime.now():%H:%M:%S}."
        else:
            words = f"Kept in {self._runs.name}/{self._folder.name}."
        self.standing = LadderStanding(ended=words)
        self.stands.emit(self.standing)
        self.ended.emit()
        if self._over:
            return
        if self._own.touched:  # saved while it ran
            self._describer.ask(self.state.question)
        else:
            self.run_due()
            self.warm_up()

    def _beside(self, cases: Sequence[RungCase]) -> bool:
        """Begin to time what was run alone together with what it is compared with, unless there is something
        else to do. Whether it began."""
        ladder, found = self.state.ladder, self.state.beside(cases)
        wait = self._over or self._own.touched or self._own.due or self.state.opened or self._blocked()
        if not found or wait or ladder is None:
            return False
        self._run_quickly(ladder, found, together=True)
        return True

    def _stand(self, **fields: object) -> None:
        values = {name: getattr(self.standing, name) for name in LadderStanding.__dataclass_fields__}
        new = LadderStanding(**(values | fields))
        if new != self.standing:
            self.standing = new
            self.stands.emit(new)
