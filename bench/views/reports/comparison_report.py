"""A report of saved runs: every number in it is derived from their records, and none is typed.

Several runs may be pieces of one comparison (the GPU's part and the CPU's, or cases taken again): of each
case the latest measurement counts. A case is compared with its reference in its own run, where the two took
turns; only where that run has no such reference, with the one of another run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.results.records import Case, Measurement, ModelInfo, Run
from bench.results.rows import Row, by_model, derive, reference_of, rows, title
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.views.charts.comparison_charts import model_charts, precision_charts
from bench.views.charts.definitions import Chart
from bench.views.charts.scoreboard import MEANING
from bench.views.reports import report_form
from bench.views.reports.report_form import Picture
from bench.views.sentences import findings
from bench.views.sentences.footer import device, devices, machine, settings, versions
from bench.views.sentences.verdicts import crowded, verdicts
from bench.views.tables import comparison_tables as tables
from bench.views.tables import scoreboard, terminal_tables
from bench.views.tables.table import Column, Table
from bench.words import units
from bench.words.called import CALLED
from kernels.errors import InputError

RunData = tuple[Run, Sequence[Measurement]]

TEMPLATE = "report"
CHARTS = (
    "op-time",
    "speed",
    "end-to-end",
    "breakdown",
    "accuracy",
)  # of bench.views.charts, by the end of their names


@dataclass(frozen=True)
class Piece:
    """One run as the report tells of it; measured: how many of its cases it holds."""

    machine: str
    versions: str
    settings: str
    command: str
    cases: int
    measured: int


@dataclass(frozen=True)
class ModelSection:
    """One model. facts: what it is, in words."""

    title: str
    facts: str
    table: Table[Row]
    charts: tuple[Picture, ...]
    end_to_end: Table[Row] | None = None


@dataclass(frozen=True)
class Merged:
    """Several runs as one: rows with the latest measurement of each case, in the order the runs mean them.
    places: by a case's key, which of the runs that measurement is of."""

    runs: tuple[Run, ...]
    rows: tuple[Row, ...]
    missing: tuple[Case, ...]
    apart: tuple[Row, ...]  # compared with a reference that was measured in another run
    places: Mapping[str, int]


def write(paths: Sequence[Path], out: Path, charts: Path | None = None, heading: str = "") -> list[Path]:
    """Write the report of the runs in `paths` to `out`: HTML, or Markdown with its charts, PNG, in `charts`
    (without it, a folder beside the report, named after it). Returns what was written, the report first.

    Raises InputError where a run cannot be read or holds nothing, and where a file cannot be written.
    """
    found: list[RunData] = []
    for path in paths:
        folder = COMPARISON.open(path)
        found.append((folder.header, folder.measurements()))
    merged = merge(found)
    if not merged.rows:
        names = ", ".join(map(str, paths))
        raise InputError(f"there is no measurement in {names}; `{CALLED} compare --resume` takes them")
    form = report_form.form_of(out, charts)
    sections = []
    for model, items in by_model(merged.rows).items():
        runs = [run for run in merged.runs if any(case.model == model for case in run.cases)]
        drawn = tuple(form.chart(chart, chart.name) for chart in charts_of(model, items, runs or merged.runs))
        sections.append(section(model, items, merged.runs, drawn))
    return form.write(TEMPLATE, context(merged, found, sections, heading))


def merge(found: Sequence[RunData]) -> Merged:
    """Runs as one. What was measured later wins; of what has no time, what was named later."""
    latest: dict[str, tuple[str, int, Row]] = {}
    for place, (_, measurements) in enumerate(found):
        for row in rows(measurements):
            stamp = (row.measurement.started_at, place)
            held = latest.get(row.case.key)
            if held is None or stamp >= held[:2]:
                latest[row.case.key] = (*stamp, row)
    everywhere = {
        row.case: row.measurement
        for _, _, row in latest.values()
        if row.completed and row.measurement.samples_ns
    }
    order = dict.fromkeys(case.key for run, _ in found for case in run.cases) | dict.fromkeys(latest)
    chosen, apart = [], []
    for key in order:
        if key not in latest:
            continue
        row = latest[key][2]
        if row.median_ns is not None and row.speedup is None:
            row = derive(row.measurement, reference_of(row.measurement, everywhere))
            if row.speedup is not None:
                apart.append(row)
        chosen.append(row)
    planned = {case.key: case for run, _ in found for case in run.cases}
    missing = tuple(case for key, case in planned.items() if key not in latest)
    chosen.sort(key=lambda row: row.case.batch)  # stable: within a batch size the runs' own order
    places = {key: place for key, (_, place, _) in latest.items()}
    return Merged(tuple(run for run, _ in found), tuple(chosen), missing, tuple(apart), places)


