"""Where to begin, shown above the empty pages until the user has begun or sent it away."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSettings, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QToolButton, QVBoxLayout, QWidget

from gui.base.boxes import filled
from gui.sessions.run_state import RunState
from gui.widgets.labels import Label

_DISMISSED = "hint/dismissed"


class FirstStart(QFrame):
    """A card with the ways to begin: actions with what each is for. Gone while a run is shown, and for good
    once it was dismissed."""

    def __init__(
        self,
        state: RunState,
        settings: QSettings,
        ways: Sequence[tuple[QAction, str]],
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self.setProperty("role", "card")
        self._state = state
        self._settings = settings
        self._wanted: bool | None = None
        self._held_back = False
        heading = Label("Where to begin")
        heading.setProperty("role", "heading")
        close = QToolButton()
        close.setText("✕")
        close.setAutoRaise(True)
        close.setToolTip("Do not show this again")
        close.setAccessibleName("Do not show this again")
        close.clicked.connect(self.dismiss)
        self.close_button = close
        head = filled(QHBoxLayout(), (heading, 1), close)
        row = QHBoxLayout()
        row.setSpacing(10)
        self.buttons: dict[str, QPushButton] = {}
        for index, (action, purpose) in enumerate(ways):
            row.addLayout(self._way(action, purpose, index == 0), 1)
        filled(QVBoxLayout(self), head, row, margins=(10, 8, 8, 12))
        state.changed.connect(self._follow)
        self._follow()

    def dismiss(self) -> None:
        self._settings.setValue(_DISMISSED, True)
        self._follow()

    def hold_back(self, on: bool) -> None:
        """Leave the room to a page that says itself how to begin, while it is in front."""
        self._held_back = on
        self._follow()

    def _way(self, action: QAction, purpose: str, primary: bool) -> QVBoxLayout:
        keys = action.shortcut().toString()
        # Without the menu's marked letter: Alt and that letter open a menu.
        button = QPushButton(action.text().replace("&", "") + (f"  ({keys})" if keys else ""))
        if primary:
            button.setProperty("role", "primary")
        button.clicked.connect(action.trigger)
        self.buttons[action.objectName()] = button
        words = Label(purpose)
        words.setProperty("role", "muted")
        words.setWordWrap(True)
        words.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        made = filled(QVBoxLayout(), button, (words, 1), spacing=4)
        return made

    def _follow(self) -> None:
        dismissed = str(self._settings.value(_DISMISSED, "false")).lower() == "true"
        wanted = self._state.empty and self._state.folder is None and not dismissed and not self._held_back
        if wanted != self._wanted:
            self._wanted = wanted
            self.setVisible(wanted)
