"""A window with several runs side by side: a column for each, held against the baseline; and their charts."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QDialog, QVBoxLayout, QWidget

from bench.results import doubt
from bench.views.diff.several import Beside, Several, change_at, table
from bench.views.tables.table import Column
from bench.words import orders
from gui.base.boxes import filled, placed, tabbed
from gui.base.theme import Theming
from gui.pages.runs.overlaid import OverlaidCharts
from gui.widgets.controls import Label
from gui.widgets.table_view import TableView


class SeveralTable(TableView):
    """The cases. Slower and wrong ones have a colour."""

    widest = 260

    def ink(self, row: Beside, column: Column[Beside]) -> QColor | None:
        change, theme = change_at(row, column.name), self.theme
        if change is None:
            return None
        if change.wrong:
            return QColor(theme.failed)
        inks = {"faster": theme.good, "slower": theme.failed, "doubtful": theme.warning}
        ink = inks.get(orders.role(change.verdict, change.doubts))
        return None if ink is None else QColor(ink)

    def tip(self, row: Beside, column: Column[Beside]) -> str:
        change = change_at(row, column.name)
        if change is None:
            return super().tip(row, column)
        return "\n".join(
            filter(None, (change.wrong, change.worse, change.lost, change.apart, *change.doubts))
        )


class SeveralWindow(QDialog):
    """Shows several runs. It blocks nothing."""

    def __init__(self, found: Several, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.found = found
        self.setWindowTitle(f"{1 + len(found.others)} runs beside {found.base.name}")
        self.setWindowFlag(Qt.WindowType.WindowMaximizeButtonHint)
        self.table = SeveralTable("Cases of all runs", theming)
        self.table.show_table(table(found))
        marks = f"{doubt.MEANING[:1].upper()}{doubt.MEANING[1:]}"
        head = Label(
            f"Each run beside the baseline, {found.base.words}. {marks}.",
            role="muted",
            wrap=True,
            selectable=True,
        )
        panes: dict[str, QWidget] = {"&Cases": self.table}
        if found.kind == "comparison":
            paths = (found.base.path, *(other.path for other in found.others))
            panes["C&harts"] = OverlaidCharts(paths, theming)
        self.tabs = tabbed(panes)
        filled(QVBoxLayout(self), head, (self.tabs, 1), margins=(12, 12, 12, 12), spacing=8)
        self.resize(placed(QSize(1100, 640), self.screen().availableGeometry()).size())
