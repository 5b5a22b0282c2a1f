"""The comparison that the window shows: its state (`RunState`) and what runs it (`ComparisonSession`).

The state consists of records alone. The statistics of a measurement (its Row: median, interval,
speed-up, verdict) take milliseconds; `work` derives a few at a time, and the redraw timer calls it. All
pages and the inspector read the same rows.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal

from bench.results.folder import header_after
from bench.results.messages import Hello, Provisional
from bench.results.records import LOST, Case, Job, Measurement, Run, compared_in
from bench.results.rows import Row, RowCache, title
from bench.results.store import RUNS
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.run.kinds.comparison import RunFolder
from bench.views.cards import Card, cards
from bench.views.charts.comparison_charts import model_charts, named, whole_and_apart, with_provisional
from bench.views.charts.definitions import Chart
from bench.views.charts.overlay import lay_over, short_name
from bench.views.remedies import Doubt, doubts
from bench.views.sentences.verdicts import ModelVerdict, of_precision, precisions, verdict
from gui.sessions.session import Ended, Session
from kernels.errors import InputError


class Overlay:
    """Another run, drawn over the one shown. Its rows are derived by `step`, until that returns False."""

    def __init__(self, folder: Path, run: Run, measurements: Iterable[Measurement], called: str = "") -> None:
        """called: the name that the user gave the run, "" for the name of its folder."""
        self.folder = folder
        self.run = run
        self.called = called
        self._rows = RowCache()
        self._models = set()
        self.measurements = tuple(measurements)
        for measurement in self.measurements:
            self._rows.add(measurement)
            self._models.add(measurement.case.model)
        self._charts: dict[tuple[str, str], list[Chart]] = {}

    @property
    def name(self) -> str:
        """The name of the run in legends."""
        return self.called or short_name(self.folder)

    @property
    def models(self) -> frozenset[str]:
        return frozenset(self._models)

    @property
    def pending(self) -> int:
        """The number of rows that are still to be derived."""
        return self._rows.pending

    def step(self) -> bool:
        """Derive one row. Returns whether there was one."""
        self._charts.clear()
        return self._rows.step()

    def over(self, charts: list[Chart], model: str, number: int = 1, precision: str = "") -> list[Chart]:
        """The charts of a model with the lines of this run in them, as overlay number `number`. They stay
        as they are if this run has not measured the model. precision: the only one to show, "" for all."""
        if model not in self._models:
            return charts
        if (model, precision) not in self._charts:
            own = [row for row in self._rows.rows() if row.case.model == model]
            rows, runs = of_precision(own, [self.run], precision)
            self._charts[model, precision] = model_charts(model, rows, runs) if rows else []
        return lay_over(charts, self._charts[model, precision], self.name, number)


RunData = tuple[Run, Sequence[Measurement]]


def is_in(case: Case, precision: str) -> bool:
    """Whether a case is shown in a precision: whether it is compared with the references of that
    precision."""
    return precision in ("", compared_in(case.precision))


class RunState(QObject):
    """One run, and the user's selection in it. `version` grows with each change: a view that remembers the
    version it drew knows whether it must draw again."""

    changed = Signal()  # emitted very often: a receiver should start a timer, and not draw
    moved = Signal()  # what is being done with a case is another stage, or more of it is done
    replaced = Signal()  # another run altogether
    selection_changed = Signal()
    model_chosen = Signal(str)  # by the user, on a page that shows one at a time

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.run = Run(job=Job(models=(), backends=()), cases=())
        self.folder: Path | None = None
        self.version = 0
        self.case: Case | None = None  # selected
        self.layer = ""  # selected: the output tensor of a layer of the model
        self.overlays: tuple[Overlay, ...] = ()  # other runs, drawn over this one; they stay when it changes
        self._measurements: dict[str, Measurement] = {}
        self._rows = RowCache()
        self._provisional: dict[str, Provisional] = {}
        self._stages: dict[str, tuple[str, float | None]] = {}  # what is done with a case, and how much of it
        self._derived: dict[
            str, tuple[tuple, Any]
        ] = {}  # what was derived last, and of which version of what

    # ------------------------------------------------------------------------------------------ the run

    @property
    def empty(self) -> bool:
        return not self._measurements

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """The last measurement of each case, in the order in which they came."""
        return tuple(self._measurements.values())

    @property
    def lost(self) -> int:
        """The number of cases that crashed or timed out. They can be measured again."""
        return sum(m.disposition in LOST for m in self._measurements.values())

    @property
    def missing(self) -> int:
        """The number of planned cases without a measurement."""
        return sum(case.key not in self._measurements for case in self.run.cases)

    def open(self, run: Run, folder: Path | None = None, measurements: Iterable[Measurement] = ()) -> None:
        """Show another run."""
        self.run, self.folder = run, folder
        self._measurements = {}
        self._rows = RowCache()
        self._provisional, self._stages = {}, {}
        self.case, self.layer = None, ""
        self._put(measurements)
        self.version += 1
        self.replaced.emit()
        self.selection_changed.emit()
        self.changed.emit()

    def take_message(self, message: object) -> None:
        """Take what the worker says about the machine, a model, or the cases of the job."""
        self.run = header_after(self.run, message)
        self._touch()

    def add(self, measurements: Iterable[Measurement]) -> None:
        """Add measurements. A new one of the same case replaces the old one."""
        self._put(measurements)
        self._touch()

    def expect(self, message: Provisional) -> None:
        """Show what a case takes so far, until its measurement comes or `settle` is called."""
        case = message.case
        self._provisional[case.key] = message
        if message.measurement is not None and case.key not in self._measurements:
            self._rows.add(message.measurement)
        self._touch()

    def turn(self, case: Case, stage: str, fraction: float | None = None) -> None:
        """Say what is being done with a case, and how much of that is done (0 to 1; None: not known)."""
        new = case.key not in self._stages
        self._stages[case.key] = stage, fraction
        if new:
            self._touch()
        else:  # nothing that is derived has changed
            self.moved.emit()

    def stage(self, case: Case) -> tuple[str, float | None]:
        """What is being done with a case that has no measurement yet, "" for nothing; and how much of it."""
        return self._stages.get(case.key, ("", None)) if self.measurement(case) is None else ("", None)

    def settle(self) -> None:
        """Nothing is measured any more: forget what cases took so far."""
        if self._provisional or self._stages:
            for message in self._provisional.values():
                if self.measurement(message.case) is None:
                    self._rows.drop(message.case)
            self._provisional, self._stages = {}, {}
            self._touch()

    def lay_over(self, overlay: Overlay) -> None:
        """Draw another run over this one. If it lies there already, it is replaced."""
        names = {other.folder.absolute(): other for other in self.overlays}
        self.overlays = tuple({**names, overlay.folder.absolute(): overlay}.values())
        self._touch()

    def take_off(self, folder: Path | None = None) -> None:
        """Remove the overlay of this folder, or all overlays."""
        remaining = tuple(
            other
            for other in self.overlays
            if folder is not None and other.folder.absolute() != folder.absolute()
        )
        if remaining != self.overlays:
            self.overlays = remaining
            self._touch()

    def measurement(self, case: Case | None) -> Measurement | None:
        return self._measurements.get(case.key) if case is not None else None

    # ------------------------------------------------------------------------------------ derived from it

    @property
    def models(self) -> tuple[str, ...]:
        """The models with measurements, or that are being measured, in the order in which they came."""
        seen = [m.case for m in self._measurements.values()] + [p.case for p in self._provisional.values()]
        return tuple(dict.fromkeys(case.model for case in seen))

    def provisional(self, model: str | None = None) -> list[Provisional]:
        """What is known so far of cases without a row, for one model or for all."""
        return [
            message
            for message in self._provisional.values()
            if model in (None, message.case.model) and self._rows.row(message.case) is None
        ]

    def begun(self, model: str) -> list[Case]:
        """The cases of a model at which the worker is, of which nothing is known yet."""
        known = {*self._measurements, *self._provisional}
        return [
            case
            for case in self.run.cases
            if case.model == model and case.key in self._stages and case.key not in known
        ]

    @property
    def up_to_date(self) -> bool:
        """Whether all measurements have their row."""
        return self._rows.pending == 0 and not any(overlay.pending for overlay in self.overlays)

    @property
    def waiting(self) -> int:
        """How many measurements have no row yet."""
        return self._rows.pending

    def work(self, budget_s: float) -> bool:
        """Derive rows for about `budget_s` seconds. Returns whether any was derived."""
        end, any_made = time.perf_counter() + budget_s, False
        while self._rows.step() or any(overlay.step() for overlay in self.overlays):
            any_made = True
            if time.perf_counter() >= end:
                break
        if any_made:
            self._touch()
        return any_made

    def rows(self, model: str | None = None) -> list[Row]:
        """The rows derived so far, for one model or for all, in the order in which they were measured. Those
        whose images or layers are still looked at are provisional."""
        rows = [row for row in self._rows.rows() if model is None or row.case.model == model]
        return [row if row.case.key in self._measurements else replace(row, provisional=True) for row in rows]

    def row(self, case: Case | None) -> Row | None:
        return self._rows.row(case) if case is not None else None

    def precisions(self, model: str) -> tuple[str, ...]:
        """The precisions in which a model is shown one at a time, because one picture would have too many
        lines; () if one picture holds them all. The planned cases count, so that the answer does not
        change during the run."""
        planned = [case for case in self.run.cases if case.model == model]
        return precisions([*planned, *(m.case for m in self.measurements if m.case.model == model)])

    def charts(self, model: str, precision: str = "") -> tuple[Chart, ...]:
        """The charts of a model: from the rows derived so far, from what is being measured, and with
        overlays. precision: one of `precisions`, "" for all in one picture."""
        return self._once("charts", (model, precision), lambda: tuple(self._drawn(model, precision)))

    def _once(self, what: str, of: tuple, make: Callable[[], Any]) -> Any:
        """The value of `make` for this version of the state and these arguments; computed only once."""
        key = self.version, *of
        if self._derived.get(what, ((),))[0] != key:
            self._derived[what] = key, make()
        return self._derived[what][1]

    def _drawn(self, model: str, precision: str) -> list[Chart]:
        rows, runs = of_precision(self.rows(model), [self.run], precision)
        charts = model_charts(model, rows, runs) if rows else []
        model_title = next((info.title for info in self.run.models if info.name == model), "") or title(model)
        references = {info.reference for info in self.run.environment.backends}
        soon = [message for message in self.provisional(model) if is_in(message.case, precision)]
        charts = with_provisional(charts, model, model_title, soon, references)
        for number, overlay in enumerate(self.overlays, start=1):
            charts = overlay.over(charts, model, number, precision)
        return [named(chart, precision) for chart in charts]

    def all_charts(self) -> list[Chart]:
        """The charts of all models that are measured: those that can be exported."""
        # What is still looked at may come to another result.
        known = {model: [r for r in self.rows(model) if not r.provisional] for model in self.models}
        return [c for model, rows in known.items() if rows for c in whole_and_apart(model, rows, [self.run])]

    def verdicts(self, precision: str = "") -> tuple[ModelVerdict, ...]:
        """The verdict of each model of the run, in the run's order, also of models still to be measured.
        precision: for models shown in one precision at a time, the one to judge; "" for each of them."""
        models = dict.fromkeys((*(case.model for case in self.run.cases), *self.models))
        return self._once(
            "verdicts",
            (precision,),
            lambda: tuple(each for model in models for each in self._verdicts(model, precision)),
        )

    def _verdicts(self, model: str, precision: str) -> list[ModelVerdict]:
        precisions = self.precisions(model)
        if precision and precisions:
            precisions = (precision if precision in precisions else precisions[0],)
        verdicts = []
        for each in precisions or ("",):
            rows, runs = of_precision(self.rows(model), [self.run], each)
            verdicts.append(verdict(model, rows, runs, each))
        return verdicts

    def cards(self, precision: str = "") -> tuple[Card, ...]:
        """The three answers of each model, for the verdicts of this precision."""
        return self._once(
            "cards",
            (precision,),
            lambda: tuple(cards(self.verdicts(precision), self.rows(), [self.run])),
        )

    def doubts(self) -> tuple[Doubt, ...]:
        """What is to be doubted of the run, with what mends it."""
        return self._once("doubts", (), lambda: tuple(doubts(self.rows())))

    def planned_batches(self, model: str) -> tuple[int, ...]:
        """The batch sizes that the run measures on a model. They are known before, so axes need not move."""
        sizes = {case.batch for case in self.run.cases if case.model == model}
        sizes |= {m.case.batch for m in self._measurements.values() if m.case.model == model}
        return tuple(sorted(sizes))

    # ------------------------------------------------------------------------------------------ selection

    def select(self, case: Case | None = None, layer: str | None = None) -> None:
        """Select a case, or a layer of the selected case. None keeps the layer, "" deselects it."""
        layer = self.layer if layer is None else layer
        if (
            case is not None
            and self.case is not None
            and case.model != self.case.model
            and layer == self.layer
        ):
            layer = ""
        if (case, layer) != (self.case, self.layer):
            self.case, self.layer = case, layer
            self.selection_changed.emit()

    def _put(self, measurements: Iterable[Measurement]) -> None:
        for measurement in measurements:
            self._measurements.pop(measurement.case.key, None)
            self._measurements[measurement.case.key] = measurement
            self._rows.add(measurement)

    def _touch(self) -> None:
        self.version += 1
        self.changed.emit()


class ComparisonSession(Session):
    """Runs comparisons: a job becomes a run folder, a worker, and measurements in the run state."""

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
        """Begin a new run in `folder` (None: a new folder below the runs folder), and return its path.

        Raises InputError if the folder cannot be made or if something is being timed.
        """
        if reason := self.occupied() or self.blocked():
            raise InputError(reason)
        run_folder = self.new_folder(Run(job=job, cases=()), folder)
        self._opened(run_folder, ())
        self.begin(run_folder, ())
        return run_folder.path

    # ------------------------------------------------------------------------------------------ the inside

    def _opened(self, folder: RunFolder, measurements: tuple[Measurement, ...]) -> None:
        self._state.open(folder.header, folder.path, measurements)

    def _heard(self, message: Any) -> str:
        self._state.take_message(message)
        return "reading the models" if isinstance(message, Hello) else ""

    def _expected(self, message: Provisional) -> None:
        self._state.expect(message)

    def _turned(self, case: Case, stage: str, fraction: float | None = None) -> None:
        self._state.turn(case, stage, fraction)

    def _written(self, measurements: Sequence[Measurement]) -> None:
        # A cancelled case has nothing to show.
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
