"""A window that several tests look at: what one of them changes it puts back, and that is checked."""

import contextlib
import time

from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QComboBox, QDockWidget

PATIENCE_S = 20.0


@contextlib.contextmanager
def as_found(window, themes=False):
    """Shows a window meanwhile; else it is out of the way of a mouse over others. Fails where what is shown,
    or how, is another afterwards. themes: tests change its theme, too; what was laid out before the window
    was first shown is a few pixels off until that has been done once."""
    window.show()
    assert QTest.qWaitForWindowExposed(window)
    settle(window)
    if themes and not window.property("themes seen"):
        window.setProperty("themes seen", True)
        for theme in ("dark", "light"):
            window.theming.choose(theme)
            settle(window)
            QTest.qWait(20)
        settle(window)
    before = standing(window)
    yield window
    settle(window)
    until = time.monotonic() + PATIENCE_S
    while (after := standing(window)) != before and time.monotonic() < until:
        QTest.qWait(20)  # axes are as wide as what is painted, which comes by a timer
        settle(window)
    window.hide()
    assert after == before, "a test has left the window to others as it did not find it"


def settle(window):
    # A layout is done a turn later, and what is drawn in it another.
    for _ in range(2):
        window.redraw.flush()
        QCoreApplication.processEvents()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)  # what is not shown any more


def standing(window):
    """What a user could have changed in a window with a comparison in front."""
    page, state = window.page, window.state
    shown = {
        name: (
            view.isHidden(),
            view.size().toTuple(),
            view.chart,
            [
                (
                    title,
                    plot.isHidden(),
                    plot.readout.isHidden(),
                    plot.getPlotItem().getViewBox().viewRange(),
                    {label: item.line.isVisible() for label, item in getattr(plot, "_items", {}).items()},
                )
                for title, plot in view.plots.items()
            ],
        )
        for name, view in page.views.items()
    }
    header = page.table.horizontalHeader()
    return {
        "shown": shown,
        "window": (window.size().toTuple(), window.theming.choice, window.banner.text, window.isVisible()),
        "sheet": QApplication.instance().styleSheet(),
        "page": (page.title, page.model, [box.currentIndex() for box in page.findChildren(QComboBox)]),
        "table": (header.sortIndicatorSection(), header.sortIndicatorOrder(), page.table.source.rowCount()),
        "selected": (state.case, state.layer),
        "run": (state.run, [id(measured) for measured in state.measurements]),
        "docks": [dock.isVisible() for dock in window.findChildren(QDockWidget)],
        "switches": [b.isChecked() for b in page.findChildren(QAbstractButton)],
    }
