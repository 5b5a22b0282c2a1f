"""Labels that show text as text, whatever it looks like; and those that never push their neighbours about:
they show what fits, and all of it as a tooltip."""

from __future__ import annotations

from html import escape

from PySide6 import QtGui
from PySide6.QtCore import QSize, Qt, QUrl
from PySide6.QtGui import (
    QDesktopServices,
    QFont,
    QFontMetrics,
    QFontMetricsF,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QTextLayout,
    QTextOption,
)
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from bench.words import glossary
from gui.base.boxes import as_row
from gui.base.theme import Theming

_VERBS = ("run", "runs", "pass", "passes", "step", "steps", "train", "trains")  # may be no word of ours
TERM = "term"  # the scheme of links that lead to a word of the glossary


def as_tip(text: str) -> str:
    """Text for a tooltip, or another place where Qt guesses what it is: what looks like HTML is shown as it
    stands."""
    return f'<p style="white-space:pre-wrap">{escape(text)}</p>' if QtGui.Qt.mightBeRichText(text) else text


class Label(QLabel):
    """Plain text unless told otherwise; Qt's own guesses by what it is given. role: of the style sheet;
    selectable: by the mouse, to be copied."""

    def __init__(
        self,
        text: str = "",
        parent: QWidget | None = None,
        role: str = "",
        wrap: bool = False,
        selectable: bool = False,
        centred: bool = False,
    ) -> None:
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(wrap)
        if role:
            self.setProperty("role", role)
        if selectable:
            self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        if centred:
            self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setText(text)


class TermLabel(Label):
    """Words before a field or a value. Where they are a word of the glossary they are underlined by dots,
    their tooltip is what it means, and a click leads to the glossary."""

    def __init__(self, text: str = "", parent: QWidget | None = None, role: str = "") -> None:
        self.term = glossary.find(text)
        super().__init__(text, parent, role)
        if self.term:
            self.setCursor(Qt.CursorShape.WhatsThisCursor)
            self.setToolTip(as_tip(meaning(self.term)))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self.term and self.rect().contains(event.position().toPoint()):
            open_term(self.term)
        super().mouseReleaseEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.term and self.isEnabled():
            painter = QPainter(self)
            colour = self.palette().windowText().color()
            colour.setAlphaF(0.55)
            painter.setPen(QPen(colour, 1, Qt.PenStyle.DotLine))
            wide = self.fontMetrics().horizontalAdvance(self.text().replace("&", ""))
            below = (self.height() + self.fontMetrics().height()) // 2 - 1
            painter.drawLine(0, below, min(wide, self.width()), below)


