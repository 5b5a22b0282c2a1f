"""The charts of several comparisons over each other: the first run's lines, and thinner the others'."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from bench.results import note
from bench.results.records import Measurement, Run
from bench.run.kinds.comparison import KIND as COMPARISON
from gui.base.background import Background, timer
from gui.base.boxes import filled
from gui.base.theme import Theming
from gui.plots.chart import ChartGrid, ChartView
from gui.sessions.comparison_session import Overlay, RunState
from gui.widgets.controls import Combo, Label

CHARTS = {"op-time": "The times appear here.", "speed": "The speed-ups appear here."}
TURN_S = 0.02  # of deriving rows, between which the window answers
READING = "Reading the runs …"

Files = tuple[Path, Run, tuple[Measurement, ...], str]


class OverlaidCharts(QWidget):
    """Charts of these runs, which are read when they are first seen."""

    def __init__(self, paths: Sequence[Path], theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._paths = tuple(paths)
        self._begun = False
        self.state = RunState(self)
        self._reader = Background(self._tell, self)
        self._deriving = timer(self, 0, self._derive, repeats=True)
        self.model = Combo("Model", chosen=lambda _: self._draw())
        self.words = Label(READING, role="muted", wrap=True)
        self.views = {name: ChartView(theming, empty) for name, empty in CHARTS.items()}
        self._grid = ChartGrid(list(self.views.values()))
        bar = filled(QHBoxLayout(), Label("&Model", buddy=self.model), self.model, (self.words, 1))
        filled(QVBoxLayout(self), bar, (self._grid, 1), margins=(0, 6, 0, 0))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._begun:
            self._begun = True
            self._reader.start("runs", lambda: [_read(path) for path in self._paths], self._on_read)

    # ------------------------------------------------------------------------------------------ the inside

    def _tell(self, sentence: str) -> None:
        self.words.setText(sentence)

    def _on_read(self, files: list[Files]) -> None:
        path, run, measured, _ = files[0]
        self.state.open(run, path, measured)
        for other in files[1:]:
            self.state.lay_over(Overlay(*other))
        self.model.offer({model: model for model in self.state.models})
        self._deriving.start()

    def _derive(self) -> None:
        self.state.work(TURN_S)
        if self.state.up_to_date:
            self._deriving.stop()
            self.words.setText("")
            self._draw()

    def _draw(self) -> None:
        model = self.model.currentData()
        charts = self.state.charts(model) if model else ()
        for name, view in self.views.items():
            view.show_chart(next((chart for chart in charts if chart.name.endswith(name)), None))


def _read(path: Path) -> Files:
    """Raises InputError where it is no comparison."""
    folder = COMPARISON.open(path)
    return folder.path, folder.header, folder.measurements(), note.read(path).name
