"""Model files that are opened or dropped. A process of its own looks at each file first; what is no model
never joins the list.

The same processes read what the form and the Model page show of a model. While something is dragged
over the window, it says what a drop would do, or why nothing would happen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QMimeData, QObject, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QDropEvent, QKeySequence, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QFileDialog, QLineEdit, QWidget

from bench.questions.asked import Failed, Question, Takes, WhichTakes, reader_command
from bench.questions.ladder_questions import TASK_FILE, task_at
from bench.questions.preview import Preview, WhichPreview
from bench.results.kinds import kind_of, kinds
from bench.results.packed import is_packed
from bench.results.store import RESULTS_FILE
from bench.words.called import CALLED
from gui.base.theme import Theming, resized
from gui.pages.model import ModelPage
from gui.sessions.processes import Asker
from gui.widgets.controls import new_action
from models import names

if TYPE_CHECKING:
    from gui.shell.main_window import MainWindow
SUFFIX = ".onnx"
WEIGHTS = (".npy", ".pth", ".safetensors", ".caffemodel", ".prototxt")
WAIT_MS = 250  # to wait after the last change, so that typing does not ask at each letter
LIMIT_S = 60
OF_THE_JOB = ("InputError", "DataError")  # errors about the form's values, and not about the file


class ModelFiles(QObject):
    """Opens model files for one window."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._form = form = window.form
        self.page = window.page_of(ModelPage)
        self._waiting: deque[str] = deque()
        self._opening = ""
        self._before: QWidget | None = None  # the page that was in front before a file was opened
        self.note_asker = self._asker(lambda _, takes: form.show_takes(takes), self._on_note_failed)
        form.note.takes_wanted.connect(lambda job: self.note_asker.ask(WhichTakes(job=job)))
        self.page_asker = self._asker(self.page.show_preview, self._on_page_failed)
        self.opener = self._asker(self._on_opened, self._on_refused)
        self.page.connect_to(self._offered, form.job_of)
        self.page.preview_wanted.connect(lambda question: self.page_asker.ask(question, now=True))
        form.changed.connect(self.page.look_again)
        window.closing.connect(self.quit)
        self._offer_removal()

    def ask_open(self) -> None:
        """Ask for files, and open them."""
        folder = str(self._window.settings.value("folder", ""))
        paths, _ = QFileDialog.getOpenFileNames(
            self._window, "Open models", folder, f"ONNX models (*{SUFFIX})"
        )
        self.open(paths)

    def open(self, paths: Sequence[str]) -> None:
        """Look at these files, one after another, and add the models among them to the form."""
        for path in paths:
            if reason := refusal(Path(path)):
                self._window.tell(reason)
            else:
                self._window.settings.setValue("folder", str(Path(path).parent))
                self._waiting.append(str(Path(path).absolute()))
        if self._waiting and not self._opening:
            self._before = self._window.tabs.currentWidget()
            self._next()

    @property
    def busy(self) -> bool:
        """Whether a file is being looked at before it joins the list."""
        return bool(self._opening)

    def look_at(self, model: str) -> None:
        """Show a model of the list on its page."""
        self.page.look_at(model)
        self._window.tabs.setCurrentWidget(self.page)

    def remove(self, model: str) -> None:
        """Remove a file from the list. Models of the catalogue stay."""
        if model not in names.models():
            self._form.remove_model(model)

    def quit(self) -> None:
        self._waiting.clear()
        for asker in (self.note_asker, self.page_asker, self.opener):
            asker.quit()

    # ------------------------------------------------------------------------------------------ the inside

    def _asker(self, answered: Callable[..., object], failed: Callable[..., object]) -> Asker:
        """An Asker that has files read. `answered` is called with the question and its answer, `failed`
        with the question and a Failed."""
        asker = Asker([*reader_command(), str(LIMIT_S)], Takes | Preview | Failed, self, wait_ms=WAIT_MS)

        def on_answer(question: Question, answer: Takes | Preview | Failed) -> None:
            if isinstance(answer, Failed) and not answer.text:
                answer = Failed(kind=answer.kind, text="reading it takes more memory than it may have")
            (failed if isinstance(answer, Failed) else answered)(question, answer)

        asker.answered.connect(on_answer)
        asker.failed.connect(
            lambda question, reason: failed(
                question, Failed(kind="ModelError", text=f"reading it failed: {reason}")
            )
        )
        return asker

    def _next(self) -> None:
        self._opening = self._waiting.popleft() if self._waiting else ""
        if self._opening:
            question = self.page.question_of(self._opening)
            self.page_asker.quit()
            self.page.reading(question)
            self._window.tabs.setCurrentWidget(self.page)
            self.opener.ask(question, now=True)

    def _on_opened(self, question: WhichPreview, preview: Preview) -> None:
        self._form.add_model(self._opening)
        self._before = None  # there is something to be seen
        self.page.show_preview(question, preview)
        self.page.redraw()
        self.page.graph.setFocus(Qt.FocusReason.OtherFocusReason)  # Ctrl+F and the arrows are the next things
        self._next()

    def _on_refused(self, question: WhichPreview, failed: Failed) -> None:
        name = Path(self._opening).name
        self._window.tell(f"{name} was not opened: {failed.text}.", "failed")
        self.page.forget(question)
        self._next()
        if not self._opening:
            if self._before is not None:
                self._window.tabs.setCurrentWidget(self._before)
            self.page.look_again()

    def _on_note_failed(self, question: WhichTakes, failed: Failed) -> None:
        """A file of the list cannot be read any more."""
        model = question.job.models[0]
        self._form.show_takes(Takes(model=model, lines=(), refused=failed.text))
        self._drop_unreadable(model, failed)

    def _on_page_failed(self, question: WhichPreview, failed: Failed) -> None:
        self.page.refuse(question, f"{failed.text[:1].upper()}{failed.text[1:]}.")
        self._drop_unreadable(question.job.models[0], failed)

    def _drop_unreadable(self, model: str, failed: Failed) -> None:
        is_file = model not in names.models() and model in self._form.models.keys
        if is_file and (failed.kind not in OF_THE_JOB or not Path(model).is_file()):
            self._form.remove_model(model)
            self._window.tell(f"{Path(model).name} was taken from the list: {failed.text}.", "failed")

    def _offered(self) -> dict[str, str]:
        """The models for the page: first the checked ones, then the others."""
        form = self._form
        order = dict.fromkeys([*form.models.checked, *form.models.keys])
        return {model: Path(model).stem if model not in names.models() else model for model in order}

    def _offer_removal(self) -> None:
        models = self._form.models
        look = new_action(models, "&Look at the model", lambda: self._of_current(self.look_at))
        remove = new_action(
            models,
            "&Remove from the list",
            lambda: self._of_current(self.remove),
            keys=QKeySequence(QKeySequence.StandardKey.Delete),
            scope=Qt.ShortcutContext.WidgetShortcut,
        )
        models.addActions([look, remove])
        models.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        models.currentItemChanged.connect(
            lambda item, _: remove.setEnabled(models.current not in names.models() if item else False)
        )
        remove.setEnabled(False)

    def _of_current(self, do: object) -> None:
        current = self._form.models.current
        if current and callable(do):
            do(current)


