"""Find in what is shown: Ctrl+F opens the bar, Enter goes on, Shift+Enter back, Escape closes it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence, QTextCursor, QTextDocument
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPlainTextEdit, QWidget

from gui.base.boxes import filled
from gui.widgets.controls import shortcut, tool_buttons
from gui.widgets.labels import Label


class FindLine(QWidget):
    """Below `view`, hidden until it is asked for within `scope`. Subclass it and write `search`. what: in
    which it looks, for its name."""

    def __init__(self, view: QWidget, scope: QWidget, what: str) -> None:
        super().__init__(scope)
        self.view = view
        self.field = QLineEdit()
        self.field.setPlaceholderText("Find")
        self.field.setAccessibleName(f"Find in {what}")
        self.field.setClearButtonEnabled(True)
        self.field.textChanged.connect(self.typed)
        self.field.installEventFilter(self)
        self.found = Label(role="muted")
        buttons = tool_buttons(
            ("↑", "The one before (Shift+Enter)", lambda: self.search(back=True)),
            ("↓", "The next one (Enter)", lambda: self.search()),
            ("✕", "Close (Escape)", self.close_bar),
        )
        filled(QHBoxLayout(self), (self.field, 1), self.found, *buttons, margins=(4, 2, 4, 2))
        shortcut(scope, QKeySequence.StandardKey.Find, f"Find in {what}", self.open_bar)
        self.hide()

    def search(self, back: bool = False) -> bool:
        """Go to the next place, round the end, and say which it is; whether there is one."""
        raise NotImplementedError

    def typed(self) -> None:
        """Another text is looked for."""
        self.search()

    def chosen(self) -> str:
        """What is selected in the view, to be looked for."""
        return ""

    def open_bar(self) -> None:
        if chosen := self.chosen():
            self.field.setText(chosen)
        self.show()
        self.field.selectAll()
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def close_bar(self) -> None:
        self.hide()
        self.view.setFocus(Qt.FocusReason.OtherFocusReason)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.field and event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self.search(back=bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier))
                return True
            if event.key() == Qt.Key.Key_Escape:
                self.close_bar()
                return True
        return super().eventFilter(watched, event)


class FindBar(FindLine):
    """In a text."""

    def __init__(self, view: QPlainTextEdit, scope: QWidget) -> None:
        self._text = view
        super().__init__(view, scope, "the source")

    def chosen(self) -> str:
        chosen = self._text.textCursor().selectedText()
        return "" if "\u2029" in chosen else chosen

    def search(self, back: bool = False) -> bool:
        words = self.field.text()
        if not words:
            self.found.setText("")
            return False
        way = QTextDocument.FindFlag.FindBackward if back else QTextDocument.FindFlag(0)
        if not self._text.find(words, way):
            before = self._text.textCursor()
            cursor = QTextCursor(before)
            cursor.movePosition(QTextCursor.MoveOperation.End if back else QTextCursor.MoveOperation.Start)
            self._text.setTextCursor(cursor)
            if not self._text.find(words, way):
                self._text.setTextCursor(before)
                self.found.setText("not found")
                return False
        self.found.setText(self._place(words))
        return True

    def typed(self) -> None:
        cursor = self._text.textCursor()
        cursor.setPosition(cursor.selectionStart())  # what is being typed may still fit this place
        self._text.setTextCursor(cursor)
        self.search()

    def _place(self, words: str) -> str:
        text = self._text.toPlainText().lower()
        before = text.count(words.lower(), 0, self._text.textCursor().selectionStart())
        return f"{before + 1} of {text.count(words.lower())}"


class FindItems(FindLine):
    """Among things that each have a text; `picked` carries the key of the one gone to."""

    picked = Signal(str)

    def __init__(self, view: QWidget, scope: QWidget, what: str) -> None:
        self._items: Sequence[tuple[str, str]] = ()
        self._at = ""
        super().__init__(view, scope, what)

    def show_items(self, items: Sequence[tuple[str, str]]) -> None:
        """key and text of each, in order."""
        self._items = [(key, text.lower()) for key, text in items]
        self._at = ""
        self.found.setText("")

    def go_from(self, key: str) -> None:
        """Where the next one is looked for from."""
        self._at = key

    def typed(self) -> None:
        words = self.field.text().lower()
        if any(key == self._at and words in text for key, text in self._items):
            self._say(words)  # what is being typed may still fit this place
        else:
            self.search()

    def search(self, back: bool = False) -> bool:
        words = self.field.text().lower()
        fitting = [place for place, (_, text) in enumerate(self._items) if words and words in text]
        if not fitting:
            self.found.setText("not found" if words else "")
            return False
        here = next((place for place, (key, _) in enumerate(self._items) if key == self._at), -1)
        if back:
            place = next((place for place in reversed(fitting) if place < here), fitting[-1])
        else:
            place = next((place for place in fitting if place > here), fitting[0])
        self._at = self._items[place][0]
        self._say(words)
        self.picked.emit(self._at)
        return True

    def _say(self, words: str) -> None:
        fitting = [key for key, text in self._items if words in text]
        self.found.setText(f"{fitting.index(self._at) + 1} of {len(fitting):,}" if words else "")
