"""Buttons, actions, shortcuts, menus, progress and text to be copied: each with what belongs to it, in one
call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from PySide6.QtCore import QPoint, Qt, SignalInstance
from PySide6.QtGui import QAction, QFontDatabase, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QAbstractScrollArea,
    QFileDialog,
    QMenu,
    QPlainTextEdit,
    QProgressBar,
    QPushButton,
    QToolButton,
    QWidget,
)

WITHIN = Qt.ShortcutContext.WidgetWithChildrenShortcut
Keys = QKeySequence | QKeySequence.StandardKey | str
Do = Callable[..., object] | SignalInstance


def push_button(
    words: str = "", do: Do | None = None, tip: str = "", role: str = "", name: str = ""
) -> QPushButton:
    """A button; role: of the style sheet; name: for a screen reader, where it is not the words."""
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
    """A small button, which Tab leads to; toggled: of one that stays down, called with whether it is."""
    button = QToolButton()
    button.setText(words)
    button.setAutoRaise(flat)
    _dress(button, do, tip, role, name)
    if toggled is not None:
        button.setCheckable(True)
        button.toggled.connect(toggled)
    return button


def tool_buttons(*each: tuple[str, str, Do]) -> list[QToolButton]:
    """Of the words on each, its tip, by which it is called too (without the keys in brackets), and what it
    does."""
    return [tool_button(words, do, tip, name=tip.partition(" (")[0]) for words, tip, do in each]


def tool_of(action: QAction, role: str = "") -> QToolButton:
    """A small button that does what an action does."""
    button = QToolButton()
    button.setDefaultAction(action)
    _dress(button, None, "", role, "")
    return button


def menu_button(words: str, tip: str = "") -> QToolButton:
    """A small button that opens a menu, whose entries show their tips."""
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
) -> QAction:
    """An action of a widget; keys: that trigger it within `scope`."""
    made = QAction(words, owner)
    if tip:
        made.setToolTip(tip)
    if keys:
        made.setShortcut(keys)
    made.setShortcutContext(scope)
    made.setEnabled(enabled)
    made.triggered.connect(do)
    return made


def shortcut(owner: QWidget, keys: Keys, what: str, do: Do, scope: Qt.ShortcutContext = WITHIN) -> QShortcut:
    """Keys that do something within a widget; what: for the sheet of shortcuts."""
    made = QShortcut(QKeySequence(keys), owner)
    made.setWhatsThis(what)
    made.setContext(scope)
    made.activated.connect(do)
    return made


def popup(owner: QWidget, actions: Sequence[QAction], at: QPoint) -> QMenu:
    """A context menu of these at a place of the owner (of an area that scrolls, of what it shows)."""
    menu = QMenu(owner)
    menu.addActions(actions)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    place = owner.viewport() if isinstance(owner, QAbstractScrollArea) else owner
    menu.popup(place.mapToGlobal(at))
    return menu


def set_role(widget: QWidget, role: str) -> bool:
    """Have a widget look as another role does; whether it did not yet."""
    if (widget.property("role") or "") == role:
        return False
    widget.setProperty("role", role)
    widget.style().polish(widget)
    return True


def fixed_text(text: str, name: str) -> QPlainTextEdit:
    """Text to be read and copied, in letters of one width."""
    made = QPlainTextEdit(text)
    made.setReadOnly(True)
    made.setAccessibleName(name)
    made.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
    made.setTextInteractionFlags(
        Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
    )
    return made


class Progress(QProgressBar):
    """One without words, of so many pixels."""

    def __init__(self, width: int, height: int) -> None:
        super().__init__()
        self.setTextVisible(False)
        self.setFixedWidth(width)
        self.setMaximumHeight(height)

    def show_part(self, done: int, total: int, active: bool = True) -> None:
        """So many of so many (0: it goes to and fro); hidden where nothing goes on."""
        self.setVisible(active)
        self.setRange(0, total)
        self.setValue(done)


class FolderDialog(QFileDialog):
    """Takes the name of a folder that is not there yet, and makes it. The systems' own dialogs refuse one."""

    def __init__(self, parent: QWidget | None, title: str, start: str = "") -> None:
        super().__init__(parent, title, start)
        self.setFileMode(QFileDialog.FileMode.Directory)
        self.setOption(QFileDialog.Option.ShowDirsOnly)
        self.setOption(QFileDialog.Option.DontUseNativeDialog)
        self.setLabelText(QFileDialog.DialogLabel.FileName, "Folder (it may be new):")

    def accept(self) -> None:
        for name in self.selectedFiles():
            with suppress(OSError):  # what cannot be made the dialog refuses in its own words
                Path(name).mkdir(parents=True, exist_ok=True)
        super().accept()


def ask_folder(parent: QWidget | None, title: str, start: str = "") -> str:
    """The folder chosen, made if it was not there; "" for none."""
    dialog = FolderDialog(parent, title, start)
    try:
        return next(iter(dialog.selectedFiles()), "") if dialog.exec() else ""
    finally:
        dialog.deleteLater()