class Linked(QLabel):
    """Text of ours in paragraphs, in which the marked words ("each [rung]") are links to the glossary."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setWordWrap(True)
        self.setOpenExternalLinks(True)
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextBrowserInteraction)
        self.setText(text)

    def setText(self, text: str) -> None:
        super().setText(linked(text))


def linked(text: str) -> str:
    """As HTML, its marked words as links."""
    made = [
        f'<a href="{TERM}:{escape(word)}">{escape(part)}</a>' if word else escape(part)
        for part, word in glossary.parts(text)
    ]
    return "".join(made).replace("\n", "<br>")


def with_links(text: str, but: str = "", colour: str = "") -> str:
    """As HTML, the words of the glossary in it as links where they stand alone; but: a word that is none;
    colour: of the links, where they are to be quiet."""
    style = f' style="color:{colour}"' if colour else ""
    made = []
    for word in text.split(" "):
        plain = word.strip(".,;:()")
        term = glossary.find(plain) or glossary.find(f"{plain} error") if plain not in _VERBS else ""
        told = escape(word)
        if term and term != but:
            told = told.replace(escape(plain), f'<a href="{TERM}:{escape(term)}"{style}>{escape(plain)}</a>')
        made.append(told)
    return " ".join(made)


def meaning(term: str) -> str:
    """For a tooltip."""
    return f"{term}: {plain_meaning(term)}\n(a click opens the glossary)"


def plain_meaning(term: str) -> str:
    """Of a word of the glossary, without marks."""
    return glossary.terms()[term].replace("`", "")


def open_term(term: str) -> None:
    """Show the glossary at this word: whoever has it in the window handles such links."""
    link = QUrl()
    link.setScheme(TERM)
    link.setPath(term)
    QDesktopServices.openUrl(link)


class Readout(Label):
    """What is at the pointer, over what is pointed at: it takes no clicks."""

    def __init__(self, theming: Theming, parent: QWidget) -> None:
        super().__init__(parent=parent)
        self._theming = theming
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        theming.changed.connect(self._restyle)
        self._restyle()
        self.hide()

    def _restyle(self) -> None:
        theme = self._theming.theme
        self.setStyleSheet(
            f"background: {theme.window}; color: {theme.ink}; border: 1px solid {theme.line};"
            "border-radius: 3px; padding: 4px;"
        )


class Elided(Label):
    """One line; of several wordings, the first that fits, else the last one cut short."""

    def __init__(self, text: str = "", parent: QWidget | None = None, role: str = "") -> None:
        self._shorter: tuple[str, ...] = ()
        super().__init__(text, parent, role)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.setMinimumWidth(60)

    def setText(self, text: str, *shorter: str) -> None:
        super().setText(text)
        self._shorter = shorter
        self.setToolTip(as_tip(text))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        metrics = QFontMetricsF(self.font())
        wordings = (self.text(), *self._shorter)
        fitting = next((t for t in wordings if metrics.horizontalAdvance(t) <= self.width()), wordings[-1])
        text = metrics.elidedText(fitting, Qt.TextElideMode.ElideRight, self.width())
        painter.setPen(self.palette().windowText().color())
        painter.drawText(self.rect(), int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft), text)


class Lines(Label):
    """Wrapped text of at most `most` lines; where there is more, in letters up to `smaller` points smaller if
    all of it stands there then, else the last line is cut short."""

    def __init__(
        self, most: int, parent: QWidget | None = None, smaller: float = 0.0, role: str = ""
    ) -> None:
        self.most = most
        self.smaller = smaller
        super().__init__("", parent, role, wrap=True)
        policy = QSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def setText(self, text: str) -> None:
        super().setText(text)
        self.setToolTip(as_tip(text))

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        lines, font = self._laid(width)
        return int(len(lines) * QFontMetrics(font).lineSpacing()) + 2

    def sizeHint(self) -> QSize:
        return QSize(200, self.heightForWidth(max(200, self.width())))

    def minimumSizeHint(self) -> QSize:
        return QSize(60, self.fontMetrics().lineSpacing() + 2)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.updateGeometry()  # it may need more lines, or fewer

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(self.palette().windowText().color())
        lines, font = self._laid(self.width())
        metrics = QFontMetrics(font)
        painter.setFont(font)
        for number, line in enumerate(lines):
            painter.drawText(0, number * metrics.lineSpacing() + metrics.ascent() + 1, line)

    def lines(self) -> list[str]:
        """What stands there at this width, line by line."""
        return self._laid(self.width())[0]

    def _laid(self, width: int) -> tuple[list[str], QFont]:
        """The lines, and in which letters: the largest that all of the text stands in, if one does."""
        lines, cut = self._broken(width, self.font())
        step = 0.5
        while cut and step <= self.smaller:
            font = QFont(self.font())
            font.setPointSizeF(self.font().pointSizeF() - step)
            tried, still = self._broken(width, font)
            if not still:
                return tried, font
            step += 0.5
        return lines, self.font()

    def _broken(self, width: int, font: QFont) -> tuple[list[str], bool]:
        """The lines in this font, and whether the last one is cut short."""
        text = self.text()
        layout = QTextLayout(text, font)
        option = QTextOption()
        option.setWrapMode(QTextOption.WrapMode.WordWrap)
        layout.setTextOption(option)
        found: list[str] = []
        cut = False
        layout.beginLayout()
        line = layout.createLine()
        while line.isValid():
            line.setLineWidth(max(20, width))
            found.append(text[line.textStart() : line.textStart() + line.textLength()].rstrip())
            if len(found) == self.most:
                rest = text[line.textStart() :]
                found[-1] = QFontMetricsF(font).elidedText(rest, Qt.TextElideMode.ElideRight, width)
                cut = found[-1] != rest
                break
            line = layout.createLine()
        layout.endLayout()
        return found or [""], cut


def labelled(field: QWidget, words: str, gap: int = 10) -> QWidget:
    """A field behind its label, whose key leads to it; gap: to the next pair."""
    field.setAccessibleName(words.replace("&", ""))
    label = TermLabel(words)
    label.setBuddy(field)
    return as_row(label, field, margins=(0, 0, gap, 0))
