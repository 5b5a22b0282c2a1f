"""`course`: an assignment for a class written, tried by a student, graded."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from bench.extras.course.grading import Class
    from bench.extras.course.marks import Mark

app = typer.Typer(
    name="course",
    no_args_is_help=True,
    help="Assignments: write one, try a kernel, grade a class.",
    rich_markup_mode=None,
)
COMMAND = app


@app.command("new")
def new_command(
    folder: Path = typer.Argument(metavar="DIR", help="Where the assignment goes."),
    op: str = typer.Option("conv", "--op", metavar="OP", help="The operator of its first task."),
    device: str = typer.Option("cpu", metavar="cpu|cuda", help="What the class writes kernels for."),
    name: str = typer.Option("", "--name", metavar="NAME", help="Default: the folder's name."),
) -> None:
    """Write an assignment to begin from.

    It is one TOML file, which says what each entry means."""
    from bench.extras.course import template
    from bench.questions.ladder_plan import DEVICES, op_of
    from bench.words.called import CALLED
    from bench.words.option import one_of

    path = template.write(folder, op_of(op), one_of(device, DEVICES, "device"), name)
    print(path)
    out = shlex.quote(str(folder) + "-handout")
    print(f"hand it out: {CALLED} course handout {shlex.quote(str(path))} {out}", file=sys.stderr)


@app.command("handout")
def handout_command(
    assignment: Path = typer.Argument(metavar="ASSIGNMENT", help="The TOML file, or its folder."),
    folder: Path = typer.Argument(metavar="DIR", help="A new or empty folder."),
) -> None:
    """Write the folder that students get.

    It holds the assignment without hidden shapes and answers, and kernels to begin from."""
    from bench.extras.course import template

    for path in template.hand_out(assignment, folder):
        print(path)


@app.command("check")
def check_command(
    kernel: Path = typer.Argument(metavar="KERNEL", help="Your file, or the folder that you hand in."),
    assignment: Path | None = typer.Option(
        None, metavar="FILE", help="The assignment; default: assignment.toml beside your file, or here."
    ),
) -> None:
    """Judge your own kernel as it will be graded.

    The hidden shapes are left out. A CUDA kernel is compiled where there is no GPU, and more cannot be said
    of it there. Exit code 0: all of it passes as far as could be said; 1: it does not; 2: bad input.
    """
    from bench.extras.course import checking

    raise typer.Exit(checking.check(kernel, assignment))


@app.command("grade")
def grade_command(
    folder: Path = typer.Argument(metavar="FOLDER", help="Submissions: a folder or a file a student."),
    assignment: Path = typer.Option(
        Path(), metavar="FILE", help="The assignment; default: assignment.toml here."
    ),
    out: Path | None = typer.Option(
        None,
        metavar="DIR",
        help="Where grades go; an existing folder is continued. Default: ./grades-NAME.",
    ),
    cluster: str = typer.Option(
        "",
        metavar="ADDRESS|local",
        help="A Ray cluster (needs the extra `cluster`); default: processes here.",
    ),
    wall: str = typer.Option(
        "",
        "--walls",
        metavar="bubblewrap|uid",
        show_default=False,
        help="What keeps submissions in; default: the first of these that is to be had.",
    ),
    no_walls: bool = typer.Option(
        False, "--no-walls", help="Grade although nothing keeps submissions in; each result says so."
    ),
    at_once: int = typer.Option(
        0,
        metavar="N",
        show_default=False,
        help="Submissions at once on each device; default: one a core, two a GPU.",
    ),
) -> None:
    """Grade a class, unattended.

    Each submission has a process of its own, within limits. Leaves Gradescope's JSON a student, a CSV and a
    ranking. What one submission does costs itself alone. Exit code 0: all were judged; 1: some could not be;
    2: bad input; 130: cancelled (the same command goes on).
    """
    from bench.extras.course import assignment as assignments
    from bench.extras.course import grading, walls
    from bench.words.option import one_of

    of = grading.gather(assignments.read(assignment), folder)
    name = "none" if no_walls else walls.chosen(one_of(wall, walls.WALLS, "wall") if wall else "")
    raise typer.Exit(_grade(of, out or Path(f"grades-{of.job.name}"), cluster, at_once, name))


def _grade(of: Class, out: Path, cluster: str, at_once: int, wall: str) -> int:
    from bench.commands import measuring
    from bench.extras.course import grading, walls
    from bench.extras.course.records import KIND
    from bench.extras.fleet.cluster import executor_of
    from bench.run.progress import RunProgress
    from engine.machine import host

    if (out / KIND.file).is_file():
        held = KIND.open(out)
        of = _gone_on(of, held.job, held.cases)
        folder = KIND.resume(out)
    else:
        from bench.results import folders

        folder = folders.begin(KIND, of.header(), out, out.parent, measuring.command_line())
    with folder:
        folder.claim()
        missing = folder.missing()
        print(f"walls: {walls.words(wall)}", file=sys.stderr)
        walls.sweep()
        hidden = of.job.folder, str(out.absolute())
        kept = walls.Walls(wall, of.job.device, of.job.mib, hidden, of.assignment.modules)
        usual = 2 if cluster or of.job.device == "cuda" else host.physical_cores() // of.job.threads
        executor = executor_of(of.job.device, cluster, at_once or max(1, usual))
        print(f"on: {executor.words}", file=sys.stderr)
        try:
            total = len(folder.cases)
            with RunProgress(KIND, total, total - len(missing), missing, of.job) as shown:
                ended = grading.grade(of, folder, executor, kept, shown)
        finally:
            executor.close()
    marked = grading.marked(of, folder.measurements())
    _show(of, marked, out)
    left = folder.missing()
    if left:
        print(f"{len(left)} of {total} were not judged; the same command goes on", file=sys.stderr)
    return ended.status(not left)


def _gone_on(of: Class, job: object, cases: object) -> Class:
    """The class that a folder was begun with. Raises InputError where it is another."""
    import dataclasses

    import msgspec

    from bench.extras.course.records import GradeJob
    from kernels.errors import InputError

    assert isinstance(job, GradeJob)
    if msgspec.structs.replace(of.job, seed=job.seed) != job or of.cases != cases:
        raise InputError(
            "these grades were begun with another assignment or other submissions; --out names another folder"
        )
    return dataclasses.replace(of, job=job)


def _show(of: Class, marked: tuple[Mark, ...], out: Path) -> None:
    from bench.extras.course import written

    files = written.write(out, of.job, marked)
    passed = {task.name: 0 for task in of.job.tasks}
    for mark in marked:
        for task in mark.tasks:
            passed[task.task.name] += task.graded is not None and task.graded.disposition == "ok"
    for name, count in passed.items():
        print(f"{name}: {count} of {len(marked)} passed")
    for path in (*files, out / "gradescope"):
        print(f"written: {path}", file=sys.stderr)
