"""The menus: File, Run, View, Help. Actions come from the modules of gui/menus, so a new group is one file.

Each module defines `ORDER` (its place) and `add_to(window, actions)`, which calls `actions.add` for what it
offers; a separator stands between the groups of two modules in one menu.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMenu

if TYPE_CHECKING:
    from gui.shell.main_window import MainWindow

MENUS = {"file": "&File", "run": "&Run", "view": "&View", "help": "&Help"}


class Actions:
    """The window's menus, and every action by name."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window
        self._group = ""
        self._group_of: dict[str, str] = {}
        self.menus: dict[str, QMenu] = {key: window.menuBar().addMenu(text) for key, text in MENUS.items()}
        self.by_name: dict[str, QAction] = {}

    def add(
        self,
        menu: str,
        name: str,
        text: str,
        slot: Callable[[], object],
        shortcut: str | QKeySequence.StandardKey | Sequence[str] | None = None,
        tip: str = "",
        enabled: bool = True,
    ) -> QAction:
        """An action at the end of a menu (a key of MENUS). `text` marks its mnemonic by "&"; `name` finds it
        again in `by_name`; several shortcuts may be given as a list."""
        action = QAction(text, self._window)
        action.setObjectName(name)
        if isinstance(shortcut, QKeySequence.StandardKey):
            action.setShortcuts(QKeySequence.keyBindings(shortcut))
        elif isinstance(shortcut, str):
            action.setShortcut(QKeySequence(shortcut))
        elif shortcut is not None:
            action.setShortcuts([QKeySequence(keys) for keys in shortcut])
        if tip:
            action.setToolTip(tip)
        action.setEnabled(enabled)
        action.triggered.connect(lambda checked=False: slot())
        self.by_name[name] = action
        self.place(menu, action)
        return action

    def place(self, menu: str, action: QAction) -> None:
        """Put an action made elsewhere (a dock's toggle) at the end of a menu."""
        target = self.menus[menu]
        if self._group_of.get(menu, self._group) != self._group:
            target.addSeparator()
        self._group_of[menu] = self._group
        target.addAction(action)

    def submenu(self, menu: str, text: str) -> QMenu:
        """A menu at the end of a menu."""
        made = QMenu(text, self._window)
        self.place(menu, made.menuAction())
        return made

    def every(self, menu: QMenu) -> list[QAction]:
        """The actions of a menu and of the menus in it."""
        found: list[QAction] = []
        for action in menu.actions():
            inner = action.menu()
            found += self.every(inner) if isinstance(inner, QMenu) else [action]
        return found

    def collect(self) -> None:
        """Let every module of gui/menus add its actions."""
        import gui.menus

        modules = [
            importlib.import_module(f"gui.menus.{info.name}")
            for info in pkgutil.iter_modules(gui.menus.__path__)
        ]
        for module in sorted(modules, key=lambda module: (module.ORDER, module.__name__)):
            self._group = module.__name__
            module.add_to(self._window, self)
