"""The versions of a rung of the user's: what each save came to, a curve of its time, any two held against
each other, and the way back to one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Signal
from PySide6.QtGui import QColor, QHelpEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractItemView, QHBoxLayout, QSizePolicy, QToolTip, QVBoxLayout, QWidget

from bench.questions.ladder_questions import RungInfo
from bench.results.saves import MOST_SOURCE, Save
from bench.results.store import write_atomically
from bench.views.tables.save_tables import HISTORY
from bench.views.tables.table import Column, Table
from bench.words import units
from gui.base.boxes import VERTICAL, as_column, filled, splitter
from gui.base.theme import GAP, TIGHT, Theming, write
from gui.pages.ladder.rung_source import RungDiff
from gui.widgets.controls import Label, push_button
from gui.widgets.question import ask
from gui.widgets.table_view import TableView
from kernels.errors import InputError

WRITE, LEAVE = "Write this version", "Leave the file"
RADIUS = 4.0  # pixels of a point
LINES, LEAST_ROWS = 4, 3  # of text that the curve is high; of the table that are always in sight


class SavesTable(TableView):
    """The versions, the latest first."""

    def __init__(self, theming: Theming) -> None:
        super().__init__("Versions", theming)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.horizontalHeader().setStretchLastSection(True)

    def widest_of(self, column: Column[Save]) -> int:
        """The last column has what the others leave, and all of its words in the tooltip."""
        return 80 if column.name == "reason" else super().widest_of(column)

    def show_table(self, table: Table[Save]) -> None:
        super().show_table(table)
        line, head = self.verticalHeader().defaultSectionSize(), self.horizontalHeader().sizeHint().height()
        self.setMinimumHeight(head + min(LEAST_ROWS, max(1, len(table.rows))) * line)

    def key(self, row: Save) -> Hashable:
        return row.at, row.rung

    def ink(self, row: Save, column: Column[Save]) -> QColor | None:
        theme = self.theme
        if column.name != "verdict":
            return None
        inks = {"gained": theme.good, "lost": theme.failed, "ok": theme.ink}
        return QColor(inks.get(row.verdict, theme.ink if row.disposition == "ok" else theme.failed))

    def tip(self, row: Save, column: Column[Save]) -> str:
        return row.reason or "\n".join(f"{name}: {count:g}" for name, count in row.counts.items())


class TimeCurve(QWidget):
    """The time of each version, oldest at the left, with its interval; a cross where one was not timed.
    `picked` carries the Save that was clicked."""

    picked = Signal(object)

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theming = theming
        self._saves: Sequence[Save] = ()
        self._chosen: Sequence[Save] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Time of each version")
        self.setMouseTracking(True)
        theming.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(240, LINES * self.fontMetrics().height())

    def show_saves(self, found: Sequence[Save], chosen: Sequence[Save] = ()) -> None:
        self._saves, self._chosen = tuple(found), tuple(chosen)
        self.setAccessibleDescription("; ".join(map(words, found)))
        self.update()

    def points(self) -> list[QPointF]:
        """Where each version stands."""
        room = self._room()
        top, bottom = self._ends()
        step = room.width() / max(1, len(self._saves) - 1)
        middle = room.center().x()
        return [
            QPointF(
                room.left() + n * step if len(self._saves) > 1 else middle,
                self._height(save.time_s, top, bottom) if save.time_s is not None else room.bottom(),
            )
            for n, save in enumerate(self._saves)
        ]

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter, room = self._theming.theme, QPainter(self), self._room()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        top, bottom = self._ends()
        if top:
            ink = QColor(theme.muted)
            high = self.fontMetrics().height()
            write(
                painter, QRectF(0, room.top() - high / 2, room.left() - TIGHT, high), units.si(top, "s"), ink
            )
            painter.setPen(QPen(QColor(theme.grid), 1))
            for y in (room.top(), room.bottom()):
                painter.drawLine(QPointF(room.left(), y), QPointF(room.right(), y))
        places = self.points()
        timed = [place for place, save in zip(places, self._saves, strict=True) if save.time_s is not None]
        painter.setPen(QPen(QColor(theme.accent), 1.5))
        painter.drawPolyline(timed)
        for place, save in zip(places, self._saves, strict=True):
            painter.setPen(QPen(QColor(theme.accent if save.time_s is not None else theme.failed), 1.5))
            if save.time_s is None:
                for way in (1, -1):
                    arm = QPointF(RADIUS, way * RADIUS)
                    painter.drawLine(place - arm, place + arm)
                continue
            if save.low_s is not None and save.high_s is not None:
                ends = [self._height(end, top, bottom) for end in (save.low_s, save.high_s)]
                painter.drawLine(QPointF(place.x(), ends[0]), QPointF(place.x(), ends[1]))
            painter.setBrush(QColor(theme.accent if save in self._chosen else theme.paper))
            painter.drawEllipse(place, RADIUS, RADIUS)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if (save := self._at(event.position())) is not None:
            self.picked.emit(save)

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            save = self._at(QPointF(event.pos()))
            QToolTip.showText(event.globalPos(), words(save) if save is not None else "", self)
            return True
        return super().event(event)

    def _room(self) -> QRectF:
        left = self.fontMetrics().horizontalAdvance("999.9 µs") + GAP
        return QRectF(self.rect()).adjusted(left, GAP, -2 * GAP, -GAP)

    def _ends(self) -> tuple[float, float]:
        times = [end for save in self._saves for end in (save.time_s, save.high_s) if end is not None]
        return (max(times), 0.0) if times else (0.0, 0.0)

    def _height(self, time_s: float, top: float, bottom: float) -> float:
        room = self._room()
        return room.bottom() - (time_s - bottom) / ((top - bottom) or 1.0) * room.height()

    def _at(self, where: QPointF) -> Save | None:
        near = [
            (abs(place.x() - where.x()), save) for place, save in zip(self.points(), self._saves, strict=True)
        ]
        return min(near, key=lambda each: each[0])[1] if near else None


class HistoryView(QWidget):
    """The versions of one rung. `failed` carries a sentence."""

    failed = Signal(str)

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._saves: tuple[Save, ...] = ()
        self._info: RungInfo | None = None
        self.curve = TimeCurve(theming)
        self.curve.picked.connect(self._go_to)
        self.table = SavesTable(theming)
        self.table.selectionModel().selectionChanged.connect(self._compare)
        self.diff = RungDiff(theming)
        self.back = push_button(
            "Step &back to this version",
            self._step_back,
            "Write the selected version into the file; it is run again at once",
        )
        self.told = Label(
            "Select a version to hold it against the file, or two to hold them against each other.",
            role="caption",
            wrap=True,
        )
        bar = filled(QHBoxLayout(), (self.told, 1), self.back, spacing=GAP)
        above = as_column(self.curve, bar, (self.table, 1), spacing=TIGHT)
        split = splitter("ladder-history", VERTICAL, above, self.diff, sizes=[240, 300], collapsible=False)
        filled(QVBoxLayout(self), split, margins=(TIGHT, TIGHT, TIGHT, TIGHT))
        self._enable()

    def show_history(self, info: RungInfo, found: Sequence[Save]) -> None:
        """Show the versions of a rung. info: as its file is now."""
        if (info, tuple(found)) == (self._info, self._saves):
            return
        another = self._info is None or info.path != self._info.path
        self._info, self._saves = info, tuple(found)
        self.table.show_table(Table(HISTORY, tuple(reversed(self._saves))))
        if another and self._saves:
            self.table.selectRow(0)
        self._compare()

    @property
    def chosen(self) -> list[Save]:
        """The selected versions, the oldest first."""
        rows = [self.table.source.rows[at.row()] for at in self.table.selectionModel().selectedRows()]
        return sorted(rows, key=lambda save: self._saves.index(save))

    # ------------------------------------------------------------------------------------------ the inside

    def _go_to(self, save: Save) -> None:
        if save in self.table.source.rows:  # and not left out by the filter
            self.table.selectRow(self.table.source.rows.index(save))

    def _compare(self, *_: object) -> None:
        chosen, info = self.chosen, self._info
        self.curve.show_saves(self._saves, chosen)
        self._enable()
        if info is None or not chosen:
            return
        first, last = chosen[0], chosen[-1]
        right = (_title(last), last.source) if len(chosen) > 1 else ("the file now", info.source)
        self.diff.show_pair(_title(first), first.source, *right, Path(info.path).suffix)

    def _enable(self) -> None:
        chosen = self.chosen
        self.back.setEnabled(
            self._info is not None
            and len(chosen) == 1
            and chosen[0].source != self._info.source
            and len(chosen[0].source) < MOST_SOURCE
            and Path(self._info.path).is_file()
        )

    def _step_back(self) -> None:
        (save,), info = self.chosen, self._info
        assert info is not None
        path = Path(info.path)
        try:
            now = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            now = ""
        kept = any(now == other.source for other in self._saves)
        rest = (
            "What the file has now stays in this history."
            if kept
            else "What the file has now is not in this history, and would be lost."
        )
        question = f"Write the version of {_when(save)} into {path.name}? {rest}"
        if ask(self, "Step back", question, (WRITE,), LEAVE) == WRITE:
            try:
                write_atomically(path, save.source.encode())
            except InputError as error:
                self.failed.emit(str(error))


def words(save: Save) -> str:
    """A version in a line."""
    time = f", {units.si(save.time_s, 's')}" if save.time_s is not None else ""
    return f"{_when(save)}: {save.verdict}{time}"


def _when(save: Save) -> str:
    return save.at.replace("T", " ")[:19]


def _title(save: Save) -> str:
    return f"{_when(save)}, {save.verdict}"
