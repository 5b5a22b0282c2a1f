"""A rung's source, to read: highlighted, numbered, its header dimmed, and what the compiler says beside the
lines that it says it of."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from gui.code_view import CodeView, Line
from gui.find_bar import FindBar
from gui.highlight import header_lines, highlighted
from gui.labels import Elided
from gui.theme import Theming

MOST_LISTED = 5  # errors seen at once below the source


class SourceView(QWidget):
    """`show_source` fills it."""

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.title = Elided()
        self.title.setProperty("role", "heading")
        self.code = CodeView(theming)
        self.code.setAccessibleName("Source")
        self.find_bar = FindBar(self.code, self)
        self.errors = QListWidget()
        self.errors.setAccessibleName("Errors in the source")
        self.errors.setWordWrap(True)
        self.errors.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.errors.itemClicked.connect(self._on_error)
        self.errors.itemActivated.connect(self._on_error)
        self.errors.hide()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(3)
        layout.addWidget(self.title)
        layout.addWidget(self.code, 1)
        layout.addWidget(self.find_bar)
        layout.addWidget(self.errors)
        self._shown: tuple[str, str, str] = ("", "", "")

    def show_source(
        self, text: str, title: str, suffix: str, error_lines: Mapping[int, str] | None = None
    ) -> None:
        """Show `text` of a file that ends in `suffix` (".cu", ".cuh", ".py"). error_lines: what is wrong, by
        line number from 1; the first is scrolled to. A line that the text does not have stands in the list
        alone. The same file saved again is shown from where it was read."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        errors = dict(sorted((error_lines or {}).items()))
        lines = source_lines(text, suffix, errors)
        if (text, title, suffix) == self._shown:
            self.code.change_lines(lines)
        else:
            at = self.code.verticalScrollBar().value() if title == self._shown[1] else 0
            self.code.show_lines(lines)
            self.code.verticalScrollBar().setValue(at)
        self._shown = (text, title, suffix)
        self.title.setText(title)
        self._list(errors)
        if errors:
            self.code.go_to(min(max(1, next(iter(errors))), len(lines)) - 1)

    def _list(self, errors: Mapping[int, str]) -> None:
        self.errors.clear()
        for number, words in errors.items():
            item = QListWidgetItem(f"line {number}: {words}")
            item.setToolTip(words)
            item.setData(Qt.ItemDataRole.UserRole, number)
            self.errors.addItem(item)
        row = self.errors.fontMetrics().lineSpacing() + 6
        rows = sum(1 + words.count("\n") for words in errors.values())
        self.errors.setFixedHeight(row * min(MOST_LISTED, max(2, rows)) + 4)
        self.errors.setVisible(bool(errors))

    def _on_error(self, item: QListWidgetItem) -> None:
        self.code.go_to(item.data(Qt.ItemDataRole.UserRole) - 1)


def source_lines(text: str, suffix: str, errors: Mapping[int, str]) -> list[Line]:
    """The lines of a source with its errors by line number."""
    parts = highlighted(text, suffix)
    header = header_lines(text, suffix)
    return [
        Line(
            words,
            number,
            parts[number - 1],
            role="error" if number in errors else "",
            sign="✕" if number in errors else "",
            note=errors.get(number, ""),
            dim=number <= header,
        )
        for number, words in enumerate(text.split("\n"), start=1)
    ]
