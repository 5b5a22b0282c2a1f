"""A report of goals, as HTML or Markdown: which are reached, the tables, charts, and the commands behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.charts import model_charts
from bench.charts.definitions import Chart
from bench.charts.footer import machine, versions
from bench.charts.verdicts import verdict
from bench.goals import again, flows, judged, machines, tables
from bench.goals.judged import MISSED, OPEN, OUTCOMES, REACHED, Held
from bench.goals.needs import Taken
from bench.goals.presets import Goals
from bench.ladder.records import compared_in
from bench.results.rows import Row, by_model, in_order, rows, title
from bench.show import report_form
from bench.show.report_form import ReportForm

TEMPLATE = "goals"
END_TO_END = "end-to-end"
CHARTS = ("op-time", "speed", END_TO_END)
_KINDS = {REACHED: "ok", MISSED: "slower", OPEN: ""}


def write(goals: Goals, taken: Taken, out: Path, heading: str = "") -> list[Path]:
    """Write it in the form of the file's ending; what was written, the report first."""
    form = report_form.form_of(out)
    return form.write(TEMPLATE, context(goals, taken, form, heading))


def context(goals: Goals, taken: Taken, form: ReportForm, heading: str = "") -> dict[str, Any]:
    """What the template tells."""
    held = judged.held(goals, taken)
    first = judged.measured(taken)[0]
    found = again.repeated(taken)
    headers = [folder.header for runs in taken.runs for folder in runs.values()]
    repeated = [tables.repeats(found)] if any(each.changes or each.why for each in found) else []
    return {
        "heading": heading or machines.heading(goals, taken),
        "strip": [(_KINDS.get(outcome, ""), sentence) for outcome, sentence in counted(held)],
        "again": again.sentence(found),
        "notes": (*machines.notes(goals, taken), *goals.notes),
        "machines": list(dict.fromkeys((machine(run), versions(run)) for run in headers)),
        "tables": [
            tables.goals(held),
            tables.cases(goals, first, taken.limits),
            *flows.tables(goals, first),
            *repeated,
        ],
        "figures": [form.chart(chart, stem) for stem, chart in charts(goals, taken).items()],
        "sources": [
            (str(folder.path), folder.header.command, len(folder.measurements()), len(folder.cases))
            for runs in taken.runs
            for folder in runs.values()
        ],
        "missing": list(taken.why.items()),
    }


def counted(held: Sequence[Held]) -> list[tuple[str, str]]:
    """How many goals came to what, each outcome with a sentence."""
    counts = Counter(one.outcome for one in held)
    told = []
    for outcome in OUTCOMES:
        if counts[outcome]:
            verb = "is" if counts[outcome] == 1 else "are"
            told.append((outcome, f"{counts[outcome]:,} of {len(held):,} goals {verb} {outcome}"))
    return told


def charts(goals: Goals, taken: Taken) -> dict[str, Chart]:
    """Those of each comparison, of the first runs, by name: one a precision, as each has many rivals. What is
    said above them is said of ours."""
    ours = {goal.backend for goal in goals.goals}
    found = {}
    for name, folder in taken.runs[0].items():
        measurements, place = in_order(folder.header, folder.measurements()), Path(name).name
        for model, items in by_model(rows(measurements)).items():
            for precision, of_it in _by_precision(items).items():
                cases = tuple(c for c in folder.header.cases if compared_in(c.precision) == precision)
                run = msgspec.structs.replace(folder.header, cases=cases)
                about = msgspec.structs.replace(run, cases=tuple(c for c in cases if c.backend in ours))
                said = verdict(model, [row for row in of_it if row.case.backend in ours], [about]).text
                for chart in model_charts(model, of_it, [run]):
                    kind = chart.name.removeprefix(f"{title(model)}-")
                    if kind not in CHARTS:
                        continue
                    told = {"title": f"{chart.title}, {precision}"}
                    if kind != END_TO_END:
                        told["finding"] = said
                    stem = chart.name if chart.name.startswith(place) else f"{place}-{chart.name}"
                    found[f"{stem}-{precision}"] = msgspec.structs.replace(chart, **told)
    return found


def _by_precision(items: Sequence[Row]) -> dict[str, list[Row]]:
    """What is held against references of one precision, without what nobody offers."""
    found: dict[str, list[Row]] = {}
    for row in items:
        if row.measurement.disposition != "unsupported":
            found.setdefault(compared_in(row.case.precision), []).append(row)
    return found
