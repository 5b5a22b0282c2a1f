"""What the first page shows before there is a run, from the second start on: the runs and models used last,
and what was interrupted. A newcomer, who has none, sees what fills the page instead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from bench.results.summaries import Summary
from gui.base.boxes import filled
from gui.base.theme import BROAD, GAP, TIGHT
from gui.widgets.controls import Elided, Label, as_tip, push_button

MOST_RUNS, MOST_MODELS = 6, 4
HEADING = "Go on where you were"


class Recent(QWidget):
    """The runs and models used last. `opened` and `resumed` carry a run's folder, `model` a model's file."""

    opened = Signal(Path)
    resumed = Signal(Path)
    model = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(HEADING)
        self._shown: tuple[object, ...] = ()
        self.runs: dict[Path, QPushButton] = {}
        self.going_on: dict[Path, QPushButton] = {}
        self.models: dict[str, QPushButton] = {}
        self._layout = filled(QVBoxLayout(self), margins=(0, 0, 0, 0), spacing=GAP)

    def show_recent(self, runs: Sequence[Summary], models: Sequence[str]) -> None:
        """Show these. runs: oldest first, of which the last few are shown, interrupted ones before others;
        models: paths, the one used last first."""
        latest = list(reversed(runs))
        latest.sort(key=lambda run: not run.resumable)
        wanted = (tuple(latest[:MOST_RUNS]), tuple(models[:MOST_MODELS]))
        if wanted == self._shown:
            return
        self._shown = wanted
        while (item := self._layout.takeAt(0)) is not None:
            if (old := item.widget()) is not None:
                old.hide()
                old.deleteLater()
        self.runs, self.going_on, self.models = {}, {}, {}
        if wanted[0]:
            filled(self._layout, Label("Recent runs", role="heading"), self._runs(wanted[0]))
        if wanted[1]:
            filled(self._layout, Label("Recent models", role="heading"), self._models(wanted[1]))

    def _runs(self, runs: Sequence[Summary]) -> QWidget:
        body = QWidget()
        grid = QGridLayout(body)
        grid.setContentsMargins(0, 0, 0, GAP)
        grid.setHorizontalSpacing(GAP)
        grid.setVerticalSpacing(TIGHT)
        grid.setColumnStretch(2, 1)
        for row, run in enumerate(runs):
            button = self.runs[run.path] = _link(called(run), partial(self.opened.emit, run.path))
            button.setToolTip(as_tip(f"{run.kind}\n{run.path}"))
            grid.addWidget(button, row, 0)
            grid.addWidget(Label(run.started, role="muted"), row, 1)
            result = Elided(what_came(run), role="muted")
            result.setMinimumWidth(18 * result.fontMetrics().averageCharWidth())
            grid.addWidget(result, row, 2)
            if run.resumable:
                go_on = push_button("Resume", partial(self.resumed.emit, run.path), "Measure what is missing")
                go_on.setAccessibleName(f"Resume {called(run)}")
                self.going_on[run.path] = go_on
                grid.addWidget(go_on, row, 3)
        return body

    def _models(self, models: Sequence[str]) -> QWidget:
        body = QWidget()
        line = filled(QHBoxLayout(body), margins=(0, 0, 0, 0), spacing=BROAD)
        for model in models:
            button = self.models[model] = _link(Path(model).stem, partial(self.model.emit, model))
            button.setToolTip(as_tip(model))
            line.addWidget(button)
        line.addStretch(1)
        return body


def called(run: Summary) -> str:
    """A run's name, else what it is of."""
    return run.called or " · ".join(filter(None, (", ".join(run.models) or run.name, run.node)))


def what_came(run: Summary) -> str:
    """What came of a run, in a few words."""
    if run.problem:
        return run.problem
    if run.resumable:
        return f"interrupted: {run.measured:,} of {run.cases:,} measured" if run.cases else "interrupted"
    return run.result or f"{run.ok:,} of {run.cases:,} ok"


def _link(words: str, do: Callable[[], object]) -> QPushButton:
    return push_button(words.replace("&", "&&"), do, role="link")
