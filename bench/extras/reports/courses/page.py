"""What is told of a course report: tables, figures, and what of it ours contradicts."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

from bench.extras.reports import filled
from bench.extras.reports.courses import claims, remarks, tables
from bench.extras.reports.courses.presets import ALL_IMAGES, Course, Figure, Matrix
from bench.extras.reports.filled import Page
from bench.extras.reports.needs import NOT_MEASURED, Taken
from bench.views.charts.definitions import Axis, Chart, Panel, Point, Series
from bench.views.drawing.looks import Look
from bench.views.reports import report_form
from bench.views.reports.report_form import Picture, ReportForm
from bench.views.tables.table import Table
from bench.words import palette

_KINDS = {"agrees": "ok", "contradicts": "slower", "open": ""}


def write(course: Course, taken: Taken, out: Path, heading: str = "") -> list[Path]:
    """Write it in the form of the file's ending; what was written, the report first."""
    form = report_form.form_of(out)
    return filled.write(page(course, taken, form), taken, form, heading)


def page(course: Course, taken: Taken, form: ReportForm) -> Page:
    env = taken.environment
    few = [f"Here {taken.images:,} images were taken where a figure names {ALL_IMAGES:,}."]
    held = [claims.held(course, claim, taken) for claim in course.claims]
    return Page(
        command=f"course {course.name}".strip(),
        heading=f"{course.title}, on {env.gpu or env.cpu or 'this machine'}",
        source=course.source,
        strip=[
            *((_KINDS[one.kind], one.sentence) for one in held),
            *(("", remarks.sentence(course, remark, taken)) for remark in course.remarks),
        ],
        notes=(*few * (course.names_images and 0 < taken.images < ALL_IMAGES), *course.notes),
        tables=[
            *(tables.of_lines(course, table, taken) for table in course.tables),
            *(tables.of_ranks(course, ranked, taken) for ranked in course.ranked),
            *(tables.of_matrix(course, matrix, taken) for matrix in course.matrices),
            *over_models(course, taken),
        ],
        figures=figures(course, taken, form),
        method="words_course.j2",
        pictured=bool(course.figures),
    )


def over_models(course: Course, taken: Taken) -> list[Table[Any]]:
    """Where ladders of one node of several models were taken on a device: each rung that all of them have,
    over the models."""
    from bench.results.ladder_rows import rows
    from bench.views.tables import ladder_report_tables as report_tables

    found = []
    for device in ("cpu", "cuda"):
        ladders = {
            need.model: taken.run(need.name)
            for need in course.needs
            if need.kind == "ladder" and need.device == device and need.name in taken.runs[0]
        }
        if len(ladders) > 1:
            of = [
                (model, rows(folder.header, folder.measurements()))
                for model, folder in sorted(ladders.items())
            ]
            common = set.intersection(*({row.case.label for row in found} for _, found in of))
            of = [(model, [row for row in found if row.case.label in common]) for model, found in of]
            where = "this CPU" if device == "cpu" else "this GPU"
            found.append(report_tables.over_models(of, f"One rung over {len(of)} models, on {where}"))
    return found


# ---------------------------------------------------------------------------------------------------- figures


def figures(course: Course, taken: Taken, form: ReportForm) -> list[Picture]:
    """Those that there is something for."""
    found = []
    for figure in course.figures:
        if not lacking(figure, taken):
            made = _figure(course, figure, taken, form)
            if made is not None:
                found.append(Picture(figure.title, made.where, made.words))
    return found


def lacking(figure: Figure, taken: Taken) -> str:
    """Why there is nothing to draw; "" where there is."""
    if figure.need in taken.why:
        return taken.why[figure.need]
    measured = taken.run(figure.need).measurements()
    if any(made.disposition == "ok" and made.samples_ns for made in measured):
        return ""
    return next((made.reason for made in measured if made.reason), NOT_MEASURED)


def _figure(course: Course, figure: Figure, taken: Taken, form: ReportForm) -> Picture | None:
    from bench.results.event_files import events_in
    from bench.results.ladder_rows import rows
    from bench.views.charts import ladder_charts, profile_charts
    from bench.views.drawing import draw_timeline

    folder = taken.run(figure.need)
    stem = re.sub(r"[^\w]+", "-", figure.title).strip("-").lower()
    measured = folder.measurements()
    fine = [made for made in measured if made.disposition == "ok"]
    if figure.chart == "ladder":
        chart: Chart | None = ladder_charts.speed(folder.header, rows(folder.header, measured))
    elif figure.chart == "total":
        matrix = next(matrix for matrix in course.matrices if matrix.need == figure.need)
        chart = total(course, matrix, taken)
    elif figure.chart == "timeline":
        shown = [(made, events_in(folder.path, made)) for made in fine]

        def draw(kind: str, look: Look) -> bytes:
            return draw_timeline.render(folder.header, shown, kind, fine, 1.0, look)

        return form.drawing(figure.title, stem, draw)
    else:
        chart = getattr(profile_charts, figure.chart)(folder.header, fine)
    return None if chart is None else form.chart(chart, stem)


def total(course: Course, matrix: Matrix, taken: Taken) -> Chart:
    """What a pass takes by batch size, theirs and ours: kernels and copies together."""
    theirs, ours = (
        [Point(x=batch, y=seconds) for batch, seconds in sorted(found.items())]
        for found in tables.totals(course, matrix, taken)
    )
    name = course.need(matrix.need).backend(matrix.who)
    one = partial(Series, precision="fp32", dashed=False, marker="o")
    lines = (
        one(label="published", backend="published", colour=palette.OTHERS[0], points=tuple(theirs)),
        one(label=f"{name}, here", backend=name, colour=palette.backend(name), points=tuple(ours)),
    )
    panel = Panel(
        title="",
        x=Axis(label="batch size", scale="log", ticks=tuple(row[0] for row in matrix.rows)),
        y=Axis(label="time", unit="s", scale="log"),
        series=lines,
    )
    return Chart(
        name="course-total",
        model=course.title,
        title="Kernels and copies by batch size",
        finding=remarks.grown(*tables.totals(course, matrix, taken)),
        panels=(panel,),
        notes=(f"Published: {matrix.hardware}.",),
    )
