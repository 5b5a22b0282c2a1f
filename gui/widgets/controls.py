"""The small widgets of which pages are made, each in one call: labels, buttons, actions, lists to choose
from, find bars, progress, dialogs.

Labels show text as text, whatever it looks like. Some never push their neighbours about: they show what fits,
and all of it as a tooltip.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Any

from PySide6 import QtGui
from PySide6.QtCore import QEvent, QObject, QPoint, QSize, Qt, QUrl, Signal, SignalInstance
from PySide6.QtGui import (
    QAction,
    QDesktopServices,
    QFont,
    QFontMetrics,
    QFontMetricsF,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QShortcut,
    QTextCursor,
    QTextDocument,
    QTextLayout,
    QTextOption,
)
from PySide6.QtWidgets import (
    QAbstractScrollArea,
    QComboBox,
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QMenu,
    QPlainTextEdit,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QStyle,
    QStyleOptionComboBox,
    QStylePainter,
    QToolButton,
    QWidget,
)

from bench.words import glossary
from gui.base.boxes import as_row, filled, flowing
from gui.base.theme import Theming, fixed_font
from gui.base.wording import in_window

_VERBS = (
    "run",
    "runs",
    "pass",
    "passes",
    "step",
    "steps",
    "train",
    "trains",
)  # often ordinary verbs, so they are no links
SELECTABLE = Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
TERM = "term"  # the scheme of links that lead to a word of the glossary


def as_tip(text: str) -> str:
    """Text for a tooltip, or for another place where Qt guesses its format: text that looks like HTML is
    shown unchanged."""
    text = in_window(text)
    return f'<p style="white-space:pre-wrap">{escape(text)}</p>' if QtGui.Qt.mightBeRichText(text) else text


class Label(QLabel):
    """Plain text, or with `rich` HTML; Qt's own label guesses which of the two a text is. role: of the style
    sheet; selectable: with the mouse, to be copied; buddy: the field that its marked letter leads to."""

    def __init__(
        self,
        text: str = "",
        parent: QWidget | None = None,
        role: str = "",
        wrap: bool = False,
        selectable: bool = False,
        centred: bool = False,
        rich: bool = False,
        buddy: QWidget | None = None,
    ) -> None:
        text_format = Qt.TextFormat.RichText if rich else Qt.TextFormat.PlainText
        super().__init__(parent, textFormat=text_format, wordWrap=wrap)
        if buddy is not None:
            self.setBuddy(buddy)
        if role:
            self.setProperty("role", role)
        if selectable:
            self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        if centred:
            self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setText(text)

    def setText(self, text: str) -> None:
        super().setText(in_window(text))


class TermLabel(Label):
    """A label before a field or a value. If it is a word of the glossary, it is underlined by dots, its
    tooltip is the meaning, and a click opens the glossary."""

    def __init__(self, text: str = "", role: str = "", buddy: QWidget | None = None) -> None:
        self.term = glossary.find(text)
        super().__init__(text, role=role, buddy=buddy)
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
    """Text in paragraphs. Marked words ("each [rung]") are links to the glossary."""

    def __init__(self, text: str = "") -> None:
        super().__init__(
            textFormat=Qt.TextFormat.RichText,
            wordWrap=True,
            openExternalLinks=True,
            textInteractionFlags=Qt.TextInteractionFlag.TextBrowserInteraction,
        )
        self.setText(text)

    def setText(self, text: str) -> None:
        super().setText(linked(text))


def linked(text: str) -> str:
    """A text as HTML, with its marked words as links."""
    parts = [
        f'<a href="{TERM}:{escape(word)}">{escape(part)}</a>' if word else escape(part)
        for part, word in glossary.parts(text)
    ]
    return "".join(parts).replace("\n", "<br>")


def with_links(text: str, but: str = "", colour: str = "") -> str:
    """A text as HTML, in which words of the glossary are links. but: a word that is not; colour: of the
    links, if they should not stand out."""
    style = f' style="color:{colour}"' if colour else ""
    words = []
    for word in text.split(" "):
        plain = word.strip(".,;:()")
        term = glossary.find(plain) or glossary.find(f"{plain} error") if plain not in _VERBS else ""
        html = escape(word)
        if term and term != but:
            html = html.replace(escape(plain), f'<a href="{TERM}:{escape(term)}"{style}>{escape(plain)}</a>')
        words.append(html)
    return " ".join(words)


def meaning(term: str) -> str:
    """A word of the glossary and its meaning, for a tooltip."""
    return f"{term}: {plain_meaning(term)}\n(a click opens the glossary)"


def plain_meaning(term: str) -> str:
    """The meaning of a word of the glossary, without marks."""
    return glossary.terms()[term].replace("`", "")


def open_term(term: str) -> None:
    """Show the glossary at this word. The window handles links of this scheme."""
    link = QUrl()
    link.setScheme(TERM)
    link.setPath(term)
    QDesktopServices.openUrl(link)


class Readout(Label):
    """A tooltip that is placed by its owner. It takes no clicks."""

    def __init__(self, theming: Theming, parent: QWidget) -> None:
        super().__init__(parent=parent, rich=True)
        self._theming = theming
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
    """One line of text. Of several wordings the first one that fits is shown; if none does, the last one
    is cut."""

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
    """Wrapped text of at most `most` lines. If it is longer, it is shown in letters that are up to
    `smaller` points smaller; if it still does not fit, the last line is cut."""

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
        lines, font = self._fitting(width)
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
        lines, font = self._fitting(self.width())
        metrics = QFontMetrics(font)
        painter.setFont(font)
        for number, line in enumerate(lines):
            painter.drawText(0, number * metrics.lineSpacing() + metrics.ascent() + 1, line)

    def lines(self) -> list[str]:
        """The lines that are shown at this width."""
        return self._fitting(self.width())[0]

    def _fitting(self, width: int) -> tuple[list[str], QFont]:
        """The lines for a width, and their font: the largest in which the whole text fits, if there is
        one."""
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
        """The lines in this font, and whether the last one is cut."""
        text = self.text()
        layout = QTextLayout(text, font)
        option = QTextOption()
        option.setWrapMode(QTextOption.WrapMode.WordWrap)
        layout.setTextOption(option)
        lines: list[str] = []
        cut = False
        layout.beginLayout()
        line = layout.createLine()
        while line.isValid():
            line.setLineWidth(max(20, width))
            lines.append(text[line.textStart() : line.textStart() + line.textLength()].rstrip())
            if len(lines) == self.most:
                rest = text[line.textStart() :]
                lines[-1] = QFontMetricsF(font).elidedText(rest, Qt.TextElideMode.ElideRight, width)
                cut = lines[-1] != rest
                break
            line = layout.createLine()
        layout.endLayout()
        return lines or [""], cut


def labelled(field: QWidget, words: str, gap: int = 10) -> QWidget:
    """A field behind its label. The label's marked letter leads to the field. gap: to what follows, in
    pixels."""
    field.setAccessibleName(words.replace("&", ""))
    return as_row(TermLabel(words, buddy=field), field, margins=(0, 0, gap, 0))


WITHIN = Qt.ShortcutContext.WidgetWithChildrenShortcut
Keys = QKeySequence | QKeySequence.StandardKey | str
Do = Callable[..., object] | SignalInstance


def push_button(
    words: str = "", do: Do | None = None, tip: str = "", role: str = "", name: str = ""
) -> QPushButton:
    """A button. role: in the style sheet; name: for a screen reader, if it differs from the words."""
    button = QPushButton(words)
    _dress(button, do, tip, role, name)
    return button


def tool_button(
    words: str = "",
    do: Do | None = None,
    tip: str = "",
    role: str = "",
    name: str = "",
    flat: bool = False,
    toggled: Do | None = None,
) -> QToolButton:
    """A small button, which Tab reaches. toggled: makes it stay down; called with whether it is down."""
    button = QToolButton()
    button.setText(words)
    button.setAutoRaise(flat)
    _dress(button, do, tip, role, name)
    if toggled is not None:
        button.setCheckable(True)
        button.toggled.connect(toggled)
    return button


def tool_buttons(*each: tuple[str, str, Do]) -> list[QToolButton]:
    """Small buttons: for each its words, its tooltip and what it does. The tooltip without the keys in
    brackets is its name."""
    return [tool_button(words, do, tip, name=tip.partition(" (")[0]) for words, tip, do in each]


def tool_of(action: QAction, role: str = "") -> QToolButton:
    """A small button for an action."""
    button = QToolButton()
    button.setDefaultAction(action)
    _dress(button, None, "", role, "")
    return button


def menu_button(words: str, tip: str = "") -> QToolButton:
    """A small button that opens a menu. The entries show their tooltips."""
    button = tool_button(words, tip=tip)
    button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
    menu = QMenu(button)
    menu.setToolTipsVisible(True)
    button.setMenu(menu)
    return button


def _dress(button: QPushButton | QToolButton, do: Do | None, tip: str, role: str, name: str) -> None:
    if tip:
        button.setToolTip(tip)
    if role:
        button.setProperty("role", role)
    if name:
        button.setAccessibleName(name)
    if do is not None:
        button.clicked.connect(do)


def new_action(
    owner: QWidget,
    words: str,
    do: Do,
    tip: str = "",
    keys: Keys = "",
    scope: Qt.ShortcutContext = WITHIN,
    enabled: bool = True,
    checked: bool | None = None,
) -> QAction:
    """An action of a widget. keys: trigger it within `scope`; checked: whether it is on, None if it cannot be
    turned on and off."""
    action = QAction(words, owner, checkable=checked is not None, checked=bool(checked), enabled=enabled)
    if tip:
        action.setToolTip(tip)
    if keys:
        action.setShortcut(keys)
    action.setShortcutContext(scope)
    action.triggered.connect(do)
    return action


def shortcut(owner: QWidget, keys: Keys, what: str, do: Do, scope: Qt.ShortcutContext = WITHIN) -> QShortcut:
    """Keys that do something inside a widget. what: its description in the list of shortcuts."""
    keys_pressed = QShortcut(QKeySequence(keys), owner)
    keys_pressed.setWhatsThis(what)
    keys_pressed.setContext(scope)
    keys_pressed.activated.connect(do)
    return keys_pressed


def popup(owner: QWidget, actions: Sequence[QAction], at: QPoint) -> QMenu:
    """Show a context menu with these actions at a point of `owner` (of its viewport, if it scrolls)."""
    menu = QMenu(owner)
    menu.addActions(actions)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    place = owner.viewport() if isinstance(owner, QAbstractScrollArea) else owner
    menu.popup(place.mapToGlobal(at))
    return menu


def context_menu(owner: QWidget, actions: Callable[[], Sequence[QAction]]) -> None:
    """Have a widget show these actions where the right mouse button is pressed."""
    owner.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
    owner.customContextMenuRequested.connect(lambda at: popup(owner, actions(), at))


def line_edit(
    placeholder: str, changed: Callable[[str], object], name: str = "", tip: str = "", width: int = 0
) -> QLineEdit:
    """A field to search or filter with, with a button that clears it. name: for a screen reader; width:
    the largest in pixels, 0 for any."""
    field = QLineEdit(placeholderText=placeholder, clearButtonEnabled=True)
    field.setAccessibleName(name or placeholder)
    field.setToolTip(tip)
    if width:
        field.setMaximumWidth(width)
    field.textChanged.connect(changed)
    return field


def set_role(widget: QWidget, role: str) -> bool:
    """Give a widget another role in the style sheet. Returns whether it changed."""
    if (widget.property("role") or "") == role:
        return False
    widget.setProperty("role", role)
    widget.style().polish(widget)
    return True


def fixed_text(text: str, name: str) -> QPlainTextEdit:
    """Text to read and copy, in a font with one width for all letters."""
    field = QPlainTextEdit(text)
    field.setReadOnly(True)
    field.setAccessibleName(name)
    field.setFont(fixed_font())
    field.setTextInteractionFlags(SELECTABLE)
    return field


class Progress(QProgressBar):
    """A progress bar without text. Width and height in pixels."""

    def __init__(self, width: int, height: int) -> None:
        super().__init__()
        self.setTextVisible(False)
        self.setFixedWidth(width)
        self.setMaximumHeight(height)

    STEPS = 100  # that one of the whole has

    def show_part(self, done: float, total: int, active: bool = True) -> None:
        """Show `done` of `total` (0: unknown); hide the bar if nothing is active."""
        self.setVisible(active)
        steps = self.STEPS if isinstance(done, float) else 1
        self.setRange(0, steps * total)
        self.setValue(round(steps * min(done, total)))


class FolderDialog(QFileDialog):
    """Asks for a folder, which may be new. The dialogs of the systems refuse new ones."""

    def __init__(self, parent: QWidget | None, title: str, start: str = "") -> None:
        super().__init__(parent, title, start)
        self.setFileMode(QFileDialog.FileMode.Directory)
        self.setOption(QFileDialog.Option.ShowDirsOnly)
        self.setOption(QFileDialog.Option.DontUseNativeDialog)
        self.setLabelText(QFileDialog.DialogLabel.FileName, "Folder (it may be new):")

    def accept(self) -> None:
        for name in self.selectedFiles():
            with suppress(OSError):  # the dialog itself refuses a folder that cannot be made
                Path(name).mkdir(parents=True, exist_ok=True)
        super().accept()


def ask_folder(parent: QWidget | None, title: str, start: str = "") -> str:
    """Ask for a folder, and make it if it is new. "" if the user cancels."""
    dialog = FolderDialog(parent, title, start)
    try:
        return next(iter(dialog.selectedFiles()), "") if dialog.exec() else ""
    finally:
        dialog.deleteLater()


SPARE = QSize(4, 0)  # pixels more, because the style sheet makes the field narrower than Qt expects


class Combo(QComboBox):
    """A list to choose from. Text that does not fit is shortened with "…". name: for a screen reader;
    chosen: called with the index that the user chose; grows: whether it is as wide as its widest text."""

    def __init__(
        self,
        name: str = "",
        chosen: Callable[..., object] | None = None,
        grows: bool = True,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        if grows:
            self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        if chosen is not None:
            self.activated.connect(chosen)

    def offer(self, items: Mapping[Any, str], chosen: Any = None) -> Any:
        """Offer these items (data → text), choose `chosen` or else the first, and return the chosen data.
        No signal is emitted."""
        before = self.blockSignals(True)
        if [(self.itemData(i), self.itemText(i)) for i in range(self.count())] != list(items.items()):
            self.clear()
            for data, words in items.items():
                self.addItem(words, data)
                self.setItemData(self.count() - 1, as_tip(words), Qt.ItemDataRole.ToolTipRole)
        self.setCurrentIndex(max(0, next((i for i, data in enumerate(items) if data == chosen), 0)))
        self.blockSignals(before)
        return self.currentData()

    @property
    def offered(self) -> list[Any]:
        """The data of all items, in order."""
        return [self.itemData(i) for i in range(self.count())]

    def choose(self, data: Any) -> bool:
        """Choose the item with these data. Returns whether there is one."""
        if (at := self.findData(data)) >= 0:
            self.setCurrentIndex(at)
        return at >= 0

    def sizeHint(self) -> QSize:
        return super().sizeHint() + SPARE

    def minimumSizeHint(self) -> QSize:
        return super().minimumSizeHint() + SPARE

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QStylePainter(self)
        painter.setPen(self.palette().text().color())
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        painter.drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option)
        option.currentText = self.shown_text()
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)

    def shown_text(self) -> str:
        """The text as it is drawn."""
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        field = self.style().subControlRect(
            QStyle.ComplexControl.CC_ComboBox, option, QStyle.SubControl.SC_ComboBoxEditField, self
        )
        icon = self.iconSize().width() + 4 if not self.itemIcon(self.currentIndex()).isNull() else 0
        return self.fontMetrics().elidedText(
            self.currentText(), Qt.TextElideMode.ElideRight, field.width() - icon
        )


class ChoiceBar(QWidget):
    """Several lists in a bar. `chosen` carries the key of the list in which the user chose. wanted: key →
    the data that a list is to choose when it is filled next, because of a selection elsewhere."""

    chosen = Signal(str)

    def __init__(self, fields: Sequence[tuple[str, str]], parent: QWidget | None = None) -> None:
        """fields: key and label of each list, in order."""
        super().__init__(parent)
        self.wanted: dict[str, object] = {}
        self.boxes = {key: Combo(chosen=lambda _, key=key: self.chosen.emit(key)) for key, _ in fields}
        flowing(self, *(labelled(self.boxes[key], words) for key, words in fields))

    def offer(self, key: str, items: Mapping, first: object = None) -> object:
        """Fill a list (data → text) and return its choice: the wanted one, else the same as before, else
        `first`, else the first item."""
        box = self.boxes[key]
        chosen = self.wanted.pop(key, box.currentData())
        chosen = chosen if chosen in items else first
        box.setEnabled(len(items) > 1)
        return box.offer(items, chosen)

    def ask(self, wanted: Mapping[str, object]) -> bool:
        """Let the lists choose these when they are filled next. Returns False if they have them already."""
        if all(self.boxes[key].currentData() == value for key, value in wanted.items()):
            return False
        self.wanted = dict(wanted)
        return True


class FindLine(QWidget):
    """A bar to search in a view: Ctrl+F opens it, Enter goes to the next place, Shift+Enter back, Escape
    closes it. Hidden until it is opened. A subclass writes `search`. scope: the widget in which Ctrl+F
    works; what: what is searched, for its name."""

    def __init__(self, view: QWidget, scope: QWidget, what: str) -> None:
        super().__init__(scope)
        self.view = view
        self.field = line_edit("Find", lambda _: self.typed(), f"Find in {what}")
        self.field.installEventFilter(self)
        self.count = Label(role="muted")
        buttons = tool_buttons(
            ("↑", "The one before (Shift+Enter)", lambda: self.search(back=True)),
            ("↓", "The next one (Enter)", lambda: self.search()),
            ("✕", "Close (Escape)", self.close_bar),
        )
        filled(QHBoxLayout(self), (self.field, 1), self.count, *buttons, margins=(4, 2, 4, 2))
        shortcut(scope, QKeySequence.StandardKey.Find, f"Find in {what}", self.open_bar)
        self.hide()

    def search(self, back: bool = False) -> bool:
        """Go to the next place, from the end to the start, and say which one it is. Returns whether there
        is one."""
        raise NotImplementedError

    def typed(self) -> None:
        """The text has changed."""
        self.search()

    def chosen(self) -> str:
        """The selected text of the view, which is searched first."""
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
    """Searches in a text."""

    def __init__(self, view: QPlainTextEdit, scope: QWidget) -> None:
        self._text = view
        super().__init__(view, scope, "the source")

    def chosen(self) -> str:
        chosen = self._text.textCursor().selectedText()
        return "" if "\u2029" in chosen else chosen

    def search(self, back: bool = False) -> bool:
        words = self.field.text()
        if not words:
            self.count.setText("")
            return False
        way = QTextDocument.FindFlag.FindBackward if back else QTextDocument.FindFlag(0)
        if not self._text.find(words, way):
            before = self._text.textCursor()
            cursor = QTextCursor(before)
            cursor.movePosition(QTextCursor.MoveOperation.End if back else QTextCursor.MoveOperation.Start)
            self._text.setTextCursor(cursor)
            if not self._text.find(words, way):
                self._text.setTextCursor(before)
                self.count.setText("not found")
                return False
        self.count.setText(self._place(words))
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
    """Searches in the texts of items. `picked` carries the key of the item that was found."""

    picked = Signal(str)

    def __init__(self, view: QWidget, scope: QWidget, what: str) -> None:
        self._items: Sequence[tuple[str, str]] = ()
        self._at = ""
        super().__init__(view, scope, what)

    def show_items(self, items: Sequence[tuple[str, str]]) -> None:
        """The key and text of each item, in order."""
        self._items = [(key, text.lower()) for key, text in items]
        self._at = ""
        self.count.setText("")

    def go_from(self, key: str) -> None:
        """Search from this item on."""
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
            self.count.setText("not found" if words else "")
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
        self.count.setText(f"{fitting.index(self._at) + 1} of {len(fitting):,}" if words else "")
