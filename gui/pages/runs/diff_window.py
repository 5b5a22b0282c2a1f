"""Two runs held against each other: what else differs first, what came of it, every case; and of profiles
where the time between them went, as a waterfall and its steps."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QColor, QResizeEvent
from PySide6.QtWidgets import QDialog, QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from bench.views.diff import tables, waterfall
from bench.views.diff.records import Change, Diff
from bench.views.sentences import diff_sentences as sentences
from bench.views.tables.table import Column
from bench.words import orders
from gui.base.boxes import VERTICAL, as_column, filled, splitter
from gui.base.letters import resized
from gui.base.placing import placed
from gui.base.theme import Theming
from gui.plots.chart import ChartView
from gui.widgets.combo import Combo
from gui.widgets.labels import Label
from gui.widgets.table_view import TableView

FEW = 8  # differences that are shown; further ones are in the tip of the last
LARGER = 2.0  # points by which the verdict is larger
# Lines of a text that stand at once, of which more are scrolled: the window is for the table of cases.
MOST_LINES, MOST_REMARKS = 7, 4
LEAST_HEIGHT = 180  # pixels of that table


class DiffTable(TableView):
    """The cases of a diff; what is slower or wrong stands out."""

    def ink(self, row: Change, column: Column[Change]) -> QColor | None:
        theme = self.theme
        if column.name == "ratio":
            inks = {"faster": theme.good, "slower": theme.failed, "doubtful": theme.warning}
            found = inks.get(orders.role(row.verdict, row.doubts))
            return None if found is None else QColor(found)
        return QColor(theme.failed) if column.name == "result" and row.wrong else None

    def tip(self, row: Change, column: Column[Change]) -> str:
        left = row.pair.b.left if row.pair.b is not None else ""
        return "\n".join(filter(None, (row.wrong, left, row.worse, row.lost, row.apart, *row.doubts)))


class DiffWindow(QDialog):
    """Stops nothing; shows one Diff."""

    def __init__(self, diff: Diff, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.diff = diff
        self._theming = theming
        self.setWindowTitle(f"{diff.b.name} against {diff.a.name}")
        self.setWindowFlag(Qt.WindowType.WindowMaximizeButtonHint)
        self.verdict = _words([sentences.verdict(diff)])
        self.verdict.setFont(resized(self.verdict.font(), more=LARGER))
        self.differences = _words(_few(sentences.differences(diff)))
        if len(diff.differences) > FEW:
            self.differences.setToolTip("\n".join(found.words for found in diff.differences[FEW:]))
        self.remarks = _words(sentences.remarks(diff), muted=True)
        self.table = DiffTable("Cases of both runs", theming)
        self.table.show_table(tables.readable(diff))
        heading = _words(sentences.heading(diff), muted=True)
        above = (heading, _Few(self.differences, MOST_LINES), self.verdict)
        below = _Few(self.remarks, MOST_REMARKS)
        split = splitter("", VERTICAL, self.table, collapsible=False)
        self.charts = waterfall.charts(diff)
        self.chart = ChartView(theming)
        self.chart.expanded.connect(self._give_room)
        self.steps = TableView("Steps from A to B")
        self.steps.widest = 900
        self.case = Combo()
        if self.charts:
            split.addWidget(self._falls())
            split.setSizes([120, 600])
        split.setMinimumHeight(LEAST_HEIGHT)
        filled(QVBoxLayout(self), *above, (split, 1), below, margins=(12, 12, 12, 12), spacing=8)
        below.setVisible(bool(self.remarks.text()))
        self.resize(placed(QSize(980, 820 if self.charts else 560), self.screen().availableGeometry()).size())

    def _falls(self) -> QWidget:
        """The waterfall of the case that is chosen, with its steps beside it."""
        for found in self.diff.waterfalls:
            self.case.addItem(found.words)
        self.case.setAccessibleName("Case")
        self.case.currentIndexChanged.connect(self._show_fall)
        label = Label("&Case")
        label.setBuddy(self.case)
        bar = filled(QHBoxLayout(), label, self.case, 1)
        across = splitter("", VERTICAL, self.chart, self.steps, sizes=[420, 180], collapsible=False)
        body = as_column(*([bar] if len(self.charts) > 1 else []), (across, 1))
        self._show_fall(0)
        return body

    def _give_room(self, wanted: bool) -> None:
        """All of it to the chart, or back."""
        for table in (self.table, self.steps):
            table.setVisible(not wanted)

    def _show_fall(self, place: int) -> None:
        chart = self.charts[place]
        # What the verdict says need not stand above the chart again.
        self.chart.told = chart.finding if chart.finding.removesuffix(".") in self.verdict.text() else ""
        self.chart.show_chart(chart)
        table = tables.readable_steps(self.diff.waterfalls[place])
        self.steps.show_table(table)


class _Few(QScrollArea):
    """A text as high as it is, up to so many lines; further ones are scrolled to."""

    def __init__(self, label: Label, most: int) -> None:
        super().__init__()
        self._label, self._most = label, most
        label.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.setWidget(label)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        most = self._most * self._label.fontMetrics().lineSpacing()
        self.setFixedHeight(min(most, self._label.heightForWidth(self.viewport().width())))


def _few(lines: Sequence[str]) -> list[str]:
    """The first differences, how many more there are, and how the two are compared."""
    told = [line.strip() for line in lines]
    if len(told) <= FEW + 1:
        return told
    return [*told[:FEW], f"and {len(told) - FEW - 1} more", told[-1]]


def _words(lines: Sequence[str], muted: bool = False) -> Label:
    label = Label("\n".join(lines), wrap=True)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    if muted:
        label.setProperty("role", "muted")
    return label
