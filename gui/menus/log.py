"""Help: the window's log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import QDialog, QPlainTextEdit, QVBoxLayout

from gui.base import faults
from gui.base.boxes import filled
from gui.base.placing import placed
from gui.widgets.labels import Label

if TYPE_CHECKING:
    from gui.shell.actions import Actions
    from gui.shell.main_window import MainWindow

ORDER = 20
TAIL_NBYTES = 200_000


def add_to(window: MainWindow, actions: Actions) -> None:
    actions.add("help", "log", "Show &log", lambda: show(window))


def show(window: MainWindow) -> QDialog:
    """The end of the log in a window of its own, which stops nothing."""
    path = faults.log_path()
    dialog = QDialog(window)
    dialog.setWindowTitle("Log")
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    text = QPlainTextEdit()
    text.setReadOnly(True)
    text.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
    try:
        data = path.read_bytes()[-TAIL_NBYTES:]
        text.setPlainText(data.decode("utf-8", "replace") or "The log is empty.")
    except OSError:
        text.setPlainText("The log is empty.")
    where = Label(str(path))
    where.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    filled(QVBoxLayout(dialog), where, text)
    dialog.resize(placed(QSize(900, 500), window.screen().availableGeometry()).size())
    dialog.show()
    text.verticalScrollBar().setValue(text.verticalScrollBar().maximum())
    return dialog
