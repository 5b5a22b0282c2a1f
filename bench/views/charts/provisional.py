"""Cases that are being measured, as they look so far: hollow points in the chart of times, until their
measurements come. Shown while somebody watches; never stored, exported or judged."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from bench.results.messages import Provisional
from bench.results.rows import label, title
from bench.views.charts import builders
from bench.views.charts.definitions import Axis, Chart, Point, Series
from bench.words import palette, units


def with_provisional(
    charts: Sequence[Chart],
    model: str,
    shown: str,
    found: Sequence[Provisional],
    references: Collection[str] = (),
) -> list[Chart]:
    """The charts of a model with what was said of its cases so far, in a chart of its own where there is
    none of times yet. shown: the model's title; references: backends that others are compared with, whose
    lines are dashed."""
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
