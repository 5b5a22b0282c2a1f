"""Two runs in one chart: the other's lines thin beside this one's, its stacks next to this one's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.views.charts.definitions import Axis, Chart, Panel
from bench.words import palette

_THIN = "Thin lines with small marks: "
_OF = " · "


def lay_over(charts: Sequence[Chart], others: Sequence[Chart], name: str, number: int = 1) -> list[Chart]:
    """Each chart with what the run `name` has to show in the same one; a chart it lacks stays as it is,
    and so does a table. number: of the runs that are laid over, which; from the second on they have marks of
    their own.

    Title and finding stay this run's, whose chart it is; notes and footer say what is of the other.
    """
    found = {chart.name: chart for chart in others if not any(panel.tiles for panel in chart.panels)}
    return [
        _both(chart, found[chart.name], name, number) if chart.name in found else chart for chart in charts
    ]


def short_name(folder: Path) -> str:
    """What a run is called in a legend: a folder named by date and model by its date and time, which is
    shorter; any other as it is named."""
    name = folder.absolute().name
    dated = re.match(r"(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)\d\d-", name)
    return "{}-{}-{} {}:{}".format(*dated.groups()) if dated else name


def _both(chart: Chart, other: Chart, name: str, number: int) -> Chart:
    panels: list[Panel] = []
    laid: list[Panel] = []
    left = list(other.panels)
    for panel in chart.panels:
        same = next((p for p in left if p.title == panel.title), None)
        if same is None and not panel.bars:  # a panel named after its reference, which may differ
            same = next((p for p in left if _kind(p) == _kind(panel)), None)
        if same is not None:
            left.remove(same)
        if same is None:
            panels.append(panel)
        elif panel.bars:
            panels.append(_on(panel, ticks := _ticks(panel.x, same.x)))
            laid.append(_on(_called(same, name), ticks))
        else:
            panels.append(_lines(panel, same, name, number))
    panels += laid
    first = {title: at for at, title in reversed(list(enumerate(_stack(panel) for panel in panels)))}
    panels.sort(key=lambda panel: first[_stack(panel)])  # each of ours, then all that are laid over it
    known = {category.key for category in chart.categories}
    mine = () if any(panel.bars for panel in panels) else (_whose(chart, name),)
    marks = [note for note in other.notes if note.startswith(("✕", "! ")) and note not in chart.notes]
    theirs = tuple(f"{name}: {note}" for note in marks)
    kept = tuple(note for note in chart.notes if not (mine and note.startswith(_THIN)))
    return msgspec.structs.replace(
        chart,
        panels=tuple(panels),
        categories=(*chart.categories, *(c for c in other.categories if c.key not in known)),
        notes=(*mine, *kept, *theirs),
        footer=(*chart.footer, *(f"{name}: {line}" for line in other.footer if line not in chart.footer)),
    )


def _lines(panel: Panel, other: Panel, name: str, number: int) -> Panel:
    added = tuple(
        msgspec.structs.replace(
            series,
            label=overlaid_label(series.label, name),
            overlay=number,
            marker=palette.overlaid(series.marker, number),
        )
        for series in other.series
    )
    both = msgspec.structs.replace(panel, series=(*panel.series, *added))
    return _on(both, _ticks(panel.x, other.x))


def _whose(chart: Chart, name: str) -> str:
    """Which runs the thin lines are of, with those that lie over the chart already."""
    before = next(
        (note.removeprefix(_THIN).rstrip(".") for note in chart.notes if note.startswith(_THIN)), ""
    )
    return f"{_THIN}{', '.join(filter(None, (before, name)))}."


def _stack(panel: Panel) -> str:
    """Under which title a panel's own and those laid over it stand together."""
    return panel.title.partition(_OF)[0]


def _called(panel: Panel, name: str) -> Panel:
    return msgspec.structs.replace(panel, title=overlaid_label(panel.title, name))


def _on(panel: Panel, ticks: tuple[float, ...]) -> Panel:
    """The panel over these batch sizes."""
    return msgspec.structs.replace(panel, x=msgspec.structs.replace(panel.x, ticks=ticks))


def overlaid_label(label: str, name: str) -> str:
    """What a line or a stack of the run `name` is called."""
    return f"{label}{_OF}{name}"


def _ticks(one: Axis, other: Axis) -> tuple[float, ...]:
    return tuple(sorted({*one.ticks, *other.ticks}))


def _kind(panel: Panel) -> tuple[str, str, bool]:
    return panel.y.label, panel.y.unit, panel.baseline is not None
