"""Where a window is put at its first start, and that it is on a screen at every other."""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize
from PySide6.QtWidgets import QWidget

SIZE = QSize(1500, 940)  # at first, where there is room
FRAME = QSize(12, 44)  # pixels that a window's frame may take; nobody knows them before it is shown


def placed(wanted: QSize, room: QRect) -> QRect:
    """A window of this size, or as large as the room on the screen lets it be, in the middle of it."""
    size = wanted.boundedTo(room.size() - FRAME)
    spare = room.size() - FRAME - size
    left, top = room.left() + spare.width() // 2, room.top() + spare.height() // 2
    return QRect(left, top, size.width(), size.height())


def put_on_screen(window: QWidget) -> None:
    """Keep the window's size and place where they are within its screen; else bring it there."""
    screen = window.screen()
    if screen is None or window.isMaximized() or window.isFullScreen():
        return
    room = screen.availableGeometry()
    if not room.contains(QRect(window.pos(), window.size() + FRAME)):
        place = placed(window.size(), room)
        window.resize(place.size())
        window.move(place.topLeft())
