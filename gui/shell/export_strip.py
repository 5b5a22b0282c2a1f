"""How an export goes, in the status bar: what is made, then what came of it with its folder a click away."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QToolButton, QWidget

from gui.sessions.export import ExportStanding, Order
from gui.widgets.labels import Label


class ExportStrip(QWidget):
    """Hidden until there is something to say. `folder_wanted` carries the folder to open."""

    folder_wanted = Signal(Path)
    cancel_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._folder = Path()
        self.words = Label()
        self.bar = QProgressBar()
        self.bar.setRange(0, 0)
        self.bar.setTextVisible(False)
        self.bar.setFixedWidth(70)
        self.bar.setMaximumHeight(12)
        self.cancel_button = QToolButton()
        self.cancel_button.setText("Cancel")
        self.cancel_button.setAccessibleName("Cancel the export")
        self.cancel_button.setToolTip("End the export; files that are made stay")
        self.cancel_button.clicked.connect(self.cancel_wanted)
        self.folder_button = QToolButton()
        self.folder_button.setText("Open folder")
        self.folder_button.clicked.connect(lambda: self.folder_wanted.emit(self._folder))
        self.close_button = QToolButton()
        self.close_button.setText("✕")
        self.close_button.setAutoRaise(True)
        self.close_button.setToolTip("Dismiss")
        self.close_button.setAccessibleName("Dismiss the result of the export")
        self.close_button.clicked.connect(self.hide)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(8, 0, 4, 0)
        for widget in (self.words, self.bar, self.cancel_button, self.folder_button, self.close_button):
            layout.addWidget(widget)
        self.hide()

    def show_standing(self, standing: ExportStanding) -> None:
        files = f", {_files(standing.files)}" if standing.files else ""
        more = f"; {standing.waiting} more to come" if standing.waiting else ""
        self.words.setText(f"Exporting {standing.order.what}{files}{more}")
        self.bar.setRange(0, standing.order.expected)  # to 0: it goes to and fro
        self.bar.setValue(min(standing.files, standing.order.expected))
        self._show(True)

    def show_made(self, order: Order, files: Sequence[Path]) -> None:
        if order.then is not None:  # made for somebody else, who says so
            self.hide()
            return
        self._folder = order.where if order.where.is_dir() else order.where.parent
        name = order.where.name
        text = f"Exported {order.what} to {name}"
        self.words.setText(f"{text} ({_files(len(files))})" if len(files) > 1 else text)
        self.words.setToolTip(str(order.where))
        self._show(False)

    def say(self, text: str) -> None:
        """A result without a folder."""
        self.words.setText(text)
        self._show(False)
        self.folder_button.hide()

    def _show(self, busy: bool) -> None:
        self.bar.setVisible(busy)
        self.cancel_button.setVisible(busy)
        self.folder_button.setVisible(not busy)
        self.close_button.setVisible(not busy)
        self.show()


def _files(count: int) -> str:
    return f"{count} file{'s' if count != 1 else ''}"
