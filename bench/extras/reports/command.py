"""`report course NAME`: a course report's tables and figures, filled with this machine's numbers."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from bench.extras.reports.goals.command import goals

app = typer.Typer(
    name="report", no_args_is_help=True, help="Reports that are filled in here.", rich_markup_mode=None
)
app.command()(goals)
COMMAND = app


@app.callback()
def group() -> None:
    """Reports that are filled in here; `runs report` writes one of saved runs."""


@app.command("course")
def course_command(
    name: str = typer.Argument("", metavar="[NAME]", help="Which; none lists them."),
    out: Path | None = typer.Option(
        None, metavar="FILE.html|FILE.md", help="The report; default: report.html in the course's folder."
    ),
    folder: Path | None = typer.Option(
        None, metavar="DIR", help="The course's folder, where runs of it are kept; default: runs/course-NAME."
    ),
    runs: Path = typer.Option(
        Path("runs"), metavar="DIR", help="Runs among which those that fit are used in place of new ones."
    ),
    measure: bool = typer.Option(
        True, "--measure/--no-measure", help="Take the runs that are missing, or fill in what there is."
    ),
    images: int = typer.Option(10_000, metavar="N", min=1, help="Images at most, in place of 10,000."),
    largest: int = typer.Option(
        16, metavar="N", min=1, help="On a CPU: the largest batch size of AlexNet's table (1,024 there)."
    ),
    budget: float = typer.Option(2.0, metavar="S", help="The most seconds of samples per case."),
) -> None:
    """Fill in a course report.

    Each of its tables and figures with this machine's numbers beside the
    published ones, and a sentence where ours contradicts theirs. Runs that are missing are taken. Exit code
    0: all that this machine can measure is there; 1: something failed; 130: cancelled (go on with the same
    command)."""
    from bench.extras.reports.courses import needs, presets, report
    from bench.extras.reports.courses.needs import NEEDS_GPU, Limits
    from bench.show import report_form

    if not name:
        for known in presets.names():
            print(f"{known}: {presets.load(known).title}")
        return
    course = presets.load(name)
    own = folder or runs / f"course-{name}"
    target = out or own / "report.html"
    report_form.form_of(target)  # a name that means no form is told before anything runs
    taken = needs.take(course, own, runs, Limits(budget, largest, images), measure)
    for path in report.write(course, taken, target):
        print(path)
    failed = [f"{need}: {why}" for need, why in taken.why.items() if why != NEEDS_GPU]
    for line in failed:
        print(line, file=sys.stderr)
    raise typer.Exit(int(bool(failed) and measure))
