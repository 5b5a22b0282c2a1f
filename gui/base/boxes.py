"""Layouts in one call each: columns, rows, splitters, tabs, scroll areas; and where a window stands on its
screen.

Splitters with a name keep their sizes from one start of the program to the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from PySide6.QtCore import QByteArray, QPoint, QRect, QSettings, QSize, Qt
from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
    QHBoxLayout,
    QLayout,
    QLayoutItem,
    QScrollArea,
    QSplitter,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

Part = QWidget | QLayout | int
Placed = tuple[QWidget | QLayout, int] | tuple[QWidget, int, Qt.AlignmentFlag]
Margins = tuple[int, int, int, int]  # left, top, right, bottom
NONE = (0, 0, 0, 0)
HORIZONTAL, VERTICAL = Qt.Orientation.Horizontal, Qt.Orientation.Vertical  # the direction of a splitter
Box = TypeVar("Box", bound=QBoxLayout)


def fitting_height(widget: QWidget, width: int) -> int:
    """The height in pixels that a widget needs at this width, with its text wrapped."""
    layout = widget.layout()
    assert layout is not None
    layout.activate()
    return layout.totalHeightForWidth(width) if layout.hasHeightForWidth() else layout.sizeHint().height()


def filled(
    box: Box,
    *parts: Part | Placed,
    margins: Margins | None = None,
    spacing: int | None = None,
) -> Box:
    """Add parts to a layout, in order, and return it. A part is a widget, a layout or an integer (a
    stretch of that weight); a tuple adds a stretch factor and an alignment. margins: left, top, right,
    bottom in pixels."""
    if margins is not None:
        box.setContentsMargins(*margins)
    if spacing is not None:
        box.setSpacing(spacing)
    for entry in parts:
        part, *how = entry if isinstance(entry, tuple) else (entry,)
        if isinstance(part, int):
            box.addStretch(part)
        elif isinstance(part, QLayout):
            box.addLayout(part, *how)
        else:
            box.addWidget(part, *how)  # type: ignore[arg-type]  # stretch, alignment
    return box


def as_column(*parts: Part | Placed, margins: Margins | None = NONE, spacing: int | None = None) -> QWidget:
    """A widget whose parts stand below each other (see `filled`). margins: None for those of the style."""
    column = QWidget()
    filled(QVBoxLayout(column), *parts, margins=margins, spacing=spacing)
    return column


def as_row(*parts: Part | Placed, margins: Margins | None = NONE, spacing: int | None = None) -> QWidget:
    """A widget whose parts stand beside each other (see `filled`). margins: None for those of the style."""
    row = QWidget()
    filled(QHBoxLayout(row), *parts, margins=margins, spacing=spacing)
    return row


def splitter(
    name: str,
    way: Qt.Orientation,
    *parts: QWidget,
    sizes: Sequence[int] = (),
    stretch: Sequence[int] = (),
    collapsible: bool = True,
) -> QSplitter:
    """Parts between which the user divides the room. name: the key under which the sizes are kept
    (`keep_sizes`), "" for never; sizes: the first ones, in any unit; stretch: the factor of each part."""
    split = QSplitter(way)
    split.setObjectName(name)
    split.setChildrenCollapsible(collapsible)
    for part in parts:
        split.addWidget(part)
    for place, share in enumerate(stretch):
        split.setStretchFactor(place, share)
    if sizes:
        split.setSizes(sizes)
    return split


def tabbed(panes: Mapping[str, QWidget]) -> QTabWidget:
    """Panes behind tabs; the keys are the titles."""
    tabs = QTabWidget()
    tabs.setDocumentMode(True)
    for words, pane in panes.items():
        tabs.addTab(pane, words)
    return tabs


class ScrollArea(QScrollArea):
    """A scroll area without a frame. Its widget takes all the room there is. sideways: whether it also
    scrolls to the right."""

    def __init__(self, name: str = "", sideways: bool = True, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setAccessibleName(name)
        if not sideways:
            self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)


def scrolled(
    widget: QWidget | None = None, name: str = "", sideways: bool = True, focus: bool = True
) -> QScrollArea:
    """A widget in a `ScrollArea`. focus: whether Tab reaches the area."""
    area = ScrollArea(name, sideways)
    if widget is not None:
        area.setWidget(widget)
    if not focus:
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    return area


def kept_list(settings: QSettings, key: str) -> list[str]:
    """The list of texts that the settings keep under a key. An INI file stores a list of one text as that
    text."""
    value: Any = settings.value(key) or []
    return [value] if isinstance(value, str) else [str(text) for text in value]


_PLACE = "split/"


def keep_sizes(settings: QSettings, widget: QWidget) -> None:
    """Store the sizes of all named splitters inside a widget. Sizes of other splitters stay stored."""
    for splitter in _named(widget):
        settings.setValue(_PLACE + splitter.objectName(), splitter.saveState())


def restore_sizes(settings: QSettings, widget: QWidget) -> None:
    """Give the named splitters inside a widget the sizes that `keep_sizes` stored last."""
    for splitter in _named(widget):
        state = settings.value(_PLACE + splitter.objectName())
        if isinstance(state, QByteArray):
            splitter.restoreState(state)


def _named(widget: QWidget) -> list[QSplitter]:
    return [splitter for splitter in widget.findChildren(QSplitter) if splitter.objectName()]


def flowing(owner: QWidget, *widgets: QWidget, spacing: int = 2) -> None:
    """Put widgets into `owner`, side by side; a new line begins where they no longer fit."""
    line = FlowLayout(owner, spacing)
    for widget in widgets:
        line.addWidget(widget)


class FlowLayout(QLayout):
    """Items side by side; a new line begins where they no longer fit."""

    def __init__(self, parent: QWidget | None = None, spacing: int = 2) -> None:
        super().__init__(parent)
        self._items: list[QLayoutItem] = []
        self.setContentsMargins(0, 0, 0, 0)
        self.setSpacing(spacing)

    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._arrange(QRect(0, 0, width, 0), move=False)

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        self._arrange(rect, move=True)

    def sizeHint(self) -> QSize:
        return self.minimumSize()

    def minimumSize(self) -> QSize:
        size = QSize()
        for item in self._items:
            size = size.expandedTo(item.minimumSize())
        return size

    def _arrange(self, rect: QRect, move: bool) -> int:
        """Place the items in `rect` (if `move`), and return the height in pixels that they need."""
        lines: list[list[tuple[QLayoutItem, QSize]]] = [[]]
        x = rect.x()
        for item in self._items:
            widget = item.widget()
            if widget is not None and widget.isHidden():
                continue
            size = item.sizeHint()
            if x + size.width() > rect.right() + 1 and lines[-1]:
                lines.append([])
                x = rect.x()
            lines[-1].append((item, size))
            x += size.width() + self.spacing()
        y = rect.y()
        for line in lines:
            x, height = rect.x(), max((size.height() for _, size in line), default=0)
            for item, size in line:
                if move:  # centred in its line
                    item.setGeometry(QRect(QPoint(x, y + (height - size.height()) // 2), size))
                x += size.width() + self.spacing()
            y += height + self.spacing()
        return y - self.spacing() - rect.y()


SIZE = QSize(1500, 940)  # at the first start, if there is room
FRAME = QSize(12, 44)  # pixels for the window's frame, whose size is unknown before it is shown


def placed(wanted: QSize, room: QRect) -> QRect:
    """A rectangle of this size, in the middle of the room on the screen; smaller if the room is smaller."""
    size = wanted.boundedTo(room.size() - FRAME)
    spare = room.size() - FRAME - size
    left, top = room.left() + spare.width() // 2, room.top() + spare.height() // 2
    return QRect(left, top, size.width(), size.height())


def put_on_screen(window: QWidget) -> None:
    """Move and resize a window so that it lies inside its screen. Nothing happens if it already does."""
    screen = window.screen()
    if screen is None or window.isMaximized() or window.isFullScreen():
        return
    room = screen.availableGeometry()
    if not room.contains(QRect(window.pos(), window.size() + FRAME)):
        place = placed(window.size(), room)
        window.resize(place.size())
        window.move(place.topLeft())
