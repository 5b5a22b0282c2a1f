"""Charts as data: records → definitions, made once here and drawn twice, live in the window and by
bench.show.draw on paper. Nothing in this package knows matplotlib, Qt or the engine. `charts(runs)` makes
every chart of every model.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bench.charts.builders import BUILDERS
from bench.charts.definitions import (
    Axis,
    Bar,
    BarPart,
    Category,
    Chart,
    MissingPoint,
    Panel,
    Point,
    Series,
)
from bench.charts.doubts import with_doubts
from bench.charts.floor import with_floor
from bench.charts.footer import footer
from bench.charts.overlay import lay_over, short_name
from bench.charts.provisional import with_provisional
from bench.charts.verdicts import verdict
from bench.results.records import Measurement, Run
from bench.results.rows import Row, by_model, rows, title

__all__ = [
    "Axis",
    "Bar",
    "Category",
    "Chart",
    "MissingPoint",
    "Panel",
    "BarPart",
    "Point",
    "RunData",
    "Series",
    "charts",
    "lay_over",
    "model_charts",
    "short_name",
    "with_provisional",
]

RunData = tuple[Run, Sequence[Measurement]]


def charts(runs: Sequence[RunData]) -> list[Chart]:
    """Every chart of every model in the runs, in the models' order; a chart with nothing to show is left out.
    Measurements of one model from several runs share its charts."""
    measurements = [m for _, found in runs for m in found]
    made: list[Chart] = []
    for model, items in by_model(rows(measurements)).items():
        own = [run for run, found in runs if any(m.case.model == model for m in found)]
        made += model_charts(model, items, own)
    return made


def model_charts(model: str, items: Sequence[Row], runs: Sequence[Run]) -> list[Chart]:
    """The charts of one model from its rows, which were measured in `runs`."""
    foot = footer(runs, [row.measurement for row in items])
    info = next((i for run in runs for i in run.models if i.name == model), None)
    shown = info.title if info and info.title else title(model)
    found = [chart for make in BUILDERS if (chart := make(shown, model, items)) is not None]
    times, speed = (f"{title(model)}-{kind}" for kind in ("op-time", "speed"))
    found = [with_floor(chart, info, items, runs) if chart.name == times else chart for chart in found]
    said = verdict(model, items, runs).text
    told = [
        with_doubts(msgspec.structs.replace(chart, finding=said), named=True)
        if chart.name in (times, speed)
        else with_doubts(chart)
        for chart in found
    ]
    return [msgspec.structs.replace(chart, footer=foot) for chart in told]
