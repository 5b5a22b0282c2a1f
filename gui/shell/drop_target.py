"""What is dropped on the window. While something is dragged onto it, it shows what a drop would do, or why
nothing comes of it; the folder of a run of any kind, or a file of one, is opened."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, QMimeData, QObject, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QDropEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QLineEdit, QWidget

from bench.results.kinds import kinds
from bench.results.store import RESULTS_FILE
from gui.base.letters import resized
from gui.base.theme import Theming
from gui.shell.model_files import refusal

EDGE = 14
MOST_NAMED = 3


class DropTarget(QWidget):
    """Covers `window` while files are dragged over it. text: what it says; refused: that nothing of them can
    be opened. `run_dropped` carries the folder of a run; other drops go on to the window itself."""

    run_dropped = Signal(Path)

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
        kind = event.type()
        if kind == QEvent.Type.DragLeave:
            self.hide()
        if not isinstance(event, QDropEvent):
            return False
        assert isinstance(watched, QWidget)
        if kind == QEvent.Type.DragEnter:
            self.text, self.refused = words(event.mimeData())
            if self.text:
                self.setGeometry(watched.rect())
                self.raise_()
                self.show()
                self.update()
        elif kind == QEvent.Type.Drop:
            self.hide()
        run = run_of(event.mimeData())
        if run is None:
            return False
        event.acceptProposedAction()
        if kind == QEvent.Type.Drop:
            self.run_dropped.emit(run)
        return True

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
        painter.setFont(resized(painter.font(), 1.6))
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


def run_of(data: QMimeData) -> Path | None:
    """The folder that is dragged; None where it is something else. A folder that is no run counts as one:
    opening it says what is wrong."""
    for url in data.urls():
        path = Path(url.toLocalFile())
        if path.name in {RESULTS_FILE, *(kind.file for kind in kinds())}:
            path = path.parent
        if url.isLocalFile() and path.is_dir():
            return path
    return None
