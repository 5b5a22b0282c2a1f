"""From A's time to B's, a bar a step: what each adds stands on what was there before it."""

from __future__ import annotations

import math

from bench.views.charts.definitions import Axis, Bar, BarPart, Category, Chart, Panel
from bench.views.diff.records import Diff, Step, Waterfall
from bench.views.diff.tables import UNSURE
from bench.views.sentences import diff_sentences as sentences
from bench.words import palette, units

MOST = 12  # steps that have a bar of their own; the smaller ones share one
NAME = 26  # characters of a step's name below its bar
FLAT = 0.25  # of the larger wall, below which a change is drawn above a floor
UNDER = "under"
UNSURE_COLOUR = "#B9B9B9"  # of what is not decided: no colour that says which way
CATEGORIES = (
    Category(key=UNDER, label="", colour=""),
    Category(key="all", label="a whole pass", colour=palette.CATEGORIES["compute"][1]),
    Category(key="slower", label="takes longer in B", colour=palette.USER),
    Category(key="faster", label="takes less in B", colour=palette.BACKENDS["ort-cpu"]),
    Category(key="unsure", label="no more than passes differ by", colour=UNSURE_COLOUR),
    Category(key="rest", label="without a name", colour=palette.OTHERS[0]),
)


def charts(diff: Diff) -> list[Chart]:
    """One a case."""
    several = len(diff.waterfalls) > 1
    return [chart(diff, found, f"-{found.key}" if several else "") for found in diff.waterfalls]


def chart(diff: Diff, found: Waterfall, suffix: str = "") -> Chart:
    floor = _floor(found)
    # From 1 on: a picture without a selection has none at 0.
    bars = [_whole(1, "all", found.a_ns, floor, f"A: {diff.a.name}")]
    labels = ["A"]
    level = found.a_ns
    for step in shortened(found):
        low, high = sorted((level, level + step.change_ns))
        kind = "slower" if step.change_ns > 0 else "faster"
        if not step.named or not step.sure:
            kind = "unsure" if step.named else "rest"
        told = f"{step.label}: {units.change(step.change_ns)}{f' ({step.note})' if step.note else ''}"
        bars.append(
            Bar(
                x=len(bars) + 1,
                parts=(
                    BarPart(category=UNDER, value=(low - floor) * 1e-9),
                    BarPart(category=kind, value=(high - low) * 1e-9, text=told),
                ),
                total=units.change(step.change_ns),
                doubts=() if step.sure else (UNSURE,),
            )
        )
        labels.append(step.label if len(step.label) <= NAME else step.label[: NAME - 1] + "…")
        level += step.change_ns
    bars.append(_whole(len(bars) + 1, "all", found.b_ns, floor, f"B: {diff.b.name}"))
    labels.append("B")
    above = f", above {units.duration(floor)}" if floor else ""
    return Chart(
        name=f"diff-waterfall{suffix}",
        model=found.words,
        title=f"From A to B: {found.words}",
        finding=sentences.waterfall(found),
        panels=(
            Panel(
                title="",
                x=Axis(label="", ticks=tuple(bar.x for bar in bars), labels=tuple(labels)),
                y=Axis(label=f"a profiled pass{above}", unit="s"),
                bars=tuple(bars),
            ),
        ),
        categories=tuple(
            category
            for category in CATEGORIES
            if any(p.category == category.key for bar in bars for p in bar.parts)
        ),
        notes=found.notes,
        footer=(
            *(f"{name}: {run.words}" for name, run in (("A", diff.a), ("B", diff.b))),
            *((f"What else differs: {sentences.in_short(diff.differences)}",) if diff.differences else ()),
        ),
    )


def shortened(found: Waterfall) -> list[Step]:
    """The largest steps, the others as one, and what has no name."""
    named = [step for step in found.steps if step.named]
    rest = [step for step in found.steps if not step.named]
    few, small = (named, []) if len(named) <= MOST else (named[: MOST - 1], named[MOST - 1 :])
    if small:
        few = [*few, Step("others", f"{len(small)} smaller steps", sum(step.change_ns for step in small))]
    return [*few, *rest]


def _whole(x: int, kind: str, time_ns: float, floor: float, text: str) -> Bar:
    told = f"{text}, {units.duration(time_ns)}"
    parts = (BarPart(category=kind, value=(time_ns - floor) * 1e-9, text=told),)
    return Bar(x=x, parts=parts, total=units.duration(time_ns))


def _floor(found: Waterfall) -> float:
    """Where the axis begins: at 0, unless steps would be too flat to be seen above it."""
    levels, level = [found.a_ns, found.b_ns], found.a_ns
    for step in shortened(found):
        level += step.change_ns
        levels.append(level)
    low, high = min(levels), max(levels)
    if high - low >= FLAT * high or high <= 0:
        return 0.0
    wanted = low - (high - low)
    digit = 10.0 ** math.floor(math.log10(high - low)) if high > low else 0.0
    return max(0.0, math.floor(wanted / digit) * digit) if digit else 0.0
