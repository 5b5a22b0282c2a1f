"""A window that compares two runs: what else differs, the result, every case; and for profiles a waterfall
of the steps between the two times."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QColor, QResizeEvent
from PySide6.QtWidgets import QDialog, QHBoxLayout, QVBoxLayout, QWidget

from bench.views.diff import tables, waterfall
from bench.views.diff.records import Change, Diff
from bench.views.sentences import diff_sentences as sentences
from bench.views.tables.table import Column
from bench.words import orders
from gui.base.boxes import VERTICAL, ScrollArea, as_column, filled, placed, splitter, tabbed
from gui.base.theme import Theming, resized
from gui.pages.runs.overlaid import OverlaidCharts
from gui.plots.chart import ChartView
from gui.widgets.controls import Combo, Label
from gui.widgets.table_view import TableView

FEW = 8  # differences that are shown; further ones are in the tip of the last
LARGER = 2.0  # points by which the verdict is larger
# Texts with more lines than that scroll, so that the table of cases has room.
MOST_LINES, MOST_REMARKS = 7, 4
LEAST_HEIGHT = 180  # pixels of that table


class DiffTable(TableView):
    """The cases of a comparison. Slower and wrong ones have a colour."""

    def ink(self, row: Change, column: Column[Change]) -> QColor | None:
        theme = self.theme
        if column.name == "ratio":
            inks = {"faster": theme.good, "slower": theme.failed, "doubtful": theme.warning}
            ink = inks.get(orders.role(row.verdict, row.doubts))
            return None if ink is None else QColor(ink)
        return QColor(theme.failed) if column.name == "result" and row.wrong else None

    def tip(self, row: Change, column: Column[Change]) -> str:
        left_out = row.pair.b.left if row.pair.b is not None else ""
        return "\n".join(filter(None, (row.wrong, left_out, row.worse, row.lost, row.apart, *row.doubts)))


class DiffWindow(QDialog):
    """Shows one Diff. It blocks nothing."""

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
            self.differences.setToolTip("\n".join(difference.words for difference in diff.differences[FEW:]))
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
        body: QWidget = split
        if diff.kind == "comparison":
            self.overlaid = OverlaidCharts((diff.a.path, diff.b.path), theming)
            body = tabbed({"&Cases": split, "C&harts": self.overlaid})
        filled(QVBoxLayout(self), *above, (body, 1), below, margins=(12, 12, 12, 12), spacing=8)
        below.setVisible(bool(self.remarks.text()))
        self.resize(placed(QSize(980, 820 if self.charts else 560), self.screen().availableGeometry()).size())

    def _falls(self) -> QWidget:
        """The waterfall of the chosen case, with its steps in a table."""
        for each in self.diff.waterfalls:
            self.case.addItem(each.words)
        self.case.setAccessibleName("Case")
        self.case.currentIndexChanged.connect(self._show_fall)
        bar = filled(QHBoxLayout(), Label("&Case", buddy=self.case), self.case, 1)
        across = splitter("", VERTICAL, self.chart, self.steps, sizes=[420, 180], collapsible=False)
        body = as_column(*([bar] if len(self.charts) > 1 else []), (across, 1))
        self._show_fall(0)
        return body

    def _give_room(self, wanted: bool) -> None:
        """Give the chart all the room, or give the tables theirs back."""
        for table in (self.table, self.steps):
            table.setVisible(not wanted)

    def _show_fall(self, place: int) -> None:
        chart = self.charts[place]
        # Do not repeat what the verdict says.
        self.chart.stated_above = (
            chart.finding if chart.finding.removesuffix(".") in self.verdict.text() else ""
        )
        self.chart.show_chart(chart)
        table = tables.readable_steps(self.diff.waterfalls[place])
        self.steps.show_table(table)


class _Few(ScrollArea):
    """A text that is as high as its lines, up to a number of lines; then it scrolls."""

    def __init__(self, label: Label, most: int) -> None:
        super().__init__(sideways=False)
        self._label, self._most = label, most
        label.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.setWidget(label)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        most = self._most * self._label.fontMetrics().lineSpacing()
        self.setFixedHeight(min(most, self._label.heightForWidth(self.viewport().width())))


def _few(lines: Sequence[str]) -> list[str]:
    """The first FEW differences, how many more there are, and how the runs are compared."""
    sentences_told = [line.strip() for line in lines]
    if len(sentences_told) <= FEW + 1:
        return sentences_told
    return [*sentences_told[:FEW], f"and {len(sentences_told) - FEW - 1} more", sentences_told[-1]]


def _words(lines: Sequence[str], muted: bool = False) -> Label:
    return Label("\n".join(lines), role="muted" if muted else "", wrap=True, selectable=True)
