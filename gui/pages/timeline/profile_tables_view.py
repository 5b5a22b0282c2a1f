"""The tables of a case in nvprof's form, beside each other: what the device did, and the calls into CUDA."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QButtonGroup,
    QComboBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QSplitter,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from bench.profile import api as profile_api
from bench.profile.events import Activity, ApiCall, Event, HostSpan
from bench.profile.show import lines as profile_lines
from bench.profile.show import tables as profile_tables
from bench.profile.show.columns import ProfileTable
from gui.base.background import Background
from gui.base.boxes import filled
from gui.base.theme import Theming
from gui.pages.timeline.profile_table import ProfileView
from gui.sessions.profile_session import Read
from gui.widgets.labels import Elided, Label

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
        self.window_box, self.by_box = QComboBox(), QComboBox()
        for key, words in profile_tables.WINDOW_WORDS.items():
            self.window_box.addItem(words, key)
        for key, words in GROUPS.items():
            self.by_box.addItem(words, key)
        self.filter = QLineEdit()
        self.filter.setPlaceholderText("Only names with …")
        self.filter.setClearButtonEnabled(True)
        self.filter.setAccessibleName("Filter")
        self.filter.setMaximumWidth(220)
        self._typing = QTimer(self, singleShot=True, interval=TYPING_MS)
        self._typing.timeout.connect(self.update_tables)
        self.filter.textChanged.connect(lambda _: self._typing.start())
        self._which = QButtonGroup(self)
        bar = QHBoxLayout()
        for words, box in (("Of", self.window_box), ("grouped by", self.by_box)):
            box.setAccessibleName(words)
            box.activated.connect(self.update_tables)
            bar.addWidget(Label(words))
            bar.addWidget(box)
        bar.addWidget(self.filter)
        bar.addStretch(1)
        self.activities = ProfileView(theming, "GPU activities")
        self.activities.picked.connect(self._on_picked)
        self.calls = ProfileView(theming, "API calls")
        self.calls.picked.connect(self._on_picked_call)
        self._heads: dict[str, tuple[QLabel, Elided, QLabel]] = {}
        for number, words in enumerate(("GP&U activities", "AP&I calls")):
            button = QToolButton()
            button.setText(words)
            button.setCheckable(True)
            button.setChecked(number == 0)
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            self._which.addButton(button, number)
            bar.insertWidget(number, button)
        bar.insertSpacing(2, 10)
        self._which.idClicked.connect(self._fold)
        self._split = QSplitter(Qt.Orientation.Horizontal)
        self._split.setObjectName("timeline-tables")
        self._split.setChildrenCollapsible(False)
        self._sides = {
            key: self._side(key, table)
            for key, table in (("activities", self.activities), ("calls", self.calls))
        }
        for side in self._sides.values():
            self._split.addWidget(side)
        self._split.setSizes([600, 500])
        filled(QVBoxLayout(self), bar, (self._split, 1), margins=(0, 4, 0, 0), spacing=4)

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
        title, note, more = Label(), Elided(), Label()
        title.setProperty("role", "heading")
        note.setProperty("role", "muted")
        more.setWordWrap(True)
        self._heads[key] = (title, note, more)
        side = QWidget()
        filled(QVBoxLayout(side), title, note, more, (table, 1), margins=(0, 0, 0, 0), spacing=2)
        return side

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

    def _on_picked(self, row: dict[str, Any]) -> None:
        self._pick("device", row)

    def _on_picked_call(self, row: dict[str, Any]) -> None:
        self._pick("call", row)

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
