"""Another run, laid over the one shown: its rows derived in slices, its lines put into the charts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bench.charts import Chart, lay_over, model_charts, short_name
from bench.charts.verdicts import of_precision
from bench.results.records import Measurement, Run
from bench.results.row_cache import RowCache


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
