"""A report of saved ladders: every figure in it is derived from their records, and none is typed.

Ladders of one node at several batch sizes stand under one heading, with an overview of all of them; each has
its table, its charts and a sentence a rung (bench.views.sentences.ladder_story).
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.results.ladder_records import Ladder, RungMeasurement
from bench.results.ladder_rows import RungRow, rows
from bench.results.rows import title
from bench.run.kinds.ladder import KIND as LADDER
from bench.views.charts import ladder_charts
from bench.views.reports import report_form
from bench.views.reports.report_form import Picture, ReportForm
from bench.views.sentences import ladder_story
from bench.views.sentences.footer import devices
from bench.views.tables import ladder_report_tables as tables
from bench.views.tables import ladder_tables
from bench.views.tables.table import Table
from bench.words import orders, units
from bench.words.called import CALLED
from kernels.errors import InputError

TEMPLATE = "ladder"
MAX_CHART_NBYTES = 60_000


@dataclass(frozen=True)
class Climbed:
    """One ladder's folder as read."""

    ladder: Ladder
    measurements: tuple[RungMeasurement, ...]
    rows: tuple[RungRow, ...]

    @property
    def node(self) -> str:
        """What several batch sizes of it have in common."""
        job = self.ladder.job
        where = f"{title(job.model)}, {job.node}" if job.model else job.title
        return f"{where} on the CPU" if job.device == "cpu" else where

    @property
    def stem(self) -> str:
        """Of the files of its charts."""
        job = self.ladder.job
        words = f"{title(job.model)}-{job.node}" if job.model else job.title
        return re.sub(r"[^\w.]+", "-", f"{words}-b{job.batch}-{job.device}").strip("-").lower()


@dataclass(frozen=True)
class LadderPart:
    """One ladder as the report shows it. role: what the colour of its finding may say; wrong: whether a rung
    failed; sentences: (label, sentence) a rung."""

    batch: int
    title: str
    finding: str
    role: orders.Role
    wrong: bool
    table: Table[RungRow]
    charts: tuple[Picture, ...]
    sentences: tuple[tuple[str, str], ...]
    references: tuple[str, ...]
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class NodeSection:
    """One node. overview: rungs × batch sizes (None for one batch size)."""

    title: str
    overview: Table[RungRow] | None
    parts: tuple[LadderPart, ...]


def write(paths: Sequence[Path], out: Path, charts: Path | None = None, heading: str = "") -> list[Path]:
    """Write the report of the ladders in `paths` to `out`: HTML, or Markdown with its charts, PNG, in
    `charts` (without it, a folder beside the report, named after it). Returns what was written, the report
    first.

    Raises InputError where a ladder cannot be read or holds nothing, and where a file cannot be written.
    """
    found = [read(path) for path in paths]
    form = report_form.form_of(out, charts, MAX_CHART_NBYTES)
    nodes: dict[str, list[Climbed]] = {}
    for climbed in found:
        nodes.setdefault(climbed.node, []).append(climbed)
    sections = []
    for node, ladders in nodes.items():
        ladders.sort(key=lambda one: one.ladder.job.batch)
        parts = [part(climbed, _draw(climbed, form)) for climbed in ladders]
        sections.append(
            NodeSection(
                node,
                tables.overview([(one.ladder.job.batch, one.rows) for one in ladders])
                if len(ladders) > 1
                else None,
                tuple(parts),
            )
        )
    return form.write(TEMPLATE, context(found, sections, heading))


def read(path: Path) -> Climbed:
    """A ladder's folder. Raises InputError where it is none or holds no measurement."""
    folder = LADDER.open(path)
    measurements = folder.measurements()
    if not measurements:
        raise InputError(f"there is no measurement in {path}; `{CALLED} ladder --resume {path}` takes them")
    return Climbed(folder.header, measurements, tuple(rows(folder.header, measurements)))


def context(found: Sequence[Climbed], sections: Sequence[NodeSection], heading: str = "") -> dict[str, Any]:
    """What the template tells."""
    course = tables.load()
    beside_ours, course_rows = tables.beside(course, [(one.ladder, one.rows) for one in found])
    return {
        "heading": heading or f"Ladders on {devices(one.ladder for one in found)}",
        "count": len(found),
        "above": ladder_tables.ABOVE,
        "machines": list(
            dict.fromkeys(line for one in found for line in ladder_charts.machine_lines(one.ladder))
        ),
        "limits": list(
            dict.fromkeys(
                f"{line[0].upper()}{line[1:]}"
                for one in found
                for line in ladder_tables.limit_lines(one.ladder)
            )
        ),
        "pieces": [piece(one) for one in found],
        "sections": sections,
        "models": over_models(found),
        "course": course,
        "beside_ours": [ladder.job.title for ladder in beside_ours],
        "course_table": tables.course(course_rows),
    }


def over_models(found: Sequence[Climbed]) -> list[Table[RungRow]]:
    """Where ladders of one operator, device and batch size were taken on several models: each rung over
    them."""
    alike: dict[tuple[str, str, int], dict[str, Sequence[RungRow]]] = {}
    for one in found:
        job = one.ladder.job
        if job.model:
            models = alike.setdefault((job.op, job.device, job.batch), {})
            models.setdefault(f"{title(job.model)}, {job.node}", one.rows)
    return [
        tables.over_models(
            list(models.items()), f"One rung over {len(models)} models: batch {batch:,}, {device}"
        )
        for (_, device, batch), models in alike.items()
        if len({name.partition(",")[0] for name in models}) > 1
    ]


def piece(one: Climbed) -> tuple[str, str]:
    """How a ladder was measured, in words, and its command."""
    job = one.ladder.job
    clocks = [mhz for m in one.measurements for mhz in m.telemetry.sm_clock_mhz]
    words = [
        job.title,
        f"L2 {job.l2}",
        f"at most {job.budget_s:g} s of samples a rung",
        units.instances(m.instances for m in one.measurements if m.samples_ns),
        f"SM clock {statistics.median(clocks):.0f} MHz" if clocks else "",
        one.ladder.created_at.replace("T", " ")[:16],
        f"{len(one.measurements)} of {len(one.ladder.cases)} cases measured",
    ]
    return "; ".join(filter(None, words)), one.ladder.command


def part(one: Climbed, charts: tuple[Picture, ...] = ()) -> LadderPart:
    """One ladder; `charts` as they are to be embedded."""
    references = [row for row in one.rows if row.case.is_reference]
    return LadderPart(
        batch=one.ladder.job.batch,
        title=one.ladder.job.title,
        finding=ladder_charts.speed(one.ladder, one.rows).finding,
        role=ladder_story.role(one.rows),
        wrong=any(row.measurement.disposition not in ("ok", "unsupported") for row in one.rows),
        table=tables.of_rungs(one.rows),
        charts=charts,
        sentences=tuple(
            (ladder_tables.label(row), ladder_story.sentence(one.ladder, row, one.rows))
            for row in one.rows
            if not row.case.is_reference
        ),
        references=tuple(ladder_story.reference(one.ladder, row, one.rows) for row in references if row.time),
        remarks=tuple(
            f"{ladder_tables.label(row)}: {text}"
            for row in one.rows
            for text in dict.fromkeys((*row.doubts, *row.measurement.notes))
        ),
    )


def _draw(one: Climbed, form: ReportForm) -> tuple[Picture, ...]:
    return tuple(
        form.chart(chart, f"{one.stem}-{chart.name.removeprefix('ladder-')}")
        for chart in ladder_charts.charts(one.ladder, one.rows)
    )
