"""`report course NAME` and `report goals NAME`: figures of a course report, or speed goals, held against what
is measured here; `report speed FILE…`: one page of what was kept of several."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bench.commands.given import number
from bench.run.options import SECONDS
from bench.words.option import Number

if TYPE_CHECKING:
    from bench.extras.reports.needs import Taken

app = typer.Typer(
    name="report", no_args_is_help=True, help="Reports that are filled in here.", rich_markup_mode=None
)
COMMAND = app
NAME = typer.Argument("", metavar="[NAME]", help="Which; none lists them.")
MEASURE = typer.Option(
    True, "--measure/--no-measure", help="Take the runs that are missing, or fill in what there is."
)


@app.callback()
def group() -> None:
    """Reports that are filled in here; `runs report` writes one of saved runs."""


@app.command("course")
def course_command(
    name: str = NAME,
    out: Path | None = typer.Option(
        None, metavar="FILE.html|FILE.md", help="The report; default: report.html in the course's folder."
    ),
    folder: Path | None = typer.Option(
        None, metavar="DIR", help="The course's folder, where runs of it are kept; default: runs/course-NAME."
    ),
    runs: Path = typer.Option(
        Path("runs"), metavar="DIR", help="Runs among which those that fit are used in place of new ones."
    ),
    measure: bool = MEASURE,
    images: int = number(10_000, "--images", Number(), "Images at most, in place of 10,000."),
    largest: int = number(
        16, "--largest", Number(), "On a CPU: the largest batch size of AlexNet's table (1,024 there)."
    ),
    budget: float | None = number(
        None,
        "--budget",
        SECONDS,
        "The most seconds of samples per case; default: 2, of under 1,000 images 0.5.",
        metavar="S",
    ),
    checklist: Path | None = typer.Option(
        None,
        metavar="FILE.md",
        help="Of all reports, or of NAME: each item, its command, what is missing.",
    ),
) -> None:
    """Fill in a course report.

    Each of its tables and figures with this machine's numbers beside the
    published ones, and a sentence where ours contradicts theirs. Runs that are missing are taken. Exit code
    0: all that this machine can measure is there; 1: something failed; 130: cancelled (go on with the same
    command)."""
    from bench.extras.reports import needs
    from bench.extras.reports.courses import page, presets

    quick = 0.5 if images < 1000 else 2.0
    limits = needs.Limits(quick if budget is None else budget, largest, images)

    def take(course: Any, own: Path) -> Taken:
        return needs.take(course, own, limits, measure, among=runs)

    if checklist is not None:
        _check(presets, checklist, (name,) if name else presets.names(), folder, runs, limits)
        return
    _fill(presets, page.write, name, out, folder or runs / f"{needs.COURSE}{name}", take, measure)


@app.command("goals")
def goals_command(
    name: str = NAME,
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
    measure: bool = MEASURE,
    budget: float = number(15.0, "--budget", SECONDS, "The most seconds of samples per case.", metavar="S"),
    largest: int | None = number(None, "--largest", Number(), "Leave out batch sizes beyond this one."),
    images: int | None = number(None, "--images", Number(), "Images of the accuracy at most."),
    title: str = typer.Option("", metavar="TEXT", help="The report's heading."),
    charts: bool = typer.Option(True, "--charts/--no-charts", help="Draw charts, or write the tables alone."),
    keep: Path | None = typer.Option(
        None, metavar="FILE.json", help="Keep its figures in a small file, for the page of `report speed`."
    ),
) -> None:
    """Say which speed goals this machine reaches.

    Each reached or not, with its interval and the reason; our times
    beside the reference's, errors, the share of the floor, charts; all of it measured twice. What is missing
    is measured; after Ctrl-C or a kill the same command continues. Exit code 0: measured, whether goals are
    reached or not; 1: something could not be measured; 130: cancelled."""
    from bench.extras.reports import needs
    from bench.extras.reports.goals import floors, page, presets
    from bench.extras.reports.speed import sitting
    from kernels.errors import InputError

    if second and not run:
        raise InputError("--second is of runs that were taken again; name the first by --run")
    if keep is not None:
        sitting.check_name(keep)  # told before anything runs
    limits = needs.Limits(budget, largest or 0, images or 0)

    def take(goals: Any, own: Path) -> Taken:
        if run:
            taken = needs.given(run, second)
            taken.limits = floors.kept([path.parent for path in (*run, *second)])
            taken.limits = taken.limits or (floors.measured(goals.device) if measure else ())
            return taken
        taken = needs.take(goals, own, limits, measure, times=2)
        taken.limits = floors.kept([own])
        if measure and any(taken.runs):
            # Last: cases are held against what is known of the machine, and while it is busy that is too
            # little.
            taken.limits = floors.measured(goals.device, own) or taken.limits
        return taken

    def write(goals: Any, taken: Taken, report: Path, heading: str = "") -> list[Path]:
        written = page.write(goals, taken, report, heading, charts)
        if keep is not None:
            sitting.write(sitting.kept(goals, taken), keep)
            written.append(keep)
        return written

    _fill(presets, write, name, out, folder or Path("runs") / f"goals-{name}", take, measure, title)


@app.command("speed")
def speed_command(
    kept: list[Path] = typer.Argument(
        None,
        metavar="FILE.json|DIR …",
        help="What `report goals NAME --keep` wrote, or folders of such files.",
    ),
    out: Path = typer.Option(Path("speed.md"), metavar="FILE.html|FILE.md", help="The page."),
    title: str = typer.Option("", metavar="TEXT", help="The page's heading."),
) -> None:
    """Write one page of speed, of several machines and days.

    How fast ours is beside each rival, with intervals and versions, and all cases where a rival is ahead. Of
    each case the newest figure counts."""
    from bench.extras.reports.speed import page, sitting
    from bench.views.reports import report_form

    report_form.form_of(out)
    for path in page.write(sitting.read(kept or []), kept or [], out, title):
        print(path)


def _check(
    presets: Any, out: Path, names: tuple[str, ...], folder: Path | None, runs: Path, limits: Any
) -> None:
    """Write what there is of these reports, item by item; nothing is measured."""
    from bench.extras.reports import needs
    from bench.extras.reports.courses import checklist

    found = []
    for name in names:
        course = presets.load(name)
        own = folder or runs / f"{needs.COURSE}{name}"
        found.append((name, course, needs.take(course, own, limits, measures=False, among=runs)))
    checklist.write(found, out)
    print(out)


def _fill(
    presets: Any,
    write: Callable[..., list[Path]],
    name: str,
    out: Path | None,
    own: Path,
    take: Callable[[Any, Path], Taken],
    measure: bool,
    title: str = "",
) -> None:
    """List a kind's reports, or write one. own: its folder; take: measures what is missing;
    write: as `goals.page.write`."""
    from bench.extras.reports import needs
    from bench.views.reports import report_form

    if not name:
        for known in presets.names():
            print(f"{known}: {presets.load(known).title}")
        return
    report = presets.load(name)
    target = out or own / "report.html"
    report_form.form_of(target)  # a name that means no form is told before anything runs
    taken = take(report, own)
    for path in write(report, taken, target, title):
        print(path)
    if not any((*taken.runs, taken.programs)) and set(taken.why.values()) == {needs.NEEDS_GPU}:
        alone = "nothing was measured, the report holds what it is filled in with alone"
        print(f"{name} {needs.NEEDS_GPU}: {alone}", file=sys.stderr)
    failed = [f"{need}: {why}" for need, why in taken.why.items() if why not in needs.EXPECTED]
    for line in failed:
        print(line, file=sys.stderr)
    raise typer.Exit(int(bool(failed) and measure))
