"""The rungs as a table, in the ladder's order, each with what it came to or what goes on with it now."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QWidget

from bench.results import doubt
from bench.results.ladder_rows import RungRow
from bench.views.charts.ladder_charts import Going
from bench.views.tables import ladder_report_tables as report_tables
from bench.views.tables import ladder_tables
from bench.views.tables.table import Column, Table, to_markdown
from bench.words import orders, units
from gui.base.theme import Theming
from gui.widgets.table_view import TableView

# Columns of ladder_tables; the others stand in the CSV. After the gain come those of the model.
BEFORE = ("number", "rung", "disposition", "median_s", "relative", "speedup", "gain")
COMPILED = ("registers", "shared_nbytes", "stack_nbytes", "spill_nbytes", "occupancy")
AFTER = ("flops_per_s", "bytes_per_s", "share_of_limit", "rel_l2_error", *COMPILED, "reason")
# Shown where there is something in them; the others, which a first run fills, from the start.
LATE = {*COMPILED, "model_s", "model_speedup", "reason"}


@dataclass(frozen=True)
class LadderRow:
    """A row of the table. refused: why it will be refused, known before it is run; going: None where nothing
    is being measured of it. model, model_going: the same of the whole model with this rung in it."""

    row: RungRow
    refused: str = ""
    going: Going | None = None
    model: RungRow | None = None
    model_going: Going | None = None

    @property
    def waits(self) -> bool:
        """Whether there is no measurement yet."""
        return self.row.measurement.disposition == "cancelled"

    @property
    def result(self) -> str:
        m = self.row.measurement
        if self.going is not None:
            return f"{self.going.words}…" if self.going.words else "waits"
        if self.waits:
            return "refused" if self.refused else ""
        if m.finding is not None:
            return ladder_tables.wrong(m.finding)
        return ladder_tables.WORDS.get(m.disposition, m.disposition)

    @property
    def why(self) -> str:
        """Why there are no figures, or will be none."""
        if self.going is not None:
            return ""
        return self.row.measurement.reason or (self.refused if self.waits else "")

    @property
    def whole(self) -> str:
        """The whole model's time, or how it stands."""
        if self.model_going is not None:
            return f"{self.model_going.words or 'waits'}…"
        if self.model is None:
            return ""
        if self.model.time is not None:
            return doubt.marked(units.duration(self.model.time.value), self.model.doubts)
        disposition = self.model.measurement.disposition
        return ladder_tables.WORDS.get(disposition, disposition)

    @property
    def failed(self) -> bool:
        return self.going is None and self.row.measurement.disposition not in (
            "ok",
            "unsupported",
            "cancelled",
        )


def _name(shown: LadderRow) -> str:
    case = shown.row.case
    marks = [word for word in ("yours" * case.user, case.language, "side" * case.side) if word]
    of = f" in {case.precision}" if case.is_reference and case.precision != "fp32" else ""
    return case.rung + of + (f" ({', '.join(marks)})" if marks else "")


_TOLD: dict[str, Callable[[LadderRow], str]] = {
    "number": lambda shown: f"{number:02d}" if (number := shown.row.case.number) else "",
    "rung": _name,
    "disposition": lambda shown: shown.result,
    "reason": lambda shown: shown.why,
}


def _columns(names: Sequence[str]) -> Iterator[Column[LadderRow]]:
    """The ladder's own columns, told of what goes on too."""
    known = {column.name: column for column in (*ladder_tables.COLUMNS, ladder_tables.RELATIVE)}
    for name in names:
        column = replace(known[name].through(_row), idle=name in COMPILED)
        if name in _TOLD:
            column = replace(column, cell=_TOLD[name])
        if name in ("flops_per_s", "bytes_per_s"):  # the heading has the unit
            column = replace(column, text=units.si)
        yield column


def _row(shown: LadderRow) -> RungRow:
    return shown.row


COLUMNS: tuple[Column[LadderRow], ...] = (
    *_columns(BEFORE),
    Column(
        "model_s",
        title="whole model",
        tip="Median time of the whole model with this rung at the node",
        cell=lambda shown: shown.whole,
    ),
    Column(
        "model_speedup",
        lambda shown: shown.model.speedup.value if shown.model and shown.model.speedup else None,
        units.times,
        lambda shown: shown.model.speedup_doubts if shown.model else (),
        "its vs ref.",
        "Whether it is faster than the reference's whole model: that one's time over this one's, by rounds",
        cell=lambda shown: orders.of(shown.model.verdict, shown.model.speedup) if shown.model else "",
    ),
    *_columns(AFTER),
)


class LadderTable(TableView):
    """`picked` carries the key of the case gone to."""

    widest = 240
    margin = 8
    sortable = False  # a ladder's order is what it is about

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__("Rungs", theming, parent)
        self._shown: Sequence[LadderRow] = ()
        self.horizontalHeader().setMinimumSectionSize(30)
        self.show_rows([])

    def show_rows(self, rows: Sequence[LadderRow]) -> None:
        if list(rows) != self._shown:
            self._shown = list(rows)
            self.show_table(Table(COLUMNS, self._shown))

    def step(self, by: int) -> None:
        """Go to a rung further on, or back."""
        row = self.currentIndex().row() + by
        if 0 <= row < len(self.source.rows):
            self.setCurrentIndex(self.source.index(row, max(0, self.currentIndex().column())))

    def key(self, row: LadderRow) -> Hashable:
        return row.row.case.key

    def target(self, row: LadderRow) -> str:
        return row.row.case.key

    def tip(self, row: LadderRow, column: Column[LadderRow]) -> str:
        return super().tip(row, column) or row.why or row.row.case.idea

    def ink(self, row: LadderRow, column: Column[LadderRow]) -> QColor | None:
        theme = self.theme
        if row.failed and column.name == "disposition":
            return QColor(theme.failed)
        if row.going is not None and column.name == "disposition":
            return QColor(theme.accent)
        refused = (row.refused and row.waits) or row.row.measurement.disposition == "unsupported"
        return QColor(theme.muted) if refused else None

    def bold(self, row: LadderRow, column: Column[LadderRow]) -> bool:
        return column.name == "rung" and (row.row.case.is_reference or row.row.case.user)

    def hides(self, column: Column[LadderRow]) -> bool:
        return column.name in LATE and super().hides(column)

    def heading_width(self, place: int) -> int:
        heading = self.source.columns[place].heading
        return self.horizontalHeader().fontMetrics().horizontalAdvance(heading) + 14

    def copied(self) -> Table[RungRow]:
        """Every column of what was measured."""
        return ladder_tables.table([shown.row for shown in self.chosen_rows() if not shown.waits])

    def markdown(self, table: Table[RungRow]) -> str:
        return to_markdown(report_tables.of_rungs(table.rows))


def shown_rows(
    rows: Sequence[RungRow],
    refused: Mapping[str, str],
    going: Mapping[str, Going],
    models: Sequence[RungRow] = (),
) -> list[LadderRow]:
    """refused: by rung, why it cannot run; going: by case key; models: the rows of the whole models."""
    whole = {row.case.key: row for row in models}
    shown = []
    for row in rows:
        key = msgspec.structs.replace(row.case, scope="model").key
        shown.append(
            LadderRow(
                row,
                refused.get(row.case.rung, ""),
                going.get(row.case.key),
                whole.get(key),
                going.get(key),
            )
        )
    return shown
