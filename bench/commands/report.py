"""`runs report`: a report, HTML or Markdown, of one run, or of several that are pieces of one comparison; of
ladders; or of profiles."""

from __future__ import annotations

from pathlib import Path

import typer


def report(
    runs: list[Path] = typer.Argument(
        metavar="RUN…",
        help="Run folders (of a case in several, the latest counts); or ladders', or profiles'.",
    ),
    out: Path | None = typer.Option(
        None, metavar="FILE.html|FILE.md", help="The report, in the form of its ending."
    ),
    html: bool = typer.Option(
        False,
        "--html",
        help="HTML, all in one file; without --out, report.html among the first run's charts.",
    ),
    charts: Path | None = typer.Option(
        None, metavar="DIR", help="Of Markdown: the folder for its charts; default: one beside it."
    ),
    title: str = typer.Option("", metavar="TEXT", help="Its heading; default: the device's name."),
) -> None:
    """Write a report of saved runs.

    What was measured how, a table and charts a model, what falls short. Of
    ladders: a table, charts and a sentence a rung for every batch size, and an overview of each node. Of
    profiles: where the time goes, case by case, and what starting cold costs."""
    from bench.results.folders import open_folder
    from bench.views.reports import report_form
    from kernels.errors import InputError

    kinds = [open_folder(path).kind for path in runs]
    for kind, path in zip(kinds, runs, strict=True):
        if kind is not kinds[0]:
            raise InputError(f"{runs[0]} is {kinds[0].a} and {path} is {kind.a}: report the two apart")
    target = report_form.file_of(out, html, runs[0])
    report_form.form_of(target, charts)  # a name that means no form is told before anything is read
    for path in kinds[0].part("report").write(runs, target, charts, title):
        print(path)
