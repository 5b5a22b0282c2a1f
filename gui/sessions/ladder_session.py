"""The ladder that the window shows: its state (`LadderState`), what runs it (`LadderSession`), and the
user's own kernels.

A question becomes a plan; Run becomes a folder and a worker; a saved kernel is run again. It first runs
alone. Once its verdict is shown, it is timed again together with the rungs that it is compared with;
another save ends that. Only one thing is timed at a time: while `blocked` gives a reason (a comparison
runs), nothing starts, and what was saved meanwhile runs afterwards. Measurements of a node are kept
while others are shown. Rows are derived in a thread, because their intervals take milliseconds each.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from PySide6.QtCore import QFileSystemWatcher, QObject, QTemporaryDir, Signal

from bench.questions.ladder_questions import (
    DESCRIBE,
    TASKS,
    AssemblyAnswer,
    CountsAnswer,
    KernelProblem,
    LadderAnswer,
    LadderQuestion,
    RungInfo,
    assembly_command,
    counts_command,
    node_of,
)
from bench.results.inside import inside
from bench.results.ladder_records import Ladder, LadderJob, RungCase, RungMeasurement
from bench.results.ladder_rows import RungRow, rows
from bench.results.machine_limits import MachineLimits
from bench.results.messages import Hello, LimitsMeasured, Provisional
from bench.results.records import Environment
from bench.results.store import RUNS
from bench.run import watching as again
from bench.run.client import worker_command
from bench.run.elsewhere import HERE
from bench.run.kinds.ladder import KIND as LADDER
from bench.run.kinds.ladder import LadderFolder
from bench.run.supervisor import RIGHT
from bench.run.watching import Stamps, stamps
from bench.views.charts.ladder_charts import Going, planned
from gui.base.background import Background, timer
from gui.sessions.own_saves import OwnSaves
from gui.sessions.processes import Asker
from gui.sessions.session import Session
from kernels.errors import InputError

SETTLE_MS = 50  # to wait after the last event, because one save may be several events


class OwnKernels:
    """Which of the user's rungs must run again. due: their names; words: the reason, which ends with the
    time; touched: whether any file was saved since the last answer about the files."""

    def __init__(self) -> None:
        self.due: set[str] = set()
        self.words = ""
        self.touched = False
        self._fresh = False  # the next answer may bring rungs that were saved or added
        self._seen: dict[str, str] = {}  # path of a rung → its text when it was last looked at

    def added(self, words: str = "") -> None:
        """A folder was added, or is about to be."""
        self._fresh = True
        self.words = words or self.words

    def saved(self, paths: Sequence[Path]) -> None:
        """These files were saved."""
        names = ", ".join(sorted({path.name for path in paths}))
        self.words = f"{names} was saved, and run again"
        self._fresh = self.touched = True

    def look(self, answer: LadderAnswer, last: bool) -> tuple[str, ...] | None:
        """The names of the rungs that are new in an answer; they become due. None if there is nothing new
        to show. last: whether no other answer is awaited."""
        own = {info.path: info for info in answer.rungs if info.case.user}
        news = None
        if self._fresh:
            changed = [i.case.rung for path, i in own.items() if self._seen.get(path) != i.source]
            # A header that several rungs include may have changed: then all of the user's run.
            if self.touched and not changed and not answer.problems:
                changed = [info.case.rung for info in own.values()]
            self.due.update(changed)
            if changed or answer.problems:
                news = tuple(changed)
        self._seen.update((path, info.source) for path, info in own.items())
        if last:
            self._fresh = self.touched = False
        return news

    def take(self, cases: Sequence[RungCase]) -> tuple[RungCase, ...]:
        """The cases that are due. They are not due any more."""
        due_cases = tuple(case for case in cases if case.user and case.rung in self.due)
        self.due.clear()
        return due_cases


class KernelWatch(QObject):
    """Watches folders. `changed` carries the paths (list of Path) that were saved, made or removed. It
    sees every save, also by an editor that replaces the file."""

    changed = Signal(list)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.folders: tuple[Path, ...] = ()
        self._seen: Stamps = {}
        self._watcher = QFileSystemWatcher(self)
        self._watcher.fileChanged.connect(self._on_news)
        self._watcher.directoryChanged.connect(self._on_news)
        self._timer = timer(self, SETTLE_MS, self._look)

    def watch(self, folders: Sequence[Path]) -> None:
        """Watch these folders and all folders inside them, and no others. A folder that does not exist is
        awaited."""
        self.folders = tuple(Path(folder).resolve() for folder in folders)
        self._timer.stop()
        self._seen = stamps(self.folders)
        self._attend()

    def _on_news(self) -> None:
        # Start again with each event, so that no half-written file is read.
        self._timer.start()

    def _look(self) -> None:
        before, self._seen = self._seen, stamps(self.folders)
        self._attend()
        paths = sorted(path for path in {*before, *self._seen} if before.get(path) != self._seen.get(path))
        if paths:
            self.changed.emit(paths)

    def _attend(self) -> None:
        """Watch all files that exist now. Qt stops watching a file that was replaced."""
        wanted = {str(path) for path in self._seen}
        for folder in self.folders:
            if folder.is_dir():
                below = (p for p in folder.rglob("*") if p.is_dir() and p.name != "__pycache__")
                wanted |= {str(folder), *map(str, below)}
            else:
                wanted.add(str(next((p for p in folder.parents if p.is_dir()), folder)))
        now = {*self._watcher.files(), *self._watcher.directories()}
        if gone := sorted(now - wanted):
            self._watcher.removePaths(gone)
        if new := sorted(wanted - now):
            self._watcher.addPaths(new)
        # A file that was written before the watching began caused no event.
        if new and stamps(self.folders) != self._seen:
            self._timer.start()


@dataclass
class _KnownLadder:
    """The measurements of one node (or shape) on one device. folders: by case, the folder with its error
    map."""

    measured: dict[str, RungMeasurement] = field(default_factory=dict)
    folders: dict[str, Path] = field(default_factory=dict)
    rows: tuple[RungRow, ...] = ()
    models: tuple[RungRow, ...] = ()
    folder: Path | None = None  # the folder of the last whole ladder


class LadderState(QObject):
    """The ladder shown: question, answer, measurements, and what is being done with each rung. `changed`
    is emitted on each change, possibly very often."""

    changed = Signal()

    def __init__(self, question: LadderQuestion, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.question = question
        self.answer: LadderAnswer | None = None
        self.error = ""  # why there is no ladder
        self.only_read = ""  # why its rungs can be read and compiled here, and not run
        self.sources: dict[str, str] = {}  # of the user's rungs in the ladder shown from before, by name
        self.opened: Path | None = None  # the folder of the ladder shown, where it was climbed before
        self.ladder: Ladder | None = None
        self.going: dict[str, Going] = {}
        self._environment = Environment()
        self._limits: dict[str, MachineLimits] = {}  # by device
        self._shelves: dict[str, _KnownLadder] = {}
        self._shelf = _KnownLadder()
        self._deriver = Background(lambda sentence: None, self)
        self._again = False

    # ------------------------------------------------------------------------------------------- to be shown

    @property
    def rungs(self) -> tuple[RungInfo, ...]:
        """All rungs of the ladder's operator. A ladder from before has the user's as they were measured."""
        rungs = self.answer.rungs if self.answer is not None else ()
        if self.opened is None or not self.sources:
            return rungs
        of_a_task = self.question.model == TASKS
        kept = {
            m.case.rung: RungInfo(
                m.case, f"{m.case.number:02d}_{m.case.rung}{self._suffix(m.case)}", source, whole=of_a_task
            )
            for m in self._shelf.measured.values()
            if m.case.user and (source := self.sources.get(m.case.rung))
        }
        return (*(info for info in rungs if info.case.rung not in kept), *kept.values())

    def _suffix(self, case: RungCase) -> str:
        compiled = self.ladder is not None and self.ladder.job.device == "cuda" and not case.language
        return ".cu" if compiled else ".py"

    @property
    def measured(self) -> dict[str, RungMeasurement]:
        """What is measured of the ladder shown, by the case's key."""
        return dict(self._shelf.measured)

    @property
    def problems(self) -> tuple[KernelProblem, ...]:
        return self.answer.problems if self.answer is not None else ()

    @property
    def reading_words(self) -> str:
        """A sentence that says why the rungs shown cannot run here; "" if they can."""
        if not self.only_read or self.ladder is None:
            return ""
        device = self.ladder.job.device
        there = f"not run on {self.question.on}" if self.question.on else "not run"
        return f"Kernels for {device} are read and compiled here, {there}: {self.only_read}."

    @property
    def rows(self) -> list[RungRow]:
        """One row for each rung and reference, in the ladder's order; an empty row if it is not measured."""
        return planned(self.ladder, self._shelf.rows) if self.ladder is not None else []

    @property
    def derived(self) -> tuple[RungRow, ...]:
        """The rows of what is measured."""
        return self._shelf.rows

    @property
    def models(self) -> tuple[RungRow, ...]:
        """The rows of whole models."""
        return self._shelf.models

    @property
    def up_to_date(self) -> bool:
        """Whether all measurements have their row."""
        return not self._deriver.busy

    @property
    def run_folder(self) -> Path | None:
        """The folder of the last whole ladder. Rungs that ran alone afterwards are not in it."""
        return self._shelf.folder

    def keep(self, folder: Path) -> None:
        self._shelf.folder = folder

    def measurement(self, key: str) -> RungMeasurement | None:
        return self._shelf.measured.get(key)

    def map_of(self, measurement: RungMeasurement) -> Path | None:
        """The file of a wrong rung's error map, None if there is none."""
        finding, folder = measurement.finding, self._shelf.folders.get(measurement.case.key)
        if finding is None or not finding.map or folder is None:
            return None
        try:
            return inside(folder, finding.map)
        except InputError:
            return None  # the ladder names a file outside its folder

    def info(self, rung: str) -> RungInfo | None:
        return next((info for info in self.rungs if info.case.rung == rung), None)

    # ------------------------------------------------------------------------------------------ to be changed

    def show(self, folder: Path, ladder: Ladder, measurements: Iterable[RungMeasurement]) -> None:
        """Show a ladder that was measured before. What is measured now is not mixed into it."""
        job = ladder.job
        self.opened, self.error, self.answer, self.ladder = folder, "", None, ladder
        self.only_read = ""
        self.question = msgspec.structs.replace(
            self.question,
            model=job.model or (TASKS if job.op != "conv" else self.question.model),
            op=job.op,
            node=node_of(job),
            nodes=(),
            batch=job.batch,
            device=job.device,
            precision=job.precision,
            rungs=(),
            whole_model=job.whole_model,
        )
        measured = {m.case.key: m for m in measurements if m.disposition != "cancelled"}
        self._shelf = _KnownLadder(measured, dict.fromkeys(measured, folder), folder=folder)
        self._derive()
        self.changed.emit()

    def take(self, answer: LadderAnswer) -> None:
        """Show an answer. It replaces a choice that was not possible. If a ladder from before is shown,
        only its choices and sources are taken."""
        if self.opened is not None and self.ladder is not None:
            job = self.ladder.job
            own_answer = answer.to_read or answer
            now = own_answer.ladder.job if own_answer.ladder is not None else None
            same = now is not None and (now.op, now.device) == (job.op, job.device)
            rungs = own_answer.rungs if same else ()
            self.answer = msgspec.structs.replace(
                answer, error="", ladder=self.ladder, rungs=rungs, problems=(), to_read=None
            )
            self.changed.emit()
            return
        self.only_read = ""
        if answer.to_read is not None and (ladder := answer.to_read.ladder) is not None:
            refused = {info.name: info.refused for info in answer.devices}
            self.only_read = refused.get(ladder.job.device, "") or "it is not here"
            answer = msgspec.structs.replace(answer.to_read, devices=answer.devices, created=answer.created)
        self.answer, self.error, self.ladder = answer, answer.error, answer.ladder
        if answer.ladder is not None:
            job = answer.ladder.job
            self.question = msgspec.structs.replace(
                self.question,
                op=job.op,
                node=node_of(job),
                nodes=(),
                device=job.device,
                precision=job.precision,
            )
            self._shelf = self._shelves.setdefault(identity(job, self.question.on), _KnownLadder())
            self.ladder = msgspec.structs.replace(
                answer.ladder, environment=self._environment, limits=self._limits
            )
            keys = {case.key for case in answer.ladder.cases}
            for key in [key for key in self._shelf.measured if key not in keys]:
                if self._shelf.measured[key].case.user:  # its file was deleted, or is no rung any more
                    del self._shelf.measured[key]
            self._derive()
        else:
            self._shelf = _KnownLadder()
        self.changed.emit()

    def fail(self, reason: str) -> None:
        """There is no answer, for this reason."""
        self.error = reason
        self.changed.emit()

    def take_message(self, message: object) -> None:
        """Take what a worker says about the machine."""
        if self.ladder is None:
            return
        if self.opened is not None:  # recorded elsewhere, perhaps
            if isinstance(message, Hello):
                self._environment = message.environment
            return
        if isinstance(message, Hello):
            self._environment = message.environment
            self.ladder = msgspec.structs.replace(self.ladder, environment=message.environment)
        elif isinstance(message, LimitsMeasured):
            self._limits = self._limits | {message.limits.device: message.limits}
            self.ladder = msgspec.structs.replace(self.ladder, limits=self._limits)
            self._derive()
        self.changed.emit()

    def move(self) -> None:
        """What is measured from now on is measured on another machine."""
        self._environment, self._limits = Environment(), {}

    def leave(self) -> None:
        """The next answer replaces the ladder from before."""
        self.opened = None

    def forget(self) -> None:
        """Nothing that was measured of any ladder holds any longer."""
        self._shelves.clear()
        self._shelf = _KnownLadder()
        self._derive()

    def begin(self, cases: Iterable[RungCase]) -> None:
        """These cases are measured again: forget what was measured."""
        for case in cases:
            self._shelf.measured.pop(case.key, None)
            self.going[case.key] = Going()
        self._derive()
        self.changed.emit()

    def beside(self, cases: Iterable[RungCase]) -> tuple[RungCase, ...]:
        """The cases to time together, after these ran alone (bench.run.watching). The others among them
        are in doubt from now on."""
        if self.ladder is None:
            return ()
        measured, alone = self._shelf.measured, {case.key for case in cases}
        compared = again.beside(self.ladder, measured, tuple(cases))
        if compared:
            measured.update(again.aged(measured, alone))
            self._derive()
        return compared

    def turn(self, case: RungCase, words: str = "", median_ns: float | None = None) -> None:
        """The worker is at this case, or says what it takes so far."""
        before = self.going.get(case.key, Going())
        if before.right and words != "timing" and median_ns is None:
            return  # more instances of it are made
        if words and words != before.words and words != "timing":
            before = Going()  # begun anew
        self.going[case.key] = Going(
            words or before.words, median_ns if median_ns is not None else before.median_ns
        )
        self.changed.emit()

    def found_right(self, case: RungCase) -> None:
        """Its first answers were right; it waits for the others."""
        self.going[case.key] = Going(right=True)
        self.changed.emit()

    def wait_again(self) -> None:
        """The worker is gone: the case that it measured begins again."""
        self.going = dict.fromkeys(self.going, Going())
        self.changed.emit()

    def settle(self, measurements: Iterable[RungMeasurement], folder: Path) -> None:
        """Take measurements. folder: where their error maps lie."""
        for measurement in measurements:
            key = measurement.case.key
            self.going.pop(key, None)
            if measurement.disposition != "cancelled":
                self._shelf.measured[key] = measurement
                self._shelf.folders[key] = folder
        self._derive()
        self.changed.emit()

    def end(self) -> None:
        """Nothing is measured any more."""
        self.going.clear()
        self.changed.emit()

    # ------------------------------------------------------------------------------------------ the inside

    def _derive(self) -> None:
        if self._deriver.busy:
            self._again = True
            return
        ladder, shelf = self.ladder, self._shelf
        if ladder is None:
            return
        measurements = [shelf.measured[case.key] for case in ladder.cases if case.key in shelf.measured]

        def work() -> tuple[tuple[RungRow, ...], tuple[RungRow, ...]]:
            return tuple(rows(ladder, measurements)), tuple(rows(ladder, measurements, "model"))

        def then(derived: tuple[tuple[RungRow, ...], tuple[RungRow, ...]]) -> None:
            shelf.rows, shelf.models = derived
            self.changed.emit()
            if self._again:
                self._again = False
                self._derive()

        self._deriver.start("rows", work, then)