def refusal(path: Path, there: bool = True) -> str:
    """Why a file is not even looked at, in a sentence; "" if it is. there: whether it must exist."""
    if path.suffix.lower() in WEIGHTS:
        return f"{path.name} holds weights: `{CALLED} models import {path.name}` makes a model of them."
    if path.suffix.lower() != SUFFIX:
        return f"{path.name} is not an {SUFFIX} file; a model has to be one."
    return "" if not there or path.is_file() else f"{path.name} is not there."


EDGE = 14
MOST_NAMED = 3


class DropTarget(QWidget):
    """Covers the window while files are dragged over it. text: what it says; refused: whether nothing can
    be opened. `run_dropped` carries the folder of a run; other drops go to the window."""

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
        """Let no text field inside `root` accept drops: a dropped file is for the window."""
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
            self.text, self.refused = drop_words(event.mimeData())
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


def drop_words(data: QMimeData) -> tuple[str, bool]:
    """What to say about dragged data, and whether it is refused; "" if it is no file."""
    if (run := run_of(data)) is not None:
        if kind_of(run) is None and task_at(run) is not None:
            return f"Drop to see the ladder of the task {run.name}", False
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
    """The folder of a run or a task, or the file of a packed run, that is dragged; None for anything else. A
    folder that is neither is returned, too: opening it says what is wrong."""
    for url in data.urls():
        path = Path(url.toLocalFile())
        if path.name in {RESULTS_FILE, TASK_FILE, *(kind.file for kind in kinds())}:
            path = path.parent
        if url.isLocalFile() and (path.is_dir() or is_packed(path)):
            return path
    return None
