"""What a chart is made of: panels with axes, lines or stacked bars, marks for what failed, words.

Values are in base units (seconds, images a second, fractions), so that whoever draws can put SI prefixes on
the ticks.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec

Scale = Literal["linear", "log"]


class Definition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of what a chart is made of."""


class Axis(Definition, frozen=True):
    """label without the unit; unit "s", "images/s", "FLOP/s", "B/s", "%" (values are fractions), "×" or "".
    ticks: exactly these; labels: what stands at them, in their order (none: the ticks themselves)."""

    label: str
    unit: str = ""
    scale: Scale = "linear"
    ticks: tuple[float, ...] = ()
    labels: tuple[str, ...] = ()


FOLLOWED = 4.0


class Point(Definition, frozen=True):
    """A value with its 95 % interval where there is one; text is what to read out on it. doubts: what speaks
    against it, in sentences; it is then drawn hollow, smaller and paler."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    text: str = ""
    doubts: tuple[str, ...] = ()

    @property
    def followed(self) -> tuple[float, float]:
        """How far down and up an axis goes for it: to the ends of its interval, but to no more than FOLLOWED
        times its value. Of two rounds that differ by much an interval may reach over ten decades; it then
        leaves the picture, which shows the values."""
        low, high = (self.y if end is None else end for end in (self.low, self.high))
        return max(low, self.y / FOLLOWED), min(high, self.y * FOLLOWED)


class MissingPoint(Definition, frozen=True):
    """A case that has no value, at its place on the x axis, with the reason in words."""

    x: float
    disposition: str
    reason: str


class Series(Definition, frozen=True):
    """One line: a backend in one precision. A reference is dashed. colour "#RRGGBB"; marker a matplotlib
    letter. overlay: of which of the other runs that are laid over this one (0: of this one); drawn thinner,
    with small marks. provisional: cases that are being measured, as they look so far; on screen alone.
    named: its label stands at its last point where there is room to set labels apart, instead of in a legend;
    leading: also where not all have room. gaps: where a value was meant to be and is none, marked or not."""

    label: str
    backend: str
    precision: str
    colour: str
    dashed: bool
    marker: str
    points: tuple[Point, ...] = ()
    marks: tuple[MissingPoint, ...] = ()
    overlay: int = 0
    provisional: tuple[Point, ...] = ()
    named: bool = False
    leading: bool = False
    gaps: tuple[float, ...] = ()

    @property
    def line(self) -> list[tuple[float, float]]:
        """Where its line runs, in the order of x; it breaks at what is not a number. A place without a value
        breaks it: nothing was measured between its neighbours. Without any value there is no line."""
        if not self.points:
            return []
        known = {p.x for p in self.points}
        breaks = {*self.gaps, *(m.x for m in self.marks)} - known
        return sorted([*((p.x, p.y) for p in self.points), *((x, math.nan) for x in breaks)])


class BarPart(Definition, frozen=True):
    """One slice of a bar, in the y axis' unit; category is a key of the panel's categories."""

    category: str
    value: float
    text: str = ""


class Bar(Definition, frozen=True):
    """A stack at one batch size, bottom first. total: what is written above it. mark: in place of parts.
    doubts: what speaks against it, in sentences; it is then hollow and hatched, and its total ends in
    bench.results.doubt.MARK. interval: the 95 % interval of the whole, where it is known."""

    x: float
    parts: tuple[BarPart, ...] = ()
    total: str = ""
    mark: MissingPoint | None = None
    doubts: tuple[str, ...] = ()
    interval: tuple[float, float] | None = None

    @property
    def followed(self) -> float:
        """How far up an axis goes for it: to its interval's end, but to no more than twice its height."""
        height = sum(part.value for part in self.parts)
        return min(self.interval[1], 2 * height) if self.interval is not None else height


class Category(Definition, frozen=True):
    """What parts of bars are. colour: "" for one that is drawn nowhere, but lifts what stands on it."""

    key: str
    label: str
    colour: str


class Baseline(Definition, frozen=True):
    """A level to hold bars against: what a reference reaches in one precision."""

    y: float
    label: str
    precision: str = "fp32"
    colour: str = "#4D4D4D"


class Tile(Definition, frozen=True):
    """A cell of a panel that is a table: `text` on `colour` ("": on the paper's own), at one batch size, in
    the row whose place is a tick of the y axis. grade, value, low, high, why: what it stands for
    (bench.views.charts.scoreboard.Cell); doubts: what speaks against it."""

    x: float
    row: int
    text: str
    colour: str = ""
    grade: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    doubts: tuple[str, ...] = ()
    why: str = ""


class Panel(Definition, frozen=True):
    """One pair of axes with lines (series) or stacks (bars), or a table of tiles. baseline: a y value to draw
    a line at; baselines: several, each with its name, for who can draw them (baseline is the first of them).
    dodge: lines lie on each other so often that points are set apart sideways."""

    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...] = ()
    bars: tuple[Bar, ...] = ()
    baseline: float | None = None
    dodge: bool = False
    baselines: tuple[Baseline, ...] = ()
    tiles: tuple[Tile, ...] = ()


class Chart(Definition, frozen=True):
    """A picture: its name is its file's stem. notes: what a reader must know, below the panels."""

    name: str
    model: str
    title: str
    finding: str
    panels: tuple[Panel, ...]
    categories: tuple[Category, ...] = ()
    notes: tuple[str, ...] = ()
    footer: tuple[str, ...] = ()
