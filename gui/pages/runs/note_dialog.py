"""What a run is called and what is noted of it, asked for."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QFormLayout, QLineEdit, QPlainTextEdit, QWidget

from bench.kinds.note import NAME_CHARACTERS, Note
from gui.widgets.labels import Label


class NoteDialog(QDialog):
    """`kept` carries the Note that the user wants."""

    kept = Signal(object)

    def __init__(self, folder: str, note: Note, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Name a run")
        self.name = QLineEdit(note.name)
        self.name.setMaxLength(NAME_CHARACTERS)
        self.name.setPlaceholderText(folder)
        self.name.setMinimumWidth(360)
        self.text = QPlainTextEdit(note.text)
        self.text.setTabChangesFocus(True)
        self.text.setFixedHeight(6 * self.text.fontMetrics().lineSpacing() + 12)
        buttons = QDialogButtonBox(
            QDialogButtonBox.StandardButton.Save | QDialogButtonBox.StandardButton.Cancel
        )
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        form = QFormLayout(self)
        for words, field in (("&Name", self.name), ("N&ote", self.text)):
            label = Label(words)
            label.setBuddy(field)
            form.addRow(label, field)
        where = Label("Both lie in the run's folder, so they go where it goes; legends use the name.")
        where.setProperty("role", "muted")
        where.setWordWrap(True)
        form.addRow(where)
        form.addRow(buttons)
        self.finished.connect(self.deleteLater)

    def accept(self) -> None:
        self.kept.emit(Note(name=self.name.text(), text=self.text.toPlainText()))
        super().accept()
