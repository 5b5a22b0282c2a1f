"""View: the command palette. Some letters of an action, a run, a model, a node, a rung, a setting or a word
of the glossary find it; Enter goes there.

A page adds what it has by `Page.findable`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import ClassVar

from PySide6.QtCore import QAbstractListModel, QEvent, QModelIndex, QObject, QPersistentModelIndex, QRect, Qt
from PySide6.QtGui import QFontMetrics, QKeyEvent, QPainter, QPalette
from PySide6.QtWidgets import (
    QDialog,
    QLineEdit,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
)

from bench.run import settings
from bench.words import glossary
from gui.base.boxes import filled
from gui.base.theme import GAP
from gui.menus.preferences import ASKED
from gui.pages.page import Find, Page
from gui.shell.main_window import Actions, MainWindow
from gui.widgets.controls import Label, open_term

ORDER = 15
MOST = 200  # entries shown
WIDE, HIGH = 640, 420  # pixels
NOTHING = "Nothing is called so. Other words, or fewer letters, may find it."


def add_to(window: MainWindow, actions: Actions) -> None:
    def show() -> Palette:
        window.library.refresh()
        palette = Palette(window, everything(window, actions))
        palette.show()
        return palette

    actions.add("view", "palette", "&Find anything…", show, "Ctrl+Shift+P")


def everything(window: MainWindow, actions: Actions) -> list[Find]:
    """All that can be found, the most used kinds first."""
    return [
        *_actions(actions),
        *(_to_front(window, page, each) for page in window.pages for each in page.findable()),
        *_models(window),
        *_settings(window),
        *(Find("Glossary", term, partial(open_term, term)) for term in glossary.terms()),
    ]


def _to_front(window: MainWindow, page: Page, find: Find) -> Find:
    """The page comes to the front before it shows what was found on it."""
    if not find.here:
        return find

    def go() -> None:
        window.tabs.setCurrentWidget(page)
        page.prepare()
        find.go()

    return find._replace(go=go)


def _actions(actions: Actions) -> Iterator[Find]:
    for menu in actions.menus.values():
        for action in actions.every(menu):
            words = action.text().replace("&", "").rstrip("…")
            if words and not action.isSeparator():
                keys = action.shortcut().toString()
                yield Find("Action", words, action.trigger, keys, action.isEnabled())


def _models(window: MainWindow) -> Iterator[Find]:
    form = window.form

    def choose(model: str) -> None:
        form.models.check([model])
        window.room.show_form()

    for model in form.models.keys:
        yield Find("Model", model, partial(choose, model), "chosen for the next comparison")


def _settings(window: MainWindow) -> Iterator[Find]:
    for name, option in settings.LASTING.items():
        if name in ASKED:
            words = ASKED[name][0].replace("&", "")
            yield Find("Setting", words, partial(window.preferences.show, name), option.help)


def matching(finds: Iterable[Find], typed: str) -> list[Find]:
    """What has every typed word: whole words' beginnings first, then what has the letters in this order."""
    words = typed.casefold().split()
    ranked: list[tuple[int, int, Find]] = []
    for place, find in enumerate(finds):
        ranks = [_rank(word, find.words.casefold(), find.kind.casefold()) for word in words]
        if None not in ranks:
            ranked.append((sum(rank or 0 for rank in ranks), place, find))
    ranked.sort(key=lambda each: each[:2])
    return [find for _, _, find in ranked]


def _rank(word: str, text: str, kind: str) -> int | None:
    """How well a typed word fits: 0 at the text's beginning, 1 at a word's or the kind's, 2 inside one, 3 as
    letters with others between; None for not at all."""
    at = text.find(word)
    if at == 0:
        return 0
    if at > 0:
        begins = any(not text[i - 1].isalnum() for i in range(at, len(text)) if text.startswith(word, i))
        return 1 if begins else 2
    if kind.startswith(word):
        return 1
    letters = iter(text)
    return 3 if all(letter in letters for letter in word) else None


