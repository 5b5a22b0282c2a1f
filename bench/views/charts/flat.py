"""A chart whose lines are all one: what it would draw, in a few words, so that it need not be drawn."""

from __future__ import annotations

from bench.views.charts.definitions import Chart, Panel
from bench.words import units


def badge(chart: Chart) -> str:
    """Of a chart of accuracy: "97.78 % right, all agree". "" where anything varies or an answer fails its
    check: that has to be seen."""
    if any(m.disposition == "incorrect" for p in chart.panels for s in p.series for m in s.marks):
        return ""
    parts: list[str] = []
    for panel in chart.panels:
        values = _values(panel)
        if len(values) > 1:
            return ""
        for value in values:
            words = _words(panel.title, value)
            if words is None:
                return ""
            parts.append(words)
    return ", ".join(filter(None, parts))


def _values(panel: Panel) -> set[float]:
    return {point.y for series in panel.series for point in (*series.points, *series.provisional)}


def _words(measure: str, value: float) -> str | None:
    """None: this has to be seen in a chart."""
    if measure == "top-1":
        return f"{units.percent(value)} right"
    if measure.startswith("agreement"):
        return "all agree" if value == 1 else None
    return ""  # the first one is told
