"""Help: the window's log."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QDialog, QVBoxLayout

from gui.base import faults
from gui.base.boxes import filled, placed
from gui.shell.main_window import Actions, MainWindow
from gui.widgets.controls import Label, fixed_text

ORDER = 20
TAIL_NBYTES = 200_000


def add_to(window: MainWindow, actions: Actions) -> None:
    actions.add("help", "log", "Show &log", lambda: show(window))


def show(window: MainWindow) -> QDialog:
    """Show the end of the log, in a window that blocks nothing."""
    path = faults.log_path()
    dialog = QDialog(window)
    dialog.setWindowTitle("Log")
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    data = path.read_bytes()[-TAIL_NBYTES:] if path.is_file() else b""
    text = fixed_text(data.decode("utf-8", "replace") or "The log is empty.", "Log")
    where = Label(str(path), selectable=True)
    filled(QVBoxLayout(dialog), where, text)
    dialog.resize(placed(QSize(900, 500), window.screen().availableGeometry()).size())
    dialog.show()
    text.verticalScrollBar().setValue(text.verticalScrollBar().maximum())
    return dialog
