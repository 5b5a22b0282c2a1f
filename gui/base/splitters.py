"""How the user divided the pages, kept from one start to the next: every splitter with a name."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QSettings
from PySide6.QtWidgets import QSplitter, QWidget

_PLACE = "split/"


def keep(settings: QSettings, widget: QWidget) -> None:
    """Note the sizes of the named splitters below a widget; what was kept of others stays."""
    for splitter in _named(widget):
        settings.setValue(_PLACE + splitter.objectName(), splitter.saveState())


def restore(settings: QSettings, widget: QWidget) -> None:
    """Divide the named splitters below a widget as they were when `keep` was called last."""
    for splitter in _named(widget):
        state = settings.value(_PLACE + splitter.objectName())
        if isinstance(state, QByteArray):
            splitter.restoreState(state)


def _named(widget: QWidget) -> list[QSplitter]:
    return [splitter for splitter in widget.findChildren(QSplitter) if splitter.objectName()]
