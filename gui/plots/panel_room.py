"""How many panels of a chart stand beside each other: as many as its room leaves readable."""

from __future__ import annotations

PANEL_WIDTH = 250  # pixels a panel wants beside another
PANEL_HEIGHT = 140  # pixels it wants above another
ABOVE = 100  # pixels of a chart that its title, finding and legend take
IN_A_ROW = 4  # panels, of which more stand in a row only where there is no height for a second one


def columns(count: int, width: int, height: int) -> int:
    """Of so many panels on a chart of so many pixels, where there is room for all of them; else 0."""
    if count == 1:
        return 1
    for wanted in (min(count, IN_A_ROW), min(count, width // PANEL_WIDTH)):
        rows = -(-count // max(1, wanted))
        high = rows == 1 or (height - ABOVE) / rows >= PANEL_HEIGHT
        if wanted > 1 and width / wanted >= PANEL_WIDTH and high:
            return wanted
    return 0
