"""The charts of a ladder: how fast each rung is beside the reference, and how near it comes to the limits of
the machine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from bench.results import doubt
from bench.results.ladder_records import Ladder, RungCase, RungMeasurement
from bench.results.ladder_rows import RungRow, bound
from bench.results.machine_limits import MachineLimits
from bench.views.charts.definitions import (
    Axis,
    Bar,
    BarPart,
    Baseline,
    Category,
    Chart,
    MissingPoint,
    Panel,
    Point,
    Series,
)
from bench.views.charts.doubts import with_doubts
from bench.views.sentences import ladder_story as story
from bench.views.sentences.footer import machine, versions
from bench.views.sentences.limits import NAMES, percent
from bench.words import palette, units
from kernels.precision import PRECISIONS

# Kinds of rungs in the order of the legend: a rung of ours in fp32 is of the first, in its backend's colour.
# No other kind has a colour that is a backend's elsewhere.
KINDS = {
    **{name: (precision.title, precision.colour) for name, precision in PRECISIONS.items()},
    "side": ("beside the ladder", "#A3AFD6"),
    "library": ("a library", "#8C8C8C"),
    "yours": ("your own", palette.USER),
}

LANE = 0.5  # of the distance of two lanes: how far the limit's line goes beyond the outer ones
BEYOND = 1.2  # of the limit: points up to there stand beside its tick
CROWD = 16  # points whose names may have no room
CROWDED = (
    "Where not all names have room: those of the fastest rung of each precision, of your own, and of the "
    "reference."
)


def charts(ladder: Ladder, rows: Sequence[RungRow]) -> list[Chart]:
    """Those that have something to show; `rows` of the rungs and the references."""
    if not any(row.time for row in rows):
        return []
    found = [] if all(row.case.is_reference for row in rows) else [speed(ladder, rows)]
    if (near := limits(ladder, rows)) is not None:
        found.append(near)
    return found


def kind(case: RungCase) -> str:
    """Of KINDS: whose a rung is, and of ours what it computes in."""
    if case.user:
        return "yours"
    return "library" if case.yardstick else "side" if case.side else case.precision


def colour(ladder: Ladder, kind: str) -> str:
    """The colour of a kind of rungs."""
    return KINDS[kind][1] or palette.backend(f"engine-{ladder.job.device}")


def _reference(ladder: Ladder) -> str:
    return palette.backend(f"ort-{ladder.job.device}")


def speed(ladder: Ladder, rows: Sequence[RungRow]) -> Chart:
    """A bar a rung: operations a second (bytes, where there are none to count); a line a precision that the
    reference was timed in."""
    rungs = [row for row in rows if not row.case.is_reference]
    counted = ladder.flops > 0

    def rate(row: RungRow) -> float:
        return (row.flops_per_s if counted else row.bytes_per_s) or 0.0

    bars = []
    for place, row in enumerate(rungs):
        m = row.measurement
        if row.time is None:
            refused = m.disposition == "unsupported"
            mark = None if refused else MissingPoint(x=place, disposition=m.disposition, reason=m.reason)
            bars.append(Bar(x=place, mark=mark, total="refused" if refused else ""))
            continue
        time = units.duration(row.time.value)
        text = f"{row.name}{story.in_precision(row.case.precision)}: {time}"
        if row.time.known:
            text += f" ({units.duration(row.time.low)} to {units.duration(row.time.high)})"
        part = BarPart(category=kind(row.case), value=rate(row), text=text)
        bars.append(
            Bar(
                x=place,
                parts=(part,),
                total=doubt.marked(time, row.doubts),
                doubts=row.doubts,
                interval=_interval(row, rate(row)),
            )
        )
    used = {part.category for bar in bars for part in bar.parts}
    references = [row for row in rows if row.case.is_reference and row.time]
    baselines = tuple(
        Baseline(
            y=rate(row),
            label=f"{ladder.reference}{story.in_precision(row.case.precision)}, "
            + doubt.marked(units.duration(row.time.value), row.doubts),
            precision=row.case.precision,
            colour=_reference(ladder) if row.case.precision == "fp32" else KINDS[row.case.precision][1],
        )
        for row in references
        if row.time
    )
    notes = ["The time of one pass stands above each bar; the thin lines are 95 % intervals."]
    notes += [
        f"✕ {row.name}: {row.measurement.reason}"
        for row in rungs
        if row.time is None and row.measurement.disposition != "unsupported"
    ]
    notes += [
        f"! {ladder.reference}{story.in_precision(row.case.precision)}: {text}"
        for row in references
        for text in row.doubts
    ]
    panel = Panel(
        title="",
        x=Axis(label="", ticks=tuple(range(len(rungs))), labels=tuple(row.case.label for row in rungs)),
        y=Axis(
            label="operations a second" if counted else "bytes a second", unit="FLOP/s" if counted else "B/s"
        ),
        bars=tuple(bars),
        baseline=baselines[0].y if baselines else None,
        baselines=baselines,
    )
    chart = Chart(
        name="ladder-speed",
        model=ladder.job.model,
        title=f"{ladder.job.op} ladder on {_machine(ladder)}",
        finding=story.finding(ladder, rows),
        panels=(panel,),
        categories=tuple(
            Category(key=key, label=label, colour=colour(ladder, key))
            for key, (label, _) in KINDS.items()
            if key in used
        ),
        notes=(ladder.job.title + ".", *notes),
        footer=footer(ladder, rows),
    )
    return with_doubts(chart)


def _interval(row: RungRow, rate: float) -> tuple[float, float] | None:
    """Of a rate, by its time's: the longest time is the lowest rate."""
    time = row.time
    if time is None or not time.known or not 0 < time.low <= time.value <= time.high:
        return None
    return rate * time.value / time.high, rate * time.value / time.low