def identity(job: LadderJob, on: str = HERE) -> str:
    """A text that is equal for two jobs if their measurements can stand in one ladder. on: where they run."""
    return json.dumps(
        [job.op, job.params, job.device, job.model, job.node, job.threads, job.l2, on], sort_keys=True
    )


IDLE_MS = 15_000  # after an answer, until the process that plans ladders is ended
WAIT_MS = 150  # so that stepping through rungs does not compile each of them
COMPILE_MS = 120_000
RETRY_MS = 1000  # until what was saved is tried again, while something else is timed


class LadderSession(Session):
    """Plans and runs ladders. More signals than Session: `saved_rungs` carries the names of the user's
    rungs that were saved, `created` the path of a new template."""

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
        # The process is ended after a while, because it keeps weights in memory.
        self._describer = Asker(command, LadderAnswer, self, idle_ms=IDLE_MS)
        self._describer.answered.connect(self._on_answer)
        self._describer.failed.connect(self._on_no_answer)
        self.assembly = Asker(assembly_command(), AssemblyAnswer, self, wait_ms=WAIT_MS, limit_ms=COMPILE_MS)
        self.counts = Asker(counts_command(), CountsAnswer, self, wait_ms=WAIT_MS, limit_ms=COMPILE_MS)
        self._watch = KernelWatch(self)
        self._watch.changed.connect(self._on_saved)
        self._quick = False
        self._together = False  # the rungs are being timed together; their verdicts are shown already
        self._measured_together: list[RungMeasurement] = []  # their measurements, until the last one is there
        self._spare: list[QTemporaryDir] = []  # folders of reruns: their error maps are looked at
        self._own = OwnKernels()
        self.saves = OwnSaves(self.background, self)
        self.saves.changed.connect(self._on_saves)
        self._wanted = False  # to be run as soon as it is planned
        self._retry = timer(self, RETRY_MS, self.run_due)

    @property
    def writing(self) -> Path | None:
        return None if self._quick else super().writing

    @property
    def planning(self) -> bool:
        """Whether an answer is awaited, or a folder is being read."""
        return self._describer.busy or self.background.busy

    # ------------------------------------------------------------------------------------ what the user wants

    def ask(self, question: LadderQuestion, run: bool = True) -> None:
        """Show the ladder of this question. While one is measured, this is refused with a message. run:
        whether the kernels of a folder that is new in it are run at once."""
        if self.active:
            self.message.emit(f"{self.busy_words}; cancel it or wait for its end to look at another.")
            self.state.changed.emit()  # the page must show the old choice again
            return
        if self.state.opened is not None:
            self.note("")  # when that one was measured is true of no other
        before, self.state.question = self.state.question, question
        self.state.leave()
        if question.on != before.on:
            self.state.move()
        if question.kernel_dirs != before.kernel_dirs:
            if run:
                self._own.added("Your kernels were run")
            question = msgspec.structs.replace(question, rungs=())  # those of the folder among them
            self.state.question = question
            self._watch.watch([Path(folder) for folder in question.kernel_dirs])
            self.saves.look(question.kernel_dirs)
        self.saves.show(None)
        self._plan(question)
        self.state.changed.emit()

    def start_watching(self) -> None:
        """Watch the folders of the first question."""
        self.saves.look(self.state.question.kernel_dirs)
        self._watch.watch([Path(folder) for folder in self.state.question.kernel_dirs])

    def write_template(self, folder: Path) -> None:
        """Have a template of a kernel written into a folder, and add the folder. The template compiles and
        passes."""
        if self.active:
            self.message.emit(f"{self.busy_words}; cancel it or wait for its end.")
            return
        self.state.leave()
        known = self.state.question.kernel_dirs
        dirs = known if str(folder) in known else (*known, str(folder))
        self.state.question = msgspec.structs.replace(self.state.question, kernel_dirs=dirs, rungs=())
        self._own.added()
        self._plan(msgspec.structs.replace(self.state.question, new_in=str(folder)))
        self.state.changed.emit()

    def run(self) -> None:
        """Run the whole ladder, into a new folder; if it is being planned, as soon as it is ready. What
        prevents it is sent as a message."""
        if self.active:
            return
        if reason := self.blocked():
            self.message.emit(reason)
            return
        if self.state.opened is not None:
            self.ask(self.state.question)  # as it is here and now, not as it was recorded
        self._wanted = self.planning
        if self.state.only_read and not self._wanted:
            self.message.emit(self.state.reading_words)
            return
        ladder = self.state.ladder
        if ladder is None or self._wanted:
            return
        try:
            folder = self.new_folder(ladder)
        except InputError as error:
            self.message.emit(str(error))
            return
        self._own.due.clear()
        self._run(folder, folder.cases)

    def run_due(self) -> None:
        """Run the rungs that were saved while something else was measured, if that has ended."""
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
            self._run_quickly(ladder, (*cases, *self._yardsticks(ladder, cases)))

    def _yardsticks(self, ladder: Ladder, own: Sequence[RungCase]) -> list[RungCase]:
        """The references of these rungs that nothing has been timed of yet: without one the first run of a
        kernel says nothing of its speed."""
        precisions, measured = {case.precision for case in own}, self.state.measured
        return [
            case
            for case in ladder.cases
            if case.is_reference
            and case.scope == "reference"
            and case.precision in precisions
            and case.key not in measured
        ]

    def _run_quickly(self, ladder: Ladder, cases: Sequence[RungCase], together: bool = False) -> None:
        """Run these cases into a temporary folder."""
        spare = QTemporaryDir()
        self._spare.append(spare)
        ladder = msgspec.structs.replace(ladder, job=again.quick(ladder.job), cases=tuple(cases))
        folder = LADDER.create(Path(spare.path()) / "ladder", ladder)
        self._run(folder, cases, quick=True, together=together)

    def note(self, words: str) -> None:
        """Show a sentence in the place where the end of the last ladder is described."""
        if not self.active:
            self._stand(ended=words)

    def warm_up(self) -> None:
        """Start a worker that waits for a job, unless something is being measured."""
        if not self.active and not self.blocked():
            super().warm_up()

    def quit(self) -> None:
        self._retry.stop()
        self._describer.quit()
        self.assembly.quit()
        self.counts.quit()
        super().quit()

    # ------------------------------------------------------------------------------------------ the answers

    def _plan(self, question: LadderQuestion) -> None:
        """Ask what ladder there is. A template that the waiting question asks for is not lost."""
        waiting = self._describer.waiting
        if waiting is not None and waiting.new_in and not question.new_in:
            question = msgspec.structs.replace(question, new_in=waiting.new_in)
        self._describer.ask(question)

    def _on_answer(self, _question: LadderQuestion, answer: LadderAnswer) -> None:
        # An answer that made a template is always handled, because the file exists.
        if self._over or (self._describer.busy and not answer.created):
            return
        self.state.take(answer)
        if answer.created:
            self._own.words = (
                f"A kernel that passes is in {answer.created}: it is run whenever you save it; run"
            )
            self.created.emit(Path(answer.created))
            self._watch.watch([Path(folder) for folder in self.state.question.kernel_dirs])
            self.saves.look(self.state.question.kernel_dirs)
        changed = self._own.look(answer, last=not self._describer.busy)
        if changed is not None:
            self.saved_rungs.emit(changed)
        if self._wanted and not self.planning:
            self.run()
        self.run_due()
        self.warm_up()

    def _on_saves(self) -> None:
        self.state.sources = {save.rung: save.source for save in self.saves.shown}
        self.state.changed.emit()

    def _on_no_answer(self, _question: LadderQuestion, reason: str) -> None:
        self._wanted = False
        words = f"The ladder could not be planned: {reason}."
        self.state.fail(words)
        self.message.emit(words)

    def _on_saved(self, paths: Sequence[Path]) -> None:
        if not self._over:
            self._own.saved(paths)
            if any(map(again.of_a_task, paths)):  # what is right is another: nothing that was measured holds
                self.state.forget()
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
        self.saves.show(path)
        when = ladder.created_at.replace("T", " ")[:16]
        self.note(f"Measured on {when}, kept in {path.parent.name}/{path.name}.")
        self._plan(self.state.question)

    def _run(
        self, folder: LadderFolder, cases: Sequence[RungCase], quick: bool = False, together: bool = False
    ) -> None:
        self._quick, self._together, self._measured_together = quick, together, []
        self.saves.begin(self.state.rungs, self.state.measured)
        if not together:  # else the old results stay visible until the new ones are there
            self.state.begin(cases)
        if not quick:
            self.state.keep(folder.path.absolute())
        self.begin(folder, cases)

    def _heard(self, message: Any) -> str:
        self.state.take_message(message)
        return ""

    def _turned(self, case: RungCase, stage: str, fraction: float | None = None) -> None:
        if self._together:
            return
        if stage == RIGHT:
            self.state.found_right(case)
        else:
            self.state.turn(case, LADDER.stages.get(stage, stage))

    def _expected(self, message: Provisional) -> None:
        if not self._together:
            self.state.turn(message.case, median_ns=message.median_ns)

    def _written(self, measurements: Sequence[RungMeasurement]) -> None:
        if self._together:
            self._measured_together += measurements
        else:
            self.state.settle(measurements, self._folder)

    def _stopped(self) -> None:
        self.state.wait_again()

    def _closed(self, cancelled: bool, cases: Sequence[RungCase]) -> str | None:
        together, self._together = self._together, False
        if together and not cancelled:  # incomplete results cannot be compared
            self.state.settle(self._measured_together, self._folder)
        self.state.end()
        if not together and self.state.ladder is not None:
            run = None if self._quick else self._folder
            self.saves.note(self.state.ladder, cases, self.state.measured, run)
        if self._quick and not (cancelled or together) and self._beside(cases):
            return None
        if cancelled and not together:
            return "Cancelled; what was measured stays."
        if self._quick:
            return f"{self._own.words} at {datetime.datetime.now():%H:%M:%S}."
        return f"Kept in {self.runs.name}/{self._folder.name}."

    def _go_on(self) -> None:
        if self._own.touched:  # saved while it ran
            self._plan(self.state.question)
        else:
            self.run_due()
            self.warm_up()

    def _beside(self, cases: Sequence[RungCase]) -> bool:
        """Time the rungs that ran alone together with those they are compared with, unless there is
        something else to do. Returns whether that began."""
        ladder, compared = self.state.ladder, self.state.beside(cases)
        wait = self._over or self._own.touched or self._own.due or self.state.opened or self.blocked()
        if not compared or wait or ladder is None:
            return False
        self._run_quickly(ladder, compared, together=True)
        return True
