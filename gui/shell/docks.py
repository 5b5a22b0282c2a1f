"""What stands beside the pages: the comparison's form, the inspector, the problems; each where the page in
front has a use for it.

The form folds away once a run is shown and comes back when it is asked for; the inspector is there while
something is selected that the page tells of. In a narrow window it is a tab beside the form, so that the
pages keep the room of it. What the user closed stays closed until he opens it.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSettings, Qt, Signal
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QDockWidget, QMainWindow, QWidget

NARROW = 1180  # pixels of the window, below which the inspector has no place of its own
TINY = 820  # below which a page has no room beside the form
WIDTHS = (290, 270)  # of the form and the inspector at first
PROBLEMS_HEIGHT = 140

_AREA = Qt.DockWidgetArea


class Dock(QDockWidget):
    """`turned` carries whether the user opened it or closed it, in whichever way."""

    turned = Signal(bool)

    def __init__(self, title: str, window: QMainWindow) -> None:
        super().__init__(title, window)
        self.wanted = True  # by the user
        self.toggleViewAction().triggered.connect(self._on_triggered)

    def closeEvent(self, event: QCloseEvent) -> None:
        super().closeEvent(event)
        self._turn(False)

    def _on_triggered(self, on: bool) -> None:
        if on:
            self._turn(True)

    def _turn(self, on: bool) -> None:
        self.wanted = on
        self.turned.emit(on)


class Docks:
    """The docks of a window. `folded`: the inspector is a tab because there was no room for it. `place` puts
    there what the page in front has a use for; `form_shown` is told of every fold."""

    def __init__(self, window: QMainWindow, form: QWidget, inspector: QWidget, problems: QWidget) -> None:
        self._window = window
        self.folded = False
        self.away = False  # the form, since a run is shown
        self.cramped = False  # the form, for want of room
        self._width = NARROW
        self.form_shown: Callable[[bool], None] = lambda shown: None
        self.form = self._dock("Comparison", form, _AREA.LeftDockWidgetArea)
        self.inspector = self._dock("Inspector", inspector, _AREA.RightDockWidgetArea)
        self.problems = self._dock("Problems", problems, _AREA.BottomDockWidgetArea)
        self.problems.hide()
        self.inspector.hide()
        self.form.turned.connect(self._on_form)
        window.setCorner(Qt.Corner.BottomLeftCorner, _AREA.LeftDockWidgetArea)
        window.setCorner(Qt.Corner.BottomRightCorner, _AREA.RightDockWidgetArea)
        self._give_widths()
        window.resizeDocks([self.problems], [PROBLEMS_HEIGHT], Qt.Orientation.Vertical)

    def place(self, form: bool, inspector: bool) -> None:
        """Whether the page in front has a use for the form, and something selected to tell of."""
        form = form and self.form.wanted and not self.away and not self.cramped
        inspector = inspector and self.inspector.wanted
        for dock, wanted in ((self.form, form), (self.inspector, inspector)):
            if dock.isHidden() == wanted:
                dock.setVisible(wanted)
        self.form_shown(form)

    def fold_form(self) -> None:
        """The form's choices are made: the pages have better use for its room."""
        self.away = True

    def open_form(self) -> None:
        """As if the user had asked for it."""
        self.form.wanted, self.away, self.cramped = True, False, False
        self.form.show()
        self.form_shown(True)

    def fit(self, width: int) -> bool:
        """Fold the inspector or set it free, where the window's width calls for the other. Where the user put
        it elsewhere it stays. In a very narrow one the form has no place until it is asked for; True where
        that has changed."""
        turned = (width < TINY) != (self._width < TINY)
        if turned:
            self.cramped = width < TINY
        self._width = width
        if (width < NARROW) != self.folded:
            self._fold_inspector(width < NARROW)
        return turned

    def restore(self, settings: QSettings) -> None:
        """As `keep` left them."""
        if settings.value("layout") is not None:
            self.folded = str(settings.value("folded", "false")).lower() == "true"
            if self.folded:  # a tab that was hidden when it was left is not one any more
                self._window.tabifyDockWidget(self.form, self.inspector)
        for name, dock in self._own().items():
            dock.wanted = str(settings.value(f"docks/{name}", "true")).lower() == "true"

    def keep(self, settings: QSettings) -> None:
        settings.setValue("folded", self.folded)
        for name, dock in self._own().items():
            settings.setValue(f"docks/{name}", dock.wanted)

    # ------------------------------------------------------------------------------------------ the inside

    def _fold_inspector(self, narrow: bool) -> None:
        window = self._window
        if narrow:
            beside = window.dockWidgetArea(self.inspector) == _AREA.RightDockWidgetArea
            if beside and not self.inspector.isFloating():
                self.folded = True
                hidden = self.inspector.isHidden()
                window.tabifyDockWidget(self.form, self.inspector)
                self.inspector.setVisible(not hidden)
                self.form.raise_()
        else:
            self.folded = False
            beside = window.dockWidgetArea(self.inspector) == window.dockWidgetArea(self.form)
            if beside and not self.inspector.isFloating():
                hidden = self.inspector.isHidden()
                window.addDockWidget(_AREA.RightDockWidgetArea, self.inspector)
                self.inspector.setVisible(not hidden)
                self._give_widths()

    def _own(self) -> dict[str, Dock]:
        """Those of which the user says whether he wants them."""
        return {"form": self.form, "inspector": self.inspector}

    def _on_form(self, on: bool) -> None:
        if on:
            self.away = self.cramped = False
        self.form_shown(on)

    def _give_widths(self) -> None:
        self._window.resizeDocks([self.form, self.inspector], WIDTHS, Qt.Orientation.Horizontal)

    def _dock(self, title: str, widget: QWidget, area: Qt.DockWidgetArea) -> Dock:
        dock = Dock(title, self._window)
        dock.setObjectName(title.lower())
        dock.setWidget(widget)
        features = QDockWidget.DockWidgetFeature
        dock.setFeatures(features.DockWidgetClosable | features.DockWidgetMovable)
        self._window.addDockWidget(area, dock)
        return dock
