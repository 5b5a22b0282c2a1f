"""File: exports of the run shown; and of each chart, on the chart itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu

from gui.pages.compare import ComparePage
from gui.shell.export_actions import ExportActions

if TYPE_CHECKING:
    from gui.shell.actions import Actions
    from gui.shell.main_window import MainWindow

ORDER = 30


def add_to(window: MainWindow, actions: Actions) -> None:
    exports = ExportActions(window)
    actions.add("file", "export-all", "&Export…", exports.ask, "Ctrl+E")
    charts = actions.submenu("file", "Export a &chart")
    exports.scale_menu(charts)
    charts.addSeparator()
    charts.aboutToShow.connect(lambda: _offer(window, exports, charts))
    actions.add("file", "export-report", "Export a report (&HTML)…", exports.ask_report)
    actions.add("file", "export-run", "Export the &whole run…", exports.ask_run, "Ctrl+Shift+E")
    for page in window.pages:
        if isinstance(page, ComparePage):
            page.chart_menu.connect(exports.chart_menu)


def _offer(window: MainWindow, exports: ExportActions, menu: QMenu) -> None:
    """The charts of the models shown, as they are now, after the sizes of PNG and a separator."""
    for action in menu.actions()[2:]:
        menu.removeAction(action)
        action.deleteLater()
    for chart in window.state.all_charts():
        action = QAction(f"{chart.title}…", menu)
        action.triggered.connect(lambda _=False, chart=chart: exports.ask_chart(chart))
        menu.addAction(action)
    if len(menu.actions()) == 2:
        none = QAction("No chart yet", menu)
        none.setEnabled(False)
        menu.addAction(none)
