"""What stands beside the pages: the comparison's form, the inspector, the problems. In a narrow window the
inspector is a tab beside the form, so that the pages keep the room of it."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDockWidget, QMainWindow, QWidget

NARROW = 1180  # pixels of the window, below which the inspector has no place of its own
WIDTHS = (290, 270)  # of the form and the inspector at first
PROBLEMS_HEIGHT = 140

_AREA = Qt.DockWidgetArea


class Docks:
    """The docks of a window. `folded`: the inspector is a tab because there was no room for it."""

    def __init__(self, window: QMainWindow, form: QWidget, inspector: QWidget, problems: QWidget) -> None:
        self._window = window
        self.folded = False
        self.form = self._dock("Comparison", form, _AREA.LeftDockWidgetArea)
        self.inspector = self._dock("Inspector", inspector, _AREA.RightDockWidgetArea)
        self.problems = self._dock("Problems", problems, _AREA.BottomDockWidgetArea)
        self.problems.hide()
        window.setCorner(Qt.Corner.BottomLeftCorner, _AREA.LeftDockWidgetArea)
        window.setCorner(Qt.Corner.BottomRightCorner, _AREA.RightDockWidgetArea)
        self._give_widths()
        window.resizeDocks([self.problems], [PROBLEMS_HEIGHT], Qt.Orientation.Vertical)

    def fit(self, width: int) -> None:
        """Fold the inspector or set it free, where the window's width calls for the other. Where the user put
        it elsewhere it stays."""
        window, narrow = self._window, width < NARROW
        if narrow == self.folded:
            return
        if narrow:
            beside = window.dockWidgetArea(self.inspector) == _AREA.RightDockWidgetArea
            if beside and not self.inspector.isFloating():
                self.folded = True
                window.tabifyDockWidget(self.form, self.inspector)
                self.form.raise_()
        else:
            self.folded = False
            beside = window.dockWidgetArea(self.inspector) == window.dockWidgetArea(self.form)
            if beside and not self.inspector.isFloating():
                hidden = self.inspector.isHidden()
                window.addDockWidget(_AREA.RightDockWidgetArea, self.inspector)
                self.inspector.setVisible(not hidden)
                self._give_widths()

    def _give_widths(self) -> None:
        self._window.resizeDocks([self.form, self.inspector], WIDTHS, Qt.Orientation.Horizontal)

    def _dock(self, title: str, widget: QWidget, area: Qt.DockWidgetArea) -> QDockWidget:
        dock = QDockWidget(title, self._window)
        dock.setObjectName(title.lower())
        dock.setWidget(widget)
        features = QDockWidget.DockWidgetFeature
        dock.setFeatures(features.DockWidgetClosable | features.DockWidgetMovable)
        self._window.addDockWidget(area, dock)
        return dock
