"""Shows over the window, while something is dragged onto it, what a drop would do; or why nothing comes of
it."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, QMimeData, QObject, QRectF, Qt
from PySide6.QtGui import QColor, QDropEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QLineEdit, QWidget

from gui.base.theme import Theming
from gui.shell.drop_run import run_of
from gui.shell.model_files import refusal

EDGE = 14
MOST_NAMED = 3


class DropTarget(QWidget):
    """Covers `window` while files are dragged over it. text: what it says; refused: that nothing of them can
    be opened."""

    def __init__(self, window: QWidget, theming: Theming) -> None:
        super().__init__(window)
        self._theming = theming
        self.text = ""
        self.refused = False
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setAccessibleName("Drop target")
        self.hide()
        window.installEventFilter(self)
        self.take_over(window)

    @staticmethod
    def take_over(root: QWidget) -> None:
        """A file dropped on a field of this is for the window, and not its path for the field."""
        for field in root.findChildren(QLineEdit):
            field.setAcceptDrops(False)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.DragEnter and isinstance(event, QDropEvent):
            self.text, self.refused = words(event.mimeData())
            if self.text:
                assert isinstance(watched, QWidget)
                self.setGeometry(watched.rect())
                self.raise_()
                self.show()
                self.update()
        elif event.type() in (QEvent.Type.DragLeave, QEvent.Type.Drop):
            self.hide()
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = self._theming.theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        veil = QColor(theme.window)
        veil.setAlphaF(0.92)
        painter.fillRect(self.rect(), veil)
        colour = QColor(theme.failed if self.refused else theme.accent)
        painter.setPen(QPen(colour, 3, Qt.PenStyle.DashLine))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(EDGE, EDGE, -EDGE, -EDGE), 10, 10)
        font = painter.font()
        font.setPointSizeF(font.pointSizeF() * 1.6)
        painter.setFont(font)
        painter.setPen(QColor(theme.failed if self.refused else theme.ink))
        room = self.rect().adjusted(4 * EDGE, 4 * EDGE, -4 * EDGE, -4 * EDGE)
        flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
        painter.drawText(room, int(flags), self.text)


def words(data: QMimeData) -> tuple[str, bool]:
    """What is said of what is dragged, and whether it is refused; "" for what is no file."""
    if (run := run_of(data)) is not None:
        return f"Drop to open the run {run.name}", False
    paths = [Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile()]
    if not paths:
        return "", False
    reasons = {path: refusal(path, there=False) for path in paths}
    models = [path.name for path, reason in reasons.items() if not reason]
    if not models:
        return "\n".join(list(reasons.values())[:MOST_NAMED]), True
    more = f" and {len(models) - MOST_NAMED} more" if len(models) > MOST_NAMED else ""
    return f"Drop to look at {', '.join(models[:MOST_NAMED])}{more}", False
