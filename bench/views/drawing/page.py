"""A picture's page: texts, a legend and room for panels, placed from the top down in inches.

Each text is wrapped to the width that it has, so that nothing is cut and nothing overlaps.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bench.words import palette

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINE = 1.35  # of the font size


class Page:
    """Places text and boxes from the top down, in inches, then sets the page's height and moves all into
    place."""

    def __init__(self, canvas: Figure, width: float, margin: float) -> None:
        self._canvas = canvas
        self._width = width
        self._margin = margin
        self._y = self._margin
        self._placed: list[tuple[Any, float]] = []

    def text(
        self,
        text: str,
        size: float,
        gap: float = 0.0,
        colour: str = palette.INK,
        weight: str = "normal",
        family: str = "DejaVu Sans",
    ) -> None:
        self._y += gap
        for line in self._wrap(text, size, weight):
            made = self._canvas.text(
                self._margin / self._width,
                0,
                line,
                size=size,
                color=colour,
                weight=weight,
                family=family,
                va="top",
            )
            self._placed.append((made, self._y))
            self._y += size * LINE / 72

    def legend(self, entries: Sequence[tuple[Any, str]]) -> None:
        """One line of entries, or several where they do not fit."""
        if not entries:
            return
        x, self._y = self._margin, self._y + 0.10
        for handle, label in entries:
            need = 0.42 + measure(label, 9) + 0.22
            if x + need > self._width - self._margin and x > self._margin:
                x, self._y = self._margin, self._y + 0.20
            made = self._canvas.legend(
                [handle],
                [label],
                loc="upper left",
                bbox_to_anchor=(x / self._width, 0),
                borderaxespad=0,
                borderpad=0,
                handlelength=2.2,
                handletextpad=0.6,
                fontsize=9,
            )
            self._placed.append((made, self._y))
            x += need
        self._y += 0.26

    @property
    def used(self) -> float:
        """Inches from the top that are taken."""
        return self._y

    def height_of(self, text: str, size: float) -> float:
        """Inches that a text of this size would take."""
        return len(self._wrap(text, size, "normal")) * size * LINE / 72

    def reserve(self, height: float) -> float:
        """Room for a row of panels; its top in inches from the page's top."""
        top = self._y
        self._y += height
        return top

    def finish(self) -> float:
        height = self._y + self._margin * 0.8
        self._canvas.set_size_inches(self._width, height)
        for item, y in self._placed:
            if hasattr(item, "set_bbox_to_anchor"):
                x = item.get_bbox_to_anchor()._bbox.x0
                item.set_bbox_to_anchor((x, 1 - y / height), transform=self._canvas.transFigure)
            else:
                item.set_y(1 - y / height)
        return height

    def _wrap(self, text: str, size: float, weight: str) -> list[str]:
        # A number and its unit stay on one line.
        text = re.sub(r"(?<=\d) (?=%|[nµmkMG]?s\b|[kMG]\b|images\b)", "\u00a0", text)
        room = 0.98 * (self._width - 2 * self._margin)  # hinting makes the drawn text a little wider
        whole = measure(text, size, weight)
        if whole <= room:
            return [text]
        columns = max(20, int(len(text) * room / whole * 0.97))
        while True:
            lines = textwrap.wrap(text, columns, break_long_words=True, break_on_hyphens=False)
            if columns <= 20 or all(measure(line, size, weight) <= room for line in lines):
                return lines
            columns -= 4


def measure(text: str, size: float, weight: str = "normal") -> float:
    """Its width in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    properties = FontProperties(family="DejaVu Sans", weight=weight, size=size)
    return float(text_to_path.get_text_width_height_descent(text, properties, False)[0]) / 72
