"""The axis of time that a timeline is drawn on: which part is shown, how it moves, and its ticks. Nothing of
Qt."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench.words import units
from gui.sessions.timeline_lanes import LaneRow

LEAST_NS = 50.0  # shown at least, over the whole width
MARGIN = 0.02  # of what is fitted, left free at either end
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))


@dataclass(frozen=True)
class Tick:
    x: float
    time_ns: float
    text: str


class TimeAxis:
    """`start` and `end` (ns) are shown over `width` pixels; `low` and `high` bound where one can go."""

    def __init__(self) -> None:
        self.start, self.end = 0.0, 1e6
        self.low, self.high = 0.0, 1e6
        self.width = 1.0
        self.moved: Callable[[], object] = lambda: None  # called when another part is shown

    @property
    def scale(self) -> float:
        """Pixels a nanosecond."""
        return self.width / (self.end - self.start)

    def x(self, time_ns: float) -> float:
        return (time_ns - self.start) * self.scale

    def time(self, x: float) -> float:
        return self.start + x / self.scale

    def bound(self, low: float, high: float) -> None:
        """What there is to see, from low to high."""
        free = MARGIN * max(high - low, LEAST_NS)
        self.low, self.high = low - free, high + free
        self.show(self.start, self.end)

    def fit(self) -> None:
        self.show(self.low, self.high)

    def show(self, start: float, end: float) -> None:
        """Show from start to end, as far as there is anything there and not closer than LEAST_NS."""
        length = min(max(end - start, LEAST_NS), max(LEAST_NS, self.high - self.low))
        middle = (start + end) / 2
        start = min(max(middle - length / 2, self.low), max(self.low, self.high - length))
        self.start, self.end = start, start + length
        self.moved()

    def look_at(self, start: float, end: float) -> None:
        """Show from start to end with some room at either end."""
        free = max(0.08 * (end - start), LEAST_NS / 2)
        self.show(start - free, end + free)

    def zoom(self, factor: float, x: float) -> None:
        """Enlarge by a factor, so that what is at `x` stays there."""
        at = self.time(x)
        length = min(max((self.end - self.start) / factor, LEAST_NS), self.high - self.low)
        start = at - x / self.width * length
        self.show(start, start + length)

    def pan(self, pixels: float) -> None:
        """Move what is shown to the right by so many pixels."""
        by = pixels / self.scale
        self.show(self.start - by, self.end - by)

    def ticks(self, room: float) -> list[Tick]:
        """Round moments at least `room` pixels apart."""
        least = room / self.scale
        power = 10.0 ** math.floor(math.log10(least))
        step = next(f * power for f in (1, 2, 5, 10) if f * power >= least)
        unit, name = next(((u, n) for u, n in _UNITS if step >= u), _UNITS[-1])
        first, last = math.ceil(self.start / step), math.floor(self.end / step)
        decimals = 0 if step >= 1 else 1
        return [
            Tick(self.x(i * step), i * step, f"{i * step / unit:,.{decimals}f} {name}")
            for i in range(first, last + 1)
        ]


@dataclass(frozen=True)
class DrawnRow:
    """What is to be drawn of a row. wide: indices of intervals that are seen by themselves, with their x and
    end in pixels; cover: how much of each pixel column the others cover (0 to 1), colour: the one that most
    of that is of."""

    wide: np.ndarray
    x0: np.ndarray
    x1: np.ndarray
    cover: np.ndarray
    colour: np.ndarray


SEEN = 2.0  # pixels from which an interval is drawn by itself


def drawn(row: LaneRow, kinds: int, axis: TimeAxis, offset: float) -> DrawnRow:
    """What of a row is seen on the axis, its times less `offset` (ns). kinds: how many colours there are.
    Costs what is visible, and never more draws than there are pixels."""
    first = int(np.searchsorted(row.reach, axis.start + offset, "right"))
    last = int(np.searchsorted(row.starts, axis.end + offset, "left"))
    wide = max(1, math.ceil(axis.width))
    x0 = (row.starts[first:last] - offset - axis.start) * axis.scale
    x1 = (row.ends[first:last] - offset - axis.start) * axis.scale
    alone = x1 - x0 >= SEEN
    small = ~alone
    cover: np.ndarray = np.zeros((wide, max(1, kinds)))
    if small.any():
        column = np.clip(x0[small].astype(np.int64), 0, wide - 1)
        size = np.maximum(x1[small] - x0[small], 1e-6)  # what takes no time at all is seen all the same
        flat = np.bincount(column * kinds + row.colours[first:last][small], size, wide * kinds)
        cover = flat.reshape(wide, kinds)
    return DrawnRow(
        wide=np.nonzero(alone)[0] + first,
        x0=x0[alone],
        x1=x1[alone],
        cover=np.minimum(cover.sum(axis=1), 1.0),
        colour=cover.argmax(axis=1),
    )


def at_pixel(row: LaneRow, axis: TimeAxis, offset: float, x: float) -> int | None:
    """The interval of a row at a pixel, else the nearest within two pixels; None where there is none."""
    moment, best = axis.time(x) + offset, 2.0 / axis.scale
    after = int(np.searchsorted(row.starts, moment, "right"))
    found = None
    for index in (after, after - 1):
        if 0 <= index < len(row.starts):
            away = max(row.starts[index] - moment, moment - row.ends[index], 0.0)
            if away <= best:
                found, best = index, away
    return found


def length_text(time_ns: float) -> str:
    """A measured length: four digits with their unit, and how often a second that would be."""
    rate = f" ({units.si(1e9 / time_ns)}/s)" if time_ns > 0 else ""
    return f"{units.duration(time_ns, 4)}{rate}"
