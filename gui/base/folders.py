"""Asking for a folder, one that is there or one to be made."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QWidget


class FolderDialog(QFileDialog):
    """Takes the name of a folder that is not there yet, and makes it. The systems' own dialogs refuse one."""

    def __init__(self, parent: QWidget | None, title: str, start: str = "") -> None:
        super().__init__(parent, title, start)
        self.setFileMode(QFileDialog.FileMode.Directory)
        self.setOption(QFileDialog.Option.ShowDirsOnly)
        self.setOption(QFileDialog.Option.DontUseNativeDialog)
        self.setLabelText(QFileDialog.DialogLabel.FileName, "Folder (it may be new):")

    def accept(self) -> None:
        for name in self.selectedFiles():
            with suppress(OSError):  # what cannot be made the dialog refuses in its own words
                Path(name).mkdir(parents=True, exist_ok=True)
        super().accept()


def ask_folder(parent: QWidget | None, title: str, start: str = "") -> str:
    """The folder chosen, made if it was not there; "" for none."""
    dialog = FolderDialog(parent, title, start)
    try:
        return next(iter(dialog.selectedFiles()), "") if dialog.exec() else ""
    finally:
        dialog.deleteLater()
