"""Find in a text that is shown: Ctrl+F opens the bar, Enter goes on, Shift+Enter back, Escape closes it."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent, QKeySequence, QShortcut, QTextCursor, QTextDocument
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPlainTextEdit, QToolButton, QWidget

from gui.base.boxes import filled
from gui.widgets.labels import Label


class FindBar(QWidget):
    """Below `view`, hidden until it is asked for within `scope`."""

    def __init__(self, view: QPlainTextEdit, scope: QWidget) -> None:
        super().__init__(scope)
        self._view = view
        self.field = QLineEdit()
        self.field.setPlaceholderText("Find")
        self.field.setAccessibleName("Find in the source")
        self.field.setClearButtonEnabled(True)
        self.field.textChanged.connect(self._on_typed)
        self.field.installEventFilter(self)
        self.found = Label()
        self.found.setProperty("role", "muted")
        line = filled(QHBoxLayout(self), (self.field, 1), margins=(4, 2, 4, 2))
        for sign, words, do in (
            ("↑", "The one before (Shift+Enter)", lambda: self.search(back=True)),
            ("↓", "The next one (Enter)", lambda: self.search()),
            ("✕", "Close (Escape)", self.close_bar),
        ):
            button = QToolButton()
            button.setText(sign)
            button.setToolTip(words)
            button.setAccessibleName(words.partition(" (")[0])
            button.clicked.connect(do)
            line.addWidget(button)
        line.insertWidget(1, self.found)
        opening = QShortcut(QKeySequence(QKeySequence.StandardKey.Find), scope)
        opening.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        opening.activated.connect(self.open_bar)
        self.hide()

    def open_bar(self) -> None:
        """Show it, with what is selected as what is looked for."""
        chosen = self._view.textCursor().selectedText()
        if chosen and "\u2029" not in chosen:
            self.field.setText(chosen)
        self.show()
        self.field.selectAll()
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def close_bar(self) -> None:
        self.hide()
        self._view.setFocus(Qt.FocusReason.OtherFocusReason)

    def search(self, back: bool = False) -> bool:
        """Select the next place, round the end; whether there is one."""
        words = self.field.text()
        if not words:
            self.found.setText("")
            return False
        way = QTextDocument.FindFlag.FindBackward if back else QTextDocument.FindFlag(0)
        if not self._view.find(words, way):
            before = self._view.textCursor()
            cursor = QTextCursor(before)
            cursor.movePosition(QTextCursor.MoveOperation.End if back else QTextCursor.MoveOperation.Start)
            self._view.setTextCursor(cursor)
            if not self._view.find(words, way):
                self._view.setTextCursor(before)
                self.found.setText("not found")
                return False
        self.found.setText(self._place(words))
        return True

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.field and event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self.search(back=bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier))
                return True
            if event.key() == Qt.Key.Key_Escape:
                self.close_bar()
                return True
        return super().eventFilter(watched, event)

    def _on_typed(self) -> None:
        cursor = self._view.textCursor()
        cursor.setPosition(cursor.selectionStart())  # what is being typed may still fit this place
        self._view.setTextCursor(cursor)
        self.search()

    def _place(self, words: str) -> str:
        text = self._view.toPlainText().lower()
        before = text.count(words.lower(), 0, self._view.textCursor().selectionStart())
        return f"{before + 1} of {text.count(words.lower())}"
