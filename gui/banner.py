"""A strip above the pages for what the user should know now: never a dialog, gone by a click."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QToolButton, QWidget

MOST = 3  # messages shown at once; older ones are in the log


class Banner(QFrame):
    """Shows the last few messages; the same one again only counts up."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("role", "banner")
        self._messages: dict[str, int] = {}
        self._label = QLabel()
        self._label.setWordWrap(True)
        self._label.setTextFormat(Qt.TextFormat.PlainText)
        self._label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        close = QToolButton()
        close.setText("✕")
        close.setAutoRaise(True)
        close.setToolTip("Dismiss (Esc)")
        close.setAccessibleName("Dismiss the message")
        close.clicked.connect(self.dismiss)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(10, 6, 6, 6)
        layout.addWidget(self._label, 1)
        layout.addWidget(close, 0, Qt.AlignmentFlag.AlignTop)
        self.hide()

    @property
    def text(self) -> str:
        return self._label.text() if not self.isHidden() else ""

    def show_message(self, text: str) -> None:
        count = self._messages.pop(text, 0)
        self._messages[text] = count + 1
        while len(self._messages) > MOST:
            del self._messages[next(iter(self._messages))]
        lines = [t if n == 1 else f"{t} ({n} times)" for t, n in self._messages.items()]
        self._label.setText("\n".join(lines))
        self.show()

    def dismiss(self) -> None:
        self._messages.clear()
        self.hide()
