"""Help → Keyboard shortcuts: every key that does something, on one sheet, read off the actions, shortcuts and
widgets that there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from html import escape

from PySide6.QtCore import QKeyCombination, QSize, Qt
from PySide6.QtGui import QAction, QKeySequence, QShortcut, QShowEvent
from PySide6.QtWidgets import QDialog, QMainWindow, QTextBrowser, QVBoxLayout, QWidget

from gui.base.boxes import filled
from gui.base.placing import placed, put_on_screen

Keys = dict[str, str]  # what is pressed → what it does
COLUMNS = 3
SIZE = QSize(1200, 600)  # where there is room: nothing has to be scrolled to
SEVERAL = 3


def sheet(window: QMainWindow, menus: Iterable[tuple[str, Iterable[QAction]]]) -> dict[str, Keys]:
    """By heading: the menus with their actions, then each page with what its parts hear, then what stands
    beside the pages. A widget that reads keys itself says of them in `KEYS`."""
    found: dict[str, Keys] = {}
    seen: set[QAction] = set()
    for title, actions in menus:
        for action in actions:
            seen.add(action)
            _put(found, title, _of_action(action), action.text())
    for heading, root in _rooms(window):
        for widget in [root, *root.findChildren(QWidget)]:
            for action in widget.actions():
                if action not in seen:
                    _put(found, heading, _of_action(action), action.text())
            for keys, words in getattr(widget, "KEYS", {}).items():
                _put(found, heading, keys, words)
        for shortcut in root.findChildren(QShortcut):
            keys = [shortcut.key().toString(QKeySequence.SequenceFormat.NativeText)]
            _put(found, heading, ", ".join(keys), shortcut.whatsThis())
    return _everywhere(found)


def _rooms(window: QMainWindow) -> list[tuple[str, QWidget]]:
    """The pages by their titles, then the docks by theirs."""
    rooms = [(str(page.title), page) for page in getattr(window, "pages", ())]
    docks = [getattr(window, name, None) for name in ("form_dock", "inspector_dock", "problems_dock")]
    return rooms + [(dock.windowTitle(), dock) for dock in docks if dock is not None]


def _of_action(action: QAction) -> str:
    form = QKeySequence.SequenceFormat.NativeText
    return ", ".join(
        dict.fromkeys(keys.toString(form) for keys in action.shortcuts() if not _of_few_keyboards(keys))
    )


def _of_few_keyboards(keys: QKeySequence) -> bool:
    """A key for "open" or "back", which only some have."""
    first: QKeyCombination = keys[0]  # type: ignore[index]  # PySide6 has it, and does not say so
    return Qt.Key.Key_Back <= first.key() < Qt.Key.Key_unknown


def _everywhere(found: dict[str, Keys]) -> dict[str, Keys]:
    """What several rooms have alike stands once, after the menus."""
    rooms = Counter(pair for keys in found.values() for pair in keys.items())
    common = {keys: words for (keys, words), count in rooms.items() if count >= SEVERAL}
    left = {
        heading: {keys: words for keys, words in pairs.items() if common.get(keys) != words}
        for heading, pairs in found.items()
    }
    return {heading: pairs for heading, pairs in {**left, "Tables": common}.items() if pairs}


def _put(found: dict[str, Keys], heading: str, keys: str, words: str) -> None:
    plain = words.replace("&", "").rstrip("…")
    if keys and plain:
        known = found.setdefault(heading, {})
        if plain not in known.setdefault(keys, plain).split(" / "):
            known[keys] += f" / {plain}"  # by where the keyboard is


class ShortcutSheet(QDialog):
    """Stops nothing; Esc closes it."""

    def __init__(self, found: dict[str, Keys], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Keyboard shortcuts")
        self.found = found
        text = QTextBrowser()
        text.setAccessibleName("Keyboard shortcuts")
        text.setHtml(_html(found, self.palette().accent().color().name()))
        filled(QVBoxLayout(self), text, margins=(12, 12, 12, 12))
        self.resize(placed(SIZE, self.screen().availableGeometry()).size())

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)  # which puts it over the middle of the window
        put_on_screen(self)


def _html(found: dict[str, Keys], accent: str) -> str:
    """In columns of about one height."""
    blocks = []
    for heading, keys in found.items():
        rows = "".join(
            f'<tr><td style="padding-right:14px"><b>{escape(pressed)}</b></td><td>{escape(words)}</td></tr>'
            for pressed, words in keys.items()
        )
        head = f'<p style="color:{accent};margin-top:12px;margin-bottom:2px"><b>{escape(heading)}</b></p>'
        blocks.append((len(keys) + 2, f"{head}<table>{rows}</table>"))
    total, columns, filled_rows = sum(size for size, _ in blocks), [""], 0
    for size, block in blocks:
        if filled_rows >= total * len(columns) / COLUMNS and len(columns) < COLUMNS:
            columns.append("")
        columns[-1] += block
        filled_rows += size
    cells = "".join(f'<td width="{100 // COLUMNS}%" valign="top">{column}</td>' for column in columns)
    return f'<table width="100%"><tr>{cells}</tr></table>'
