"""View: the pages, the docks beside them, and the theme."""

from __future__ import annotations

import functools

from PySide6.QtGui import QActionGroup

from gui.base.theme import CHOICES
from gui.shell.main_window import Actions, MainWindow
from gui.widgets.controls import new_action

ORDER = 10


def add_to(window: MainWindow, actions: Actions) -> None:
    for index, page in enumerate(window.pages):
        actions.add(
            "view",
            f"page-{index}",
            page.title,
            functools.partial(window.tabs.setCurrentIndex, index),
            f"Ctrl+{index + 1}",
        )
        for action in page.actions_offered():
            actions.place("view", action)
    actions.menus["view"].addSeparator()
    for key, dock in (
        ("F7", window.form_dock),
        ("F8", window.inspector_dock),
        ("F9", window.problems_dock),
    ):
        toggle = dock.toggleViewAction()
        toggle.setShortcut(key)
        actions.place("view", toggle)
    actions.by_name["problems"] = window.problems_dock.toggleViewAction()
    themes = actions.submenu("view", "&Theme")
    group = QActionGroup(window)
    for choice, text in CHOICES.items():
        action = new_action(
            window,
            text,
            lambda _=False, choice=choice: window.theming.choose(choice),
            checked=window.theming.choice == choice,
        )
        themes.addAction(group.addAction(action))
        actions.by_name[f"theme-{choice}"] = action
    actions.add("view", "dismiss", "&Dismiss messages", lambda: _dismiss(window), "Esc")


def _dismiss(window: MainWindow) -> None:
    """Esc: an enlarged chart becomes small again; else the message in the banner goes."""
    if not window.page.leave():
        window.banner.dismiss()
