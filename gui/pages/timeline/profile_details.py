"""Below the timeline: the tables of one case, the parts of a pass over all cases, the cold start, and what
holds each operator back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QAction, QColor, QPixmap, QResizeEvent
from PySide6.QtWidgets import (
    QButtonGroup,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QLineEdit,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from bench.results import api_calls as profile_api
from bench.results.events import Activity, ApiCall, Event, HostSpan
from bench.results.profile_records import CaseProfile, Profile
from bench.views.charts import profile_charts
from bench.views.charts.definitions import Chart
from bench.views.sentences import profile_findings, profile_remarks
from bench.views.tables import event_lines as profile_lines
from bench.views.tables import profile_tables
from bench.views.tables.event_lines import MOST
from bench.views.tables.profile_columns import Line, ProfileColumn, ProfileTable, named, short_name
from bench.views.tables.table import Table, with_headings
from gui.base.background import Background
from gui.base.boxes import HORIZONTAL, as_column, filled, scrolled, splitter
from gui.base.theme import Theming
from gui.pages.timeline.parts_view import ColdView, PartsView
from gui.pages.timeline.timeline_paint import TimelinePlace
from gui.plots.chart import ChartView
from gui.sessions.profile_session import Read
from gui.widgets.combo import Combo
from gui.widgets.controls import tool_button
from gui.widgets.labels import Elided, Label
from gui.widgets.table_view import TableView

_NONE: ProfileTable = Table((), ())


class ProfileView(TableView):
    """`picked` carries the row (a dict by the columns' names) that the user went to."""

    widest = 420
    margin = 14
    grows = False
    flush_headings = True

    def __init__(
        self, theming: Theming, name: str, parent: QWidget | None = None, wrap: bool = False
    ) -> None:
        """wrap: rows as high as their texts."""
        super().__init__(name, theming, parent)
        self._wrap = wrap
        self._table = _NONE
        self._most: set[int] = set()  # ids of the rows that are marked
        # Once the columns have their widths: those of the moment may be of another layout.
        self._fitting = QTimer(self, singleShot=True, interval=0)
        self._fitting.timeout.connect(self.resizeRowsToContents)
        self.setWordWrap(wrap)
        self.horizontalHeader().sectionResized.connect(self._fit_rows)
        self.full = QAction("&Full names", self, checkable=True)
        self.full.setToolTip("Kernel names with their template arguments and parameters")
        self.full.toggled.connect(lambda: self.show_table(self._table))
        self.addAction(self.full)

    def show_table(self, table: ProfileTable | None) -> None:
        """Show a table, None for none."""
        self._table = table or _NONE
        self._most = _most(self._table)
        super().show_table(self._table if self.full.isChecked() else named(self._table, short_name))
        self._stretch()
        self._fit_rows()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_rows()

    def _stretch(self) -> None:
        """A last column of words has what room is left; wrapped, no more than that."""
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
        """All of a text that may be cut."""
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
        return bool(self.source.rows) and super().hides(column)

    def copied(self) -> ProfileTable:
        return replace(self._table, rows=self.chosen_rows())

    def markdown(self, table: ProfileTable) -> str:
        return with_headings([table])


def _most(table: ProfileTable) -> set[int]:
    """The first rows, as they come, up to 90 % of the time."""
    taken: set[int] = set()
    so_far = 0.0
    for row in table.rows if any(column.name == "share" for column in table.columns) else ():
        if so_far >= MOST:
            break
        taken.add(id(row))
        so_far += row["share"]
    return taken


GROUPS = {"name": "name", "operator": "operator", "node": "node"}
TYPING_MS = 200
WIDE = 1400  # pixels, from which both tables have room


@dataclass(frozen=True)
class _Wanted:
    """Which tables are asked for."""

    case: str
    window: str
    by: str
    match: str


@dataclass(frozen=True)
class _Found:
    """The tables, and the first event of each of their lines by ("device" or "call", name)."""

    activities: ProfileTable | None
    calls: ProfileTable | None
    first: dict[tuple[str, str], Event] = field(default_factory=dict)


class ProfileTables(QWidget):
    """`show_case` fills it; `picked` carries the first event of the line that the user went to."""

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
        self.filter = QLineEdit()
        self.filter.setPlaceholderText("Only names with …")
        self.filter.setClearButtonEnabled(True)
        self.filter.setAccessibleName("Filter")
        self.filter.setMaximumWidth(220)
        self._typing = QTimer(self, singleShot=True, interval=TYPING_MS)
        self._typing.timeout.connect(self.update_tables)
        self.filter.textChanged.connect(lambda _: self._typing.start())
        self.activities = ProfileView(theming, "GPU activities")
        self.activities.picked.connect(lambda row: self._pick("device", row))
        self.calls = ProfileView(theming, "API calls")
        self.calls.picked.connect(lambda row: self._pick("call", row))
        self._heads: dict[str, tuple[QLabel, Elided, QLabel]] = {}
        self._which = QButtonGroup(self)
        for number, words in enumerate(("GP&U activities", "AP&I calls")):
            button = tool_button(words)
            button.setCheckable(True)
            button.setChecked(number == 0)
            self._which.addButton(button, number)
        self._which.idClicked.connect(self._fold)
        bar = filled(QHBoxLayout(), *self._which.buttons(), Label("Of"), self.window_box)
        filled(bar, Label("grouped by"), self.by_box, self.filter, 1)
        bar.insertSpacing(2, 10)
        tables = {"activities": self.activities, "calls": self.calls}
        self._sides = {key: self._side(key, table) for key, table in tables.items()}
        split = splitter(
            "timeline-tables", HORIZONTAL, *self._sides.values(), sizes=[600, 500], collapsible=False
        )
        filled(QVBoxLayout(self), bar, (split, 1), margins=(0, 4, 0, 0), spacing=4)

    def show_case(self, read: Read | None) -> None:
        """Show a case's tables; they come from a thread."""
        if read is not self._read:
            self._read, self._shown = read, None
            self.update_tables()

    def update_tables(self) -> None:
        read = self._read
        if read is None:
            self._show(_Found(None, None))
            return
        window, by = self.window_box.currentData(), self.by_box.currentData()
        wanted = _Wanted(read.case.case.key, window, by, self.filter.text().strip())
        if wanted == self._shown:
            return
        self._shown = wanted

        self._background.start("tables", lambda: _found(read, wanted), self._show)

    def follow(self, event: Event) -> None:
        """Mark the line that counts an event, now or once the tables are there."""
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
        """The title and the 90 % list above a table ("activities", "calls")."""
        title, note, _ = self._heads[key]
        return f"{title.text()}: {note.text()}"

    def _side(self, key: str, table: ProfileView) -> QWidget:
        title, note, more = Label(role="heading"), Elided(role="muted"), Label(wrap=True)
        self._heads[key] = (title, note, more)
        return as_column(title, note, more, (table, 1), spacing=2)

    def _show(self, found: _Found) -> None:
        self._first = found.first
        tables = (found.activities, found.calls)
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
        """Both tables beside each other where there is room, else the one chosen."""
        both = self._calls and self.width() >= WIDE
        for number, side in enumerate(self._sides.values()):
            chosen = self._which.checkedId() == number if self._calls else number == 0
            side.setVisible(both or chosen)
            self._which.button(number).setVisible(self._calls and not both)

    def _pick(self, table: str, row: dict[str, Any]) -> None:
        if (event := self._first.get((table, str(row["name"])))) is not None:
            self.picked.emit(event)


def _found(read: Read, wanted: _Wanted) -> _Found:
    """The tables and what their lines lead to (on a thread)."""
    made, events, by = read.case, read.events, wanted.by
    inside = profile_lines.in_window(events, wanted.window)
    key = profile_lines.key_of(by)  # type: ignore[arg-type]  # a key of GROUPS
    first: dict[tuple[str, str], Event] = {}
    for event in profile_lines.device_events(inside, by):  # type: ignore[arg-type]
        first.setdefault(("device", key(event)), event)
    for call in inside.calls:
        first.setdefault(("call", profile_api.bare(call.name)), call)
    return _Found(
        profile_tables.activities(made, events, by, wanted.window, wanted.match),  # type: ignore[arg-type]
        profile_tables.calls(made, events, wanted.window, wanted.match) if events.calls else None,
        first,
    )


SCALES = {"shares of the pass": True, "time": False}


class ProfileDetails(QTabWidget):
    """`show_cases` fills it; `picked` carries the first event of an operator that the user went to in the
    diagnosis. The backend chosen in its corner is the one of tables and diagnosis."""

    picked = Signal(object)

    def __init__(self, theming: Theming, background: Background, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._background = background
        self._fine: Sequence[CaseProfile] = ()
        self._cases: Sequence[CaseProfile] = ()
        self._reads: Mapping[str, Read] = {}
        self._profile: Profile | None = None
        self._diagnosed: object = None
        self._given: tuple = ()
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
        """fine: all cases of the profile that are measured; cases: those of the batch size that is shown;
        reads: of these by their keys, as far as they are read."""
        given = (profile, tuple(fine), tuple(cases), tuple(reads.values()))
        if len(given) == len(self._given) and all(map(_same, given, self._given)):
            return
        self._given = given
        self._profile, self._fine, self._cases, self._reads = profile, fine, cases, reads
        names = [case.case.backend for case in cases]
        # Who has chosen nothing yet looks for what a GPU does, where there is one.
        first = next((case.case.backend for case in cases if case.device not in ("", "cpu")), None)
        chosen = self.backend.currentData()
        self.backend.offer({name: name for name in names}, chosen if chosen in names else first)
        self._update()

    def choose(self, backend: str) -> None:
        self.backend.choose(backend)
        self._update()

    def follow(self, event: Event | None, place: TimelinePlace | None) -> None:
        """Mark the line of the tables that an event is counted in, of its own backend."""
        if event is not None and place is not None:
            if place.group.backend != self.backend.currentText():
                self.choose(place.group.backend)
            self.tables.follow(event)

    @property
    def case(self) -> CaseProfile | None:
        """That of the tables."""
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
        found = [e for e in events if wanted & set(e.nodes) and e.run is not None]
        if found:
            self.picked.emit(min(found, key=lambda event: event.start_ns))

    def _show_findings(self, found: tuple[ProfileTable, Chart | None]) -> None:
        table, chart = found
        self.roofline.show_chart(chart)
        self.findings.show_table(table)
        self._note.setText(" ".join(table.notes))
        self._note.setVisible(bool(table.notes))


def _same(one: object, other: object) -> bool:
    """Whether two are the same things; by what they are and not by what is in them, which is much."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))
    return one is other
