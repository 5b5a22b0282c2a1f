"""What the user makes of a table's columns: hidden, moved, pinned at the left. It is kept from one start to
the next."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, QSettings, Qt
from PySide6.QtGui import QAction, QPalette
from PySide6.QtWidgets import QAbstractItemView, QFrame, QMenu, QTableView

from gui.base.background import timer
from gui.widgets.controls import new_action

if TYPE_CHECKING:
    from gui.widgets.table_view import TableView
_PLACE = "tables/"


class Columns(QObject):
    """The user's choices for one table, by the columns' names. hidden: not to be shown; order: from left to
    right, () for the usual one; pinned: how many stay at the left while the others scroll."""

    def __init__(self, table: TableView) -> None:
        super().__init__(table)
        self._table = table
        self.hidden: set[str] = set()
        self.order: tuple[str, ...] = ()
        self.pinned = 0
        self._settings: QSettings | None = None
        self._placing = False
        self._pins: Pins | None = None
        header = table.horizontalHeader()
        header.setSectionsMovable(True)
        header.sectionMoved.connect(self._on_moved)

    def keep_in(self, settings: QSettings) -> None:
        """Take what was kept, and keep what is chosen from now on."""
        self._settings = settings
        try:
            kept: Any = json.loads(str(settings.value(self._key) or "{}"))
            self.hidden = {str(name) for name in kept.get("hidden", ())}
            self.order = tuple(str(name) for name in kept.get("order", ()))
            self.pinned = max(0, int(kept.get("pinned", 0)))
        except (ValueError, TypeError, AttributeError):
            return  # not written by this program: the usual columns
        self._table.show_again()

    def place(self) -> None:
        """Put the columns into the user's order, and pin those that are to be."""
        header, names = self._table.horizontalHeader(), self._names()
        wanted = [name for name in self.order if name in names]
        self._placing = True
        for place, name in enumerate((*wanted, *(name for name in names if name not in wanted))):
            header.moveSection(header.visualIndex(names.index(name)), place)
        self._placing = False
        if self.pinned and self._pins is None:
            self._pins = Pins(self._table)
        if self._pins is not None:
            self._pins.hold(self._leftmost()[: self.pinned])

    def actions(self, menu: QMenu, place: int) -> list[QAction]:
        """For the context menu of a heading, which owns them: hide, pin, and what is shown."""
        table, columns = self._table, self._table.source.columns
        made: list[QAction] = []

        def add(words: str, do: Any, checked: bool | None = None, enabled: bool = True) -> None:
            made.append(new_action(menu, words, do, checked=checked, enabled=enabled))

        shown = self._leftmost()
        if 0 <= place < len(columns):
            name = columns[place].name
            title = columns[place].heading or name
            add(f"Hide “{title}”", lambda: self._hide(name, True), enabled=len(shown) > 1)
            at = shown.index(place) + 1 if place in shown else 0
            add("Pin the columns up to here", lambda: self._pin(at), enabled=0 < at < len(shown))
        if self.pinned:
            add("Pin no columns", lambda: self._pin(0))
        for column in columns:
            if not table.hides(column):
                add(
                    column.heading or column.name,
                    lambda on, name=column.name: self._hide(name, not on),
                    column.name not in self.hidden,
                )
        if self.hidden or self.order or self.pinned:
            add("The usual columns", self._reset)
        return made

    # ------------------------------------------------------------------------------------------ the inside

    @property
    def _key(self) -> str:
        return _PLACE + self._table.accessibleName()

    def _names(self) -> list[str]:
        return [column.name for column in self._table.source.columns]

    def _leftmost(self) -> list[int]:
        """The columns that are shown, from left to right."""
        header = self._table.horizontalHeader()
        places = (header.logicalIndex(at) for at in range(header.count()))
        return [place for place in places if not self._table.isColumnHidden(place)]

    def _hide(self, name: str, hide: bool) -> None:
        (self.hidden.add if hide else self.hidden.discard)(name)
        self._changed()

    def _pin(self, count: int) -> None:
        self.pinned = count
        self._changed()

    def _reset(self) -> None:
        self.hidden, self.order, self.pinned = set(), (), 0
        self._changed()

    def _on_moved(self, *_: int) -> None:
        if not self._placing:
            header, names = self._table.horizontalHeader(), self._names()
            self.order = tuple(names[header.logicalIndex(at)] for at in range(header.count()))
            self._changed()

    def _changed(self) -> None:
        if self._settings is not None:
            kept = {"hidden": sorted(self.hidden), "order": self.order, "pinned": self.pinned}
            self._settings.setValue(self._key, json.dumps(kept))
        self._table.show_again()


class Pins(QTableView):
    """The pinned columns: a view of the same rows over the left edge of a table, which does not scroll
    sideways."""

    def __init__(self, table: TableView) -> None:
        super().__init__(table)
        self._table = table
        self._held: tuple[int, ...] = ()
        self.setModel(table.source)
        self.setSelectionModel(table.selectionModel())
        self.setAccessibleName(f"{table.accessibleName()}, pinned columns")
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(table.selectionMode())
        self.setAlternatingRowColors(True)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.verticalHeader().hide()
        self.horizontalHeader().setHighlightSections(False)
        for bars in (self.setHorizontalScrollBarPolicy, self.setVerticalScrollBarPolicy):
            bars(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(table.verticalScrollMode())
        mine, others = self.verticalScrollBar(), table.verticalScrollBar()
        others.valueChanged.connect(mine.setValue)
        mine.valueChanged.connect(others.setValue)
        self._later = timer(self, 0, self._place)
        header = table.horizontalHeader()
        for signal in (header.sectionResized, header.geometriesChanged, others.rangeChanged):
            signal.connect(lambda *_: self._later.start())
        table.horizontalScrollBar().valueChanged.connect(lambda _: self._place())

    def hold(self, places: Sequence[int]) -> None:
        """Show these columns; none hides it."""
        self._held = tuple(places)
        mine, header = self.horizontalHeader(), self._table.horizontalHeader()
        for place in range(header.count()):
            self.setColumnHidden(place, place not in self._held)
            mine.moveSection(mine.visualIndex(place), header.visualIndex(place))
        self._place()

    def _place(self) -> None:
        table = self._table
        for place in self._held:
            self.setColumnWidth(place, table.columnWidth(place))
        self.verticalHeader().setDefaultSectionSize(table.verticalHeader().defaultSectionSize())
        # Where nothing is scrolled away, the table itself shows them.
        self.setVisible(bool(self._held) and table.horizontalScrollBar().value() > 0)
        wide = sum(table.columnWidth(place) for place in self._held)
        # Its headings lie over those of the columns that scroll.
        at, head = table.viewport().geometry(), table.horizontalHeader().height()
        self.horizontalHeader().setFixedHeight(head)
        self.setGeometry(at.left(), at.top() - head, min(wide, at.width()), at.height() + head)
        self.verticalScrollBar().setValue(table.verticalScrollBar().value())
        self.setPalette(QPalette(table.palette()))
        self.raise_()


def fill(menu: QMenu, actions: Sequence[QAction]) -> None:
    """Add actions to a menu, with a line between what is done and what is shown."""
    first_shown = next((at for at, action in enumerate(actions) if action.isCheckable()), len(actions))
    menu.addActions(list(actions[:first_shown]))
    menu.addSeparator()
    menu.addActions(list(actions[first_shown:]))
