"""The least time that a GPU's arithmetic allows, as a line in the chart of times.

Operations of one pass over the rate at which all its cores multiply and add in float32 at their highest
clock. Nothing in strict fp32 runs below it but by doing fewer operations (Winograd, FFT); where data from
memory or the launch is what takes the time, the floor lies far below. Known where the run's machine told its
cores and clock.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bench.charts.definitions import Chart, Point, Series
from bench.results.records import ModelInfo, Run
from bench.results.rows import Row
from bench.words import units

LABEL = "floor: GPU's fp32 arithmetic"
COLOUR = "#8A8A8A"
NEAR = 0.02  # of the fastest time: a floor further below says nothing and flattens every other line
NOTE = "The floor is the operations of a pass over the rate of all fp32 cores at their highest clock."


def with_floor(chart: Chart, info: ModelInfo | None, items: Sequence[Row], runs: Sequence[Run]) -> Chart:
    """The chart of times with the floor at the batch sizes that a GPU was timed at in fp32; the chart as it
    is where the model's operations or the GPU's rate are not known."""
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
        label=LABEL,
        backend="",
        precision="floor",
        colour=COLOUR,
        dashed=True,
        marker="",
        points=tuple(Point(x=b, y=s, text=f"floor {units.duration(s * 1e9)}") for b, s in seconds.items()),
    )
    panel = chart.panels[0]
    panel = msgspec.structs.replace(panel, series=(*panel.series, line))
    return msgspec.structs.replace(chart, panels=(panel, *chart.panels[1:]), notes=(*chart.notes, NOTE))
