"""A report of goals, as HTML or Markdown: which are reached, the tables, charts, and the commands behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.charts import model_charts
from bench.charts.footer import machine, versions
from bench.goals import again, judged, tables
from bench.goals.judged import MISSED, OPEN, OUTCOMES, REACHED, Held
from bench.goals.needs import Taken
from bench.goals.presets import Goals
from bench.results.rows import by_model, in_order, rows, title
from bench.show import report_form
from bench.show.report_form import Picture, ReportForm

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
        "heading": heading or goals.title,
        "strip": [(_KINDS.get(outcome, ""), sentence) for outcome, sentence in counted(held)],
        "again": again.sentence(found),
        "notes": (*elsewhere(goals, taken), *goals.notes),
        "machines": list(dict.fromkeys((machine(run), versions(run)) for run in headers)),
        "tables": [tables.goals(held), tables.cases(goals, first, taken.limits), *repeated],
        "figures": figures(taken, form),
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


def elsewhere(goals: Goals, taken: Taken) -> list[str]:
    """What is to be known where the goals are another machine's."""
    environments = [folder.header.environment for runs in taken.runs for folder in runs.values()]
    names = dict.fromkeys(env.gpu if goals.device == "cuda" else env.cpu for env in environments)
    return [
        f"The goals are of one {goals.machine}; this is {name or 'another machine'}."
        for name in names
        if goals.machine not in name
    ]


def figures(taken: Taken, form: ReportForm) -> list[Picture]:
    """The charts of each comparison, of the first runs."""
    found = []
    for name, folder in taken.runs[0].items():
        measurements = in_order(folder.header, folder.measurements())
        for model, items in by_model(rows(measurements)).items():
            for chart in model_charts(model, items, [folder.header]):
                if chart.name.removeprefix(f"{title(model)}-") in CHARTS:
                    place = Path(name).name
                    stem = chart.name if chart.name.startswith(place) else f"{place}-{chart.name}"
                    found.append(form.chart(chart, stem))
    return found
