"""What is told of goals: which are reached, the tables, charts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.extras.reports import filled
from bench.extras.reports.filled import Page
from bench.extras.reports.goals import again, judged, machines, tables
from bench.extras.reports.goals.judged import MISSED, OPEN, OUTCOMES, REACHED, UNKNOWN, Held
from bench.extras.reports.goals.presets import Goals
from bench.extras.reports.needs import Taken
from bench.results.rows import Row, by_model, rows
from bench.run.kinds.comparison import RunFolder
from bench.views.charts.comparison_charts import precision_charts
from bench.views.charts.definitions import Chart
from bench.views.reports import report_form
from bench.views.reports.report_form import ReportForm

CHARTS = ("op-time", "speed", "end-to-end")
# Of more models than these, what was measured at fewer batch sizes stands in the tables alone.
MANY_MODELS, FEW_BATCHES = 8, 3
_KINDS = {REACHED: "ok", MISSED: "slower", OPEN: ""}


def write(goals: Goals, taken: Taken, out: Path, heading: str = "", drawn: bool = True) -> list[Path]:
    """Write it in the form of the file's ending; what was written, the report first. drawn: with charts."""
    form = report_form.form_of(out)
    return filled.write(page(goals, taken, form, drawn), taken, form, heading)


def page(goals: Goals, taken: Taken, form: ReportForm, drawn: bool = True) -> Page:
    held = judged.held(goals, taken)
    lacking = [one for one in held if one.outcome == UNKNOWN]
    first = judged.measured(taken)[0]
    found = again.repeated(taken)
    repeated = [tables.repeats(found)] if any(each.changes or each.why for each in found) else []
    return Page(
        command=f"goals {goals.name}".strip(),
        heading=machines.heading(goals, taken),
        strip=[*counted(held), ("", again.sentence(found))],
        notes=(*machines.notes(goals, taken), *goals.notes),
        tables=[
            tables.goals([one for one in held if one.outcome != UNKNOWN]),
            *tables.lacking(lacking),
            tables.cases(goals, first, taken.limits),
            *tables.flows(goals, first),
            *repeated,
        ],
        figures=[form.chart(chart, stem) for stem, chart in charts(taken).items()] if drawn else [],
        pictured=drawn,
        method="words_goals.j2",
        told=frozenset({UNKNOWN, *(one.why for one in lacking)}),
    )


def counted(held: Sequence[Held]) -> list[tuple[str, str]]:
    """How many goals came to what, a sentence each, with its colour; those apart, without a colour, that a
    doubtful figure says."""
    counts = Counter((one.outcome, bool(one.doubts)) for one in held)
    told = []
    for outcome in OUTCOMES:
        for doubtful in (False, True):
            if count := counts[outcome, doubtful]:
                verb = "is" if count == 1 else "are"
                what = f"{outcome}, with a doubt (!)" if doubtful else outcome
                sentence = f"{count:,} of {len(held):,} goals {verb} {what}"
                told.append(("" if doubtful else _KINDS.get(outcome, ""), sentence))
    return told


def charts(taken: Taken) -> dict[str, Chart]:
    """Those of what was measured on a device in the first runs, by name: one a precision, as each has many
    rivals. Of several devices each has the device in its name and title. Of many models those alone that a
    picture tells more of than the table."""
    devices: dict[str, list[RunFolder]] = {}
    for folder in taken.runs[0].values():
        environment = folder.header.environment
        devices.setdefault(environment.gpu or environment.cpu, []).append(folder)
    found = {}
    for device, folders in devices.items():
        for flowing in (False, True):
            among = [folder for folder in folders if not flowing or _flows(folder)]
            held, headers = by_model(_rows(among)), [folder.header for folder in among]
            for model, items in held.items():
                if len(held) > MANY_MODELS and len({row.case.batch for row in items}) < FEW_BATCHES:
                    continue
                runs = [run for run in headers if any(case.model == model for case in run.cases)]
                for kind, chart in precision_charts(model, items, runs):
                    if kind in CHARTS and (kind == CHARTS[-1]) == flowing:
                        if len(devices) == 1:
                            found[chart.name] = chart
                        else:
                            titled = msgspec.structs.replace(chart, title=f"{chart.title}, on {device}")
                            found[f"{_word(device)}-{chart.name}"] = titled
    return found


def _rows(folders: Sequence[RunFolder]) -> list[Row]:
    """Of each case the one that counts, the smallest batches first: of the last run that has it, and of those
    that were about a pass alone where there are such."""
    found: dict[str, Row] = {}
    for folder in sorted(folders, key=_flows, reverse=True):
        found |= {row.case.key: row for row in rows(folder.measurements())}
    return sorted(found.values(), key=lambda row: row.case.batch)


def _flows(folder: RunFolder) -> bool:
    """Whether anything in it is from end to end."""
    return any(made.end_to_end is not None for made in folder.measurements())


def _word(device: str) -> str:
    """A device in a file's name."""
    return re.sub(r"[^a-z0-9]+", "-", device.lower().removeprefix("nvidia ")).strip("-") or "device"
