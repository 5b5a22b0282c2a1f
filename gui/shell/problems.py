"""What went wrong, a row each: cases that failed and what the worker complained of, with the reason."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from bench.results.kinds import case_words
from bench.results.messages import Log
from bench.results.records import Case, Measurement
from bench.views.tables.comparison_tables import WORDS
from bench.views.tables.table import Column, Table
from gui.sessions.run_state import RunState
from gui.widgets.table_view import TableView

MOST_LOGGED = 200


class Problem(NamedTuple):
    """where: the case in words, or who complains; case: None of what is about no case."""

    where: str
    what: str
    reason: str
    case: Case | None = None


COLUMNS = tuple(Column[Problem](name, title=title, left=True) for name, title in (
    ("where", "Case"), ("what", "What"), ("reason", "Reason"),
))  # fmt: skip


class Problems(TableView):
    """A view for gui.shell.redraw. `counted` tells how many rows there are whenever that changes."""

    counted = Signal(int)
    widest = 480

    def __init__(self, state: RunState, parent: QWidget | None = None) -> None:
        super().__init__("Problems", parent=parent)
        self._state = state
        self._drawn = -1
        self._shown: dict[str, Measurement] = {}
        self._problems: list[Problem] = []
        self.horizontalHeader().setStretchLastSection(True)
        self.picked.connect(self._on_picked)
        state.replaced.connect(self._clear)
        self._add()

    @property
    def dirty(self) -> bool:
        return self._drawn != self._state.version

    @property
    def lines(self) -> list[tuple[str, str, str]]:
        """The rows as text."""
        return [problem[:3] for problem in self._problems]

    def redraw(self) -> None:
        self._drawn = self._state.version
        failed = [m for m in self._state.measurements if m.disposition not in ("ok", "cancelled")]
        new = [m for m in failed if self._shown.get(m.case.key) is not m]
        self._shown |= {m.case.key: m for m in new}
        # Also of what was refused: nobody else says why a point is missing.
        told = [(case_words(m.case), WORDS.get(m.disposition, m.disposition), m.reason, m.case) for m in new]
        self._add(*(Problem(*each) for each in told))

    def logged(self, message: Log) -> None:
        """Take what the worker complained of; information goes to the log alone."""
        if message.level in ("warning", "error") and len(self._problems) < MOST_LOGGED:
            self._add(Problem("worker", message.level, message.text))

    def key(self, row: Problem) -> Hashable:
        return row

    def tip(self, row: Problem, column: Column[Problem]) -> str:
        return row.reason

    def hides(self, column: Column[Problem]) -> bool:
        return False

    def _add(self, *problems: Problem) -> None:
        before = len(self.source.rows)
        self._problems += problems
        if problems or len(self._problems) != before:
            self.show_table(Table(COLUMNS, tuple(self._problems)))
            self.counted.emit(len(self._problems))

    def _clear(self) -> None:
        self._problems, self._shown, self._drawn = [], {}, -1
        self._add()

    def _on_picked(self, problem: Problem) -> None:
        if problem.case is not None:
            self._state.select(problem.case)
