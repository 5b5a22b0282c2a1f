"""The table of layers."""

from __future__ import annotations

from PySide6.QtGui import QColor
from PySide6.QtWidgets import QAbstractItemView, QWidget

from bench.show.table import Column
from bench.words import palette
from gui.base.theme import Theme
from gui.pages.layers.layer_rows import LayerRow, tip
from gui.widgets.table_view import TableView


class LayerTable(TableView):
    """`picked` carries the output tensor of the layer gone to ("" for what a backend adds itself)."""

    widest = 260

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__("Layers", parent)
        self.theme = theme
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.horizontalHeader().setSectionsMovable(True)

    def follow(self, target: str | None) -> None:
        """What a backend adds itself cannot be selected elsewhere, and stays."""
        here = self.currentIndex()
        if target or not here.isValid() or self.target(self.source.rows[here.row()]):
            super().follow(target or None)

    def target(self, row: LayerRow) -> str:
        return row.layer.output

    def tip(self, row: LayerRow, column: Column[LayerRow]) -> str:
        return tip(row)

    def ink(self, row: LayerRow, column: Column[LayerRow]) -> QColor | None:
        return QColor(self.theme.failed) if column.of(row) is False else None

    def heading_swatch(self, column: Column[LayerRow]) -> QColor | None:
        who, _, what = column.name.rpartition(" ")
        return QColor(palette.backend(who.partition(" ")[0])) if what == "time_s" else None
