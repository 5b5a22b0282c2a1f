"""The charts of comparisons, as data: `charts(runs)` makes every chart of every model."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from bench.results.messages import Provisional
from bench.results.records import Measurement, Run
from bench.results.rows import Row, by_model, label, rows, title
from bench.views.charts import builders, scoreboard
from bench.views.charts.builders import BUILDERS, with_floor
from bench.views.charts.definitions import (
    Axis,
    Chart,
    Point,
    Series,
)
from bench.views.charts.doubts import with_doubts
from bench.views.charts.series import with_gaps
from bench.views.sentences.footer import footer
from bench.views.sentences.verdicts import by_precision, crowded, verdict
from bench.words import palette, units

_SAID = ("scoreboard", "op-time", "speed")  # the charts whose finding is the verdict

RunData = tuple[Run, Sequence[Measurement]]


def charts(runs: Sequence[RunData]) -> list[Chart]:
    """Every chart of every model in the runs, in the models' order; a chart with nothing to show is left out.
    Measurements of one model from several runs share its charts. Of a model that is crowded there are also
    those of each precision alone, on which the lines can be told apart."""
    measurements = [m for _, found in runs for m in found]
    made: list[Chart] = []
    for model, items in by_model(rows(measurements)).items():
        own = [run for run, found in runs if any(m.case.model == model for m in found)]
        made += whole_and_apart(model, items, own)
    return made


def whole_and_apart(model: str, items: Sequence[Row], runs: Sequence[Run]) -> list[Chart]:
    """The charts of one model; where it is crowded, then those of each precision alone."""
    apart = precision_charts(model, items, runs) if crowded(row.case for row in items) else ()
    return [*model_charts(model, items, runs), *(chart for _, chart in apart)]


def model_charts(model: str, items: Sequence[Row], runs: Sequence[Run]) -> list[Chart]:
    """The charts of one model from its rows, which were measured in `runs`."""
    foot = footer(runs, [row.measurement for row in items])
    info = next((i for run in runs for i in run.models if i.name == model), None)
    shown = info.title if info and info.title else title(model)
    said = verdict(model, items, runs)
    made = [scoreboard.chart(shown, items, said.board), *(make(shown, model, items) for make in BUILDERS)]
    found = [with_gaps(chart, model, runs) for chart in made if chart is not None]
    board, times, speed = (f"{title(model)}-{kind}" for kind in _SAID)
    found = [with_floor(chart, info, items, runs) if chart.name == times else chart for chart in found]
    told = [
        with_doubts(msgspec.structs.replace(chart, finding=said.text), named=True)
        if chart.name in (board, times, speed)
        else with_doubts(chart)
        for chart in found
    ]
    return [msgspec.structs.replace(chart, footer=foot) for chart in told]


def precision_charts(model: str, items: Sequence[Row], runs: Sequence[Run]) -> list[tuple[str, Chart]]:
    """The charts of one model, each drawn once for every precision that has references of its own; with each
    what it is of ("op-time", …)."""
    return [
        (chart.name.removeprefix(f"{title(model)}-"), named(chart, precision))
        for precision, (own, among) in by_precision(items, runs).items()
        for chart in model_charts(model, own, among)
    ]


def named(chart: Chart, precision: str) -> Chart:
    """The chart of one precision, under a name and a title that say so; "": of all, as it is."""
    if not precision:
        return chart
    return msgspec.structs.replace(
        chart, name=f"{chart.name}-{precision}", title=f"{chart.title}, {precision}"
    )


def with_provisional(
    charts: Sequence[Chart],
    model: str,
    shown: str,
    found: Sequence[Provisional],
    references: Collection[str] = (),
) -> list[Chart]:
    """The charts of a model with what was said of its cases so far, in a chart of its own where there is
    none of times yet. shown: the model's title; references: backends that others are compared with, whose
    lines are dashed.

    Hollow points in the chart of times, until their measurements come: shown while somebody watches; never
    stored, exported or judged.
    """
    if not found:
        return list(charts)
    name = f"{title(model)}-op-time"
    known = next((chart for chart in charts if chart.name == name), None)
    if known is None:
        axis = Axis(label="batch size", unit="images", scale="log")
        panel = builders.op_time_panel((), axis)
        known = Chart(
            name=name, model=model, title=builders.op_time_title(shown), finding="", panels=(panel,)
        )
        charts = [*charts, known]
    panel = known.panels[0]
    lines = {(s.backend, s.precision): s for s in panel.series if not s.overlay}
    for message in found:
        case = message.case
        line = lines.get((case.backend, case.precision)) or Series(
            label=label(case.backend, case.precision),
            backend=case.backend,
            precision=case.precision,
            colour=palette.backend(case.backend),
            dashed=case.backend in references and case.precision == "fp32",
            marker=palette.marker(case.precision),
        )
        text = f"about {units.duration(message.median_ns)} so far, being measured"
        point = Point(x=case.batch, y=message.median_ns / 1e9, text=text)
        lines[case.backend, case.precision] = msgspec.structs.replace(
            line, provisional=(*line.provisional, point)
        )
    ticks = tuple(sorted({*panel.x.ticks, *(float(message.case.batch) for message in found)}))
    panel = msgspec.structs.replace(
        panel,
        x=msgspec.structs.replace(panel.x, ticks=ticks),
        series=(*lines.values(), *(s for s in panel.series if s.overlay)),
    )
    done = msgspec.structs.replace(known, panels=(panel,))
    return [done if chart is known else chart for chart in charts]