def context(
    merged: Merged, found: Sequence[RunData], sections: Sequence[ModelSection], heading: str = ""
) -> dict[str, Any]:
    """What the template tells."""
    pieces = [piece(run, measurements) for run, measurements in found]
    told = [verdict for verdict in verdicts(merged.rows, merged.runs) if verdict.clauses]
    return {
        "heading": heading or f"Comparison on {devices(merged.runs)}",
        "overview": findings.sentences(merged.rows),
        "boards": [(verdict, scoreboard.table(verdict.board)) for verdict in told],
        "meaning": MEANING if any(verdict.board.has_comparisons for verdict in told) else "",
        "said": [verdict.text for verdict in told],
        "machines": list(dict.fromkeys((piece.machine, piece.versions) for piece in pieces)),
        "pieces": pieces,
        "sections": sections,
        "shortfalls": shortfalls(merged),
    }


def piece(run: Run, measurements: Sequence[Measurement]) -> Piece:
    return Piece(
        machine(run),
        versions(run),
        settings(run, measurements),
        run.command,
        len(run.cases),
        len(measurements),
    )


def section(
    model: str, items: Sequence[Row], runs: Iterable[Run], charts: tuple[Picture, ...] = ()
) -> ModelSection:
    """One model's heading, facts and table; `charts` as they are to be embedded."""
    info = next((i for run in runs for i in run.models if i.name == model), ModelInfo(name=model))
    name = title(model)
    answered = [m.accuracy for m in (row.measurement for row in items) if m.accuracy and m.accuracy.images]
    counts = ", ".join(f"{count:,}" for count in sorted({accuracy.images for accuracy in answered}))
    what = "accuracy" if any(accuracy.top1 is not None for accuracy in answered) else "answers compared"
    facts = [
        f"{info.parameters:,} parameters" if info.parameters else "",
        f"{units.si(info.flops_per_image, 'FLOP')} an image" if info.flops_per_image else "",
        f"data set {info.dataset}" if info.dataset else "",
        f"preprocessing {info.preprocess}" if info.preprocess else "",
        f"an image is {info.image}" if info.image else "",
        f"classes in the order of {info.labels}" if info.labels else "",
        f"{what} on {counts} images" if counts else "",
    ]
    shown = f"{info.title} ({name})" if info.title and info.title != name else name
    readable = tables.readable(items, _WITHIN)
    flow = tables.end_to_end(items)
    return ModelSection(shown, " · ".join(filter(None, facts)), readable, charts, flow)


def _within(row: Row) -> str:
    """How many layers stayed within their bounds, of those that were judged."""
    judged = [good for layer in row.measurement.layers if (good := findings.within(layer)) is not None]
    if not judged:
        return ""
    return f"all {len(judged)}" if all(judged) else f"**{sum(judged)} of {len(judged)}**"


_WITHIN: Column[Row] = Column("within", cell=_within, title="layers in bound", left=True)


# ------------------------------------------------------------------------------------------ what falls short


def shortfalls(merged: Merged) -> list[str]:
    """Every case that is not ok and why, every warning, every layer beyond its bound, every comparison that
    was not timed together, every case of another machine than most, every case not measured; cases that share
    a sentence share a line."""
    lines = terminal_tables.remarks(merged.rows)
    lines += findings.beyond(merged.rows)
    for where in findings.places(merged.apart):
        lines.append(f"{where}: not timed together with the reference, which another run measured")
    lines += _elsewhere(merged)
    counts = Counter((title(case.model), case.backend) for case in merged.missing)
    lines += [
        f"{model}, {backend}: {count} case{'s' if count > 1 else ''} not measured"
        for (model, backend), count in counts.items()
    ]
    return lines


def _elsewhere(merged: Merged) -> list[str]:
    """Which cases were measured on another device than most of them: their times stand in one table."""
    found: dict[str, list[Row]] = {}
    for row in merged.rows:
        found.setdefault(device(merged.runs[merged.places[row.case.key]]), []).append(row)
    most = max(found, key=lambda name: len(found[name]), default="")
    return [
        f"{where}: measured on {name}, most others on {most}"
        for name, items in found.items()
        if name != most
        for where in findings.places(items)
    ]


# --------------------------------------------------------------------------------------------------- files


def charts_of(model: str, items: Sequence[Row], runs: Sequence[Run]) -> list[Chart]:
    """Those that a report shows of a model, in its order. Of many contenders it has one a precision."""
    if not crowded(row.case for row in items):
        by_kind = {
            chart.name.removeprefix(f"{title(model)}-"): chart for chart in model_charts(model, items, runs)
        }
        return [by_kind[kind] for kind in CHARTS if kind in by_kind]
    found = precision_charts(model, items, runs)
    return [chart for kind in CHARTS for its, chart in found if its == kind]
