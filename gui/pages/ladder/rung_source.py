"""A rung's source, to read: highlighted, numbered, its header dimmed, and what the compiler says beside the
lines that it says it of; and the headers that it includes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from gui.base.boxes import filled
from gui.base.theme import Theming
from gui.widgets.code_view import CodeLine, CodeView, header_lines, highlighted
from gui.widgets.combo import Combo
from gui.widgets.find_bar import FindBar
from gui.widgets.labels import Elided, as_tip

MOST_LISTED = 5  # errors seen at once below the source


class SourceView(QWidget):
    """`show_source` fills it."""

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.title = Elided(role="heading")
        self.files = Combo("The rung's file or one that it includes", lambda _: self._fill())
        self.files.setToolTip("The rung's own file, and the headers that it includes")
        self.files.hide()
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
        filled(
            QVBoxLayout(self),
            self.title,
            (self.files, 0, Qt.AlignmentFlag.AlignLeft),
            (self.code, 1),
            self.find_bar,
            self.errors,
            margins=(0, 0, 0, 0),
            spacing=3,
        )
        self._own: tuple[str, str, str] = ("", "", "")
        self._errors: Mapping[int, str] = {}
        self._shown: tuple[str, str, str] = ("", "", "")

    def show_source(
        self,
        text: str,
        title: str,
        suffix: str,
        error_lines: Mapping[int, str] | None = None,
        headers: Sequence[Path] = (),
    ) -> None:
        """Show `text` of a file that ends in `suffix` (".cu", ".cuh", ".py"). error_lines: what is wrong, by
        line number from 1; the first is scrolled to. A line that the text does not have stands in the list
        alone. headers: files that may be read in its place. The same file saved again is shown from where it
        was read."""
        own = (text.replace("\r\n", "\n").replace("\r", "\n"), title, suffix)
        errors = dict(sorted((error_lines or {}).items()))
        if errors or title != self._own[1]:
            self.files.setCurrentIndex(0)
        self._own, self._errors = own, errors
        self._offer(title, headers)
        self._fill()

    def _offer(self, title: str, headers: Sequence[Path]) -> None:
        """The file and its headers, that which is read staying in front."""
        items: dict[Path | None, str] = {None: title, **{path: path.name for path in headers}}
        self.files.offer(items, self.files.currentData())
        self.files.setVisible(bool(headers))
        self.title.setVisible(not headers)

    def _fill(self) -> None:
        header: Path | None = self.files.currentData()
        text, title, suffix = self._own if header is None else _file(header)
        errors = self._errors if header is None else {}
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
            item.setToolTip(as_tip(words))
            item.setData(Qt.ItemDataRole.UserRole, number)
            self.errors.addItem(item)
        row = self.errors.fontMetrics().lineSpacing() + 6
        rows = sum(1 + words.count("\n") for words in errors.values())
        self.errors.setFixedHeight(row * min(MOST_LISTED, max(2, rows)) + 4)
        self.errors.setVisible(bool(errors))

    def _on_error(self, item: QListWidgetItem) -> None:
        self.code.go_to(item.data(Qt.ItemDataRole.UserRole) - 1)


def _file(path: Path) -> tuple[str, str, str]:
    """Text, name and suffix of a header."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        text = f"// cannot be read: {error}"
    return text, path.name, path.suffix


def source_lines(text: str, suffix: str, errors: Mapping[int, str]) -> list[CodeLine]:
    """The lines of a source with its errors by line number."""
    parts = highlighted(text, suffix)
    header = header_lines(text, suffix)
    return [
        CodeLine(
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
