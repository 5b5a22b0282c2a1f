"""A report of goals, as HTML or Markdown: which are reached, the tables, charts, and the commands behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.charts import precision_charts
from bench.charts.definitions import Chart
from bench.charts.footer import machine, versions
from bench.goals import again, flows, judged, machines, tables
from bench.goals.judged import MISSED, OPEN, OUTCOMES, REACHED, Held
from bench.goals.needs import Taken
from bench.goals.presets import Goals
from bench.results.rows import by_model, in_order, rows
from bench.show import report_form
from bench.show.report_form import ReportForm

TEMPLATE = "goals"
CHARTS = ("op-time", "speed", "end-to-end")
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
    ours = tuple({goal.backend for goal in goals.goals})
    found = {}
    for name, folder in taken.runs[0].items():
        measurements, place = in_order(folder.header, folder.measurements()), Path(name).name
        for model, items in by_model(rows(measurements)).items():
            for kind, chart in precision_charts(model, items, [folder.header], ours):
                if kind in CHARTS:
                    stem = chart.name if chart.name.startswith(place) else f"{place}-{chart.name}"
                    found[stem] = chart
    return found
