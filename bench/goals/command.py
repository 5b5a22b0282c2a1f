"""`report goals NAME`: which speed goals are reached, as measured here."""

from __future__ import annotations

import sys
from pathlib import Path

import typer


def goals(
    name: str = typer.Argument("", metavar="[NAME]", help="Which; none lists them."),
    out: Path | None = typer.Option(
        None, metavar="FILE.html|FILE.md", help="The report; default: report.html in the goals' folder."
    ),
    folder: Path | None = typer.Option(
        None, metavar="DIR", help="Where its runs are kept and continued; default: runs/goals-NAME."
    ),
    run: list[Path] = typer.Option(
        [], metavar="RUN", help="A comparison that there is, in place of the goals' own; may be repeated."
    ),
    second: list[Path] = typer.Option(
        [], metavar="RUN", help="With --run: the same measured again; may be repeated."
    ),
    measure: bool = typer.Option(
        True, "--measure/--no-measure", help="Take the runs that are missing, or fill in what there is."
    ),
    budget: float = typer.Option(15.0, metavar="S", help="The most seconds of samples per case."),
    largest: int = typer.Option(
        0, metavar="N", min=0, show_default=False, help="Leave out batch sizes beyond this one."
    ),
    images: int = typer.Option(
        0, metavar="N", min=0, show_default=False, help="Images of the accuracy at most."
    ),
    title: str = typer.Option("", metavar="TEXT", help="The report's heading."),
) -> None:
    """Say which speed goals this machine reaches.

    Each reached or not, with its interval and the reason; our times
    beside the reference's, errors, the share of the floor, charts; all of it measured twice. What is missing
    is measured; after Ctrl-C or a kill the same command continues. Exit code 0: measured, whether goals are
    reached or not; 1: something could not be measured; 130: cancelled."""
    from bench.goals import needs, presets, report
    from bench.show import report_form
    from kernels.errors import InputError

    if not name:
        for known in presets.names():
            print(f"{known}: {presets.load(known).title}")
        return
    wanted = presets.load(name)
    own = folder or Path("runs") / f"goals-{name}"
    target = out or own / "report.html"
    report_form.form_of(target)  # a name that means no form is told before anything runs
    if second and not run:
        raise InputError("--second is of runs that were taken again; name the first by --run")
    if run:
        taken = needs.given(wanted, run, second, measure)
    else:
        taken = needs.take(wanted, own, needs.Limits(budget, largest, images), measure)
    for path in report.write(wanted, taken, target, title):
        print(path)
    if set(taken.why.values()) == {needs.NEEDS_GPU}:
        print(
            f"{name} {needs.NEEDS_GPU}: nothing was measured, the report holds the goals alone",
            file=sys.stderr,
        )
    failed = [f"{need}: {why}" for need, why in taken.why.items() if why not in needs.EXPECTED]
    for line in failed:
        print(line, file=sys.stderr)
    raise typer.Exit(int(bool(failed) and measure))
