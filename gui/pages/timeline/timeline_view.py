"""The timeline: the tracks of all cases below each other, on one axis of time.

The wheel zooms at the pointer, Shift and the wheel move in time, Ctrl and the wheel scroll the tracks.
Dragging measures; dragging with Shift, with the middle button or on the axis moves. A click selects; a
double click shows an event over the whole width. Keys: arrows move, + and − zoom, 0 shows everything, Z
shows what was measured, N and P go to the next and the previous event of the track, Ctrl+C copies the
selected event, Escape ends the selection.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import ClassVar

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QFocusEvent,
    QFont,
    QFontMetricsF,
    QImage,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QApplication, QMenu, QWidget

from bench.results import api_calls as profile_api
from bench.results import kernel_names as profile_names
from bench.results import parts as profile_parts
from bench.results.events import Activity, ApiCall, Counters, Event, HostSpan, Mark
from bench.views.charts.profile_charts import PARTS
from bench.words import palette, units
from gui.base.theme import Theme, Theming, resized, scaled, write
from gui.sessions.profile_session import CALL, MARK, STEADY, Span, Track, TrackGroup, TrackRow
from gui.widgets.colour_scale import blend, ink_on
from gui.widgets.controls import Readout

LEAST_NS = 50.0  # shown at least, over the whole width
MARGIN = 0.02  # of what is fitted, left free at either end
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))


@dataclass(frozen=True)
class Tick:
    """A tick of the axis. x: in pixels."""

    x: float
    time_ns: float
    text: str


class TimeAxis:
    """The times `start` to `end` (ns) are shown over `width` pixels. `low` and `high` limit what can be
    shown."""

    def __init__(self) -> None:
        self.start, self.end = 0.0, 1e6
        self.low, self.high = 0.0, 1e6
        self.width = 1.0
        self.moved: Callable[[], object] = lambda: None  # called when another part is shown

    @property
    def scale(self) -> float:
        """Pixels for a nanosecond."""
        return self.width / (self.end - self.start)

    def x(self, time_ns: float) -> float:
        return (time_ns - self.start) * self.scale

    def time(self, x: float) -> float:
        return self.start + x / self.scale

    def bound(self, low: float, high: float) -> None:
        """Set the limits, with a margin."""
        free = MARGIN * max(high - low, LEAST_NS)
        self.low, self.high = low - free, high + free
        self.show(self.start, self.end)

    def fit(self) -> None:
        self.show(self.low, self.high)

    def show(self, start: float, end: float) -> None:
        """Show start to end (ns), within the limits and at least LEAST_NS long."""
        length = min(max(end - start, LEAST_NS), max(LEAST_NS, self.high - self.low))
        middle = (start + end) / 2
        start = min(max(middle - length / 2, self.low), max(self.low, self.high - length))
        self.start, self.end = start, start + length
        self.moved()

    def look_at(self, start: float, end: float) -> None:
        """Show start to end (ns) with a margin on both sides."""
        free = max(0.08 * (end - start), LEAST_NS / 2)
        self.show(start - free, end + free)

    def zoom(self, factor: float, x: float) -> None:
        """Enlarge by a factor. The time at pixel `x` stays there."""
        at = self.time(x)
        length = min(max((self.end - self.start) / factor, LEAST_NS), self.high - self.low)
        start = at - x / self.width * length
        self.show(start, start + length)

    def pan(self, pixels: float) -> None:
        """Move what is shown to the right by this many pixels."""
        by = pixels / self.scale
        self.show(self.start - by, self.end - by)

    def ticks(self, room: float) -> list[Tick]:
        """Ticks at round times, at least `room` pixels apart."""
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
    """What to draw of a row. wide: indices of events that are drawn one by one, from x0 to x1 (pixels);
    cover: for each pixel column the part that the other events cover (0 to 1); colour: the index of
    their main colour."""

    wide: np.ndarray
    x0: np.ndarray
    x1: np.ndarray
    cover: np.ndarray
    colour: np.ndarray


SEEN = 2.0  # pixels from which an interval is drawn by itself


def drawn(row: TrackRow, kinds: int, axis: TimeAxis, offset: float) -> DrawnRow:
    """What to draw of a row. kinds: the number of colours; offset: the zero of time in ns. The work grows
    with what is visible, and the number of drawn items is at most that of pixels."""
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
        size = np.maximum(x1[small] - x0[small], 1e-6)  # an event without duration is visible, too
        flat = np.bincount(column * kinds + row.colours[first:last][small], size, wide * kinds)
        cover = flat.reshape(wide, kinds)
    return DrawnRow(
        wide=np.nonzero(alone)[0] + first,
        x0=x0[alone],
        x1=x1[alone],
        cover=np.minimum(cover.sum(axis=1), 1.0),
        colour=cover.argmax(axis=1),
    )


def at_pixel(row: TrackRow, axis: TimeAxis, offset: float, x: float) -> int | None:
    """The index of the event at pixel `x`, or of the nearest one within two pixels; None if there is none."""
    moment, best = axis.time(x) + offset, 2.0 / axis.scale
    after = int(np.searchsorted(row.starts, moment, "right"))
    nearest = None
    for index in (after, after - 1):
        if 0 <= index < len(row.starts):
            away = max(row.starts[index] - moment, moment - row.ends[index], 0.0)
            if away <= best:
                nearest, best = index, away
    return nearest


def length_text(time_ns: float) -> str:
    """A length of time in four digits, and the same as a rate."""
    rate = f" ({units.si(1e9 / time_ns)}/s)" if time_ns > 0 else ""
    return f"{units.duration(time_ns, 4)}{rate}"


# Operators → the categories that every chart has them in; what is not named is "other".
_OPERATORS = {
    "conv": ("Conv", "ConvTranspose", "FusedConv"),
    "pool": ("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"),
    "fc": ("Gemm", "MatMul", "FusedGemm", "FusedMatMul"),
}
# Operators that are neighbours in our models have different colours; others get one by their name.
_OTHER_OPERATORS = {
    "Softmax": "#999933",
    "LogSoftmax": "#999933",
    "LRN": "#B8860B",
    "Relu": "#6B8E23",
    "Tanh": "#A0764A",
    "Sigmoid": "#7A7A3A",
    "Add": "#C07850",
    "Concat": "#8C8CC0",
    "Flatten": "#5F9EA0",
    "Reshape": "#5F9EA0",
    "Transpose": "#9C6B98",
    "ReorderInput": "#B59ACB",
    "ReorderOutput": "#D0A5A5",
}
_SPANS = {
    "pass": "#4477AA",
    "warm-up": "#77AADD",
    "create": "#882255",
    "close": "#AA7766",
    "bind": PARTS["h2d"],
    "run": palette.CATEGORIES["compute"][1],
    "synchronize": PARTS["sync"],
    "fetch": PARTS["d2h"],
}
_CALLS = {
    "launch": "launch",
    "copy": "d2d",
    "alloc": "alloc",
    "sync": "sync",
    "load": "profiler",
    "other": "api",
}
_PHASES = ("#332288", "#882255", "#CC6677", "#DDCC77", "#999933", "#44AA99", "#88CCEE", "#AA4499", "#117733")


def colour(key: str, theme: Theme) -> QColor:
    """The colour of a key of gui.sessions.profile_session or bench.results.parts; lighter in the dark
    theme if needed."""
    tone = QColor(_plain(key))
    if theme.dark and tone.lightnessF() < 0.45:
        return blend((tone.name(), "#FFFFFF"), 0.3)
    return tone


def _plain(key: str) -> str:
    if key.startswith(CALL):
        key = _CALLS.get(key.removeprefix(CALL), "api")
    if key.startswith(MARK):
        name = key.removeprefix(MARK)
        return _SPANS.get(name) or _PHASES[sum(name.encode()) % len(_PHASES)]
    if key.startswith(profile_parts.OP):
        name = key.removeprefix(profile_parts.OP).partition("+")[0]  # of several operators in one, the first
        category = next((c for c, names in _OPERATORS.items() if name in names), "")
        if category:
            return palette.CATEGORIES[category][1]
        if not name:
            return palette.CATEGORIES["compute"][1]
        tones = list(dict.fromkeys(_OTHER_OPERATORS.values()))
        return _OTHER_OPERATORS.get(name) or tones[sum(name.encode()) % len(tones)]
    return PARTS.get(key, "#777777")


def short(event: Event) -> str:
    """The name of an event inside its bar."""
    if isinstance(event, Activity):
        if event.kind == "kernel":
            return profile_names.short(event.name)
        return f"{event.name} {units.nbytes(event.nbytes)}" if event.nbytes else event.name
    if isinstance(event, ApiCall):
        return profile_api.bare(event.name)
    if isinstance(event, HostSpan) and event.op_type and event.op_type != event.name:
        return f"{event.op_type} {event.name}"
    if isinstance(event, Mark) and event.kind == "window" and event.run is not None:
        return f"{event.name} {event.run + 1}"
    return event.name


Facts = list[tuple[str, str]]  # what, and its value


def facts(event: Event, zero_ns: int) -> Facts:
    """All that is known of an event, as pairs. Times count from `zero_ns`."""
    known = [
        ("time", units.duration(event.time_ns, 4)),
        ("starts at", f"{(event.start_ns - zero_ns) / 1e6:,.4f} ms"),
    ]
    match event:
        case Activity():
            known += _of_activity(event)
        case ApiCall():
            known += _known(
                ("into", f"the {event.domain}"),
                ("thread", str(event.thread)),
                (f"{event.memory} memory".strip(), units.nbytes(event.nbytes) if event.nbytes else ""),
                ("waited for", event.waited_for),
                ("returned", f"error {event.code}" if event.code else ""),
            )
        case HostSpan():
            inside = event.kind == "inside"
            known += _known(
                ("stream", str(event.stream)) if inside else ("thread", str(event.thread)),
                ("told by", "clock stamps inside the kernel that does it" * inside),
                ("by", event.provider),
                ("rung", event.rung),
            )
            known += [*_copied(event), *_nodes(event)]
        case Mark():
            had = units.duration(event.cpu_ns, 4) if event.cpu_ns is not None else ""
            known += _known(("its thread had a core for", had), ("", event.text))
    return known


def _known(*facts: tuple[str, str]) -> Facts:
    """The pairs that have a value."""
    return [(what, value) for what, value in facts if value]


def _of_activity(event: Activity) -> Facts:
    known = [("stream", str(event.stream))]
    if event.grid and event.block:
        shared = event.static_shared_nbytes + event.dynamic_shared_nbytes
        known += [
            ("grid", _shape(event.grid)),
            ("block", _shape(event.block)),
            ("registers", f"{event.registers} a thread"),
            ("shared memory", f"{units.nbytes(shared)} a block" if shared else "none"),
        ]
    known += _copied(event)
    way = f"{event.from_memory or 'unknown'} to {event.to_memory or 'unknown'}"
    known += _known(
        ("memory", way if event.from_memory or event.to_memory else ""),
        ("CUDA graph", f"{event.graph}, node {event.graph_node}" if event.graph else ""),
    )
    return [*known, *(_counted(event.counters) if event.counters is not None else ()), *_nodes(event)]


def _copied(event: Activity | HostSpan) -> Facts:
    rate = event.bytes_per_s
    return _known(
        ("bytes", f"{event.nbytes:,} ({units.nbytes(event.nbytes)})" if event.nbytes else ""),
        ("rate", f"{rate / 1e9:,.2f} GB/s" if rate is not None else ""),
    )


def _counted(counters: Counters) -> Facts:
    """The hardware counters of a kernel, from another pass in which each kernel ran alone."""
    moved, sectors, scattered = counters.dram_nbytes, counters.sectors_a_load, counters.scattered
    warps = counters.warps_share
    return _known(
        ("DRAM bytes counted", f"{moved:,.0f} ({units.nbytes(moved)})" if moved is not None else ""),
        ("sectors a load", f"{sectors:.2f}" if sectors is not None else ""),
        ("sectors of side by side", units.times(scattered) if scattered is not None else ""),
        ("warps there", units.percent(warps, 1) if warps is not None else ""),
    )


def _nodes(event: Activity | HostSpan) -> Facts:
    return _known(
        ("operator", event.op_type),
        ("nodes" if len(event.nodes) > 1 else "node", ", ".join(event.nodes)),
        ("pass", str(event.run + 1) if event.run is not None else ""),
    )


def _shape(size: tuple[int, int, int]) -> str:
    return " × ".join(f"{n:,}" for n in size)


def full_name(event: Event) -> str:
    return profile_names.demangled(event.name) if isinstance(event, Activity) else event.name


def html(event: Event, zero_ns: int, theme: Theme) -> str:
    """The facts as an HTML table for the tooltip at the pointer."""
    name = full_name(event)
    head = escape(name if len(name) <= 160 else f"{name[:159]}…")
    lines = "".join(
        f'<tr><td style="color:{theme.muted}">{escape(what)}&nbsp;</td><td>{escape(value)}</td></tr>'
        for what, value in facts(event, zero_ns)
    )
    return f"<b>{head}</b><table cellspacing=0>{lines}</table>"


TITLES = 176  # pixels of the column on the left
TICKS = 26  # of the axis at the top
HEAD = 22  # of a group's title
ROW, INNER = 20, 15  # a track's first row, and those below it
GAP = 4  # between tracks
LABELLED = 26  # pixels from which a bar has its name in it


@dataclass(frozen=True)
class TimelinePlace:
    """Where a row of a track lies: its top and height in pixels, from the top of all tracks."""

    group: TrackGroup
    track: Track
    row: TrackRow
    first: bool
    top: float
    height: float


class TimelineLayout:
    """The places of all rows, one group below the other."""

    def __init__(self, groups: Sequence[TrackGroup]) -> None:
        self.heads: list[tuple[TrackGroup, float]] = []
        self.places: list[TimelinePlace] = []
        y = 0.0
        for group in groups:
            self.heads.append((group, y))
            y += scaled(HEAD)
            for track in group.tracks:
                for index, row in enumerate(track.rows):
                    height = float(scaled(INNER) if index else scaled(ROW))
                    self.places.append(TimelinePlace(group, track, row, index == 0, y, height))
                    y += height
                y += GAP
        self.height = y

    def at(self, y: float) -> TimelinePlace | None:
        return next((place for place in self.places if place.top <= y < place.top + place.height), None)

    def between(self, low: float, high: float) -> Iterator[TimelinePlace]:
        return (place for place in self.places if place.top < high and place.top + place.height > low)


class Painter:
    """Paints a layout. `axis.width` is the width to the right of the titles."""

    def __init__(self, painter: QPainter, axis: TimeAxis, theme: Theme, font: QFont) -> None:
        self.painter, self.axis, self.theme = painter, axis, theme
        self.metrics = QFontMetricsF(font)
        painter.setFont(font)

    def ticks(self, height: float) -> None:
        """Paint the axis, with lines down to `height`."""
        painter, theme, axis = self.painter, self.theme, self.axis
        painter.fillRect(QRectF(0, 0, scaled(TITLES) + axis.width, scaled(TICKS)), QColor(theme.window))
        room = max(80.0, self.metrics.horizontalAdvance("1,000,000.0 ms") + 12)
        for tick in axis.ticks(room):
            x = scaled(TITLES) + tick.x
            painter.setPen(QPen(QColor(theme.grid), 1))
            painter.drawLine(QPointF(x, scaled(TICKS)), QPointF(x, height))
            painter.setPen(QPen(QColor(theme.muted), 1))
            painter.drawLine(QPointF(x, scaled(TICKS) - 5), QPointF(x, scaled(TICKS)))
            if tick.x + 6 + self.metrics.horizontalAdvance(tick.text) < axis.width:
                painter.drawText(QPointF(x + 4, scaled(TICKS) - 8), tick.text)
        painter.setPen(QPen(QColor(theme.line), 1))
        painter.drawLine(QPointF(0, scaled(TICKS)), QPointF(scaled(TITLES) + axis.width, scaled(TICKS)))

    def head(self, group: TrackGroup, y: float) -> None:
        rect = QRectF(0, y, scaled(TITLES) + self.axis.width, scaled(HEAD))
        self.painter.fillRect(rect, QColor(self.theme.alternate))
        self.painter.fillRect(QRectF(8, y + 6, 10, scaled(HEAD) - 12), QColor(palette.backend(group.backend)))
        font = self.painter.font()
        self.painter.setFont(resized(font, bold=True))
        write(self.painter, rect.adjusted(24, 0, 0, 0), group.title, self.theme.ink)
        self.painter.setFont(font)

    def title(self, place: TimelinePlace, y: float) -> None:
        rect = QRectF(8, y, scaled(TITLES) - 14, place.height)
        write(self.painter, rect, place.track.title, self.theme.muted)

    def row(self, place: TimelinePlace, y: float, offset: float, selected: object) -> None:
        """Paint a row: wide events one by one, narrow ones as shades of their density."""
        painter, track, row = self.painter, place.track, place.row
        seen = drawn(row, len(track.keys), self.axis, offset)
        colours = [colour(key, self.theme) for key in track.keys]
        top, height = y + 1.0, place.height - 2.0
        if seen.cover.any():
            painter.drawImage(
                QRectF(scaled(TITLES), top, len(seen.cover), height), shades(seen.cover, seen.colour, colours)
            )
        edge = QColor(self.theme.paper)
        width = self.axis.width
        for index, x0, x1 in zip(seen.wide, seen.x0, seen.x1, strict=True):
            left, right = max(float(x0), -2.0), min(float(x1), width + 2.0)
            rect = QRectF(scaled(TITLES) + left, top, right - left, height)
            fill = colours[row.colours[index]]
            painter.fillRect(rect, fill)
            if rect.width() > 4:
                painter.setPen(QPen(edge, 1))
                painter.drawLine(rect.topRight(), rect.bottomRight())
            event = row.events[index]
            if event is selected:
                for tone, wide in (
                    (self.theme.paper, 4),
                    (self.theme.ink, 2),
                ):  # two frames, visible on any colour
                    painter.setPen(QPen(QColor(tone), wide))
                    painter.drawRect(rect.adjusted(1, 1, -1, -1))
            if rect.width() >= LABELLED:
                inner = rect.intersected(QRectF(scaled(TITLES), top, width, height)).adjusted(4, 0, -3, 0)
                words = self.metrics.elidedText(short(event), Qt.TextElideMode.ElideRight, inner.width())
                if len(words) > 1:
                    painter.setPen(ink_on(fill))
                    painter.drawText(inner, Qt.AlignmentFlag.AlignVCenter, words)

    def mark(self, start_ns: float, end_ns: float, place: TimelinePlace) -> None:
        """Mark an event that is too narrow for a frame."""
        x0, x1 = scaled(TITLES) + self.axis.x(start_ns), scaled(TITLES) + self.axis.x(end_ns)
        if x1 - x0 < 4:
            middle = (x0 + x1) / 2
            self.painter.fillRect(
                QRectF(middle - 1.5, place.top - 1, 3, place.height + 2), QColor(self.theme.ink)
            )

    def arrow(self, call_ns: float, call: TimelinePlace, started_ns: float, started: TimelinePlace) -> None:
        """Paint an arrow from the start of a call to the start of what it launched."""
        points = [
            QPointF(scaled(TITLES) + self.axis.x(ns), place.top + place.height / 2)
            for ns, place in ((call_ns, call), (started_ns, started))
        ]
        if min(point.x() for point in points) > scaled(TITLES) + self.axis.width or max(
            point.x() for point in points
        ) < scaled(TITLES):
            return
        self.painter.setPen(QPen(QColor(self.theme.ink), 1.2))
        self.painter.drawLine(*points)
        self.painter.setBrush(QColor(self.theme.ink))
        self.painter.drawEllipse(points[1], 3, 3)
        self.painter.setBrush(Qt.BrushStyle.NoBrush)

    def measure(self, start: float, end: float, height: float) -> None:
        """Paint the measured range, with its length."""
        x0, x1 = (scaled(TITLES) + self.axis.x(t) for t in sorted((start, end)))
        band = QColor(self.theme.accent)
        band.setAlphaF(0.16)
        self.painter.fillRect(QRectF(x0, scaled(TICKS), x1 - x0, height - scaled(TICKS)), band)
        self.painter.setPen(QPen(QColor(self.theme.accent), 1))
        for x in (x0, x1):
            self.painter.drawLine(QPointF(x, scaled(TICKS)), QPointF(x, height))
        words = length_text(abs(end - start))
        wide = self.metrics.horizontalAdvance(words) + 12
        left = scaled(TITLES)
        middle = min(max((x0 + x1) / 2, left + wide / 2), left + self.axis.width - wide / 2)
        box = QRectF(middle - wide / 2, scaled(TICKS) + 3, wide, self.metrics.height() + 4)
        self.painter.setBrush(QColor(self.theme.accent))
        self.painter.drawRoundedRect(box, 3, 3)
        self.painter.setPen(QColor(self.theme.on_accent))
        self.painter.drawText(box, Qt.AlignmentFlag.AlignCenter, words)
        self.painter.setBrush(Qt.BrushStyle.NoBrush)


def shades(cover: np.ndarray, index: np.ndarray, colours: Sequence[QColor]) -> QImage:
    """An image of one row of pixels. A column is more opaque the more of it is covered."""
    table = np.array([[c.red(), c.green(), c.blue()] for c in colours], np.float64)
    alpha = np.where(cover > 0, 0.25 + 0.75 * cover, 0.0)
    rgba = np.empty((len(cover), 4), np.uint8)
    rgba[:, :3] = table[index]
    rgba[:, 3] = (alpha * 255).round()
    data = rgba.tobytes()
    return QImage(data, len(cover), 1, 4 * len(cover), QImage.Format.Format_RGBA8888).copy()


MOST_ARROWS = 200  # of a call that started a whole graph
STEP = 60  # pixels that an arrow moves
READOUT_WIDTH = 460


class TimelineView(QAbstractScrollArea):
    """The timeline. `show_groups` fills it. `picked` carries the selected event, None for none. `measured`
    carries (start, end) in ns of the measured range, None if it was removed."""

    picked = Signal(object)
    measured = Signal(object)

    KEYS: ClassVar = {
        "←, →, A, D": "Earlier and later on the timeline",
        "↑, ↓": "Scroll the lanes",
        "+, −, W, S": "Zoom the timeline",
        "0, Home": "The whole timeline",
        "N, P": "Next and previous event",
        "Z": "Zoom to the measured span",
        "Ctrl+C": "Copy the event selected",
        "Esc": "Let go of what is measured or selected",
    }

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.theming = theming
        self.axis = TimeAxis()
        self.groups: tuple[TrackGroup, ...] = ()
        self.anchor = STEADY
        self.selected: Event | None = None
        self.measure: tuple[float, float] | None = None
        self._layout = TimelineLayout(())
        self._place: TimelinePlace | None = None  # of the selected event
        self._partners: list[tuple[Activity | ApiCall, TimelinePlace]] = []
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFrameShape(QAbstractScrollArea.Shape.NoFrame)
        self.setAccessibleName("Timeline")
        self._pressed: QPointF | None = None
        self._last = QPointF()
        self._drag = ""  # "", "measure?", "measure", "move?", "move"
        self.readout = Readout(theming, self.viewport())
        self.readout.setMaximumWidth(READOUT_WIDTH)
        self.readout.setWordWrap(True)
        self.viewport().setMouseTracking(True)
        self.axis.moved = self.viewport().update
        theming.changed.connect(self._restyle)

    # ---------------------------------------------------------------------------------------------- showing

    def show_groups(self, groups: Sequence[TrackGroup], anchor: str = STEADY) -> None:
        """Show these cases. Their times are shifted so that the moment `anchor` of each is 0."""
        same = [g.key for g in groups] == [g.key for g in self.groups] and anchor == self.anchor
        self.groups, self.anchor = tuple(groups), anchor
        self._layout = TimelineLayout(self.groups)
        self.axis.bound(
            min((g.start - g.anchor(anchor) for g in groups), default=0),
            max((g.end - g.anchor(anchor) for g in groups), default=1_000_000),
        )
        if not same:
            self.let_go()
            self.axis.fit()
        self._scrolling()
        self.viewport().update()

    def _restyle(self) -> None:
        self._layout = TimelineLayout(self.groups)  # the text may have another size
        self._place = self.place_of(self.selected)
        self._scrolling()
        self.viewport().update()

    def look_at(self, span: Span, group: TrackGroup) -> None:
        """Show a span of a group over the whole width."""
        zero = group.anchor(self.anchor)
        self.axis.look_at(span.start_ns - zero, span.end_ns - zero)

    def fit(self) -> None:
        self.axis.fit()

    def zoom_by(self, factor: float) -> None:
        self.axis.zoom(factor, self.axis.width / 2)

    def zoom_to_measure(self) -> None:
        if self.measure is not None:
            self.axis.show(*sorted(self.measure))

    def select(self, event: Event | None) -> None:
        """Select an event, scroll to it, and emit `picked`."""
        self.selected = event
        self._place = self.place_of(event)
        self._partners = self._started(event)
        if event is not None and self._place is not None:
            zero = self._place.group.anchor(self.anchor)
            start, end = event.start_ns - zero, event.end_ns - zero
            if end < self.axis.start or start > self.axis.end:
                half = (self.axis.end - self.axis.start) / 2
                self.axis.show((start + end) / 2 - half, (start + end) / 2 + half)
            self._show_row(self._place)
        self.setAccessibleDescription(full_name(event) if event is not None else "")
        self.viewport().update()
        self.picked.emit(event)

    def zero_of(self, event: Event) -> int:
        """The moment (ns of the profile's clock) from which an event's times are counted."""
        place = self.place_of(event)
        return place.group.anchor(self.anchor) if place is not None else 0

    def step(self, by: int) -> None:
        """Select the next event of the row, or with -1 the previous one."""
        if self._place is None or self.selected is None:
            first = next(iter(self._layout.places), None)
            if first is not None:
                self.select(first.row.events[0])
            return
        index = _index(self._place.row, self.selected)
        events = self._place.row.events
        if index is not None and 0 <= index + by < len(events):
            self.select(events[index + by])

    def words(self, event: Event) -> str:
        """All that is known of an event, in one line."""
        known = ", ".join(f"{what} {value}".strip() for what, value in facts(event, self.zero_of(event)))
        return f"{full_name(event)}: {known}"

    def sizeHint(self) -> QSize:
        return QSize(700, 360)

    # ---------------------------------------------------------------------------------------------- painting

    def paintEvent(self, _: QPaintEvent) -> None:
        theme, size = self.theming.theme, self.viewport().size()
        canvas = QPainter(self.viewport())
        canvas.fillRect(self.viewport().rect(), QColor(theme.paper))
        painter = Painter(canvas, self.axis, theme, self.font())
        painter.ticks(size.height())
        scroll = self.verticalScrollBar().value()
        canvas.setClipRect(0, scaled(TICKS) + 1, size.width(), size.height())
        canvas.translate(0, scaled(TICKS) + 1 - scroll)
        low, high = scroll, scroll + size.height()
        canvas.save()
        canvas.setClipRect(scaled(TITLES), low, size.width() - scaled(TITLES), size.height())
        for place in self._layout.between(low, high):
            painter.row(place, place.top, place.group.anchor(self.anchor), self.selected)
        if self.selected is not None and self._place is not None:
            zero = self._place.group.anchor(self.anchor)
            painter.mark(self.selected.start_ns - zero, self.selected.end_ns - zero, self._place)
            for partner, place in self._partners:
                pair = ((self.selected, self._place), (partner, place))
                call, started = pair if isinstance(self.selected, ApiCall) else pair[::-1]
                painter.arrow(call[0].start_ns - zero, call[1], started[0].start_ns - zero, started[1])
        canvas.restore()
        for group, y in self._layout.heads:
            painter.head(group, y)
        for place in self._layout.between(low, high):
            if place.first:
                painter.title(place, place.top)
        canvas.resetTransform()
        canvas.setClipRect(scaled(TITLES), 0, size.width() - scaled(TITLES), size.height())
        if self.measure is not None:
            painter.measure(*self.measure, size.height())
        if self.hasFocus():
            canvas.setClipping(False)
            canvas.setPen(QColor(theme.accent))
            canvas.drawRect(self.viewport().rect().adjusted(0, 0, -1, -1))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._scrolling()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.viewport().update()

    def _scrolling(self) -> None:
        size = self.viewport().size()
        self.axis.width = max(1.0, size.width() - scaled(TITLES))
        bar, room = self.verticalScrollBar(), size.height() - scaled(TICKS) - 1
        bar.setRange(0, max(0, round(self._layout.height) - room))
        bar.setPageStep(max(1, room))
        bar.setSingleStep(20)

    # ---------------------------------------------------------------------------------------------- finding

    def event_at(self, at: QPointF) -> tuple[Event, TimelinePlace] | None:
        """The event at a point of the viewport, with its place."""
        if at.x() < scaled(TITLES) or at.y() <= scaled(TICKS):
            return None
        place = self._layout.at(at.y() - scaled(TICKS) - 1 + self.verticalScrollBar().value())
        if place is None:
            return None
        index = at_pixel(place.row, self.axis, place.group.anchor(self.anchor), at.x() - scaled(TITLES))
        return (place.row.events[index], place) if index is not None else None

    def place_of(self, event: Event | None) -> TimelinePlace | None:
        """The place of the row with this event."""
        if event is None:
            return None
        return next((p for p in self._layout.places if _index(p.row, event) is not None), None)

    def let_go(self) -> None:
        """Remove the selection and the measured range."""
        self.measure = None
        self.measured.emit(None)
        self.select(None)

    def _show_row(self, place: TimelinePlace) -> None:
        bar, room = self.verticalScrollBar(), self.viewport().height() - scaled(TICKS) - 1
        if not bar.value() <= place.top <= bar.value() + room - place.height:
            bar.setValue(round(place.top - room / 2))

    def _started(self, event: Event | None) -> list[tuple[Activity | ApiCall, TimelinePlace]]:
        """What a call launched, or the call that launched an activity, in the same case."""
        if self._place is None or not isinstance(event, Activity | ApiCall) or not event.correlation:
            return []
        wanted = Activity if isinstance(event, ApiCall) else ApiCall
        partners = []
        for place in self._layout.places:
            if place.group is self._place.group and isinstance(place.row.events[0], wanted):
                partners += [
                    (other, place)
                    for other in place.row.events
                    if isinstance(other, wanted) and other.correlation == event.correlation
                ]
        return partners[:MOST_ARROWS]

    # ------------------------------------------------------------------------------------- mouse and keys

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._pressed = self._last = event.position()
        moving = event.button() == Qt.MouseButton.MiddleButton or event.position().y() <= scaled(TICKS)
        moving = moving or bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        self._drag = "move?" if moving else "measure?"
        self.readout.hide()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        at = event.position()
        if self._pressed is None or not event.buttons():
            self._hover(at)
            return
        if self._drag.endswith("?"):
            if (at - self._pressed).manhattanLength() < QApplication.startDragDistance():
                return
            self._drag = self._drag[:-1]
        if self._drag == "move":
            self.axis.pan(at.x() - self._last.x())
            self.verticalScrollBar().setValue(
                self.verticalScrollBar().value() - round(at.y() - self._last.y())
            )
        elif self._drag == "measure":
            start, end = (self._snapped(p) for p in (self._pressed, at))
            self.measure = (start, end)
            self.measured.emit(tuple(sorted(self.measure)))
        self._last = at
        self.viewport().update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._drag.endswith("?") and event.button() == Qt.MouseButton.LeftButton:
            pointed = self.event_at(event.position())
            if pointed is None and self.measure is not None:
                self.let_go()
            else:
                self.select(pointed[0] if pointed is not None else None)
        self._pressed, self._drag = None, ""

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        pointed = self.event_at(event.position())
        if pointed is None:
            self.fit()
            return
        happened, place = pointed
        zero = place.group.anchor(self.anchor)
        self.axis.look_at(happened.start_ns - zero, happened.end_ns - zero)

    def wheelEvent(self, event: QWheelEvent) -> None:
        turn = event.angleDelta().y() or event.angleDelta().x()
        modifiers = event.modifiers()
        if modifiers & Qt.KeyboardModifier.ControlModifier:
            self.verticalScrollBar().setValue(self.verticalScrollBar().value() - turn // 3)
        elif modifiers & Qt.KeyboardModifier.ShiftModifier or not event.angleDelta().y():
            self.axis.pan(turn / 2)
        else:
            self.axis.zoom(1.0015**turn, event.position().x() - scaled(TITLES))
        self.readout.hide()
        event.accept()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = QMenu(self)
        for words, do, able in (
            ("&Copy the details of the selection", self.copy_words, self.selected is not None),
            ("Copy as &picture", self.copy_picture, bool(self.groups)),
            ("Zoom to the &measured span", self.zoom_to_measure, self.measure is not None),
            ("Show &everything", self.fit, True),
        ):
            action = menu.addAction(words)
            action.triggered.connect(do)
            action.setEnabled(able)
        menu.addSeparator()
        menu.addActions(self.actions())  # to the other pages
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(event.globalPos())

    def copy_words(self) -> None:
        if self.selected is not None:
            QApplication.clipboard().setText(self.words(self.selected))

    def copy_picture(self) -> None:
        self.readout.hide()
        QApplication.clipboard().setPixmap(self.viewport().grab())

    def leaveEvent(self, event: QEvent) -> None:
        self.readout.hide()
        super().leaveEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy) and self.selected is not None:
            self.copy_words()
            return
        key, bar = Qt.Key(event.key()), self.verticalScrollBar()
        plain = not event.modifiers() & (
            Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier
        )
        if plain and key in (Qt.Key.Key_W, Qt.Key.Key_S):
            self.zoom_by(1.5 if key == Qt.Key.Key_W else 1 / 1.5)
        elif plain and key in (Qt.Key.Key_A, Qt.Key.Key_D):
            self.axis.pan(STEP if key == Qt.Key.Key_A else -STEP)
        elif key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            self.axis.pan(STEP if key == Qt.Key.Key_Left else -STEP)
        elif key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            bar.setValue(bar.value() + (STEP if key == Qt.Key.Key_Down else -STEP) // 3)
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal, Qt.Key.Key_Minus):
            self.zoom_by(1 / 1.5 if key == Qt.Key.Key_Minus else 1.5)
        elif key in (Qt.Key.Key_0, Qt.Key.Key_Home):
            self.axis.fit()
        elif key == Qt.Key.Key_Z:
            self.zoom_to_measure()
        elif key in (Qt.Key.Key_N, Qt.Key.Key_P):
            self.step(1 if key == Qt.Key.Key_N else -1)
        elif key == Qt.Key.Key_Escape and (self.measure is not None or self.selected is not None):
            self.let_go()
        else:
            super().keyPressEvent(event)

    def _snapped(self, at: QPointF) -> float:
        """The time at a point. If the edge of an event is near, the time of the edge."""
        moment = self.axis.time(min(max(at.x() - scaled(TITLES), 0.0), self.axis.width))
        pointed = self.event_at(at)
        if pointed is None:
            return moment
        happened, place = pointed
        zero = place.group.anchor(self.anchor)
        edge = min((happened.start_ns - zero, happened.end_ns - zero), key=lambda t: abs(t - moment))
        return edge if abs(edge - moment) * self.axis.scale <= 5 else moment

    def _hover(self, at: QPointF) -> None:
        pointed = self.event_at(at)
        if pointed is None:
            self.readout.hide()
            return
        event, place = pointed
        self.readout.setText(html(event, place.group.anchor(self.anchor), self.theming.theme))
        self.readout.adjustSize()
        size, room = self.readout.sizeHint(), self.viewport().size()
        x, y = at.x() + 16, at.y() + 18
        if x + size.width() > room.width() - 4:
            x = max(4.0, at.x() - 12 - size.width())
        self.readout.move(round(x), round(max(4.0, min(y, room.height() - size.height() - 4))))
        self.readout.resize(size)
        self.readout.show()
        self.readout.raise_()


def _index(row: TrackRow, event: Event) -> int | None:
    """The index of this event object in a row, None if it is not in it."""
    first = int(np.searchsorted(row.starts, event.start_ns, "left"))
    last = int(np.searchsorted(row.starts, event.start_ns, "right"))
    return next((i for i in range(first, last) if row.events[i] is event), None)
