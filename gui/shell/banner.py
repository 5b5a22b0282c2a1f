"""A strip above the pages for what the user should know now: never a dialog, gone by a click. What needs his
word has a button."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from gui.base.boxes import filled
from gui.widgets.controls import push_button, tool_button
from gui.widgets.labels import Label

MOST = 3  # messages shown at once; older ones are in the log


class Banner(QFrame):
    """Shows the last few messages; the same one again only counts up. What is said of one matter takes the
    place of what was said of it before."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("role", "banner")
        self._messages: dict[str, int] = {}
        self._matters: dict[str, str] = {}  # of messages that others of their matter replace
        self._label = Label(wrap=True)
        self._label.setTextFormat(Qt.TextFormat.PlainText)
        self._label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        close = tool_button("✕", self.dismiss, flat=True, tip="Dismiss (Esc)", name="Dismiss the message")
        self.button = push_button("", self._agree)
        self.button.hide()
        self._agreed: Callable[[], None] | None = None
        filled(
            QHBoxLayout(self),
            (self._label, 1),
            (self.button, 0, Qt.AlignmentFlag.AlignTop),
            (close, 0, Qt.AlignmentFlag.AlignTop),
            margins=(10, 6, 6, 6),
        )
        self.hide()

    @property
    def text(self) -> str:
        return self._label.text() if not self.isHidden() else ""

    def show_message(self, text: str) -> None:
        count = self._messages.pop(text, 0)
        self._messages[text] = count + 1
        while len(self._messages) > MOST:
            self._forget(next(iter(self._messages)))
        self._show()

    def replace(self, matter: str, texts: Sequence[str]) -> None:
        """Show what there is to say of a matter now; without any, what was said of it goes."""
        for text in [text for text, about in self._matters.items() if about == matter]:
            self._forget(text)
        for text in texts:
            self._messages.pop(text, None)
            self._matters[text] = matter
            self.show_message(text)
        if not self._messages:
            self.dismiss()
        elif not texts:
            self._show()

    def _forget(self, text: str) -> None:
        self._messages.pop(text, None)
        self._matters.pop(text, None)

    def _show(self) -> None:
        lines = [t if n == 1 else f"{t} ({n} times)" for t, n in self._messages.items()]
        self._label.setText("\n".join(lines))
        self.show()

    def ask(self, text: str, words: str, agreed: Callable[[], None]) -> None:
        """Show a message with a button of these words, which does what is `agreed` to; of several questions
        the last."""
        self.dismiss()
        self._agreed = agreed
        self.button.setText(words)
        self.button.setAccessibleName(words)
        self.button.show()
        self.show_message(text)

    def dismiss(self) -> None:
        self._messages.clear()
        self._matters.clear()
        self._agreed = None
        self.button.hide()
        self.hide()

    def _agree(self) -> None:
        agreed = self._agreed
        self.dismiss()
        if agreed is not None:
            agreed()
