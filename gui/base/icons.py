"""Icons by what they mean, from the Phosphor set of QtAwesome, in the theme's ink; a new theme colours them
anew."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QColor, QIcon
from PySide6.QtWidgets import QAbstractButton

from gui.base.theme import Theming

NAMES = {
    "run": "play",
    "cancel": "stop",
    "open": "folder-open",
    "export": "export",
    "form": "sliders-horizontal",
    "whole": "corners-out",
    "back": "corners-in",
    "notes": "info",
}


def icon(name: str, theming: Theming, role: str = "ink") -> QIcon:
    """`name`: a key of NAMES; `role`: a colour of the theme."""
    import qtawesome  # its fonts are wanted with the first icon, and not before

    theme = theming.theme
    return qtawesome.icon(
        f"ph.{NAMES[name]}", color=QColor(getattr(theme, role)), color_disabled=QColor(theme.muted)
    )


def put(target: QAction | QAbstractButton, name: str, theming: Theming, role: str = "ink") -> None:
    """Give an action or a button its icon, in every theme to come, too. What was put before is forgotten."""
    if not isinstance(target.property("icon-name"), str):
        theming.changed.connect(lambda: _draw(target, theming))
    target.setProperty("icon-name", name)
    target.setProperty("icon-role", role)
    _draw(target, theming)


def _draw(target: QObject, theming: Theming) -> None:
    assert isinstance(target, QAction | QAbstractButton)
    target.setIcon(icon(str(target.property("icon-name")), theming, str(target.property("icon-role"))))
