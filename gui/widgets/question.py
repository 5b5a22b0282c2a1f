"""A question to the user, with buttons that say what they do."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QPushButton, QWidget


class Question(QMessageBox):
    """Words, a button for each verb, and one that changes nothing: Enter and Esc press it. `ask` returns the
    verb that was chosen."""

    def __init__(
        self, parent: QWidget | None, title: str, words: str, verbs: Sequence[str], safe: str
    ) -> None:
        super().__init__(parent)
        self.setIcon(QMessageBox.Icon.NoIcon)
        self.setWindowTitle(title)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setText(words)
        self.setAccessibleName(title)
        self.setAccessibleDescription(words)
        self._safe = safe
        self.choices: dict[str, QPushButton] = {
            verb: self.addButton(verb, QMessageBox.ButtonRole.ActionRole) for verb in verbs
        }
        keep = self.choices[safe] = self.addButton(safe, QMessageBox.ButtonRole.RejectRole)
        self.setDefaultButton(keep)
        self.setEscapeButton(keep)

    def ask(self) -> str:
        """Show it and wait. Returns a verb, or `safe`."""
        self.exec()
        pressed = self.clickedButton()
        self.deleteLater()
        return next((verb for verb, button in self.choices.items() if button is pressed), self._safe)


def ask(parent: QWidget | None, title: str, words: str, verbs: Sequence[str], safe: str) -> str:
    """Ask the user, and return one of the verbs, or `safe`, which changes nothing."""
    return Question(parent, title, words, verbs, safe).ask()
