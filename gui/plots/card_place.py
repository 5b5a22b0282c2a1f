"""Where a card that explains a value stands: beside it, over whatever else of the page lies there, and never
over the value itself nor over what stands beside the page."""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize

GAP = 8  # pixels between the value and its card


def beside(size: QSize, value: QRect, room: QRect) -> QRect | None:
    """A place for a card of this size within the room and off the value's column: at its right, its left,
    above or below it. None: there is none."""
    top = max(room.top(), min(value.top(), room.bottom() - size.height()))
    left = max(room.left(), min(value.left(), room.right() - size.width()))
    places = (
        (value.right() + GAP, top),
        (value.left() - GAP - size.width(), top),
        (left, value.top() - GAP - size.height()),
        (left, value.bottom() + GAP),
    )
    cards = (QRect(x, y, size.width(), size.height()) for x, y in places)
    return next((card for card in cards if room.contains(card) and not card.intersects(value)), None)


def widest_side(value: QRect, room: QRect) -> int:
    """How many pixels a card may be wide where it has to fit at one side of the value."""
    return max(value.left() - room.left(), room.right() - value.right()) - 2 * GAP
