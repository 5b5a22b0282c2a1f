"""The list of where runs are measured: this machine, the places that were added, and how to add one."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QStandardItemModel
from PySide6.QtWidgets import QHBoxLayout, QWidget

from bench.run.elsewhere import HERE
from gui.base.boxes import filled
from gui.sessions.where import Where
from gui.widgets.controls import Combo, TermLabel, as_tip

ADD = "+"  # no place is called so
TIP = "Where runs are measured: comparisons, ladders and profiles"


class WhereBox(Combo):
    """Shows a Where and changes it. All boxes of a window show the same. adds: its last entry adds a place,
    which `add_wanted` asks for."""

    add_wanted = Signal()

    def __init__(self, where: Where, adds: bool = False, parent: QWidget | None = None) -> None:
        super().__init__("Where", self._on_chosen, grows=False, parent=parent)
        self._where, self._adds = where, adds
        self.setSizeAdjustPolicy(Combo.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(12)
        self.setAccessibleDescription(TIP)
        where.changed.connect(self._show)
        self._show()

    def _show(self) -> None:
        where = self._where
        places = {place.name: place.words for place in where.offered}
        add = {ADD: "Add a machine…"} if self._adds else {}
        self.offer({HERE: "This machine"} | places | add, where.name)
        model = self.model()
        for row, place in enumerate(where.offered, start=1):
            item = model.item(row) if isinstance(model, QStandardItemModel) else None
            if item is not None:
                item.setEnabled(not place.refused)
                item.setToolTip(as_tip(place.refused or place.words))
        self.setToolTip(as_tip(where.refused or TIP))
        self.setEnabled(not where.locked)

    def _on_chosen(self, _: int) -> None:
        chosen = self.currentData()
        if chosen == ADD:
            self._show()
            self.add_wanted.emit()
        else:
            self._where.choose(chosen)


class WhereRow(QWidget):
    """A box behind its label. Hidden while no place was added."""

    def __init__(self, where: Where, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._where = where
        self.box = WhereBox(where)
        filled(QHBoxLayout(self), TermLabel("Where"), self.box, margins=(0, 0, 0, 0))
        where.changed.connect(self._show)
        self._show()

    def _show(self) -> None:
        self.setVisible(bool(self._where.offered))
