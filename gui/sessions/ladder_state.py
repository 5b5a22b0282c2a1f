"""The ladder that the page shows: what was asked, the answer, what is measured, where each rung stands now.

What was measured on a node is kept while others are looked at. Rows are derived in a thread: their intervals
take milliseconds each.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from PySide6.QtCore import QObject, Signal

from bench.ladder import again
from bench.ladder.questions import KernelProblem, LadderAnswer, LadderQuestion, RungInfo
from bench.ladder.records import Ladder, LadderJob, RungCase, RungMeasurement
from bench.ladder.show.live_charts import Going, planned
from bench.ladder.show.rows import RungRow, rows
from bench.results.inside import inside
from bench.results.machine_limits import MachineLimits
from bench.results.messages import Hello, LimitsMeasured
from bench.results.records import Environment
from gui.base.background import Background
from kernels.errors import InputError


@dataclass
class _KnownLadder:
    """What is known of one piece of work on one device. folders: where the error map of a case lies."""

    measured: dict[str, RungMeasurement] = field(default_factory=dict)
    folders: dict[str, Path] = field(default_factory=dict)
    rows: tuple[RungRow, ...] = ()
    models: tuple[RungRow, ...] = ()
    kept: Path | None = None  # the folder of the last whole ladder


class LadderState(QObject):
    """`changed` with everything that a view may show; cheap, may come in floods."""

    changed = Signal()

    def __init__(self, question: LadderQuestion, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.question = question
        self.answer: LadderAnswer | None = None
        self.error = ""  # why there is no ladder
        self.only_read = ""  # why its rungs can be read and compiled here, and not run
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
        """Every rung of the ladder's operator."""
        return self.answer.rungs if self.answer is not None else ()

    @property
    def problems(self) -> tuple[KernelProblem, ...]:
        return self.answer.problems if self.answer is not None else ()

    @property
    def reading_words(self) -> str:
        """That the rungs shown cannot run here, and why; "" where they can."""
        if not self.only_read or self.ladder is None:
            return ""
        device = self.ladder.job.device
        return f"Kernels for {device} are read and compiled here, not run: {self.only_read}."

    @property
    def rows(self) -> list[RungRow]:
        """One a rung and reference of the ladder, in order; of what is not measured an empty one."""
        return planned(self.ladder, self._shelf.rows) if self.ladder is not None else []

    @property
    def derived(self) -> tuple[RungRow, ...]:
        """The rows of what is measured."""
        return self._shelf.rows

    @property
    def models(self) -> tuple[RungRow, ...]:
        """The rows of the whole models."""
        return self._shelf.models

    @property
    def up_to_date(self) -> bool:
        """Whether every measurement has its row."""
        return not self._deriver.busy

    @property
    def kept(self) -> Path | None:
        """The folder of the last whole ladder on what is shown; what was run alone since is not in it."""
        return self._shelf.kept

    def keep(self, folder: Path) -> None:
        self._shelf.kept = folder

    def measurement(self, key: str) -> RungMeasurement | None:
        return self._shelf.measured.get(key)

    def map_of(self, measurement: RungMeasurement) -> Path | None:
        """The file of a wrong rung's error map, if there is one."""
        finding, folder = measurement.finding, self._shelf.folders.get(measurement.case.key)
        if finding is None or not finding.map or folder is None:
            return None
        try:
            return inside(folder, finding.map)
        except InputError:
            return None  # of a ladder from elsewhere, which names a file that is not its own

    def info(self, rung: str) -> RungInfo | None:
        return next((info for info in self.rungs if info.case.rung == rung), None)

    # ------------------------------------------------------------------------------------------ to be changed

    def show(self, folder: Path, ladder: Ladder, measurements: Iterable[RungMeasurement]) -> None:
        """A ladder that was climbed before, as it was recorded. Nothing of it mixes with what is measured
        now."""
        job = ladder.job
        self.opened, self.error, self.answer, self.ladder = folder, "", None, ladder
        self.only_read = ""
        self.question = msgspec.structs.replace(
            self.question,
            model=job.model or self.question.model,
            op=job.op,
            node=job.node,
            nodes=(),
            batch=job.batch,
            device=job.device,
            precision=job.precision,
            rungs=(),
            whole_model=job.whole_model,
        )
        measured = {m.case.key: m for m in measurements if m.disposition != "cancelled"}
        self._shelf = _KnownLadder(measured, dict.fromkeys(measured, folder), kept=folder)
        self._derive()
        self.changed.emit()

    def take(self, answer: LadderAnswer) -> None:
        """Show what was answered. A choice that could not be met is replaced by what was answered; beside a
        ladder that was climbed before, only what there is to choose from and to read."""
        if self.opened is not None and self.ladder is not None:
            job = self.ladder.job
            found = answer.to_read or answer
            now = found.ladder.job if found.ladder is not None else None
            same = now is not None and (now.op, now.device) == (job.op, job.device)
            rungs = found.rungs if same else ()
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
                self.question, op=job.op, node=job.node, nodes=(), device=job.device, precision=job.precision
            )
            self._shelf = self._shelves.setdefault(identity(job), _KnownLadder())
            self.ladder = msgspec.structs.replace(
                answer.ladder, environment=self._environment, limits=self._limits
            )
            keys = {case.key for case in answer.ladder.cases}
            for key in [key for key in self._shelf.measured if key not in keys]:
                if self._shelf.measured[key].case.user:  # its file is gone, or no rung any more
                    del self._shelf.measured[key]
            self._derive()
        else:
            self._shelf = _KnownLadder()
        self.changed.emit()

    def fail(self, reason: str) -> None:
        """There is no answer."""
        self.error = reason
        self.changed.emit()

    def heard(self, message: object) -> None:
        """What a worker told of the machine."""
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

    def leave(self) -> None:
        """What is asked next is shown in the place of a ladder that was climbed before."""
        self.opened = None

    def begin(self, cases: Iterable[RungCase]) -> None:
        """These are measured anew: what was known of them goes."""
        for case in cases:
            self._shelf.measured.pop(case.key, None)
            self.going[case.key] = Going()
        self._derive()
        self.changed.emit()

    def beside(self, cases: Iterable[RungCase]) -> tuple[RungCase, ...]:
        """What is to be timed together after these were run alone, by bench.ladder.again; what they are
        compared with is doubted from now on."""
        if self.ladder is None:
            return ()
        measured, alone = self._shelf.measured, {case.key for case in cases}
        found = again.beside(self.ladder, measured, tuple(cases))
        measured.update((c.key, again.aged(measured[c.key])) for c in found if c.key not in alone)
        if found:
            self._derive()
        return found

    def turn(self, case: RungCase, words: str = "", median_ns: float | None = None) -> None:
        """The worker is at this case, or says what it takes so far."""
        before = self.going.get(case.key, Going())
        if words and words != before.words and words != "timing":
            before = Going()  # begun anew
        self.going[case.key] = Going(
            words or before.words, median_ns if median_ns is not None else before.median_ns
        )
        self.changed.emit()

    def wait_again(self) -> None:
        """The worker is gone: whatever it was at begins anew."""
        self.going = dict.fromkeys(self.going, Going())
        self.changed.emit()

    def settle(self, measurements: Iterable[RungMeasurement], folder: Path) -> None:
        """What was measured, its error maps in a folder."""
        for measurement in measurements:
            key = measurement.case.key
            self.going.pop(key, None)
            if measurement.disposition != "cancelled":
                self._shelf.measured[key] = measurement
                self._shelf.folders[key] = folder
        self._derive()
        self.changed.emit()

    def end(self) -> None:
        """Nothing is being measured any more."""
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
        found = [shelf.measured[case.key] for case in ladder.cases if case.key in shelf.measured]

        def work() -> tuple[tuple[RungRow, ...], tuple[RungRow, ...]]:
            return tuple(rows(ladder, found)), tuple(rows(ladder, found, "model"))

        def then(made: tuple[tuple[RungRow, ...], tuple[RungRow, ...]]) -> None:
            shelf.rows, shelf.models = made
            self.changed.emit()
            if self._again:
                self._again = False
                self._derive()

        self._deriver.start("rows", work, then)


def identity(job: LadderJob) -> str:
    """The same for two jobs whose measurements can stand in one ladder."""
    return json.dumps(
        [job.op, job.params, job.device, job.model, job.node, job.threads, job.l2], sort_keys=True
    )
