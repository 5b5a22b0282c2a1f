"""A read-only view of a source: line numbers, colours, marked lines, and notes behind lines.

The look of a line is given by a role (error, removed, added …), so that a change of theme only changes
colours.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from pygments.lexer import Lexer
from pygments.lexers import CudaLexer, PythonLexer, TextLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Token, _TokenType
from PySide6.QtCore import QEvent, QRect, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QHelpEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QSyntaxHighlighter,
    QTextBlock,
    QTextCharFormat,
    QTextDocument,
)
from PySide6.QtWidgets import QPlainTextEdit, QToolTip, QWidget

from gui.base.theme import Theme, Theming, fixed_font
from gui.widgets.colour_scale import RAMPS, blend, ink_on
from gui.widgets.controls import SELECTABLE


@dataclass(frozen=True)
class Ink:
    """The colours of a token on light and on dark paper."""

    light: str
    dark: str
    bold: bool = False
    italic: bool = False

    def on(self, theme: Theme) -> str:
        return self.dark if theme.dark else self.light


# A kind of token that is missing here looks like the kind above it, or else like plain text. All
# contrasts with the paper are at least 4.5 to 1, also on marked lines.
INKS: dict[_TokenType, Ink] = {
    Comment: Ink("#5A636D", "#A3ABB5", italic=True),
    Comment.Preproc: Ink("#7A4300", "#E3B07A"),
    Comment.PreprocFile: Ink("#0A6240", "#9BD8A5"),
    Keyword: Ink("#0A5595", "#7CC0F5", bold=True),
    Keyword.Type: Ink("#0B6363", "#6FD6CB"),
    Keyword.Constant: Ink("#6D3796", "#D6AEFF"),
    Name.Builtin: Ink("#7B2D6B", "#F2A3DC"),
    Name.Function: Ink("#5B3FA8", "#C6B7FF"),
    Name.Class: Ink("#0B6363", "#6FD6CB"),
    Name.Decorator: Ink("#7A4300", "#E3B07A"),
    Name.Namespace: Ink("#0B6363", "#6FD6CB"),
    Number: Ink("#6D3796", "#D6AEFF"),
    String: Ink("#0A6240", "#9BD8A5"),
    String.Doc: Ink("#5A636D", "#A3ABB5", italic=True),
    Operator.Word: Ink("#0A5595", "#7CC0F5", bold=True),
    Punctuation: Ink("#3C444D", "#C9CED5"),
}
_LEXERS: dict[str, type[Lexer]] = {
    ".cu": CudaLexer,
    ".cuh": CudaLexer,
    ".h": CudaLexer,
    ".py": PythonLexer,
}

# (column, length, ink) of a line's coloured parts, in order.
Parts = list[tuple[int, int, Ink]]


def ink_of(kind: _TokenType) -> Ink | None:
    """The ink of a kind of token, or of the nearest kind above it that has one."""
    at: _TokenType | None = kind
    while at is not None and at is not Token:
        if at in INKS:
            return INKS[at]
        at = at.parent
    return None


def highlighted(text: str, suffix: str) -> list[Parts]:
    """The coloured parts of each line of a text (its lines end in a line feed). suffix: of its file, as
    ".cu". A file of an unknown kind has no coloured parts."""
    lines: list[Parts] = [[] for _ in range(text.count("\n") + 1)]
    starts = _line_starts(text)
    line = 0
    for start, kind, value in _LEXERS.get(suffix, TextLexer)().get_tokens_unprocessed(text):
        ink = ink_of(kind)
        if ink is None:
            continue
        for part in value.splitlines(keepends=True):
            while line + 1 < len(starts) and starts[line + 1] <= start:
                line += 1
            wide = len(part.rstrip("\n"))
            if wide:
                lines[line].append((start - starts[line], wide, ink))
            start += len(part)
    return lines


def header_lines(text: str, suffix: str) -> int:
    """The number of lines of a rung's header: the first comment of a .cu file, or the first lines of a .py
    file that begin with #."""
    lines = text.split("\n")
    if suffix == ".py":
        return next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
    if not text.startswith("/*") or "*/" not in text:
        return 0
    return text[: text.index("*/")].count("\n") + 1


def _line_starts(text: str) -> Sequence[int]:
    starts = [0]
    at = text.find("\n")
    while at >= 0:
        starts.append(at + 1)
        at = text.find("\n", at + 1)
    return starts


TAB = 4  # columns
# A line's role → (the theme's colour, how much of it, how much of it on its changed words).
TINTS = {
    "error": ("failed", 0.16, 0.3),
    "removed": ("failed", 0.11, 0.33),
    "added": ("good", 0.13, 0.36),
    "absent": ("line", 0.4, 0.4),
    "linked": ("accent", 0.16, 0.3),
}


