"""What stands below the timeline: the tables of one case, the parts of a pass for all cases, the cold
start, and what limits each operator.

The parts of a case are one bar, and add up to its pass. The cold start is a waterfall for each backend,
from the start of the process to the steady state.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QAction,
    QColor,
    QFontMetricsF,
    QHelpEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QButtonGroup,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QSizePolicy,
    QTabWidget,
    QToolTip,
    QVBoxLayout,
    QWidget,
)

from bench.results import api_calls as profile_api
from bench.results import parts as profile_parts
from bench.results.events import Activity, ApiCall, Event, HostSpan, Mark
from bench.results.profile_records import CaseProfile, Profile
from bench.views.charts import profile_charts
from bench.views.charts.definitions import Chart
from bench.views.sentences import profile_findings, profile_remarks
from bench.views.tables import event_lines as profile_lines
from bench.views.tables import profile_tables
from bench.views.tables.event_lines import MOST
from bench.views.tables.profile_columns import Line, ProfileColumn, ProfileTable, named, short_name
from bench.views.tables.table import Table, with_headings
from bench.words import palette, units
from gui.base.background import Background, timer
from gui.base.boxes import HORIZONTAL, as_column, filled, flowing, scrolled, splitter
from gui.base.theme import Theming, resized, scaled, write
from gui.pages.timeline.timeline_view import TimelinePlace, colour
from gui.plots.chart import ChartView
from gui.sessions.profile_session import MARK, Read
from gui.widgets.colour_scale import ink_on
from gui.widgets.controls import Combo, Elided, Label, labelled, line_edit, tool_button
from gui.widgets.table_view import TableView

LINE = 30  # of a case
BAR = 18
TITLES, FIGURES = 176, 330  # pixels on the left and on the right
PLAIN = 0.06  # the share of a bar from which a part has its name in it


@dataclass(frozen=True)
class PartsBar:
    """The bar of a case, in ns for one pass. wall: the sum of the parts, which is the mean of the profiled
    passes; median: of the same passes; plain: the median of passes without a profiler. None: not
    measured."""

    case: CaseProfile
    title: str
    parts: tuple[tuple[str, float], ...]
    wall: float
    median: float | None
    plain: float | None

    @property
    def figures(self) -> str:
        """The times as text. The profiler's cost is a difference of medians; a negative one is not shown."""
        wall = units.duration(self.wall)
        if self.plain is None or self.median is None:
            return wall
        median, plain = units.duration(self.median), units.duration(self.plain)
        head = wall if wall == median else f"{wall}, median {median}"
        if self.median < self.plain:
            return f"{head}; {plain} without a profiler"
        return f"{head} = {plain} + {units.duration(self.median - self.plain)} profiler"


def bars(cases: Sequence[CaseProfile], window: str = "pass") -> list[PartsBar]:
    """The bars of all cases whose window is divided (bench.results.parts.WINDOWS)."""
    rows = []
    for case in cases:
        divided = case.breakdown(window)
        if divided is None or not divided.wall_ns:
            continue
        plain = statistics.median(case.pass_ns) if case.pass_ns and window == "pass" else None
        median = statistics.median(case.profiled_ns) if case.profiled_ns and window == "pass" else None
        parts = tuple((share.key, share.time_ns / divided.passes) for share in divided.parts if share.time_ns)
        title = f"{case.case.backend}, batch {case.case.batch:,}"
        rows.append(PartsBar(case, title, parts, divided.wall, median, plain))
    return rows


