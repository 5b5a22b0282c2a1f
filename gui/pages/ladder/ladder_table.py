"""The rungs as a table, in the ladder's order, each with what it came to or what goes on with it now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, QPoint, Qt, Signal
from PySide6.QtGui import QAction, QColor, QFont, QKeySequence
from PySide6.QtWidgets import QAbstractItemView, QApplication, QMenu, QTableView, QWidget

from bench.charts.ladder_live import Going
from bench.ladder.show import tables as ladder_tables
from bench.ladder.show.rows import RungRow
from bench.results import doubt
from bench.words import units
from gui.base.theme import Theming
from gui.widgets.labels import as_tip

Index = QModelIndex | QPersistentModelIndex
_NO_INDEX = QModelIndex()
# Column of bench.ladder.show.tables → heading, what it is; the others stand in the CSV.
HEADINGS = {
    "number": ("#", "The rung's number"),
    "rung": ("rung", "Its name; your own are marked"),
    "disposition": ("result", "Right, wrong, refused, or what goes on with it now"),
    "median_s": ("time", "Median time of a pass"),
    "relative": ("±", "Half the 95 % interval of the median, relative"),
    "speedup": ("vs ref.", "The reference's time over this one's"),
    "gain": ("gain", "The time of the rung below over this one's"),
    "model_s": ("whole model", "Median time of the whole model with this rung at the node"),
    "model_speedup": ("its vs ref.", "The time of the reference's whole model over that"),
    "flops_per_s": ("FLOP/s", "Operations a second"),
    "bytes_per_s": ("B/s", "Bytes a second of the least traffic possible"),
    "share_of_limit": ("of limit", "The time that the measured limits ask at least, over the time taken"),
    "rel_l2_error": ("error", "Relative L2 error against the float64 oracle"),
    "registers": ("regs", "Registers a thread"),
    "shared_nbytes": ("shared", "Shared memory a block"),
    "stack_nbytes": ("stack", "Local memory a thread: arrays indexed at run time, and room for spills"),
    "spill_nbytes": ("spills", "Bytes that instructions store and load for want of registers"),
    "occupancy": ("occ.", "Theoretical occupancy"),
    "reason": ("why", "Why it has no figures"),
}
LATE = (
    "registers",
    "shared_nbytes",
    "stack_nbytes",
    "spill_nbytes",
    "occupancy",
)  # there for compiled rungs alone
LEFT = {"rung", "disposition", "reason"}


@dataclass(frozen=True)
class Shown:
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
            fault = m.finding.fault.replace("_", " ")
            return fault if fault == "wrong" else f"wrong: {fault}"
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


class LadderModel(QAbstractTableModel):
    """`show_rows` sets what changed and keeps the rest."""

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rows: list[Shown] = []
        self._theming = theming
        known = {name: (value, text) for name, value, text in ladder_tables.COLUMNS}
        known["relative"] = (
            lambda r: r.time.relative if r.time and r.time.known else None,
            units.half_width,
        )
        # Of the whole model: see `Shown.whole`.
        known["model_s"] = known["model_speedup"] = (lambda r: None, str)
        for name in ("flops_per_s", "bytes_per_s"):
            known[name] = (known[name][0], lambda v: units.si(v, ""))
        self.columns = [(name, *known[name]) for name in HEADINGS]

    def show_rows(self, rows: Sequence[Shown]) -> None:
        keys = [shown.row.case.key for shown in self.rows]
        if keys != [shown.row.case.key for shown in rows]:
            self.beginResetModel()
            self.rows = list(rows)
            self.endResetModel()
            return
        changed = [i for i, shown in enumerate(rows) if shown != self.rows[i]]
        self.rows = list(rows)
        if changed:
            last = self.index(changed[-1], len(self.columns) - 1)
            self.dataChanged.emit(self.index(changed[0], 0), last)

    def empty_columns(self) -> list[int]:
        """The columns without a value in any row; those that a first run fills are shown from the start."""
        found = {
            name: any(value(s.row) for s in self.rows) for name, value, _ in self.columns if name in LATE
        }
        found["model_s"] = any(shown.whole for shown in self.rows)
        found["model_speedup"] = any(shown.model and shown.model.speedup for shown in self.rows)
        found["reason"] = any(shown.why for shown in self.rows)
        return [i for i, (name, _, _) in enumerate(self.columns) if not found.get(name, True)]

    def rowCount(self, parent: Index = _NO_INDEX) -> int:
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = _NO_INDEX) -> int:
        return 0 if parent.isValid() else len(self.columns)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = 0) -> Any:
        if orientation == Qt.Orientation.Horizontal:
            heading, words = HEADINGS[self.columns[section][0]]
            if role == Qt.ItemDataRole.DisplayRole:
                return heading
            if role == Qt.ItemDataRole.ToolTipRole:
                return words
        return None

    def data(self, index: Index, role: int = 0) -> Any:
        shown = self.rows[index.row()]
        name, value, text = self.columns[index.column()]
        case, theme = shown.row.case, self._theming.theme
        if role == Qt.ItemDataRole.DisplayRole:
            if name == "disposition":
                return shown.result
            if name == "rung":
                marks = [w for w, on in (("yours", case.user), ("side", case.side)) if on]
                title = case.rung
                if case.is_reference and case.precision != "fp32":
                    title += f" in {case.precision}"
                return title + (f" ({', '.join(marks)})" if marks else "")
            if name == "reason":
                return shown.why
            if name == "model_s":
                return shown.whole
            if name == "model_speedup":
                speedup = shown.model.speedup if shown.model is not None else None
                doubts = shown.model.speedup_doubts if shown.model is not None else ()
                return doubt.marked(units.times(speedup.value), doubts) if speedup is not None else ""
            if name == "number":
                return f"{case.number:02d}" if case.number else ""
            found = value(shown.row)
            return "" if found is None else ladder_tables.marked(name, text(found), shown.row)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignLeft if name in LEFT else Qt.AlignmentFlag.AlignRight
            return int(side | Qt.AlignmentFlag.AlignVCenter)
        if role == Qt.ItemDataRole.ForegroundRole:
            if shown.failed and name == "disposition":
                return QColor(theme.failed)
            if shown.going is not None and name == "disposition":
                return QColor(theme.accent)
            if (shown.refused and shown.waits) or shown.row.measurement.disposition == "unsupported":
                return QColor(theme.muted)
        if role == Qt.ItemDataRole.FontRole and name == "rung" and (case.is_reference or case.user):
            font = QFont()
            font.setBold(True)
            return font
        if role == Qt.ItemDataRole.ToolTipRole:
            doubts = ladder_tables.DOUBTS.get(name, lambda row: ())(shown.row)
            return as_tip("\n".join(doubts) or shown.why or case.idea) or None
        return None


class LadderTable(QTableView):
    """`picked` carries the key of the case gone to."""

    picked = Signal(str)

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.source = LadderModel(theming, self)
        self.setModel(self.source)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setAlternatingRowColors(True)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setAccessibleName("Rungs")
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 7)
        self.horizontalHeader().setHighlightSections(False)
        self.horizontalHeader().setMinimumSectionSize(30)
        self._widths: dict[int, int] = {}
        self._following = False
        self.selectionModel().currentRowChanged.connect(self._on_current)
        for words, keys, copy in (
            ("&Copy as CSV", QKeySequence(QKeySequence.StandardKey.Copy), self.copy_csv),
            ("Copy as &Markdown", QKeySequence("Ctrl+Shift+C"), self.copy_markdown),
        ):
            action = QAction(words, self)
            action.setShortcut(keys)
            action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
            action.triggered.connect(copy)
            self.addAction(action)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._on_menu)

    def show_rows(self, rows: Sequence[Shown]) -> None:
        if list(rows) == self.source.rows:
            return
        self._following = True
        self.source.show_rows(rows)
        self._following = False
        empty = set(self.source.empty_columns())
        for column in range(self.source.columnCount()):
            self.setColumnHidden(column, column in empty)
            if column in empty:
                continue
            heading = HEADINGS[self.source.columns[column][0]][0]
            room = self.horizontalHeader().fontMetrics().horizontalAdvance(heading) + 14
            wanted = min(240, max(self.sizeHintForColumn(column) + 8, room))
            if wanted > self._widths.get(column, 0):  # they grow, and never shrink while data comes
                self._widths[column] = wanted
                self.setColumnWidth(column, wanted)

    def follow(self, key: str) -> None:
        """Go to the row of a case that was selected elsewhere."""
        row = next((i for i, shown in enumerate(self.source.rows) if shown.row.case.key == key), None)
        self._following = True
        if row is None:
            self.clearSelection()
        elif row != self.currentIndex().row():
            self.setCurrentIndex(self.source.index(row, max(0, self.currentIndex().column())))
        self._following = False

    def step(self, by: int) -> None:
        """Go to a rung further on, or back."""
        row = self.currentIndex().row() + by
        if 0 <= row < len(self.source.rows):
            self.setCurrentIndex(self.source.index(row, max(0, self.currentIndex().column())))

    def copy_csv(self) -> None:
        QApplication.clipboard().setText(ladder_tables.to_csv(self._measured()))

    def copy_markdown(self) -> None:
        QApplication.clipboard().setText(ladder_tables.to_markdown(self._measured()))

    def _measured(self) -> list[RungRow]:
        return [shown.row for shown in self.source.rows if not shown.waits]

    def _on_current(self, current: QModelIndex) -> None:
        if current.isValid() and not self._following:
            self.picked.emit(self.source.rows[current.row()].row.case.key)

    def _on_menu(self, at: QPoint) -> None:
        menu = QMenu(self)
        menu.addActions(self.actions())
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self.viewport().mapToGlobal(at))


def shown_rows(
    rows: Sequence[RungRow],
    refused: Mapping[str, str],
    going: Mapping[str, Going],
    models: Sequence[RungRow] = (),
) -> list[Shown]:
    """refused: by rung, why it cannot run; going: by case key; models: the rows of the whole models."""
    whole = {row.case.key: row for row in models}
    shown = []
    for row in rows:
        key = msgspec.structs.replace(row.case, scope="model").key
        shown.append(
            Shown(
                row,
                refused.get(row.case.rung, ""),
                going.get(row.case.key),
                whole.get(key),
                going.get(key),
            )
        )
    return shown
