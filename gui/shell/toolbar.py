"""The bar below the menus: the three things one does most, and the form's choices in a line while it is
folded. One of a window's buttons is the primary one: what one does next on the page in front."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QToolBar, QToolButton, QWidget

from gui.base import icons
from gui.base.scale import GRID
from gui.base.theme import Theming
from gui.widgets.controls import set_role, tool_of
from gui.widgets.labels import as_tip

if TYPE_CHECKING:
    from gui.shell.actions import Actions

# An action, its word on the bar, its icon; the first two take turns.
BUTTONS = (
    ("run", "Run", "run"),
    ("cancel", "Cancel", "cancel"),
    ("open-model", "Open model", "open"),
    ("export-all", "Export", "export"),
)


class ToolBar(QToolBar):
    """`folded` is the button that opens the form again; its text is the form in a line."""

    def __init__(self, actions: Actions, theming: Theming, parent: QWidget) -> None:
        super().__init__("Toolbar", parent)
        self.setObjectName("toolbar")
        self.setMovable(False)
        self.setFloatable(False)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setIconSize(QSize(4 * GRID, 4 * GRID))
        self._theming = theming
        self.buttons: dict[str, QToolButton] = {}
        self._places: dict[str, QAction] = {}
        for name, words, picture in BUTTONS:
            action = actions.by_name[name]
            action.setIconText(words)
            keys = action.shortcut().toString()
            tip = action.text().replace("&", "").rstrip("…")
            action.setToolTip(f"{tip} ({keys})" if keys else tip)
            icons.put(action, picture, theming)
            button = self.buttons[name] = tool_of(action)
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
            self._places[name] = self.addWidget(button)
        self.folded = Summary(theming)
        self._folded = self.addWidget(self.folded)
        self.show_active(False)
        self.show_summary("", False)

    def show_active(self, active: bool) -> None:
        """While a comparison runs it can be cancelled where it was started."""
        self._places["run"].setVisible(not active)
        self._places["cancel"].setVisible(active)

    def show_summary(self, words: str, shown: bool) -> None:
        self.folded.show_words(words)
        self._folded.setVisible(shown)

    def make_primary(self, on: bool) -> None:
        """Whether the run is what one does next here, and no other button on the page says so."""
        button = self.buttons["run"]
        if set_role(button, "primary" if on else ""):
            icons.put(button.defaultAction(), "run", self._theming, "on_accent" if on else "ink")


class Summary(QToolButton):
    """A line that opens what it sums up; cut short where there is no room, and whole as its tooltip."""

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._words = ""
        self.setAutoRaise(True)
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        icons.put(self, "form", theming, "muted")

    @property
    def words(self) -> str:
        return self._words

    def sizeHint(self) -> QSize:
        return QSize(40 * GRID, super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        return QSize(15 * GRID, super().minimumSizeHint().height())

    def show_words(self, words: str) -> None:
        self._words = words
        self.setToolTip(as_tip(f"{words}\nOpen the form (F7)"))
        self.setAccessibleName(f"Open the form: {words}")
        self._cut()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._cut()

    def _cut(self) -> None:
        room = self.width() - self.iconSize().width() - 6 * GRID
        # Its own "&" would be taken for a marked letter.
        text = self.fontMetrics().elidedText(self._words, Qt.TextElideMode.ElideRight, max(40, room))
        if text.replace("&", "&&") != self.text():
            self.setText(text.replace("&", "&&"))
