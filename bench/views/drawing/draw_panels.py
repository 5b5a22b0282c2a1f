"""One pair of axes: lines with intervals and marks, or stacked bars; ticks that name batch sizes as they
are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.views.charts.definitions import Axis, Baseline, Chart, Panel, Series
from bench.views.charts.label_places import FAR, spread
from bench.words import palette, units

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TICK_SIZE = 8
APART = 0.065  # inches between lines that are set apart sideways
NAME_SIZE = 7.0  # points, of the font of labels at points and lines
NAME_STEP = 9.0  # points between labels that stand below each other
NAME_LEFT = 24.0  # points from a point to its label
NAME_GAP = 2.5  # points from a line to its label
NAME_BEYOND = 8.0  # points that a label may reach beyond the axes
# What is to be doubted is hollow in its own colour: bars are hatched, points smaller and paler than others.
HATCH, DOUBTED_SIZE, PALE = "/////", 11.0, 0.75
ENDS: dict[str, Any] = {"ecolor": palette.INK, "elinewidth": 0.9, "capsize": 2.2, "capthick": 0.8}
LANES_BESIDE = 0.6  # of the distance of two lanes: what is left free beyond the outer ones
LANE = 0.18  # inches of the lane where failures stand
DIGIT = 0.636 * TICK_SIZE / 72  # inches; DejaVu Sans' digits are 0.636 em wide


def lines(axes: Axes, panel: Panel, chart: Chart, width: float) -> None:
    from matplotlib.transforms import blended_transform_factory

    shown = [s for s in panel.series if s.points or s.marks]
    beside = APART * (len(shown) - 1) / 2 + 0.06 if panel.dodge else 0.0  # with half a marker
    doubling = _x_axis(axes, panel.x, width, max(0.16, beside))
    bottom = blended_transform_factory(axes.transData, axes.transAxes)
    lane = LANE / max(3 * LANE, axes.get_window_extent().height / axes.figure.dpi)
    for index, series in enumerate(shown):
        # Lines that lie on each other are set apart sideways, within less than a doubling.
        step = min(APART / doubling, 0.7 / len(shown))
        shift = 2 ** (step * (index - (len(shown) - 1) / 2)) if panel.dodge else 1.0
        line = series.line
        x, y = [at * shift for at, _ in line], [value for _, value in line]
        style = {"color": series.colour, "linestyle": dashes(series), "zorder": 3}
        doubted = {p.x for p in series.points if p.doubts}
        sure = [place for place, (at, _) in enumerate(line) if at not in doubted]
        axes.plot(
            x,
            y,
            **weight(series),
            **style,
            markevery=sure if doubted else None,
        )
        bounded = [p for p in series.points if p.low is not None and p.high is not None]
        if bounded:
            axes.errorbar(
                [p.x * shift for p in bounded],
                [p.y for p in bounded],
                yerr=_below_and_above((p.y, p.low or 0.0, p.high or 0.0) for p in bounded),
                fmt="none",
                ecolor=series.colour,
                elinewidth=0.6 if series.overlay else 1.0,
                capsize=2.2,
                capthick=0.8,
                zorder=2,
            )
        if doubtful := [p for p in series.points if p.doubts]:
            axes.scatter(
                [p.x * shift for p in doubtful],
                [p.y for p in doubtful],
                DOUBTED_SIZE * (0.7 if series.overlay else 1),
                marker=series.marker,
                facecolors="white",
                edgecolors=series.colour,
                linewidths=0.7,
                alpha=PALE,
                zorder=5,
            )
        if series.marks:
            axes.plot(
                [m.x * shift for m in series.marks],
                [lane / 2] * len(series.marks),
                linestyle="none",
                marker="x",
                color=palette.FAILED,
                markersize=6,
                markeredgewidth=1.6,
                transform=bottom,
                zorder=4,
                clip_on=False,
            )
    if panel.baseline is not None:
        axes.axhline(panel.baseline, color=palette.MUTED, linewidth=0.9, linestyle="--", zorder=1)
    axes.set_title(panel.title)
    _y_axis(axes, panel)
    if any(series.marks for series in shown):
        _keep_lane(axes, lane)
    axes.grid(True, which="major")
    _name(axes, [series for series in shown if series.named and series.points])


def _keep_lane(axes: Axes, lane: float) -> None:
    """What has no value stands in a lane below all values, at none of them; lane: its share of the height."""
    from matplotlib.patches import Rectangle

    scale = axes.yaxis.get_transform()
    low, high = scale.transform(np.array(axes.get_ylim()))
    ends = scale.inverted().transform(np.array([low - lane / (1 - lane) * (high - low), high]))
    axes.set_ylim(*(float(end) for end in ends))
    axes.add_patch(
        Rectangle((0, 0), 1, lane, transform=axes.transAxes, color=palette.GRID, linewidth=0, zorder=2.5)
    )
    axes.text(
        0.01,
        lane / 2,
        "no value",
        transform=axes.transAxes,
        va="center",
        size=6.8,
        color=palette.MUTED,
        zorder=4,
    )


def _name(axes: Axes, named: Sequence[Series]) -> None:
    """Labels at the last points, none on another: a line's above its end, or below it where something is in
    the way; a point's to its right, with a thin line to it. Where not all have room near their points, the
    leading ones have labels; what does not fit has none."""
    per_point = axes.figure.dpi / 72
    ends = {s.label: axes.transData.transform((s.points[-1].x, s.points[-1].y)) / per_point for s in named}
    (left, bottom), (right, top) = axes.transAxes.transform([(0, 0), (1, 1)]) / per_point
    style: dict[str, Any] = {"textcoords": "offset points", "size": NAME_SIZE, "zorder": 4,
                             "bbox": {"facecolor": "white", "edgecolor": "none", "pad": 0.3}}  # fmt: skip
    lines = [s for s in named if len(s.points) > 1]
    occupied: list[tuple[float, float, float]] = []  # by labels of lines: left edge, low, high
    for series in lines:
        x, y = ends[series.label]
        for gap, align in ((NAME_GAP, "bottom"), (-NAME_GAP, "top")):
            low, high = sorted((y + gap, y + gap + math.copysign(NAME_STEP, gap)))
            struck = any(low < ends[s.label][1] < high for s in lines if s is not series)
            if not struck and not any(low < other[2] and other[1] < high for other in occupied):
                occupied.append((x - _label_width(series), low, high))
                axes.annotate(
                    series.label, (series.points[-1].x, series.points[-1].y), xytext=(0, gap), ha="right",
                    va=align, color=series.colour, **style,
                )  # fmt: skip
                break
    alone = sorted((s for s in named if len(s.points) == 1), key=lambda s: s.points[0].y)
    # To the right of its point, or where that ends beyond the axes, to its left.
    beyond = {s.label: ends[s.label][0] + NAME_LEFT + _label_width(s) - right - NAME_BEYOND for s in alone}
    before = {s.label: left - (ends[s.label][0] - NAME_LEFT - _label_width(s)) for s in alone}
    sides = {s.label: 1 if beyond[s.label] <= 0 else -1 for s in alone}
    able = [s for s in alone if min(beyond[s.label], before[s.label]) <= 0]
    fits = [s for s in named if s.leading and s in able]
    for some, far in ((alone, FAR), *((fits[:count], math.inf) for count in range(len(fits), 0, -1))):
        shown = [s for s in alone if s in some]
        heights = [ends[s.label][1] for s in shown]
        barred = []
        for series in shown:
            side = sides[series.label]
            end = ends[series.label][0] + side * NAME_LEFT + (side > 0) * _label_width(series)
            way = [part[1:] for part in occupied if part[0] < end]
            barred.append((min(way)[0] - NAME_STEP / 2, max(way)[1] + NAME_STEP / 2) if way else None)
        places = spread(heights, NAME_STEP, bottom + 4, top - 4, barred)
        moved = [abs(at - y) for at, y in zip(places or (), heights, strict=False)]
        if places and all(s in able for s in shown) and max(moved) <= far:
            for series, y, at in zip(shown, heights, places, strict=True):
                side = sides[series.label]
                axes.annotate(
                    series.label, (series.points[0].x, series.points[0].y),
                    xytext=(side * NAME_LEFT, at - y),
                    ha="left" if side > 0 else "right", va="center", color=palette.INK, **style,
                    arrowprops={"arrowstyle": "-", "color": series.colour, "linewidth": 0.5,
                                "relpos": (0 if side > 0 else 1, 0.5), "shrinkA": 1, "shrinkB": 3},
                )  # fmt: skip
            break


def _label_width(series: Series) -> float:
    """About how wide the label is, in points."""
    return 0.62 * NAME_SIZE * len(series.label)


def bars(axes: Axes, panel: Panel, chart: Chart, width: float) -> None:
    """Stacks side by side in the order of their batch sizes, equally spaced."""
    places = {x: i for i, x in enumerate(sorted({b.x for b in panel.bars} | set(panel.x.ticks)))}
    colours = {c.key: c.colour for c in chart.categories}
    highest = max((b.followed for b in panel.bars), default=1.0)
    levels = panel.baselines or ((Baseline(y=panel.baseline, label=""),) if panel.baseline else ())
    highest = max([highest, *(level.y for level in levels)])
    room = width / max(1, len(places))  # inches a bar
    thick = min(0.78, 0.7 / room)  # of a place; a lone bar is no wall
    for bar in panel.bars:
        base = 0.0
        for part in bar.parts:
            if part.value <= 0:
                continue
            if not colours[part.category]:
                base += part.value
                continue
            axes.bar(
                places[bar.x],
                part.value,
                thick,
                bottom=base,
                facecolor="white" if bar.doubts else colours[part.category],
                edgecolor=colours[part.category] if bar.doubts else palette.edge(colours[part.category]),
                hatch=HATCH if bar.doubts else "",
                linewidth=0.8 if bar.doubts else 0.3,
                zorder=3,
            )
            base += part.value
        if bar.interval is not None and bar.parts:
            ends = _below_and_above([(base, *bar.interval)])
            axes.errorbar([places[bar.x]], [base], yerr=ends, fmt="none", **ENDS, zorder=5)
        if bar.mark is not None:
            axes.plot(
                places[bar.x],
                highest * 0.03,
                marker="x",
                color=palette.FAILED,
                markersize=6,
                markeredgewidth=1.6,
                zorder=4,
            )
        if bar.total:
            upright = room < 0.50
            axes.annotate(
                bar.total,
                (places[bar.x], max(base, bar.followed)),
                xytext=(0, 2.5),
                textcoords="offset points",
                ha="center",
                va="bottom",
                size=6.8,
                rotation=90 if upright else 0,
                color=palette.INK,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4} if levels else None,
                zorder=6,
            )
    axes.set_xlim(-0.6, len(places) - 0.4)
    axes.set_ylim(0, highest * (_above(axes, panel) if room < 0.50 else 1.10))
    for level in levels:
        axes.axhline(
            level.y, color=palette.INK, linewidth=1.1, linestyle=palette.dash(level.precision), zorder=5
        )
    if panel.x.labels:
        named = dict(zip(panel.x.ticks, panel.x.labels, strict=True))
        axes.set_xticks(list(places.values()), [named.get(x, "") for x in places], rotation=30, ha="right")
    else:
        labels = [f"{int(x)}" for x in places]
        axes.set_xticks(list(places.values()), _thinned(labels, room, width))
    axes.set_xlabel(panel.x.label)
    axes.set_title(panel.title)
    _y_axis(axes, panel)
    axes.tick_params(axis="x", length=0)
    axes.grid(True, axis="y")


def _above(axes: Axes, panel: Panel) -> float:
    """By how much higher than its bars a panel is where their totals stand upright."""
    longest = max((len(bar.total) for bar in panel.bars), default=0)
    need = 0.06 * longest + 0.08  # inches
    return max(1.24, 1 / (1 - min(0.5, need / (axes.get_window_extent().height / axes.figure.dpi))))


def _thinned(labels: Sequence[str], room: float, width: float) -> list[str]:
    """Labels with every second, third … left out where they would touch; a character is about 0.075
    inches."""
    need = max(len(label) for label in labels) * DIGIT + 0.025
    step = max(1, -(-int(need * 1000) // max(1, int(room * 1000))))
    return [label if i % step == 0 else "" for i, label in enumerate(labels)]


def _x_axis(axes: Axes, axis: Axis, width: float, beside: float) -> float:
    """Batch sizes on a scale of doublings, each labelled as it is; labels that would touch are left out.
    beside: inches left free on either side. Returns how many inches a doubling takes."""
    from matplotlib.ticker import FixedLocator, NullLocator

    axes.set_xscale("log", base=2)
    low, high = min(axis.ticks), max(axis.ticks)
    doublings = math.log2(high / low)
    pad = beside * doublings / max(0.5, width - 2 * beside) if high > low else 0.5
    axes.set_xlim(low * 2**-pad, high * 2**pad)
    inches = width / (doublings + 2 * pad)  # of a doubling
    labels, last = [], -math.inf
    for place, tick in enumerate(axis.ticks):
        text = axis.labels[place] if axis.labels else f"{tick:g}"
        at, half = math.log2(tick) * inches, (len(text) * DIGIT + 0.025) / 2
        fits = at - half >= last
        labels.append(text if fits else "")
        last = at + half if fits else last
    axes.xaxis.set_major_locator(FixedLocator(list(axis.ticks)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels(labels)
    axes.set_xlabel(axis.label)
    return inches


def _y_axis(axes: Axes, panel: Panel) -> None:
    from matplotlib.ticker import (
        FixedLocator,
        FuncFormatter,
        LogLocator,
        MaxNLocator,
        NullFormatter,
        NullLocator,
    )

    axis = panel.y
    if axis.labels:  # lanes, each with its name
        axes.set_yticks(list(axis.ticks), axis.labels)
        axes.set_ylim(min(axis.ticks) - LANES_BESIDE, max(axis.ticks) + LANES_BESIDE)
        return
    if axis.scale == "log":
        values = [v for s in panel.series for p in s.points for v in (p.y, *p.followed)]
        values += [panel.baseline] if panel.baseline else []
        low, high = min(values), max(values)
        few = 8 <= high / low < 30
        axes.set_yscale("log", base=2 if few and axis.unit == "×" else 10)
        axes.set_ylim(low / (high / low) ** 0.10 / 1.08, high * (high / low) ** 0.06 * 1.08)
        subs: tuple[float, ...] = (1.0, 2.0, 5.0) if high / low < 1e3 else (1.0,)
        if high / low < 8:
            subs = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
        locator = (
            LogLocator(base=2, numticks=12)
            if few and axis.unit == "×"
            else LogLocator(base=10, subs=subs, numticks=12)
        )
        axes.yaxis.set_major_locator(locator)
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_minor_formatter(NullFormatter())
    elif axis.ticks:
        axes.yaxis.set_major_locator(FixedLocator(list(axis.ticks)))
    elif axis.unit == "%":
        values = [p.y for s in panel.series for p in s.points]
        low, high = min(values), max(values)
        spread = max(high - low, 0.01)
        bottom, top = max(0.0, low - 0.6 * spread), min(1.0, high + 0.25 * spread)
        places = MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]).tick_values(bottom, top)
        axes.yaxis.set_major_locator(FixedLocator([v for v in places if bottom <= v <= top]))
        # Room for the points themselves at 0 and 100 %.
        axes.set_ylim(bottom - 0.04 * (top - bottom), top + 0.04 * (top - bottom))
    else:
        axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: tick(value, axis.unit)))
    axes.set_ylabel(axis.label)


def tick(value: float, unit: str) -> str:
    """A tick's label with its unit: "20 µs", "1.5 k", "97.5 %", "2×"."""
    if unit == "%":
        return f"{value * 100:.6g} %"
    if unit == "×":
        return f"{value:.4g}×"
    if value == 0:
        return "0"
    number, _, prefix = units.si(value, unit, 6).partition(" ")
    number = number.rstrip("0").rstrip(".") if "." in number else number
    return f"{number} {prefix}".rstrip()


def weight(series: Series) -> dict[str, Any]:
    """Line and marks of a series; thin and small for another run's."""
    return {
        "linewidth": 0.7 if series.overlay else 1.4,
        "marker": series.marker,
        "markersize": 3.4 if series.overlay else 4.2,
        "markerfacecolor": series.colour,
        "markeredgewidth": 0.7 if series.overlay else 1.1,
    }


def dashes(series: Series) -> Any:
    """A reference is dashed; its precisions beside fp32 are told apart by the kind of dash too."""
    return palette.dash(series.precision) if series.dashed else "-"


def _below_and_above(intervals: Iterable[tuple[float, float, float]]) -> np.ndarray:
    """Of a value, its low and its high end, as errorbar takes them. A rate's ends are divided for themselves:
    where all samples are alike, they can lie on the wrong side of it by a rounding."""
    return np.array([(max(0.0, value - low), max(0.0, high - value)) for value, low, high in intervals]).T
