"""`course`: an assignment for a class written, tried by a student, graded."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from bench.commands.given import number
from bench.words.option import Number

if TYPE_CHECKING:
    from bench.extras.course.assignment import Assignment
    from bench.extras.course.records import Grade, Graded
    from bench.results.folder import Folder

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
    op: str = typer.Option("conv", "--op", metavar="OP", help="The operator of its first exercise."),
    of_task: str = typer.Option(
        "",
        "--task",
        metavar="DIR|TASK",
        show_default=False,
        help="In its place a task: the folder of one of yours, which is copied, or the name of one of ours.",
    ),
    device: str = typer.Option("cpu", metavar="cpu|cuda", help="What the class writes kernels for."),
    name: str = typer.Option("", "--name", metavar="NAME", help="Default: the folder's name."),
) -> None:
    """Write an assignment to begin from.

    It is one TOML file, which says what each entry means."""
    from bench.extras.course import template
    from bench.questions.ladder_plan import DEVICES, op_of
    from bench.words.called import CALLED
    from bench.words.option import one_of
    from kernels import tasks

    op = tasks.find(of_task).op if of_task else op
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
    print("students, in that folder: kernelscope course check", file=sys.stderr)


@app.command("check")
def check_command(
    kernel: Path = typer.Argument(
        Path(), metavar="KERNEL", help="Your file, or the folder that you hand in; default: this folder."
    ),
    assignment: Path | None = typer.Option(
        None, metavar="FILE", help="The assignment; default: assignment.toml beside your file, or here."
    ),
    on: str = typer.Option("", metavar="PLACE", help="Judge it at this place (see `remote list`)."),
) -> None:
    """Judge your own kernel as it will be graded.

    The hidden shapes are left out. A CUDA kernel is compiled where there is no GPU, and more cannot be said
    of it there. Exit code 0: all of it passes as far as could be said; 1: it does not; 2: bad input.
    """
    from bench.extras.course import checking

    raise typer.Exit(checking.check(kernel, assignment, on))


@app.command("grade")
def grade_command(
    folder: Path = typer.Argument(
        metavar="FOLDER", help="Submissions: a folder, a .zip, a .tar.gz or a file a student."
    ),
    assignment: Path = typer.Option(
        Path(), metavar="FILE", help="The assignment; default: assignment.toml here."
    ),
    out: Path | None = typer.Option(
        None,
        metavar="DIR",
        help="Where grades go; an existing folder is continued. Default: ./grades-NAME.",
    ),
    roster: Path | None = typer.Option(
        None,
        metavar="FILE",
        help="A CSV file of the class: name, id, e-mail, section. Default: roster.csv in FOLDER.",
    ),
    only: list[str] = typer.Option(
        [], metavar="NAME", show_default=False, help="Grade this student alone; may be given several times."
    ),
    regrade: list[str] = typer.Option(
        [],
        metavar="NAME",
        show_default=False,
        help="Judge this student's kernels once more; may be given several times.",
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
    at_once: int | None = number(
        None, "--at-once", Number(), "Submissions at once on each device; default: one a core, two a GPU."
    ),
) -> None:
    """Grade a class, unattended.

    Each submission has a process of its own, within limits. Leaves Gradescope's JSON and a page a student, a
    CSV and a ranking. What one submission does costs itself alone. The same command again grades what is new
    or changed, and all else stands. Exit code 0: all were judged; 1: some could not be; 2: bad input; 130:
    cancelled (the same command goes on).
    """
    from bench.extras.course import assignment as assignments
    from bench.extras.course import walls
    from bench.words.option import one_of

    made = assignments.read(assignment)
    where = out or Path(f"grades-{made.name}")
    name = "none" if no_walls else walls.chosen(one_of(wall, walls.WALLS, "wall") if wall else "")
    raise typer.Exit(_grade(made, folder, where, roster, only, regrade, cluster, at_once, name))


@app.command("show")
def show_command(
    name: str = typer.Argument(
        metavar="NAME", help="A student: name, id, e-mail, or what their files are called."
    ),
    grades: Path | None = typer.Option(
        None, metavar="DIR", help="The folder of grades; default: the one grades-… here."
    ),
) -> None:
    """Tell all that was measured of a student."""
    from bench.extras.course import showing

    for line in showing.told(grades, name):
        print(line)


@app.command("autograder")
def autograder_command(
    assignment: Path = typer.Argument(metavar="ASSIGNMENT", help="The TOML file, or its folder."),
    out: Path | None = typer.Option(None, metavar="FILE.zip", help="Default: autograder-NAME.zip here."),
) -> None:
    """Write the zip that Gradescope grades each student with.

    It holds setup.sh, run_autograder, the assignment with its hidden shapes, and this program. A
    Containerfile in it makes an image that does the same elsewhere."""
    from bench.extras.course import autograder

    print(autograder.write(assignment, out))


def _grade(
    assignment: Assignment,
    folder: Path,
    out: Path,
    roster: Path | None,
    only: list[str],
    regrade: list[str],
    cluster: str,
    at_once: int | None,
    wall: str,
) -> int:
    import msgspec

    from bench.commands import measuring
    from bench.extras.course import grading, walls
    from bench.extras.course.records import KIND
    from bench.extras.fleet.cluster import executor_of
    from bench.results import folders
    from bench.run.progress import RunProgress
    from engine.machine import host
    from kernels.errors import InputError

    if out.resolve().is_relative_to(folder.resolve()):
        raise InputError(f"the grades {out} would lie among the submissions; name another folder by --out")
    held = KIND.resume(out) if (out / KIND.file).is_file() else None
    before = held.header if held is not None else None
    of = grading.gather(assignment, folder, roster, before)
    if not cluster:
        of = grading.without_gpu(of)
    for told in grading.changed(of.job, held.job) if held is not None else ():
        print(told, file=sys.stderr)
    grades = held or folders.begin(KIND, of.header(), out, out.parent, measuring.command_line())
    with grades:
        grades.claim()
        missing = grading.to_judge(of, grades.measurements(), only, regrade)
        grades.update(of.header(before or grades.header))
        total = len(of.cases)
        if held is not None:
            print(f"{len(missing)} of {total} to be judged; the others stand", file=sys.stderr)
        print(f"walls: {walls.words(wall)}", file=sys.stderr)
        walls.sweep()
        hidden = of.job.folder, str(out.absolute())
        kept = walls.Walls(wall, of.job.device, of.job.mib, hidden, of.job.modules)
        usual = 2 if cluster or of.job.runs_on == "cuda" else host.physical_cores() // of.job.threads
        executor = executor_of(of.job.runs_on, cluster, at_once or max(1, usual))
        print(f"on: {executor.words}", file=sys.stderr)
        try:
            with RunProgress(KIND, total, total - len(missing), missing, of.job) as shown:
                ended, left = grading.grade(of, missing, grades, executor, kept, shown)
        finally:
            executor.close()
        grades.update(msgspec.structs.replace(grades.header, alike=grading.flagged(out, of.job)))
    _show(grades, out)
    if left:
        print(f"{len(left)} of {total} were not judged; the same command goes on", file=sys.stderr)
    return ended.status(not left)


def _show(grades: Folder[Grade, Graded], out: Path) -> None:
    from bench.extras.course import written
    from bench.extras.course.marks import marks

    header = grades.header
    marked = marks(header.job, header.students, grades.measurements())
    files = written.write(out, header, marked)
    passed = {exercise.name: 0 for exercise in header.job.exercises}
    for mark in marked:
        for one in mark.exercises:
            passed[one.exercise.name] += one.graded is not None and one.graded.disposition == "ok"
    for name, count in passed.items():
        print(f"{name}: {count} of {len(marked)} passed")
    for path in files:
        print(f"written: {path}", file=sys.stderr)
