"""The buttons below a model's graph."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QToolButton

from gui.widgets.graph.view import GraphView


def zoom_buttons(graph: GraphView) -> list[QToolButton]:
    made = []
    for words, name, tip, do in (
        ("−", "Zoom out", "Zoom out (−)", lambda: graph.zoom_by(0.8)),
        ("+", "Zoom in", "Zoom in (+)", lambda: graph.zoom_by(1.25)),
        ("Fit", "Show the whole graph", "Show the whole graph (0)", graph.fit),
        ("1:1", "Full size", "Full size (1)", graph.full_size),
    ):
        button = QToolButton()
        button.setText(words)
        button.setAccessibleName(name)
        button.setToolTip(tip)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.clicked.connect(do)
        made.append(button)
    return made
