"""A chart as numbers: one line a point, a failure, a slice of a bar or a cell, for CSV."""

from __future__ import annotations

from typing import Any

from bench.views.charts.definitions import Chart, MissingPoint, Panel

COLUMNS = (
    "panel",
    "series",
    "batch",
    "value",
    "low",
    "high",
    "unit",
    "words",
    "doubts",
    "disposition",
    "reason",
)


def records(chart: Chart) -> list[dict[str, Any]]:
    """One dictionary a line, by COLUMNS. Values in the unit that stands beside them, "%" meaning fractions;
    words: how the chart writes it; doubts: what speaks against it. series: a backend, or the category of a
    slice, whose backend is the panel's title. A failure has no value but a disposition and a reason."""
    return [record for panel in chart.panels for record in _panel(panel, chart)]


def _panel(panel: Panel, chart: Chart) -> list[dict[str, Any]]:
    names = {category.key: category.label for category in chart.categories}
    found = []
    for series in panel.series:
        found += [
            _record(
                panel, series.label, p.x, value=p.y, low=p.low, high=p.high, words=p.text, doubts=p.doubts
            )
            for p in series.points
        ]
        found += [_failure(panel, series.label, mark) for mark in series.marks]
    for bar in panel.bars:
        found += [
            _record(
                panel,
                names.get(p.category, p.category),
                bar.x,
                value=p.value,
                words=p.text,
                doubts=bar.doubts,
            )
            for p in bar.parts
        ]
        if bar.mark is not None:
            found.append(_failure(panel, "", bar.mark))
    for tile in panel.tiles:
        whose = panel.y.labels[tile.row]
        if tile.grade in ("none", "wrong"):
            found.append(_record(panel, whose, tile.x, disposition=tile.text, reason=tile.why))
        else:
            values = {"value": tile.value, "low": tile.low, "high": tile.high}
            found.append(_record(panel, whose, tile.x, words=tile.text, doubts=tile.doubts, **values))
    return found


def _record(panel: Panel, series: str, batch: float, **values: Any) -> dict[str, Any]:
    known = {"panel": panel.title, "series": series, "batch": int(batch), "unit": panel.y.unit, **values}
    known["doubts"] = "; ".join(values.get("doubts", ())) or None
    return {name: known.get(name) for name in COLUMNS}


def _failure(panel: Panel, series: str, mark: MissingPoint) -> dict[str, Any]:
    return _record(panel, series, mark.x, disposition=mark.disposition, reason=mark.reason)
