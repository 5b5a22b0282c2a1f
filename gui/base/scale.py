"""One grid of distances and one scale of type sizes, for everything that is laid out."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication

GRID = 4  # pixels: every distance is a multiple of it
TIGHT, GAP, WIDE, BROAD = GRID, 2 * GRID, 3 * GRID, 6 * GRID
PAGE_MARGINS = (GAP, TIGHT, GAP, GAP)  # around what a page holds
ROUND = 6  # of a surface's corners
CONTROL = 5  # of a button's or a field's

# Sizes of text by what it says, against the application's own; what was found is the largest of a page.
SIZES = {"caption": 0.9, "body": 1.0, "heading": 1.1, "finding": 1.15, "empty": 1.2, "verdict": 1.5}


def points(role: str) -> float:
    """The size of a role's text in points."""
    size = QApplication.font().pointSizeF()
    return round((size if size > 0 else 9.0) * SIZES[role], 2)
