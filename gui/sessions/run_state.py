"""What the window shows: one run, its measurements as they come, and what the user has selected in them.

State is records alone. Statistics of a measurement (its Row: median, interval, speed-up, verdict) cost
milliseconds, so they are derived a few at a time by `work`, which the redraw timer calls; every page and the
inspector read the same rows. `Overlay`: another run whose lines are drawn over the one shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal

from bench.charts import Chart, lay_over, model_charts, named, short_name, whole_and_apart, with_provisional
from bench.charts.scoreboard import Scoreboard, scoreboard
from bench.charts.verdicts import Verdict, of_precision, precisions, verdict
from bench.kinds.folder import heard
from bench.results.messages import Provisional
from bench.results.records import LOST, Case, Job, Measurement, Run, compared_in
from bench.results.row_cache import RowCache
from bench.results.rows import Row, title


class Overlay:
    """A run that is done with: it only fills. `step` until it returns False, as gui.shell.redraw has time
    for.
    """

    def __init__(self, folder: Path, run: Run, measurements: Iterable[Measurement], called: str = "") -> None:
        """called: what the user named it, "" for by its folder."""
        self.folder = folder
        self.run = run
        self.called = called
        self._rows = RowCache()
        self._models = set()
        for measurement in measurements:
            self._rows.add(measurement)
            self._models.add(measurement.case.model)
        self._charts: dict[tuple[str, str], list[Chart]] = {}

    @property
    def name(self) -> str:
        """What its lines are called."""
        return self.called or short_name(self.folder)

    @property
    def models(self) -> frozenset[str]:
        return frozenset(self._models)

    @property
    def pending(self) -> int:
        """How many rows are still to be derived."""
        return self._rows.pending

    def step(self) -> bool:
        self._charts.clear()
        return self._rows.step()

    def over(self, charts: list[Chart], model: str, number: int = 1, precision: str = "") -> list[Chart]:
        """The charts of a model with this run's lines in them, as the overlay of this number; as they are
        where it has not measured it. precision: of which alone ("": all)."""
        if model not in self._models:
            return charts
        if (model, precision) not in self._charts:
            own = [row for row in self._rows.rows() if row.case.model == model]
            rows, runs = of_precision(own, [self.run], precision)
            self._charts[model, precision] = model_charts(model, rows, runs) if rows else []
        return lay_over(charts, self._charts[model, precision], self.name, number)


RunData = tuple[Run, Sequence[Measurement]]


def is_in(case: Case, precision: str) -> bool:
    """Whether a case is among those shown in a precision: those held against the references of it."""
    return precision in ("", compared_in(case.precision))


class RunState(QObject):
    """One run. `version` grows with every change, so a view that remembers the version it drew knows whether
    it is dirty."""

    changed = Signal()  # something came or was derived; cheap, may come in floods: wake a timer, do not draw
    replaced = Signal()  # another run altogether
    selection_changed = Signal()

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
        self._made: dict[str, tuple[tuple, Any]] = {}  # what was derived last, and of which version of what

    # ------------------------------------------------------------------------------------------ the run

    @property
    def empty(self) -> bool:
        return not self._measurements

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """The last measurement of each case, in the order they came."""
        return tuple(self._measurements.values())

    @property
    def lost(self) -> int:
        """How many cases crashed or timed out: they may be measured again."""
        return sum(m.disposition in LOST for m in self._measurements.values())

    def open(self, run: Run, folder: Path | None = None, measurements: Iterable[Measurement] = ()) -> None:
        """Show another run."""
        self.run, self.folder = run, folder
        self._measurements = {}
        self._rows = RowCache()
        self._provisional = {}
        self.case, self.layer = None, ""
        self._put(measurements)
        self.version += 1
        self.replaced.emit()
        self.selection_changed.emit()
        self.changed.emit()

    def heard(self, message: object) -> None:
        """What the worker told of the machine, a model, and the cases that the job means."""
        self.run = heard(self.run, message)
        self._touch()

    def add(self, measurements: Iterable[Measurement]) -> None:
        """Take measurements; one of a case that was measured before replaces it."""
        self._put(measurements)
        self._touch()

    def expect(self, message: Provisional) -> None:
        """Show what a case takes so far, until its measurement comes or `settle` is called."""
        self._provisional[message.case.key] = message
        self._touch()

    def settle(self) -> None:
        """Nothing is being measured any more."""
        if self._provisional:
            self._provisional = {}
            self._touch()

    def lay_over(self, overlay: Overlay) -> None:
        """Draw another run over this one and those that lie there; the same one again takes its place."""
        names = {other.folder.absolute(): other for other in self.overlays}
        self.overlays = tuple({**names, overlay.folder.absolute(): overlay}.values())
        self._touch()

    def take_off(self, folder: Path | None = None) -> None:
        """Take the overlay of this folder away; without one, all of them."""
        left = tuple(
            other
            for other in self.overlays
            if folder is not None and other.folder.absolute() != folder.absolute()
        )
        if left != self.overlays:
            self.overlays = left
            self._touch()

    def measurement(self, case: Case | None) -> Measurement | None:
        return self._measurements.get(case.key) if case is not None else None

    # ------------------------------------------------------------------------------------ derived from it

    @property
    def models(self) -> tuple[str, ...]:
        """The models that have measurements, or are getting them, in the order they came."""
        seen = [m.case for m in self._measurements.values()] + [p.case for p in self._provisional.values()]
        return tuple(dict.fromkeys(case.model for case in seen))

    def provisional(self, model: str | None = None) -> list[Provisional]:
        """What was said of cases whose rows are not there yet, of one model or of all."""
        return [
            message
            for message in self._provisional.values()
            if model in (None, message.case.model) and self._rows.row(message.case) is None
        ]

    @property
    def up_to_date(self) -> bool:
        """Whether every measurement has its row."""
        return self._rows.pending == 0 and not any(overlay.pending for overlay in self.overlays)

    def work(self, budget_s: float) -> bool:
        """Derive rows for at most about `budget_s`; whether any came of it."""
        end, any_made = time.perf_counter() + budget_s, False
        while self._rows.step() or any(overlay.step() for overlay in self.overlays):
            any_made = True
            if time.perf_counter() >= end:
                break
        if any_made:
            self._touch()
        return any_made

    def rows(self, model: str | None = None) -> list[Row]:
        """The rows derived so far (see `up_to_date`), of one model or of all, in the order measured."""
        return [row for row in self._rows.rows() if model is None or row.case.model == model]

    def row(self, case: Case | None) -> Row | None:
        return self._rows.row(case) if case is not None else None

    def precisions(self, model: str) -> tuple[str, ...]:
        """Those that a model is shown in one by one, for there are too many lines for one picture: as many as
        the run means to measure, so that no picture is divided on the way; () where one holds them all."""
        planned = [case for case in self.run.cases if case.model == model]
        return precisions([*planned, *(m.case for m in self.measurements if m.case.model == model)])

    def charts(self, model: str, precision: str = "") -> tuple[Chart, ...]:
        """The charts of a model from the rows derived so far and from what is being measured, the overlays'
        lines in them. precision: one of `precisions`, of which alone they are ("": all in one)."""
        return self._once("charts", (model, precision), lambda: tuple(self._drawn(model, precision)))

    def _once(self, what: str, of: tuple, make: Callable[[], Any]) -> Any:
        """What was made of these in this version, made now where that is not known: a page draws a few of its
        views at a time."""
        key = self.version, *of
        if self._made.get(what, ((),))[0] != key:
            self._made[what] = key, make()
        return self._made[what][1]

    def _drawn(self, model: str, precision: str) -> list[Chart]:
        rows, runs = of_precision(self.rows(model), [self.run], precision)
        charts = model_charts(model, rows, runs) if rows else []
        shown = next((info.title for info in self.run.models if info.name == model), "") or title(model)
        references = {info.reference for info in self.run.environment.backends}
        soon = [message for message in self.provisional(model) if is_in(message.case, precision)]
        charts = with_provisional(charts, model, shown, soon, references)
        for number, overlay in enumerate(self.overlays, start=1):
            charts = overlay.over(charts, model, number, precision)
        return [named(chart, precision) for chart in charts]

    def all_charts(self) -> list[Chart]:
        """The charts of what is measured of every model: those that can be exported."""
        known = {model: self.rows(model) for model in self.models}
        return [c for model, rows in known.items() if rows for c in whole_and_apart(model, rows, [self.run])]

    def verdicts(self, precision: str = "") -> tuple[Verdict, ...]:
        """What is to be said of each model of the run, measured or still to be, in the run's order. Of a
        model that is shown in one precision at a time what is said of this one, or of its first; "": of
        each."""
        models = dict.fromkeys((*(case.model for case in self.run.cases), *self.models))
        return self._once(
            "verdicts",
            (precision,),
            lambda: tuple(said for model in models for said in self._verdicts(model, precision)),
        )

    def _verdicts(self, model: str, precision: str) -> list[Verdict]:
        apart = self.precisions(model)
        if precision and apart:
            apart = (precision if precision in apart else apart[0],)
        found = []
        for each in apart or ("",):
            rows, runs = of_precision(self.rows(model), [self.run], each)
            found.append(verdict(model, rows, runs, each))
        return found

    def board(self, model: str, precision: str = "") -> Scoreboard:
        """The scoreboard of a model, or of one of its `precisions` alone."""
        said = [verdict for verdict in self.verdicts(precision) if verdict.model == model]
        if len(said) == 1:
            return said[0].board
        return self._once("board", (model,), lambda: scoreboard(model, self.rows(model), [self.run]))

    def planned_batches(self, model: str) -> tuple[int, ...]:
        """The batch sizes the run will measure on a model, known before they are: axes need not move."""
        found = {case.batch for case in self.run.cases if case.model == model}
        found |= {m.case.batch for m in self._measurements.values() if m.case.model == model}
        return tuple(sorted(found))

    # ------------------------------------------------------------------------------------------ selection

    def select(self, case: Case | None = None, layer: str | None = None) -> None:
        """Select a case, or a layer of the selected one (None leaves the layer, "" takes it away)."""
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