def limits(ladder: Ladder, rows: Sequence[RungRow]) -> Chart | None:
    """How near each rung comes to the nearer of its two limits, arithmetic and memory, as the machine was
    measured: a point a rung, a lane a precision, which has limits of its own. All rungs do the same work on
    the same bytes, so that a roofline (S. Williams, A. Waterman and D. Patterson, Communications of the ACM
    52, 2009) would show them below each other at one place."""
    reached = ladder.reached
    shown = [row for row in rows if row.limit]
    if reached is None or not shown:
        return None
    lanes = [name for name in PRECISIONS if any(row.case.precision == name for row in shown)]
    heights = {name: float(len(lanes) - 1 - place) for place, name in enumerate(lanes)}
    shares = [row.limit for row in shown if row.limit]
    low, high = math.floor(math.log10(min(shares))), max(0, math.ceil(math.log10(max(shares) / BEYOND)))
    ticks = tuple(10.0**power for power in range(min(low, -1), high + 1))
    edge = Series(
        label="the limit",
        backend="",
        precision="fp32",
        colour=palette.MUTED,
        dashed=False,
        marker="",
        points=(Point(x=1.0, y=-LANE), Point(x=1.0, y=len(lanes) - 1 + LANE)),
        named=True,
    )
    best = story.best_of_each(shown)
    panel = Panel(
        title="",
        x=Axis(
            label="of the limit", unit="%", scale="log", ticks=ticks,
            labels=tuple(f"{100 * tick:g} %" for tick in ticks),
        ),
        y=Axis(label="", ticks=tuple(heights.values()), labels=tuple(map(_lane, lanes))),
        series=(edge, *(_standing(ladder, row, row in best, heights) for row in shown)),
    )  # fmt: skip
    chart = Chart(
        name="ladder-limits",
        model=ladder.job.model,
        title=f"{ladder.job.op} ladder on {_machine(ladder)}: how near each rung is to its limit",
        finding=story.standing_best(ladder, shown),
        panels=(panel,),
        notes=(
            ladder.job.title + ".",
            "The limit is the nearer one of two: the operations at the measured rate of arithmetic, or the "
            "compulsory traffic at that of memory. Compulsory traffic is every input read once, weights as "
            "the rung keeps them, and the output written once; what a rung moves beyond that is not counted.",
            "A star is the reference; a pale point stands beside the ladder, a grey one is a library's.",
            f"Limits measured on this machine: {_measured_by(reached, ladder.cached('fp32'))}.",
            *([CROWDED] if len(shown) > CROWD else []),
        ),
        footer=footer(ladder, rows),
    )
    return with_doubts(chart)


def _lane(precision: str) -> str:
    return precision if precision == "fp32" else KINDS[precision][0]


def _standing(ladder: Ladder, row: RungRow, best: bool, heights: Mapping[str, float]) -> Series:
    """One rung, or the reference in one precision, as a point."""
    case, share = row.case, row.limit or 0.0
    rate = units.si(row.flops_per_s, "FLOP/s") if row.flops_per_s else ""
    which = f"{percent(share)} of the limit of {NAMES[bound(ladder, case.precision)]}"
    return Series(
        label=f"{ladder.reference}{story.in_precision(case.precision)}" if case.is_reference else case.label,
        backend="",
        precision=case.precision,
        colour=_reference(ladder) if case.is_reference else colour(ladder, kind(case)),
        dashed=case.is_reference,
        marker="*" if case.is_reference else palette.marker(case.precision),
        points=(
            Point(
                x=share,
                y=heights[case.precision],
                text=doubt.read_out(", ".join(filter(None, [which, rate])), row.doubts),
                doubts=row.doubts,
            ),
        ),
        named=True,
        leading=best or case.is_reference or case.user,
    )


