"""What a student does before handing in: the own kernel judged as it will be, the hidden shapes left out."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from bench.course import assignment as assignments
from bench.course import tasks
from bench.course.assignment import FILE, Assignment
from bench.course.grading import Class, own_words, without_kernel, works
from bench.course.marks import Mark, TaskMark, marks
from bench.course.records import Graded, GradeCase, GradeJob, Task
from bench.course.submissions import HandedIn, of_files, renamed
from bench.course.written import lines
from bench.fleet.executor import Local
from bench.fleet.work import Said, Work
from bench.ladder.measure.entrants import params_of
from bench.ladder.plan import usable
from kernels.errors import InputError, KernelscopeError
from kernels.registry import SUFFIX

STUDENT = "you"


def check(kernel: Path, assignment: Path | None) -> int:
    """The exit code. Raises InputError."""
    made = assignments.read(assignment or _beside(kernel))
    job = tasks.job_of(made, hidden=False)
    if not kernel.exists():
        raise InputError(f"there is no {kernel}")
    paths = sorted(path for path in kernel.rglob("*") if path.is_file()) if kernel.is_dir() else [kernel]
    handed = of_files(STUDENT, paths, job)
    if not kernel.is_dir():
        if kernel.suffix != SUFFIX[job.device]:
            raise InputError(f"{kernel} is no {SUFFIX[job.device]} file, and the assignment is for {job.device}")
        handed = _helpers(handed, kernel, job)
        if not handed.files:
            raise InputError(next(iter(handed.problems.values())))
        kept = tuple(task for task in job.tasks if task.name in handed.files)
        job = dataclasses_replace(job, kept)
        handed = dataclasses.replace(handed, problems={})
    of = Class(made, job, (handed,))
    graded = _judged(of) if job.device in usable() else _compiled(of)
    (mark,) = marks(made, job, (handed,), graded)
    show(made, mark)
    return 0 if all(t.graded is not None and t.graded.disposition == "ok" for t in mark.tasks) else 1


def dataclasses_replace(job: GradeJob, kept: tuple[Task, ...]) -> GradeJob:
    import msgspec

    return msgspec.structs.replace(job, tasks=kept)


def _beside(kernel: Path) -> Path:
    for folder in (kernel if kernel.is_dir() else kernel.absolute().parent, Path.cwd()):
        if (folder / FILE).is_file():
            return folder / FILE
    raise InputError(f"there is no {FILE} beside {kernel}; name the assignment by --assignment")


def _helpers(handed: HandedIn, kernel: Path, job: GradeJob) -> HandedIn:
    """With what lies beside the file that it may lean on."""
    beside = [path for path in kernel.absolute().parent.iterdir() if path.is_file() and path.name != kernel.name]
    helpers = of_files(STUDENT, beside, job).helpers
    return dataclasses.replace(handed, helpers=helpers)


def _judged(of: Class) -> list[Graded]:
    found = without_kernel(of, of.cases)
    files = {task: name for task, (name, _) in of.handed[0].files.items()}

    def heard(work: Work, said: Said) -> None:
        if said.settled:
            graded: Graded = said.message
            import msgspec

            told = own_words(graded.reason, files[graded.case.task])
            found.append(msgspec.structs.replace(graded, reason=told))

    ended = Local(of.job.device).run(works(of, of.cases, None), heard)
    for reason in ended.reasons:
        print(reason, file=sys.stderr)
    return found


def _compiled(of: Class) -> list[Graded]:
    """Where there is no GPU: what the compiler says, and whether it could be launched."""
    from bench.ladder.measure import compiled
    from kernels import registry

    compiled.check_compiler()
    found = without_kernel(of, of.cases)
    for task, (name, text) in of.handed[0].files.items():
        case = GradeCase(student=STUDENT, task=task)
        wanted = of.job.task(task)
        try:
            rung = _read(of.handed[0], text, of.job, wanted)
            made = compiled.compiled(rung, params_of(wanted.op, wanted.params), compiled.meant_for(rung))
        except KernelscopeError as error:
            found.append(Graded(case=case, disposition="failed", reason=own_words(str(error), name)))
            continue
        figures = made.compiled
        notes = (
            (f"It compiles for {made.facts[compiled.ARCHITECTURE]}: {figures.get('registers', 0):.0f} registers, "
             f"{figures.get('shared_nbytes', 0):,.0f} bytes of shared memory. Whether its answers are right only a GPU can say.",)
            if made.disposition == "ok" else ()
        )  # fmt: skip
        disposition = made.disposition
        found.append(
            Graded(case=case, disposition=disposition, reason=own_words(made.reason, name), notes=notes)
        )
    assert registry is not None
    return found


def _read(handed: HandedIn, text: str, job: GradeJob, task: Task):  # type: ignore[no-untyped-def]
    import tempfile

    from bench.course.records import NAME
    from kernels import registry

    with tempfile.TemporaryDirectory() as folder:
        for name, held in handed.staged(job).items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(held, encoding="utf-8")
        return registry.find(job.device, task.op, NAME, [Path(folder) / task.name])


def show(made: Assignment, mark: Mark) -> None:
    for task in mark.tasks:
        print(f"{task.task.name} ({task.task.title}): {task.points:g} of {task.most:g} points")
        for line in _told(task):
            print(f"  {line}")
    if made.question:
        print(f"{len(made.question)} questions are answered in answers.toml beside your kernel")
    print("Hidden shapes are judged when it is graded.")


def _told(task: TaskMark) -> list[str]:
    return lines(task)


__all__ = ["check", "renamed"]
