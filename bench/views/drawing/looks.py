"""How wide a picture is and what stands on it beside the panels: for a page of its own, for a paper, a slide.

A picture for a paper is drawn larger or smaller as a whole, letters and lines with it (`grown`), so that what
can be read on one can be read on all. What is left off a picture stands in its caption. All of them are on
light paper.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bench.views.charts.definitions import Chart
from bench.words.option import one_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FAILED, DOUBTED = "✕", "!"  # how a note begins of what failed, and of what is to be doubted
CAPTION = ".txt"
TITLE = 9.5  # points of a panel's title
TITLE_PAD, TICK_PAD = 6.0, 3.5  # points, as matplotlib has them


@dataclass(frozen=True)
class Width:
    """words: for whoever chooses. inches: the picture's (None: as its panels like it). points: how large a
    text is that has 9 on a page. whole: title, finding and footer stand on it unless told otherwise. height:
    inches that it is made to fit into."""

    words: str
    inches: float | None = None
    points: float = 9.0
    margin: float = 0.35
    title: bool = True
    finding: bool = True
    footer: bool = True
    height: float | None = None


PAPER = {"margin": 0.06, "title": False, "finding": False, "footer": False}
WIDTHS = {
    "page": Width("a page of its own"),
    "one-column": Width("one column of a paper, 89 mm", 3.5, 8.0, **PAPER),  # type: ignore[arg-type]
    "two-columns": Width("two columns of a paper, 182 mm", 7.16, 8.0, **PAPER),  # type: ignore[arg-type]
    "slide": Width("a slide, 16:9", 13.33, 14.5, footer=False, height=7.5),
}


@dataclass(frozen=True)
class Look:
    """width: a key of WIDTHS; whether title, finding and footer stand on the picture; caption: whether the
    words lie beside it in a file of their own."""

    width: str = "page"
    title: bool = True
    finding: bool = True
    footer: bool = True
    caption: bool = False

    @property
    def growth(self) -> float:
        """By how much all of it is larger than on a page of its own."""
        return WIDTHS[self.width].points / 9.0

    @property
    def inches(self) -> float | None:
        """How wide it is before it grows; None: as its panels like it."""
        wide = WIDTHS[self.width].inches
        return wide / self.growth if wide is not None else None

    @property
    def height(self) -> float | None:
        """How high it may be before it grows; None: as it likes."""
        high = WIDTHS[self.width].height
        return high / self.growth if high is not None else None

    @property
    def margin(self) -> float:
        return WIDTHS[self.width].margin / self.growth


PAGE = Look()


def look(
    width: str = "page",
    title: bool | None = None,
    finding: bool | None = None,
    footer: bool | None = None,
    caption: bool | None = None,
) -> Look:
    """The look of a width, with what is said otherwise (None: as the width has it; there is a caption where
    anything is left off). Raises InputError."""
    of = WIDTHS[one_of(width, WIDTHS, "--width")]
    title = of.title if title is None else title
    finding = of.finding if finding is None else finding
    footer = of.footer if footer is None else footer
    whole = title and finding and footer
    return Look(width, title, finding, footer, caption=not whole if caption is None else caption)


def notes(chart: Chart, look: Look) -> tuple[str, ...]:
    """The notes that stand on a picture: without its footer those of failures, and of doubts where no
    finding counts them, which no picture goes without."""
    if look.footer:
        return chart.notes
    marked = (FAILED,) if look.finding and chart.finding else (FAILED, DOUBTED)
    return tuple(note for note in chart.notes if note[:1] in marked)


def caption(chart: Chart) -> str:
    """All that can be said of a picture, for the text below it: title, finding, notes, and how it was
    measured."""
    title = chart.title if chart.title.endswith((".", "?")) else f"{chart.title}."
    marks = tuple(re.sub(r"^[✕!] ", "", note) for note in chart.notes)
    body = " ".join(filter(None, [title, chart.finding, *marks]))
    return "\n\n".join(filter(None, [body, "\n".join(chart.footer)])) + "\n"


def grown(figure: Figure, by: float) -> None:
    """Make a finished figure larger or smaller as a whole: its page, and whatever is measured in points."""
    if by == 1:
        return
    from matplotlib.collections import Collection
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.text import Annotation, Text

    figure.draw_without_rendering()  # which makes the ticks that there will be
    for item in figure.findobj():
        if isinstance(item, Text):
            item.set_fontsize(float(item.get_fontsize()) * by)
            if isinstance(item, Annotation) and item.anncoords == "offset points":
                x, y = item.xyann
                item.xyann = (float(x) * by, float(y) * by)
        elif isinstance(item, Line2D):
            item.set_linewidth(item.get_linewidth() * by)
            item.set_markersize(item.get_markersize() * by)
            item.set_markeredgewidth(item.get_markeredgewidth() * by)
        elif isinstance(item, Collection):
            item.set_linewidth([width * by for width in np.atleast_1d(item.get_linewidth())])
        elif isinstance(item, Patch):
            item.set_linewidth(item.get_linewidth() * by)
    for axes in figure.axes:
        title = axes.get_title(loc="left")
        sizes = (text.get_fontsize() for text in axes.findobj(Text) if text.get_text() == title)
        axes.set_title(title, loc="left", pad=TITLE_PAD * by, fontsize=next(sizes, TITLE))
        for axis in (axes.xaxis, axes.yaxis):
            axis.labelpad *= by
            axis.set_tick_params(pad=TICK_PAD * by)
    figure.set_size_inches(*(figure.get_size_inches() * by))