def _measured_by(limits: MachineLimits, cached: bool) -> str:
    """cached: whether the work has room in the caches."""
    moved = "the caches, in which a pass has room" if cached else limits.copied_by
    matrices = limits.device == "cuda" and limits.matrix_flops_per_s
    by = [limits.multiplied_by, limits.matrix_by if matrices else "", moved]
    words = "; ".join(filter(None, by))
    if limits.matrix_missing:
        words += f"; the matrix units were not measured: {limits.matrix_missing}"
    return words


def _machine(ladder: Ladder) -> str:
    env = ladder.environment
    return (env.gpu if ladder.job.device == "cuda" else env.cpu) or ladder.job.device


def footer(ladder: Ladder, rows: Sequence[RungRow] = ()) -> tuple[str, ...]:
    """The machine, what it ran, how and when, and the command, as lines."""
    several = units.instances(row.measurement.instances for row in rows if row.time)
    how = (versions(ladder), f"L2 {ladder.job.l2}", several, ladder.created_at.replace("T", " ")[:16])
    return tuple(filter(None, (machine(ladder), " · ".join(filter(None, how)), ladder.command)))


def machine_lines(ladder: Ladder) -> tuple[str, ...]:
    """The machine, and the software that what was measured depends on."""
    return tuple(filter(None, (machine(ladder), versions(ladder))))


SO_FAR = "so_far"
_COLOUR = palette.MUTED


@dataclass(frozen=True)
class Going:
    """Where a case that has no measurement yet stands: words for it ("": it waits its turn), and what a pass
    takes so far, once that is known. right: its first answers were, and it waits to be timed with the
    others."""

    words: str = ""
    median_ns: float | None = None
    right: bool = False

    @property
    def told(self) -> str:
        """For a table."""
        if self.right:
            return "right, not timed yet"
        return f"{self.words}…" if self.words else "waits"


def live_charts(
    ladder: Ladder, rows: Sequence[RungRow], going: Mapping[str, Going]
) -> tuple[Chart, Chart | None]:
    """Speed and, once something is measured under known limits, how near they are. `rows` of the rungs and
    references measured so far; going: by case key, the cases that have none.

    Every rung has its place from the start, and fills it while the ladder is climbed.
    """
    shown = planned(ladder, rows)
    return _filled(speed(ladder, shown), ladder, shown, going), limits(ladder, rows)


def planned(ladder: Ladder, rows: Sequence[RungRow]) -> list[RungRow]:
    """A row for every rung and reference, in the ladder's order; an empty one of what is not measured."""
    known = {row.case.key: row for row in rows}
    return [
        known.get(case.key) or RungRow(RungMeasurement(case=case, disposition="cancelled"))
        for case in ladder.cases
        if case.scope != "model"
    ]


def _filled(chart: Chart, ladder: Ladder, shown: Sequence[RungRow], going: Mapping[str, Going]) -> Chart:
    """The bars that wait in place of marks, with what is known so far."""
    panel = chart.panels[0]
    rungs = [row for row in shown if not row.case.is_reference]
    bars, waiting, some = [], 0, False
    for bar, row in zip(panel.bars, rungs, strict=True):
        if row.measurement.disposition != "cancelled":
            bars.append(bar)
            continue
        waiting += 1
        now = going.get(row.case.key, Going())
        some = some or now.median_ns is not None
        bars.append(_bar(bar.x, row, ladder, now))
    categories = chart.categories
    if some:
        categories = (*categories, Category(key=SO_FAR, label="so far", colour=_COLOUR))
    finding = chart.finding
    if waiting:
        done = len(rungs) - waiting
        finding = f"{done} of {len(rungs)} rungs are settled." if done or going else ""
    y = panel.y
    if not any(bar.parts for bar in bars) and not panel.baselines:
        y = Axis(label=y.label, ticks=(0.0,))  # nothing to give the axis a scale
    return msgspec.structs.replace(
        chart,
        panels=(msgspec.structs.replace(panel, bars=tuple(bars), y=y),),
        categories=categories,
        finding=finding,
        notes=tuple(note for note in chart.notes if not note.endswith(": ")),
    )


def _bar(x: float, row: RungRow, ladder: Ladder, now: Going) -> Bar:
    if now.median_ns is None:
        return Bar(x=x, total="right" if now.right else now.words)
    rate = (ladder.flops or ladder.nbytes) / now.median_ns * 1e9
    text = f"{row.name}: {units.duration(now.median_ns)} so far"
    return Bar(
        x=x,
        parts=(BarPart(category=SO_FAR, value=rate, text=text),),
        total=units.duration(now.median_ns),
    )
