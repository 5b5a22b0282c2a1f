"""Below the timeline: the tables of one case, the parts of a pass over all cases, the cold start, and what
holds each operator back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QFrame,
    QHBoxLayout,
    QScrollArea,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from bench.charts import Chart
from bench.profile.events import Activity, Event, HostSpan
from bench.profile.records import CaseProfile, Profile
from bench.profile.show import findings as profile_findings
from bench.profile.show import profile_roofline as charts
from bench.profile.show import remarks as profile_remarks
from bench.profile.show import tables as profile_tables
from bench.profile.show.columns import ProfileTable
from gui.base.background import Background
from gui.base.boxes import filled
from gui.base.theme import Theming
from gui.pages.timeline.cold_view import ColdView
from gui.pages.timeline.parts_view import PartsView
from gui.pages.timeline.profile_table import ProfileView
from gui.pages.timeline.profile_tables_view import ProfileTables
from gui.pages.timeline.timeline_paint import TimelinePlace
from gui.plots.chart import ChartView
from gui.sessions.profile_state import Read
from gui.widgets.labels import Label

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
        self.backend = QComboBox()
        self.backend.setAccessibleName("Backend of the tables")
        self.backend.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.backend.activated.connect(self._update)
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
        theming.changed.connect(self.roofline.restyle)
        self._remarks, self._note = Label(), Label()
        for label in (self._remarks, self._note):
            label.setWordWrap(True)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._note.setProperty("role", "muted")
        self.addTab(self.tables, "Tab&les")
        self.addTab(self._parts_tab(), "Breakdo&wn")
        self.addTab(self._diagnosis_tab(), "&Diagnosis")
        self.addTab(self.roofline, "Roofline")
        self.addTab(self._cold_tab(), "Cold start and process")

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
        if [self.backend.itemText(i) for i in range(self.backend.count())] != names:
            chosen = self.backend.currentText()
            self.backend.clear()
            self.backend.addItems(names)
            # Who has chosen nothing yet looks for what a GPU does, where there is one.
            first = next((i for i, case in enumerate(cases) if case.device not in ("", "cpu")), 0)
            self.backend.setCurrentIndex(names.index(chosen) if chosen in names else first)
        self._update()

    def choose(self, backend: str) -> None:
        self.backend.setCurrentIndex(max(0, self.backend.findText(backend)))
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

    # --------------------------------------------------------------------------------------------- building

    def _parts_tab(self) -> QWidget:
        self._window, self._scale = QComboBox(), QComboBox()
        for key, words in profile_tables.WINDOW_WORDS.items():
            self._window.addItem(words, key)
        for words, relative in SCALES.items():
            self._scale.addItem(words, relative)
        bar = QHBoxLayout()
        for words, box in (("Of", self._window), ("bars are", self._scale)):
            box.setAccessibleName(words)
            box.activated.connect(self._update)
            bar.addWidget(Label(words))
            bar.addWidget(box)
        bar.addStretch(1)
        tab = QWidget()
        layout = filled(QVBoxLayout(tab), bar, margins=(0, 4, 0, 0))
        inner = QWidget()
        filled(QVBoxLayout(inner), self.parts, self._remarks, 1, margins=(0, 0, 0, 0))
        layout.addWidget(_scrolled(inner), 1)
        return tab

    def _diagnosis_tab(self) -> QWidget:
        tab = QWidget()
        filled(QVBoxLayout(tab), self._note, (self.findings, 1), margins=(0, 4, 0, 0))
        return tab

    def _cold_tab(self) -> QWidget:
        tab = QWidget()
        filled(QVBoxLayout(tab), (_scrolled(self.cold), 3), (self.process, 1), margins=(0, 4, 0, 0))
        return tab

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
                charts.roofline(profile, read.case, read.events, limits),
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


def _scrolled(widget: QWidget) -> QScrollArea:
    area = QScrollArea()
    area.setWidget(widget)
    area.setWidgetResizable(True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    return area