@dataclass(frozen=True)
class CodeLine:
    """One line. number: in its file, from 1 (None: a gap that aligns two texts); role: a key of TINTS or
    ""; spans: (column, length) of words that differ; sign: before the number; note: behind its end;
    dim: less important. heat: what the line costs, from 0 to 1 (None: nothing), figure: the same as text;
    both stand in front of the number."""

    text: str
    number: int | None = None
    parts: Sequence[tuple] = ()
    role: str = ""
    spans: Sequence[tuple[int, int]] = ()
    sign: str = ""
    note: str = ""
    dim: bool = False
    heat: float | None = None
    figure: str = ""


def tint(theme: Theme, role: str, strong: bool = False) -> QColor:
    """The background of a line with this role; strong: that of its changed words. Opaque, because lines
    overlap by a pixel."""
    name, line, words = TINTS[role]
    return blend((theme.paper, getattr(theme, name)), words if strong else line)


def heat(theme: Theme, part: float) -> QColor:
    """The colour of what costs from nothing (0) to the most (1)."""
    return blend(RAMPS["time"][theme.dark], min(1.0, max(0.0, part)))


class CodeView(QPlainTextEdit):
    """The view. `show_lines` fills it."""

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.theming = theming
        self.lines: tuple[CodeLine, ...] = ()
        self._gutter = _Gutter(self)
        self._colours = _Colours(self.document(), self)
        self.setReadOnly(True)
        # With a caret: arrows, Page Up and Shift move and select as in an editor.
        self.setTextInteractionFlags(SELECTABLE)
        self._give_font()
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setFrameShape(QPlainTextEdit.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.updateRequest.connect(self._on_update)
        theming.changed.connect(self.restyle)

    def show_lines(self, lines: Sequence[CodeLine]) -> None:
        """Show other lines, and scroll to the top."""
        self.lines = tuple(lines)
        self._colours.pause = True
        self.setPlainText("\n".join(line.text for line in self.lines))
        self._colours.pause = False
        self._make_room()
        self.restyle()

    def change_lines(self, lines: Sequence[CodeLine]) -> None:
        """Show the same text with other marks. The view does not scroll."""
        self.lines = tuple(lines)
        self._make_room()
        self.restyle()

    def go_to(self, index: int) -> None:
        """Put the caret on a line (index from 0). If the view has to scroll, the line is in its middle."""
        block = self.document().findBlockByNumber(index)
        if block.isValid():
            cursor = self.textCursor()
            cursor.setPosition(block.position())
            self.setTextCursor(cursor)
            self.centerCursor()
            self.horizontalScrollBar().setValue(0)

    def open_at(self, index: int) -> None:
        """Put the caret on a line (index from 0), and this line at the top, as far as the view scrolls."""
        self.go_to(index)
        self.verticalScrollBar().setValue(index)

    @property
    def at(self) -> int:
        """The index of the caret's line, from 0."""
        return self.textCursor().blockNumber()

    def mark(self, indices: Collection[int], role: str = "linked") -> None:
        """Give this role to these lines and to no others."""
        self.lines = tuple(
            replace(line, role=role if index in indices else "" if line.role == role else line.role)
            if (line.role == role) != (index in indices)
            else line
            for index, line in enumerate(self.lines)
        )
        self.viewport().update()
        self._gutter.update()

    def bring(self, index: int) -> None:
        """Scroll to a line. The caret stays."""
        block = self.document().findBlockByNumber(index)
        first, height = self.firstVisibleBlock().blockNumber(), self.viewport().height()
        rows = max(1, height // max(1, self.fontMetrics().lineSpacing()))
        if block.isValid() and not first <= index < first + rows - 1:
            self.verticalScrollBar().setValue(max(0, index - rows // 2))

    def _give_font(self) -> None:
        self.setFont(fixed_font())
        self.setTabStopDistance(TAB * self.fontMetrics().horizontalAdvance(" "))

    def restyle(self) -> None:
        if self.font().pointSizeF() != fixed_font().pointSizeF():
            self._give_font()
            self._make_room()
        self._colours.rehighlight()
        self.viewport().update()
        self._gutter.update()

    # ------------------------------------------------------------------------------------------- painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        for line, rect in self._visible(event.rect()):
            if line.role:
                painter.fillRect(rect, tint(self.theming.theme, line.role))
        painter.end()
        super().paintEvent(event)
        painter = QPainter(self.viewport())
        painter.setFont(self.font())
        painter.setPen(QColor(self.theming.theme.failed))
        advance = self.fontMetrics().horizontalAdvance
        for line, rect in self._visible(event.rect()):
            if line.note:
                text = line.text.expandtabs(TAB)
                x = advance(text) + round(self.document().documentMargin()) + 2 * advance("  ")
                at = rect.adjusted(x - self.horizontalScrollBar().value(), 0, 0, 0)
                words = self.fontMetrics().elidedText(
                    line.note.splitlines()[0], Qt.TextElideMode.ElideRight, max(0, at.width() - 4)
                )
                painter.drawText(at, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, words)

    def paint_gutter(self, event: QPaintEvent) -> None:
        theme = self.theming.theme
        painter = QPainter(self._gutter)
        painter.fillRect(event.rect(), QColor(theme.alternate))
        painter.setFont(self.font())
        wide = self._gutter.width()
        for line, rect in self._visible(event.rect()):
            row = QRect(0, rect.top(), wide - 6, rect.height())
            if line.role:
                painter.fillRect(QRect(0, rect.top(), wide, rect.height()), tint(theme, line.role))
            if line.heat is not None:
                self._paint_heat(painter, line, rect, theme)
            marked = theme.failed if line.role in ("error", "removed") else theme.good
            marked = theme.accent if line.role == "linked" else marked
            if line.sign:
                painter.setPen(QColor(marked))
                painter.drawText(
                    row.adjusted(4 + self._figures_width(), 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, line.sign
                )
            if line.number is not None:
                painter.setPen(QColor(marked if line.role else theme.muted))
                flags = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
                painter.drawText(row, flags, str(line.number))

    def _paint_heat(self, painter: QPainter, line: CodeLine, rect: QRect, theme: Theme) -> None:
        paper = heat(theme, line.heat or 0.0)
        box = QRect(0, rect.top(), self._figures_width(), rect.height())
        painter.fillRect(box, paper)
        painter.setPen(ink_on(paper))
        flags = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(box.adjusted(0, 0, -4, 0), flags, line.figure)

    def _figures_width(self) -> int:
        longest = max((len(line.figure) for line in self.lines), default=0)
        return 8 + self.fontMetrics().horizontalAdvance("9") * longest if longest else 0

    def gutter_width(self) -> int:
        digits = max(3, len(str(max((line.number or 0 for line in self.lines), default=0))))
        signed = any(line.sign for line in self.lines)
        own = 12 + self.fontMetrics().horizontalAdvance("9") * (digits + 2 * signed)
        return own + self._figures_width()

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            index = self.cursorForPosition(event.pos()).blockNumber()
            note = self.lines[index].note if index < len(self.lines) else ""
            QToolTip.showText(event.globalPos(), note, self.viewport())
            return True
        return super().viewportEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def _visible(self, area: QRect) -> Iterator[tuple[CodeLine, QRect]]:
        """The lines in an area of the viewport, with the rectangle of each."""
        block: QTextBlock = self.firstVisibleBlock()
        top = self.blockBoundingGeometry(block).translated(self.contentOffset()).top()
        while block.isValid() and top <= area.bottom():
            height = self.blockBoundingRect(block).height()
            if top + height >= area.top() and block.blockNumber() < len(self.lines):
                rect = QRect(0, round(top), self.viewport().width(), round(top + height) - round(top))
                yield self.lines[block.blockNumber()], rect
            top += height
            block = block.next()

    def _make_room(self) -> None:
        self.setViewportMargins(self.gutter_width(), 0, 0, 0)
        self._place()

    def _place(self) -> None:
        inside = self.contentsRect()
        self._gutter.setGeometry(inside.left(), inside.top(), self.gutter_width(), inside.height())

    def _on_update(self, rect: QRect, down: int) -> None:
        if down:
            self._gutter.scroll(0, down)
            self.viewport().update()  # Qt only scrolls the pixels of the text, and not our marks and notes
        else:
            self._gutter.update(0, rect.y(), self._gutter.width(), rect.height())


class _Gutter(QWidget):
    def __init__(self, view: CodeView) -> None:
        super().__init__(view)
        self._view = view

    def sizeHint(self) -> QSize:
        return QSize(self._view.gutter_width(), 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        self._view.paint_gutter(event)


class _Colours(QSyntaxHighlighter):
    """Colours the document. The tokens were found before, in the whole text."""

    def __init__(self, document: QTextDocument, view: CodeView) -> None:
        super().__init__(document)
        self._view = view
        self.pause = False

    def highlightBlock(self, text: str) -> None:
        index = self.currentBlock().blockNumber()
        if self.pause or index >= len(self._view.lines):
            return
        line, theme = self._view.lines[index], self._view.theming.theme
        if line.dim:
            form = QTextCharFormat()
            form.setForeground(QColor(theme.muted))
            self.setFormat(0, len(text), form)
        else:
            self._ink(line.parts, theme)
        for start, length in line.spans if line.role else ():
            for at in range(start, start + length):
                form = self.format(at)
                form.setBackground(tint(theme, line.role, strong=True))
                self.setFormat(at, 1, form)

    def _ink(self, parts: Sequence[tuple] | Parts, theme: Theme) -> None:
        for start, length, ink in parts:
            form = QTextCharFormat()
            form.setForeground(QColor(ink.on(theme)))
            form.setFontItalic(ink.italic)
            if ink.bold:
                form.setFontWeight(600)
            self.setFormat(start, length, form)
