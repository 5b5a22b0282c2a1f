"""Help → Glossary: the words that are ours; every link to one of them leads here."""

from __future__ import annotations

from html import escape

from PySide6.QtCore import QSize, QUrl
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QDialog, QLineEdit, QTextBrowser, QVBoxLayout, QWidget

from bench.words import glossary
from gui.base.boxes import filled
from gui.base.placing import placed, put_on_screen
from gui.widgets.labels import TERM, with_links


class GlossaryWindow(QDialog):
    """Stops nothing; `show_term` goes to a word."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Glossary")
        self.field = QLineEdit()
        self.field.setPlaceholderText("Find a word")
        self.field.setAccessibleName("Find a word")
        self.field.setClearButtonEnabled(True)
        self.field.textChanged.connect(lambda text: self._fill(text))
        self.text = QTextBrowser()
        self.text.setOpenLinks(False)
        self.text.setAccessibleName("Words and what they mean")
        self.text.anchorClicked.connect(self._follow)
        filled(QVBoxLayout(self), self.field, (self.text, 1), margins=(12, 12, 12, 12), spacing=8)
        self.resize(placed(QSize(560, 620), self.screen().availableGeometry()).size())
        self.shown: tuple[str, ...] = ()
        self._fill("")

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)  # which puts it over the middle of the window
        put_on_screen(self)

    def show_term(self, term: str) -> None:
        self.field.clear()
        self._fill("", term)
        self.show()
        self.raise_()
        self.activateWindow()
        if term:
            self.text.scrollToAnchor(_anchor(term))

    def _follow(self, link: QUrl) -> None:
        if link.scheme() == TERM:
            self.show_term(link.path())

    def _fill(self, wanted: str, marked: str = "") -> None:
        """The words that hold `wanted`, or whose meaning does; the marked one stands out."""
        wanted = wanted.strip().lower()
        known = glossary.terms()
        found = {
            term: meaning
            for term, meaning in sorted(known.items(), key=lambda item: item[0].lower())
            if wanted in term.lower() or wanted in meaning.lower()
        }
        self.shown = tuple(found)
        accent = self.palette().accent().color().name()
        ground = self.palette().midlight().color().name()
        items = [
            '<p style="margin-top:0px;margin-bottom:10px'
            + (f";background:{ground}" if term == marked else "")
            + f'"><a name="{_anchor(term)}"></a>'
            f'<b style="color:{accent}">{escape(term)}</b><br>{_html(meaning, term)}</p>'
            for term, meaning in found.items()
        ]
        self.text.setHtml("".join(items) or "<p>No word and no meaning holds this.</p>")


def _anchor(term: str) -> str:
    return term.replace(" ", "-")


def _html(meaning: str, own: str) -> str:
    """Its code as code; other words of the glossary that stand alone as links."""
    pieces = []
    for place, piece in enumerate(meaning.split("`")):
        if place % 2:
            pieces.append(f"<code>{escape(piece)}</code>")
            continue
        pieces.append(with_links(piece, own))
    return "".join(pieces)