class PartsView(QWidget):
    """Draws the bars and their legend. `picked` carries the CaseProfile of the bar that was clicked."""

    picked = Signal(object)

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theming = theming
        self.bars: list[PartsBar] = []
        self.relative = True
        self._legend: list[str] = []
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.setAccessibleName("Where the time goes")
        theming.changed.connect(self.update)

    def show_cases(self, cases: Sequence[CaseProfile], window: str, relative: bool) -> None:
        """Show these cases. relative: all bars are equally long, to compare shares; else a bar is as long
        as its pass."""
        self.bars, self.relative = bars(cases, window), relative
        totals: dict[str, float] = {}
        for bar in self.bars:
            for key, time_ns in bar.parts:
                totals[key] = totals.get(key, 0.0) + time_ns / bar.wall
        self._legend = sorted(totals, key=lambda key: (_place(key), -totals[key]))
        self.setAccessibleDescription("; ".join(f"{bar.title}: {bar.figures}" for bar in self.bars))
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(620, self.heightForWidth(max(620, self.width())))

    def minimumSizeHint(self) -> QSize:
        return QSize(scaled(TITLES) + scaled(FIGURES) + 120, self.heightForWidth(max(620, self.width())))

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        lines = len(self._entries(float(width)))
        return scaled(LINE) * len(self.bars) + 12 + lines * (self.fontMetrics().height() + 6)

    # ---------------------------------------------------------------------------------------------- painting

    def paintEvent(self, _: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(self._theming.theme.paper))
        metrics = QFontMetricsF(self.font())
        for index, bar in enumerate(self.bars):
            self._paint_bar(painter, metrics, bar, index * scaled(LINE) + 6)
        self._paint_legend(painter, metrics, len(self.bars) * scaled(LINE) + 12)

    def _paint_bar(self, painter: QPainter, metrics: QFontMetricsF, bar: PartsBar, y: float) -> None:
        theme = self._theming.theme
        painter.fillRect(QRectF(8, y + 4, 10, 10), QColor(palette.backend(bar.case.case.backend)))
        write(painter, QRectF(24, y, scaled(TITLES) - 28, scaled(BAR)), bar.title, theme.ink)
        for key, rect, share in self._rects(bar, y):
            fill = colour(key, theme)
            painter.fillRect(rect, fill)
            painter.setPen(QPen(QColor(theme.paper), 1))
            painter.drawLine(rect.topRight(), rect.bottomRight())
            name = profile_parts.label(key)
            if share >= PLAIN and metrics.horizontalAdvance(name) < rect.width() - 6:
                painter.setPen(ink_on(fill))
                painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, name)
        if bar.plain is not None:
            x = scaled(TITLES) + bar.plain * self._scale(bar)
            if x <= self.width() - scaled(FIGURES) + 4:
                painter.setPen(QPen(QColor(theme.ink), 2))
                painter.drawLine(QPointF(x, y - 3), QPointF(x, y + scaled(BAR) + 3))
        place = QRectF(self.width() - scaled(FIGURES) + 8, y, scaled(FIGURES) - 12, scaled(BAR))
        write(painter, place, bar.figures, theme.muted)

    def _paint_legend(self, painter: QPainter, metrics: QFontMetricsF, top: float) -> None:
        theme, step = self._theming.theme, self.fontMetrics().height() + 6
        for row, entries in enumerate(self._entries(float(self.width()))):
            for x, key in entries:
                y = top + row * step
                if key:
                    painter.fillRect(QRectF(x, y + 3, 10, 10), colour(key, theme))
                else:
                    painter.setPen(QPen(QColor(theme.ink), 2))
                    painter.drawLine(QPointF(x + 5, y + 1), QPointF(x + 5, y + 15))
                painter.setPen(QColor(theme.ink))
                painter.drawText(QPointF(x + 15, y + metrics.ascent()), self._label(key))

    def _label(self, key: str) -> str:
        return profile_parts.label(key) if key else "the pass without a profiler"

    def _entries(self, width: float) -> list[list[tuple[float, str]]]:
        """The legend, by line: (x, key). The key "" stands for the mark of the pass without a profiler."""
        metrics = QFontMetricsF(self.font())
        lines: list[list[tuple[float, str]]] = [[]]
        x = 8.0
        keys = [*self._legend, *([""] if any(bar.plain is not None for bar in self.bars) else [])]
        for key in keys:
            wide = 15 + metrics.horizontalAdvance(self._label(key)) + 18
            if x + wide > width and lines[-1]:
                lines.append([])
                x = 8.0
            lines[-1].append((x, key))
            x += wide
        return lines

    # ---------------------------------------------------------------------------------------------- pointing

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        pointed = self._at(event.position())
        if pointed is None:
            QToolTip.hideText()
            return
        bar, key = pointed
        total = bar.wall or 1.0
        lines = [f"<b>{escape(bar.title)}</b>", escape(bar.figures)]
        for name, time_ns in bar.parts:
            line = (
                f"{profile_parts.label(name)}: {units.duration(time_ns)}, {units.percent(time_ns / total, 1)}"
            )
            lines.append(f"<b>{escape(line)}</b>" if name == key else escape(line))
        QToolTip.showText(event.globalPosition().toPoint(), "<br>".join(lines), self)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        pointed = self._at(event.position())
        if pointed is not None and event.button() == Qt.MouseButton.LeftButton:
            self.picked.emit(pointed[0].case)

    def leaveEvent(self, event: QEvent) -> None:
        QToolTip.hideText()
        super().leaveEvent(event)

    def _at(self, at: QPointF) -> tuple[PartsBar, str] | None:
        index = int(at.y() // scaled(LINE))
        if not 0 <= index < len(self.bars):
            return None
        bar = self.bars[index]
        key = next((k for k, rect, _ in self._rects(bar, index * scaled(LINE) + 6) if rect.contains(at)), "")
        return bar, key

    def _scale(self, bar: PartsBar) -> float:
        """Pixels for a nanosecond, in this bar."""
        room = max(40.0, self.width() - scaled(TITLES) - scaled(FIGURES))
        most = max(
            (max(b.wall, b.plain or 0.0) for b in ([bar] if self.relative else self.bars)), default=1.0
        )
        return room / (most or 1.0)

    def _rects(self, bar: PartsBar, y: float) -> list[tuple[str, QRectF, float]]:
        """Key, rectangle and share of each part."""
        rects, at, scale = [], 0.0, self._scale(bar)
        for key, time_ns in bar.parts:
            rect = QRectF(scaled(TITLES) + at * scale, y, time_ns * scale, scaled(BAR))
            rects.append((key, rect, time_ns / (bar.wall or 1.0)))
            at += time_ns
        return rects


def _place(key: str) -> int:
    """The order of parts: operators first, then the others as in bench.results.parts."""
    others = profile_parts.OTHERS
    return 1 + others.index(key) if key in others else 0


STEP, HEAD, NAMES = 20, 26, 200  # pixels of a phase, of a title, of the names


@dataclass(frozen=True)
class ColdStep:
    """A line of the cold start: a case's title (mark is None), or one of its phases."""

    title: str
    backend: str
    mark: Mark | None = None


def steps(cases: Sequence[CaseProfile]) -> list[ColdStep]:
    """The phases of each case, sorted by their start."""
    lines: list[ColdStep] = []
    for case in cases:
        if not case.cold:
            continue
        end = max(mark.end_ns for mark in case.cold)
        title = f"{case.case.backend}, batch {case.case.batch:,}: {units.duration(end)} to the steady state"
        lines.append(ColdStep(title, case.case.backend))
        ordered = sorted(case.cold, key=lambda mark: (mark.start_ns, -mark.end_ns))
        lines += [ColdStep(mark.name, case.case.backend, mark) for mark in ordered]
    return lines


class ColdView(QWidget):
    """Draws the cold starts of all cases on one axis. `show_cases` fills it."""

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theming = theming
        self.steps: list[ColdStep] = []
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.setAccessibleName("Cold start")
        theming.changed.connect(self.update)

    def show_cases(self, cases: Sequence[CaseProfile]) -> None:
        self.steps = steps(cases)
        words = [
            f"{s.title} {units.duration(s.mark.time_ns)}" if s.mark is not None else s.title
            for s in self.steps
        ]
        self.setAccessibleDescription("; ".join(words))
        self.setMinimumHeight(self.sizeHint().height())
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        heights = (scaled(HEAD if step.mark is None else STEP) for step in self.steps)
        return QSize(560, sum(heights) + 10)

    def paintEvent(self, _: QPaintEvent) -> None:
        theme, painter = self._theming.theme, QPainter(self)
        painter.fillRect(self.rect(), QColor(theme.paper))
        metrics = QFontMetricsF(self.font())
        bold = resized(self.font(), bold=True)
        widest = max((metrics.horizontalAdvance(self._figures(s)) for s in self.steps), default=0.0)
        room = max(60.0, self.width() - scaled(NAMES) - min(widest, 0.4 * self.width()) - 20)
        end = max((step.mark.end_ns for step in self.steps if step.mark is not None), default=1)
        y = 4.0
        for step in self.steps:
            if step.mark is None:
                painter.setFont(bold)
                painter.fillRect(QRectF(8, y + 8, 10, 10), QColor(palette.backend(step.backend)))
                write(painter, QRectF(24, y, self.width() - 30, scaled(HEAD)), step.title, theme.ink)
                painter.setFont(self.font())
                y += scaled(HEAD)
                continue
            write(painter, QRectF(24, y, scaled(NAMES) - 30, scaled(STEP)), step.title, theme.ink)
            x = scaled(NAMES) + step.mark.start_ns / end * room
            wide = max(1.5, step.mark.time_ns / end * room)
            painter.fillRect(QRectF(x, y + 3, wide, scaled(STEP) - 6), colour(MARK + step.title, theme))
            at = QRectF(x + wide + 6, y, max(0.0, self.width() - x - wide - 10), scaled(STEP))
            write(painter, at, self._figures(step), theme.muted)
            y += scaled(STEP)

    def event(self, event: object) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QHelpEvent.Type.ToolTip:
            step = self._at(event.pos().y())
            words = (
                f"{step.title}: {self._figures(step)}" if step is not None and step.mark is not None else ""
            )
            QToolTip.showText(event.globalPos(), words, self)
            return True
        return super().event(event)  # type: ignore[arg-type]  # an event

    def _figures(self, step: ColdStep) -> str:
        if step.mark is None:
            return ""
        return f"{units.duration(step.mark.time_ns)}{f': {step.mark.text}' if step.mark.text else ''}"

    def _at(self, y: int) -> ColdStep | None:
        bottom = 4
        for step in self.steps:
            bottom += scaled(STEP) if step.mark is not None else scaled(HEAD)
            if y < bottom:
                return step
        return None


_NONE: ProfileTable = Table((), ())
SENTENCES = 1000  # pixels of a table, from which sentences have room behind all the figures


class ProfileView(TableView):
    """A table of a profile. `picked` carries the row (a dict, by the names of the columns) that the user
    went to."""

    widest = 420
    margin = 4
    grows = False
    flush_headings = True

    def __init__(
        self, theming: Theming, name: str, parent: QWidget | None = None, wrap: bool = False
    ) -> None:
        """wrap: whether texts are wrapped, and rows as high as their texts."""
        super().__init__(name, theming, parent)
        self._wrap = wrap
        self._table = _NONE
        self._narrow = False
        self._most: set[int] = set()  # ids of the rows that are marked
        # Later, when the columns have their final widths.
        self._fitting = timer(self, 0, self.resizeRowsToContents)
        self.setWordWrap(wrap)
        self.horizontalHeader().sectionResized.connect(self._fit_rows)
        self.full = QAction("&Full names", self, checkable=True)
        self.full.setToolTip("Kernel names with their template arguments and parameters")
        self.full.toggled.connect(lambda: self.show_table(self._table))
        self.addAction(self.full)

    def show_table(self, table: ProfileTable | None) -> None:
        """Show a table; None empties it."""
        self._table = table or _NONE
        self._most = _most(self._table)
        super().show_table(self._table if self.full.isChecked() else named(self._table, short_name))
        self._stretch()
        self._fit_rows()

    def show_again(self) -> None:
        self.show_table(self._table)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_rows()
        if self._wrap and self._narrow != (self.width() < scaled(SENTENCES)):
            self._narrow = not self._narrow
            QTimer.singleShot(0, self, self.show_again)

    def _stretch(self) -> None:
        """A last column of words takes the room that is left; if texts are wrapped, no more than that."""
        header, last = self.horizontalHeader(), len(self.source.columns) - 1
        words = last >= 0 and self.source.columns[last].left
        header.setStretchLastSection(words and not self._wrap)
        if words and self._wrap:
            header.setMinimumSectionSize(40)
            header.setSectionResizeMode(last, QHeaderView.ResizeMode.Stretch)

    def _fit_rows(self) -> None:
        if self._wrap:
            self._fitting.start()

    def tip(self, row: Line, column: ProfileColumn) -> str:
        """The whole text of a cell that may be cut."""
        return str(column.of(row) or "") if column.left else ""

    def bold(self, row: Line, column: ProfileColumn) -> bool:
        return id(row) in self._most

    def swatch(self, row: Line, column: ProfileColumn) -> QPixmap | None:
        if not self._most or column is not self.source.columns[0]:
            return None
        swatch = QPixmap(4, 12)
        swatch.fill(QColor(self.theme.accent) if id(row) in self._most else QColor(0, 0, 0, 0))
        return swatch

    def hides(self, column: ProfileColumn) -> bool:
        """Also what a narrow table does without, so that its sentences can be read."""
        spared = self._narrow and column.name in profile_tables.SPARED
        return bool(self.source.rows) and (spared or super().hides(column))

    def copied(self) -> ProfileTable:
        return replace(self._table, rows=self.chosen_rows())

    def markdown(self, table: ProfileTable) -> str:
        return with_headings([table])


def _most(table: ProfileTable) -> set[int]:
    """The ids of the first rows that together take 90 % of the time."""
    marked: set[int] = set()
    so_far = 0.0
    for row in table.rows if any(column.name == "share" for column in table.columns) else ():
        if so_far >= MOST:
            break
        marked.add(id(row))
        so_far += row["share"]
    return marked


GROUPS = {"name": "name", "operator": "operator", "node": "node"}
TYPING_MS = 200
WIDE = 1400  # pixels, from which both tables have room


@dataclass(frozen=True)
class _Wanted:
    """Which tables are to be shown."""

    case: str
    window: str
    by: str
    match: str


@dataclass(frozen=True)
class _Tables:
    """The tables, and for each of their lines, by ("device" or "call", name), its first event."""

    activities: ProfileTable | None
    calls: ProfileTable | None
    first: dict[tuple[str, str], Event] = field(default_factory=dict)


class ProfileTables(QWidget):
    """The tables of one case. `show_case` fills them. `picked` carries the first event of the line that
    the user went to."""

    picked = Signal(object)

    def __init__(self, theming: Theming, background: Background, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._background = background
        self._read: Read | None = None
        self._calls = True
        self._first: dict[tuple[str, str], Event] = {}
        self._followed: Event | None = None
        self._shown: _Wanted | None = None
        self.window_box, self.by_box = (
            Combo(words, lambda _: self.update_tables()) for words in ("Of", "grouped by")
        )
        self.window_box.offer(profile_tables.WINDOW_WORDS)
        self.by_box.offer(GROUPS)
        self._typing = timer(self, TYPING_MS, self.update_tables)
        self.filter = line_edit("Only names with …", lambda _: self._typing.start(), "Filter", width=220)
        self.activities = ProfileView(theming, "GPU activities")
        self.activities.picked.connect(lambda row: self._pick("device", row))
        self.calls = ProfileView(theming, "API calls")
        self.calls.picked.connect(lambda row: self._pick("call", row))
        self._heads: dict[str, tuple[QLabel, Elided, QLabel]] = {}
        self._which = QButtonGroup(self)
        for number, words in enumerate(("GP&U activities", "AP&I calls")):
            button = tool_button(words, role="choice")
            button.setCheckable(True)
            button.setChecked(number == 0)
            self._which.addButton(button, number)
        self._which.idClicked.connect(self._fold)
        fields = {"Of": self.window_box, "grouped by": self.by_box}
        pairs = [labelled(box, words, gap=4) for words, box in fields.items()]
        bar = QWidget()
        flowing(bar, *self._which.buttons(), *pairs, self.filter, spacing=6)
        tables = {"activities": self.activities, "calls": self.calls}
        self._sides = {key: self._side(key, table) for key, table in tables.items()}
        split = splitter(
            "timeline-tables", HORIZONTAL, *self._sides.values(), sizes=[600, 500], collapsible=False
        )
        filled(QVBoxLayout(self), bar, (split, 1), margins=(0, 4, 0, 0), spacing=4)

    def show_case(self, read: Read | None) -> None:
        """Show a case's tables, which are made in a thread."""
        if read is not self._read:
            self._read, self._shown = read, None
            self.update_tables()

    def update_tables(self) -> None:
        read = self._read
        if read is None:
            self._show(_Tables(None, None))
            return
        window, by = self.window_box.currentData(), self.by_box.currentData()
        wanted = _Wanted(read.case.case.key, window, by, self.filter.text().strip())
        if wanted == self._shown:
            return
        self._shown = wanted

        self._background.start("tables", lambda: _tables_of(read, wanted), self._show)

    def follow(self, event: Event) -> None:
        """Mark the line that counts an event, now or as soon as the tables are there."""
        self._followed = event
        if isinstance(event, ApiCall):
            name, view = profile_api.bare(event.name), self.calls
        elif isinstance(event, Activity | HostSpan):
            name = profile_lines.key_of(self.by_box.currentData())(event)
            view = self.activities
        else:
            return
        row = next((row for row in view.source.rows if str(row["name"]) == name), None)
        if row is not None:
            view.follow(row)

    def heading(self, key: str) -> str:
        """The title and the first note above a table ("activities" or "calls")."""
        title, note, _ = self._heads[key]
        return f"{title.text()}: {note.text()}"

    def _side(self, key: str, table: ProfileView) -> QWidget:
        title, note, more = Label(role="heading"), Elided(role="muted"), Label(wrap=True)
        self._heads[key] = (title, note, more)
        return as_column(title, note, more, (table, 1), spacing=2)

    def _show(self, contents: _Tables) -> None:
        self._first = contents.first
        tables = (contents.activities, contents.calls)
        for key, view, table in zip(self._heads, (self.activities, self.calls), tables, strict=True):
            view.show_table(table)
            title, note, more = self._heads[key]
            title.setText(table.title.partition(" of ")[0] if table is not None else "")
            notes = table.notes if table is not None else ()
            note.setText(" ".join(notes[:1]))
            more.setText(" ".join(notes[1:]))
            more.setVisible(len(notes) > 1)
        self._calls = tables[1] is not None
        if self._followed is not None:
            self.follow(self._followed)
        steps = tables[0] is not None and "GPU" not in tables[0].title
        self._which.button(0).setText("&Steps" if steps else "GP&U activities")
        self._fold()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fold()

    def _fold(self) -> None:
        """Show both tables beside each other if there is room, else the chosen one."""
        both = self._calls and self.width() >= WIDE
        for number, side in enumerate(self._sides.values()):
            chosen = self._which.checkedId() == number if self._calls else number == 0
            side.setVisible(both or chosen)
            self._which.button(number).setVisible(self._calls and not both)

    def _pick(self, table: str, row: dict[str, Any]) -> None:
        if (event := self._first.get((table, str(row["name"])))) is not None:
            self.picked.emit(event)


def _tables_of(read: Read, wanted: _Wanted) -> _Tables:
    """The tables of a case and the events behind their lines. Runs in a thread."""
    measured, events, by = read.case, read.events, wanted.by
    inside = profile_lines.in_window(events, wanted.window)
    key = profile_lines.key_of(by)  # type: ignore[arg-type]  # a key of GROUPS
    first: dict[tuple[str, str], Event] = {}
    for event in profile_lines.device_events(inside, by):  # type: ignore[arg-type]
        first.setdefault(("device", key(event)), event)
    for call in inside.calls:
        first.setdefault(("call", profile_api.bare(call.name)), call)
    return _Tables(
        profile_tables.activities(measured, events, by, wanted.window, wanted.match),  # type: ignore[arg-type]
        profile_tables.calls(measured, events, wanted.window, wanted.match) if events.calls else None,
        first,
    )


SCALES = {"shares of the pass": True, "time": False}


class ProfileDetails(QTabWidget):
    """The tabs below the timeline. `show_cases` fills them. `picked` carries the first event of an
    operator that the user went to in the diagnosis. The backend chosen in the corner is that of tables
    and diagnosis."""

    picked = Signal(object)

    def __init__(self, theming: Theming, background: Background, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._background = background
        self._fine: Sequence[CaseProfile] = ()
        self._cases: Sequence[CaseProfile] = ()
        self._reads: Mapping[str, Read] = {}
        self._profile: Profile | None = None
        self._diagnosed: object = None
        self._contents: tuple = ()
        self.setDocumentMode(True)
        self.backend = Combo("Backend of the tables", lambda _: self._update())
        self.setCornerWidget(self.backend, Qt.Corner.TopRightCorner)
        self.tables = ProfileTables(theming, background)
        self.parts = PartsView(theming)
        self.cold = ColdView(theming)
        self.process = ProfileView(theming, "Whole program")
        self.findings = ProfileView(theming, "Diagnosis", wrap=True)
        self.findings.picked.connect(self._on_finding)
        self.roofline = ChartView(
            theming, "Each operator appears here below the measured limits of this machine."
        )
        self._remarks = Label(wrap=True, selectable=True)
        self._note = Label(role="muted", wrap=True, selectable=True)
        self._window, self._scale = (Combo(words, lambda _: self._update()) for words in ("Of", "bars are"))
        self._window.offer(profile_tables.WINDOW_WORDS)
        self._scale.offer({relative: words for words, relative in SCALES.items()})
        bar = filled(QHBoxLayout(), Label("Of"), self._window, Label("bars are"), self._scale, 1)
        bars = scrolled(as_column(self.parts, self._remarks, 1))
        below = (0, 4, 0, 0)
        self.addTab(self.tables, "Tab&les")
        self.addTab(as_column(bar, (bars, 1), margins=below), "Breakdo&wn")
        self.addTab(as_column(self._note, (self.findings, 1), margins=below), "&Diagnosis")
        self.addTab(self.roofline, "Roofline")
        self.addTab(
            as_column((scrolled(self.cold), 3), (self.process, 1), margins=below), "Cold start and process"
        )

    def show_cases(
        self,
        profile: Profile,
        fine: Sequence[CaseProfile],
        cases: Sequence[CaseProfile],
        reads: Mapping[str, Read],
    ) -> None:
        """fine: all cases that were measured; cases: those of the batch size shown; reads: the events of
        these that are read, by case key."""
        contents = (profile, tuple(fine), tuple(cases), tuple(reads.values()))
        if len(contents) == len(self._contents) and all(map(_same, contents, self._contents)):
            return
        self._contents = contents
        self._profile, self._fine, self._cases, self._reads = profile, fine, cases, reads
        names = [case.case.backend for case in cases]
        # If the user has chosen nothing yet: the backend on a GPU, if there is one.
        first = next((case.case.backend for case in cases if case.device not in ("", "cpu")), None)
        chosen = self.backend.currentData()
        self.backend.offer({name: name for name in names}, chosen if chosen in names else first)
        self._update()

    def choose(self, backend: str) -> None:
        self.backend.choose(backend)
        self._update()

    def follow(self, event: Event | None, place: TimelinePlace | None) -> None:
        """Mark the table line that counts an event, and show its backend's tables."""
        if event is not None and place is not None:
            if place.group.backend != self.backend.currentText():
                self.choose(place.group.backend)
            self.tables.follow(event)

    @property
    def case(self) -> CaseProfile | None:
        """The case of the tables."""
        return next((c for c in self._cases if c.case.backend == self.backend.currentText()), None)

    # ---------------------------------------------------------------------------------------------- showing

    def _update(self) -> None:
        case = self.case
        read = self._reads.get(case.case.key) if case is not None else None
        self.tables.show_case(read)
        self.parts.show_cases(self._fine, self._window.currentData(), bool(self._scale.currentData()))
        self.cold.show_cases(self._cases)
        self.process.show_table(profile_tables.process(self._cases))
        remarks = profile_remarks.remarks(case) if case is not None else []
        self._remarks.setText("  ".join(f"{words[:1].upper()}{words[1:].rstrip('.')}." for words in remarks))
        if self._profile is not None and read is not None and read is not self._diagnosed:
            self._diagnosed = read
            self._diagnose(self._profile, read)

    def _diagnose(self, profile: Profile, read: Read) -> None:
        limits = profile.limits.get(read.case.device)

        def work() -> tuple[ProfileTable, Chart | None]:
            return (
                profile_findings.table(read.case, read.events, limits),
                profile_charts.roofline(profile, read.case, read.events, limits),
            )

        self._background.start("diagnosis", work, self._show_findings)

    def _on_finding(self, row: dict[str, Any]) -> None:
        read = self._reads.get(self.case.case.key) if self.case is not None else None
        if read is None:
            return
        wanted = set(row[profile_findings.NODES])
        events: list[Activity | HostSpan] = [*read.events.activities, *read.events.intervals]
        kernels = [e for e in events if wanted & set(e.nodes) and e.run is not None]
        if kernels:
            self.picked.emit(min(kernels, key=lambda event: event.start_ns))

    def _show_findings(self, diagnosis: tuple[ProfileTable, Chart | None]) -> None:
        table, chart = diagnosis
        self.roofline.show_chart(chart)
        self.findings.show_table(table)
        self._note.setText(" ".join(table.notes))
        self._note.setVisible(bool(table.notes))


def _same(one: object, other: object) -> bool:
    """Whether two are the same objects. Their contents are large, and are not compared."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))
    return one is other
