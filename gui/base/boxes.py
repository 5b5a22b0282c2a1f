"""Widgets in a column or in a row, said at once."""

from __future__ import annotations

from typing import TypeVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QBoxLayout, QLayout, QWidget

Part = QWidget | QLayout | int
Box = TypeVar("Box", bound=QBoxLayout)


def fitting_height(widget: QWidget, width: int) -> int:
    """That a widget needs at this width for wrapped text in its layout."""
    layout = widget.layout()
    assert layout is not None
    layout.activate()
    return layout.totalHeightForWidth(width) if layout.hasHeightForWidth() else layout.sizeHint().height()


def filled(
    box: Box,
    *parts: Part | tuple[QWidget | QLayout, int] | tuple[QWidget, int, Qt.AlignmentFlag],
    margins: tuple[int, int, int, int] | None = None,
    spacing: int | None = None,
) -> Box:
    """The layout with these parts, in order: widgets and layouts, with their stretch and alignment where they
    have any, and stretches of so much. margins: left, top, right, bottom."""
    if margins is not None:
        box.setContentsMargins(*margins)
    if spacing is not None:
        box.setSpacing(spacing)
    for given in parts:
        part, *how = given if isinstance(given, tuple) else (given,)
        if isinstance(part, int):
            box.addStretch(part)
        elif isinstance(part, QLayout):
            box.addLayout(part, *how)
        else:
            box.addWidget(part, *how)  # type: ignore[arg-type]  # stretch, alignment
    return box