class _Model(QAbstractListModel):
    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.finds: list[Find] = []

    def show_finds(self, finds: Sequence[Find]) -> None:
        self.beginResetModel()
        self.finds = list(finds[:MOST])
        self.endResetModel()

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.finds)

    def data(self, index: QModelIndex | QPersistentModelIndex, role: int = 0) -> object:
        find = self.finds[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return find.words
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{find.kind}: {find.words}" + ("" if find.able else ", not possible now")
        if role == Qt.ItemDataRole.ToolTipRole:
            return find.hint or None
        return None

    def flags(self, index: QModelIndex | QPersistentModelIndex) -> Qt.ItemFlag:
        flag = Qt.ItemFlag
        able = self.finds[index.row()].able
        return flag.ItemIsSelectable | flag.ItemIsEnabled if able else flag.NoItemFlags


class _Line(QStyledItemDelegate):
    """A line: what it is, its kind and its keys at the right."""

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        super().paint(painter, option, index)
        model = index.model()
        assert isinstance(model, _Model)
        find = model.finds[index.row()]
        option = QStyleOptionViewItem(option)
        chosen = bool(option.state & QStyle.StateFlag.State_Selected)
        role = QPalette.ColorRole.HighlightedText if chosen else QPalette.ColorRole.PlaceholderText
        words = f"{find.hint}   {find.kind}" if find.kind == "Action" and find.hint else find.kind
        rect: QRect = option.rect.adjusted(0, 0, -GAP, 0)
        painter.save()
        painter.setPen(option.palette.color(role))
        painter.drawText(rect, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, words)
        painter.restore()


class Palette(QDialog):
    """The palette. Typing narrows the list; up and down choose; Enter goes there, Esc closes."""

    KEYS: ClassVar = {"↑ ↓, Page": "Choose another entry of what was found", "Enter": "Go to the entry found"}

    def __init__(self, window: MainWindow, finds: Sequence[Find]) -> None:
        super().__init__(window)
        self.setWindowTitle("Find anything")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.finds = list(finds)
        self.field = QLineEdit(placeholderText="An action, run, model, node, rung, setting or term")
        self.field.setAccessibleName("Find anything")
        self.field.setClearButtonEnabled(True)
        self.list = QListView()
        self.list.setAccessibleName("What was found")
        self.list.setUniformItemSizes(True)
        self._model = _Model(self)
        self.list.setModel(self._model)
        self.list.setItemDelegate(_Line(self.list))
        self.nothing = Label(NOTHING, role="muted", wrap=True)
        filled(QVBoxLayout(self), self.field, (self.list, 1), self.nothing, margins=(GAP, GAP, GAP, GAP))
        self.field.textChanged.connect(self._narrow)
        self.field.installEventFilter(self)
        self.list.activated.connect(lambda _: self.go())
        self.list.clicked.connect(lambda _: self.go())
        times = QFontMetrics(self.font()).height() / 16
        room = window.size()
        self.resize(min(room.width() - 40, int(WIDE * times)), min(room.height() - 80, int(HIGH * times)))
        at = window.geometry()
        self.move(at.center().x() - self.width() // 2, at.top() + 60)
        self._narrow("")

    @property
    def found(self) -> list[Find]:
        return self._model.finds

    def go(self) -> None:
        """Close, and go to the chosen entry."""
        index = self.list.currentIndex()
        if index.isValid() and (find := self._model.finds[index.row()]).able:
            self.accept()
            find.go()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.field and event.type() == QEvent.Type.KeyPress:
            assert isinstance(event, QKeyEvent)
            key = Qt.Key
            if event.key() in (key.Key_Up, key.Key_Down, key.Key_PageUp, key.Key_PageDown):
                self.list.keyPressEvent(event)
                return True
            if event.key() in (key.Key_Return, key.Key_Enter):
                self.go()
                return True
        return False

    def _narrow(self, typed: str) -> None:
        found = matching(self.finds, typed)
        found.sort(key=lambda find: not find.able)
        self._model.show_finds(found)
        self.nothing.setVisible(not found)
        if found:
            self.list.setCurrentIndex(self._model.index(0))
