"""The charts of a ladder: how fast each rung is beside the reference, and where it stands under the
roofline."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bench import palette, units
from bench.charts.definitions import Axis, Bar, Category, Chart, Mark, Panel, Part, Point, Series
from bench.ladder_records import Ladder
from bench.ladder_rows import RungRow

OURS, SIDE = "#0072B2", "#56B4E9"
REFERENCE = "#E69F00"
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "h")
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#8C6D1F", "#332288", "#882255", "#4D4D4D")


def charts(ladder: Ladder, rows: Sequence[RungRow]) -> list[Chart]:
    """Those that have something to show; `rows` of the rungs and the reference."""
    if not any(row.time for row in rows):
        return []
    found = [speed(ladder, rows)]
    if roofed := roofline(ladder, rows):
        found.append(roofed)
    return found


def speed(ladder: Ladder, rows: Sequence[RungRow]) -> Chart:
    """A bar a rung: operations a second (bytes, where there are none to count), the reference's as a line."""
    rungs = [row for row in rows if row.measurement.case.number]
    counted = ladder.flops > 0
    unit = "FLOP/s" if counted else "B/s"

    def rate(row: RungRow) -> float:
        return (row.flops_per_s if counted else row.bytes_per_s) or 0.0

    bars = []
    for place, row in enumerate(rungs):
        m = row.measurement
        if row.time is None:
            refused = m.disposition == "unsupported"
            mark = None if refused else Mark(x=place, disposition=m.disposition, reason=m.reason)
            bars.append(Bar(x=place, mark=mark, total="refused" if refused else ""))
            continue
        category = "yours" if m.case.user else "side" if m.case.side else "rung"
        text = f"{m.case.rung}: {units.duration(row.time.value)}"
        bars.append(
            Bar(
                x=place,
                parts=(Part(category=category, value=rate(row), text=text),),
                total=units.duration(row.time.value),
            )
        )
    reference = next((row for row in rows if not row.measurement.case.number and row.time), None)
    used = {part.category for bar in bars for part in bar.parts}
    categories = [
        Category(key=key, label=label, colour=colour)
        for key, label, colour in (
            ("rung", "rungs of the ladder", OURS),
            ("side", "beside the ladder", SIDE),
            ("yours", "your own", palette.USER),
        )
        if key in used
    ]
    axis = Axis(
        label="",
        ticks=tuple(range(len(rungs))),
        labels=tuple(f"{row.measurement.case.number:02d} {row.name}" for row in rungs),
    )
    notes = ["The time of one pass stands above each bar."]
    if reference is not None and reference.time is not None:
        notes.append(f"Dashed: {ladder.reference}, {units.duration(reference.time.value)}.")
    notes += [
        f"✕ {row.name}: {row.measurement.reason}"
        for row in rungs
        if row.time is None and row.measurement.disposition != "unsupported"
    ]
    panel = Panel(
        title="",
        x=axis,
        y=Axis(label="operations a second" if counted else "bytes a second", unit=unit),
        bars=tuple(bars),
        baseline=rate(reference) if reference else None,
    )
    return Chart(
        name="ladder-speed",
        model=ladder.job.model,
        title=f"{ladder.job.op} ladder on {_machine(ladder)}",
        finding=_finding(ladder, rungs, reference),
        panels=(panel,),
        categories=tuple(categories),
        notes=(ladder.job.title + ".", *notes),
        footer=_footer(ladder),
    )


def roofline(ladder: Ladder, rows: Sequence[RungRow]) -> Chart | None:
    """Operations a second over operations a byte (of the least traffic possible), under what the machine was
    measured to reach. S. Williams, A. Waterman and D. Patterson, "Roofline", Communications of the ACM 52
    (2009)."""
    limits = ladder.limits
    shown = [row for row in rows if row.flops_per_s]
    if limits is None or not ladder.flops or not ladder.nbytes or not shown:
        return None
    intensity = ladder.flops / ladder.nbytes
    ridge = limits.flops_per_s / limits.bytes_per_s
    low = 2.0 ** math.floor(math.log2(min(intensity, ridge)) - 2)
    high = 2.0 ** math.ceil(math.log2(max(intensity, ridge)) + 2)
    roof = Series(
        label="measured limit",
        backend="",
        precision="",
        colour=palette.MUTED,
        dashed=False,
        marker="",
        points=tuple(
            Point(x=x, y=min(limits.flops_per_s, x * limits.bytes_per_s)) for x in (low, ridge, high)
        ),
    )
    series = [roof]
    for index, row in enumerate(shown):
        case = row.measurement.case
        assert row.time is not None
        rate = row.flops_per_s or 0.0
        share = f", {units.percent(row.limit, 1)} of the limit" if row.limit else ""
        series.append(
            Series(
                label=case.rung if case.number else ladder.reference,
                backend="",
                precision="",
                colour=COLOURS[index % len(COLOURS)] if case.number else REFERENCE,
                dashed=not case.number,
                marker=MARKERS[index % len(MARKERS)] if case.number else "*",
                points=(Point(x=intensity, y=rate, text=f"{units.si(rate, 'FLOP/s')}{share}"),),
            )
        )
    ticks = tuple(2.0**power for power in range(round(math.log2(low)), round(math.log2(high)) + 1))
    panel = Panel(
        title="",
        x=Axis(label="operations a byte of the least traffic possible", scale="log", ticks=ticks),
        y=Axis(label="operations a second", unit="FLOP/s", scale="log"),
        series=tuple(series),
    )
    best = max(
        [row for row in shown if row.measurement.case.number] or shown, key=lambda row: row.flops_per_s or 0.0
    )
    bound = "arithmetic" if intensity > ridge else "memory"
    return Chart(
        name="ladder-roofline",
        model=ladder.job.model,
        title=f"{ladder.job.op} ladder under the roofline of {_machine(ladder)}",
        finding=(
            f"The work is bound by {bound} here; {best.name} is at {units.percent(best.limit or 0, 1)} "
            "of the limit."
        ),
        panels=(panel,),
        notes=(
            ladder.job.title + ".",
            f"Limits measured on this machine: {limits.multiplied_by}; {limits.copied_by}.",
        ),
        footer=_footer(ladder),
    )


def _finding(ladder: Ladder, rungs: Sequence[RungRow], reference: RungRow | None) -> str:
    right = [row for row in rungs if row.time]
    if not right:
        return "No rung could be timed."
    best = min(right, key=lambda row: row.time.value if row.time else math.inf)
    words = f"{best.name} is the fastest"
    first = right[0]
    if first is not best and first.time and best.time:
        words += f", {units.times(first.time.value / best.time.value)} as fast as {first.name}"
    if reference is not None and best.speedup:
        words += f" and {units.times(best.speedup.value)} the speed of {ladder.reference}"
    return words + "."


def _machine(ladder: Ladder) -> str:
    env = ladder.environment
    return (env.gpu if ladder.job.device == "cuda" else env.cpu) or ladder.job.device


def _footer(ladder: Ladder) -> tuple[str, ...]:
    env = ladder.environment
    software = [
        f"{name} {version}"
        for name, version in env.packages.items()
        if name.startswith(("numpy", "onnxr", "cupy"))
    ]
    lines = [
        " · ".join(
            filter(
                None, [env.machine, env.cpu, env.gpu, f"driver {env.driver}" if env.driver else "", env.os]
            )
        ),
        " · ".join(
            filter(None, [*software, f"L2 {ladder.job.l2}", ladder.created_at.replace("T", " ")[:16]])
        ),
        ladder.command,
    ]
    return tuple(filter(None, lines))
