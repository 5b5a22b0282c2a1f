"""The charts themselves, one function each: a model's rows → a Chart, or None where there is nothing to
show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from bench.results.records import PREPARE_PHASES, ModelInfo, Run
from bench.results.rows import Row, title
from bench.views.charts import breakdown, series
from bench.views.charts.definitions import Axis, Bar, BarPart, Chart, Panel, Point, Series
from bench.views.sentences import findings
from bench.words import orders, palette, units

FLOOR = "floor: GPU's fp32 arithmetic"
FLOOR_COLOUR = "#8A8A8A"
NEAR = 0.02  # of the fastest time: a floor further below says nothing and flattens every other line
FLOOR_NOTE = "The floor is the operations of a pass over the rate of all fp32 cores at their highest clock."


def accuracy(shown: str, model: str, items: Sequence[Row]) -> Chart | None:
    """Top-1, top-5 and agreement with the reference over batch size, one panel each that has a value."""
    counts = sorted({row.case.images for row in items if row.measurement.accuracy})
    panels = []
    measures = (("top-1", "top1"), ("top-5", "top5"), ("agreement with the reference", "agreement"))
    for words, field in measures:
        found = []
        for count in counts:
            kept = [row for row in items if row.case.images == count]
            found += series.lines(
                kept, series.fraction(field), f", {count:,} images" if len(counts) > 1 else ""
            )
        if field == "agreement":  # a reference agrees with itself: nothing to see
            found = [s for s in found if not s.dashed]
        if any(s.points for s in found):
            y = Axis(
                label="images answered right" if field != "agreement" else "images answered alike", unit="%"
            )
            panels.append(Panel(title=words, x=series.batches(items), y=y, series=tuple(found), dodge=True))
    if not panels:
        return None
    images = " and ".join(f"{c:,}" for c in counts)
    known = any(row.measurement.accuracy and row.measurement.accuracy.labelled for row in items)
    return Chart(
        name=f"{title(model)}-accuracy",
        model=model,
        title=f"{shown}: {'accuracy' if known else 'answers'} on {images} images",
        finding=findings.accuracy(items),
        panels=tuple(panels),
        notes=(*series.failures(items), *findings.about_accuracy(items)),
    )


def op_time(shown: str, model: str, items: Sequence[Row]) -> Chart | None:
    """Time of one forward pass over batch size, log-log, with 95 % intervals; copies are not in it."""
    items = series.most_images(items)

    def value(row: Row) -> Point | None:
        if row.median_ns is None:
            return None
        text = units.duration(row.median_ns)
        low = high = None
        if row.low_ns is not None and row.high_ns is not None:
            text += f" ({units.duration(row.low_ns)} to {units.duration(row.high_ns)})"
            low, high = row.low_ns / 1e9, row.high_ns / 1e9
        return series.point(row, row.median_ns / 1e9, low, high, text, row.own_doubts)

    found = series.lines(items, value)
    if not any(s.points for s in found):
        return None
    return Chart(
        name=f"{title(model)}-op-time",
        model=model,
        title=op_time_title(shown),
        finding="",  # the verdict, which knows the whole run (bench.views.sentences.verdicts)
        panels=(op_time_panel(found, series.batches(items)),),
        notes=(
            "Median of the forward pass alone, without copies; bars are 95 % intervals.",
            *series.failures(items),
        ),
    )


def op_time_title(shown: str) -> str:
    return f"{shown}: time of a forward pass"


def op_time_panel(lines: Sequence[Series], x: Axis) -> Panel:
    y = Axis(label="time of one batch", unit="s", scale="log")
    return Panel(title="", x=x, y=y, series=tuple(lines), dodge=True)


def with_floor(chart: Chart, info: ModelInfo | None, items: Sequence[Row], runs: Sequence[Run]) -> Chart:
    """The chart of times with the least that a GPU's arithmetic allows, at the batch sizes that it was timed
    at in fp32: operations of one pass over the rate at which all its cores multiply and add in float32 at
    their highest clock. Nothing in strict fp32 runs below it but by doing fewer operations (Winograd, FFT);
    where data from memory or the launch is what takes the time, the floor lies far below. The chart as it is
    where the model's operations or the GPU's rate are not known."""
    rate = next((r.environment.gpu_fp32_flops_per_s for r in runs if r.environment.gpu_fp32_flops_per_s), 0.0)
    fastest: dict[int, float] = {}
    for row in items:
        if row.median_ns and row.case.backend.endswith("-cuda") and row.case.precision == "fp32":
            fastest[row.case.batch] = min(fastest.get(row.case.batch, row.median_ns), row.median_ns)
    if info is None or not info.flops_per_image or not rate:
        return chart
    bound = {batch: info.flops_per_image * batch / rate for batch in sorted(fastest)}
    seconds = {batch: s for batch, s in bound.items() if s * 1e9 >= NEAR * fastest[batch]}
    if not seconds:
        return chart
    line = Series(
        label=FLOOR,
        backend="",
        precision="floor",
        colour=FLOOR_COLOUR,
        dashed=True,
        marker="",
        points=tuple(Point(x=b, y=s, text=f"floor {units.duration(s * 1e9)}") for b, s in seconds.items()),
    )
    panel = chart.panels[0]
    panel = msgspec.structs.replace(panel, series=(*panel.series, line))
    return msgspec.structs.replace(chart, panels=(panel, *chart.panels[1:]), notes=(*chart.notes, FLOOR_NOTE))


def timing_breakdown(shown: str, model: str, items: Sequence[Row]) -> Chart | None:
    """Where one host-to-host pass of a batch spends its time, as shares, one panel a backend."""
    items = series.most_images(items)

    def bar(row: Row) -> Bar | None:
        split = breakdown.split(row.measurement)
        if split is None:
            return None
        parts = tuple(
            BarPart(category=key, value=ns / split.total_ns, text=units.duration(ns))
            for key, ns in split.parts_ns.items()
        )
        return series.stack(row, parts, split.total_ns)

    y = Axis(label="share of a pass", unit="%", ticks=(0, 0.25, 0.5, 0.75, 1))
    panels = series.stacks(items, bar, y)
    if not panels:
        return None
    legend = (
        "One batch from host to host with its copies, on another clock than the forward pass alone; the time "
        "stands above each bar. What happens once ("
        f"{', '.join(PREPARE_PHASES)}) is no part of it. Operator times are from their own pass.",
    )
    return Chart(
        name=f"{title(model)}-breakdown",
        model=model,
        title=f"{shown}: where the time goes, host to host",
        finding=findings.breakdown(items),
        panels=panels,
        categories=series.categories(panels, palette.CATEGORIES, always=("rest",)),
        notes=(*legend, *breakdown.notes(items), *series.failures(items)),
    )


def total_time(shown: str, model: str, items: Sequence[Row]) -> Chart | None:
    """Total execution time: cold start (load, compile, alloc, upload, first run), then the pass over the data
    set."""
    items = series.most_images(items)
    start_ups = breakdown.start_ups(items)

    def bar(row: Row) -> Bar | None:
        stages = breakdown.stages(row.measurement, start_ups.get(row.case.key, {}))
        if not stages:
            return None
        parts = tuple(
            BarPart(category=key, value=ns / 1e9, text=units.duration(ns)) for key, ns in stages.items()
        )
        return series.stack(row, parts, sum(stages.values()))

    panels = series.stacks(items, bar, Axis(label="total execution time", unit="s"))
    if not panels:
        return None
    count = max(row.case.images for row in items)
    return Chart(
        name=f"{title(model)}-total-time",
        model=model,
        title=f"{shown}: cold start and {count:,} images" if count else f"{shown}: cold start",
        finding=findings.total(items),
        panels=panels,
        categories=series.categories(panels, palette.STAGES),
        notes=(
            "What happens once, then the data set, batch after batch; every panel has a scale of its own.",
            *_start_up(items, start_ups),
            *series.failures(items),
        ),
    )


def _start_up(items: Sequence[Row], start_ups: Mapping[str, Mapping[str, float]]) -> tuple[str, ...]:
    """A sentence on what is in no bar."""
    told = [
        f"{row.contender} {units.duration(sum(found.values()))} (at batch {row.case.batch:,})"
        for row in items
        if (found := start_ups.get(row.case.key))
    ]
    words = "In no bar is the start-up that a backend's first case paid beyond its next"
    return (f"{words}: {', '.join(told)}.",) if told else ()


def speed(shown: str, model: str, items: Sequence[Row]) -> Chart | None:
    """Speed-up against the reference with its interval, and images a second, over batch size."""
    items = series.most_images(items)

    def ratio(row: Row) -> Point | None:
        if row.speedup is None:
            return None
        text = orders.cell(row.verdict, row.speedup, row.speedup_low, row.speedup_high)
        return series.point(row, row.speedup, row.speedup_low, row.speedup_high, text, row.speedup_doubts)

    def rate(row: Row) -> Point | None:
        if row.images_per_s is None:
            return None
        scale = row.case.batch * 1e9
        low, high = (scale / ns if ns else None for ns in (row.high_ns, row.low_ns))
        text = units.si(row.images_per_s, "images/s")
        return series.point(row, row.images_per_s, low, high, text, row.own_doubts)

    x = series.batches(items)
    ups = tuple(s for s in series.lines(items, ratio, marks=False) if s.points)
    rates = tuple(series.lines(items, rate))
    if not any(s.points for s in rates):
        return None
    panels = [
        Panel(title="images a second", x=x, y=Axis(label="images/s", scale="log"), series=rates, dodge=True)
    ]
    if ups:
        y = Axis(label="speed-up (paired)", unit="×", scale="log")
        references = {r.contender: r.measurement.reference for r in items if not r.is_reference}
        panels.insert(
            0, Panel(title=_against(ups, references), x=x, y=y, series=ups, baseline=1.0, dodge=True)
        )
    return Chart(
        name=f"{title(model)}-speed",
        model=model,
        title=f"{shown}: speed-up and throughput",
        finding="",  # the verdict, as of the times
        panels=tuple(panels),
        notes=(
            "Forward pass alone; above 1× is faster than the reference. A speed-up is the mean "
            "over rounds that both had, not the quotient of the two medians.",
            *filter(None, [findings.throughput(items)]),
            *series.failures(items),
        ),
    )


NAMED = 34  # characters that a panel's title has room for in the window, and in a picture of one column


def _against(lines: Sequence[Series], references: Mapping[str, str]) -> str:
    """What 1× stands for: of several references, which of them for what runs where."""
    known = dict.fromkeys(references[line.label] for line in lines)
    if len(known) == 1:
        return f"speed-up against {next(iter(known))}"
    named = "1× = " + ", ".join(f"{name} ({'GPU' if '-cuda' in name else 'CPU'})" for name in known)
    return named if len(named) <= NAMED else "1× = the reference of each"


def end_to_end(shown: str, model: str, items: Sequence[Row]) -> Chart | None:
    """Images a second from host to host over batch size, several batches in flight; and the speed-up."""
    items = series.most_images(items)

    def rate(row: Row) -> Point | None:
        found = row.end_to_end
        if found is None:
            return None
        low, high = (found.batch * 1e9 / ns if ns else None for ns in (found.high_ns, found.low_ns))
        share = found.bus_share
        bus = "" if share is None else f", {units.percent(share, 0)} of what the bus carries"
        text = f"{units.si(found.images_per_s, 'images/s')}{bus}"
        return series.point(row, found.images_per_s, low, high, text, found.doubts)

    def ratio(row: Row) -> Point | None:
        found = row.end_to_end
        if found is None or found.speedup is None:
            return None
        ends = found.speedup_low, found.speedup_high
        text = orders.cell(found.verdict, found.speedup, *ends)
        return series.point(row, found.speedup, *ends, text, found.speedup_doubts)

    rates = tuple(s for s in series.lines(items, rate, marks=False) if s.points)
    if not rates:
        return None
    x = series.batches(items)
    y = Axis(label="images/s", scale="log")
    panels = [Panel(title="images a second, end to end", x=x, y=y, series=rates, dodge=True)]
    ups = tuple(s for s in series.lines(items, ratio, marks=False) if s.points)
    if ups:
        against = ", ".join(
            dict.fromkeys(f.against for r in items if (f := r.end_to_end) is not None and f.against)
        )
        y = Axis(label="speed-up (paired)", unit="×", scale="log")
        title_ = f"speed-up against {against}, end to end"
        panels.insert(0, Panel(title=title_, x=x, y=y, series=ups, baseline=1.0, dodge=True))
    return Chart(
        name=f"{title(model)}-end-to-end",
        model=model,
        title=f"{shown}: end to end, host images to host answers",
        finding=findings.end_to_end(items),
        panels=tuple(panels),
        notes=findings.about_end_to_end(items),
    )


BUILDERS = (accuracy, op_time, timing_breakdown, total_time, speed, end_to_end)
