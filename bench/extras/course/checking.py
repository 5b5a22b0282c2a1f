"""What a student does before handing in: the own kernel judged as it will be, the hidden shapes left out.
Where there is no GPU a CUDA kernel runs on the CPU, and times alone are not judged; where that cannot be, it
is compiled, and what the compiler and the launch say is all that is said."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from bench.extras.course import assignment as assignments
from bench.extras.course import exercises
from bench.extras.course.assignment import FILE
from bench.extras.course.grading import Class, own_words, without_kernel, works
from bench.extras.course.marks import Mark, marks
from bench.extras.course.records import NAME, GradeCase, Graded
from bench.extras.course.submissions import ANSWERS, UNCHANGED, HandedIn, of_files
from bench.extras.course.told import answered, lines
from bench.extras.fleet.executor import elsewhere, local
from bench.extras.fleet.work import Said, Work
from bench.measure.ladder import simulated
from bench.measure.ladder.entrants import params_of
from bench.questions.ladder_plan import usable
from bench.results.messages import Progress
from kernels import registry
from kernels.errors import InputError, KernelscopeError
from kernels.registry import SUFFIX, SUFFIXES

STUDENT = "you"


def check(kernel: Path, assignment: Path | None, on: str = "") -> int:
    """Judge it and say what came of it. on: at this place ("": here). The exit code. Raises InputError."""
    of = _asked(Path(kernel), assignment)
    here = bool(on) or of.job.device in usable()
    lacking = "" if here else simulated.missing()
    runs = here or not lacking
    if not here and runs:
        of = replace(of, job=msgspec.structs.replace(of.job, simulated=True))
    (handed,) = of.handed
    of = replace(of, handed=(handed.tried,))
    graded = [*without_kernel(of, of.cases), *(_judged(of, on) if runs else _compiled(of))]
    graded = [_without_points(one) if one.case.exercise in handed.unchanged else one for one in graded]
    (mark,) = marks(of.job, of.students, graded)
    _show(of, mark, runs, lacking)
    return 0 if all(t.graded is not None and t.graded.disposition == "ok" for t in mark.exercises) else 1


def _asked(kernel: Path, assignment: Path | None) -> Class:
    """Of a file the exercises that it is for; of a folder all."""
    if not kernel.exists():
        raise InputError(f"there is no {kernel}")
    job = exercises.job_of(assignments.read(assignment or _beside(kernel)), hidden=False)
    if kernel.is_dir():
        return Class(job, (of_files(STUDENT, [kernel], job),))
    if kernel.suffix not in SUFFIXES[job.device]:
        raise InputError(f"{kernel} is no {SUFFIX[job.device]} file, and the assignment is for {job.device}")
    handed = of_files(STUDENT, [kernel], job, kernel.absolute().parent)
    if not handed.tried.texts:
        raise InputError(next(iter(handed.student.problems.values())))
    job = msgspec.structs.replace(
        job, exercises=tuple(t for t in job.exercises if t.name in handed.tried.texts)
    )
    return Class(job, (handed,))


def _beside(kernel: Path) -> Path:
    for folder in (kernel if kernel.is_dir() else kernel.absolute().parent, Path.cwd()):
        if (folder / FILE).is_file():
            return folder / FILE
    where = "in this folder" if kernel == Path() else f"beside {kernel}"
    raise InputError(
        f"there is no {FILE} {where}; go to the folder that was handed out, or name the file by --assignment"
    )


def _without_points(graded: Graded) -> Graded:
    """Of the kernel that was handed out: what was found of it, so that a student sees how that is told, and
    that it is nobody's work."""
    if graded.disposition != "ok":
        return graded
    notes = (f"its speed is {graded.undecided}",) if graded.undecided else ()
    return msgspec.structs.replace(
        graded, disposition="failed", reason=UNCHANGED, notes=(*graded.notes, *notes)
    )


def _judged(of: Class, on: str) -> list[Graded]:
    found = []
    files = of.handed[0].student.files
    shown: set[str] = set()

    def heard(work: Work, said: Said) -> None:
        if isinstance(said.message, Progress) and said.message.text not in shown:
            shown.add(said.message.text)
            print(f"{said.message.text} …", file=sys.stderr, flush=True)
        if said.settled:
            graded: Graded = said.message
            file = files[graded.case.exercise]
            told = own_words(graded.reason, file)
            notes = tuple(own_words(note, file) for note in graded.notes)
            found.append(msgspec.structs.replace(graded, reason=told, notes=notes))

    executor = elsewhere([on]) if on else local(of.job.runs_on)
    ended = executor.run(works(of, of.cases, None), heard)
    for reason in ended.reasons:
        print(reason, file=sys.stderr)
    return found


def _compiled(of: Class) -> list[Graded]:
    """Raises UnavailableError where there is no compiler."""
    from bench.measure.ladder import compiled

    compiled.check_compiler()
    with tempfile.TemporaryDirectory() as folder:
        _lay(of.handed[0], Path(folder))
        return [_compiled_exercise(of, exercise, Path(folder) / exercise) for exercise in of.handed[0].texts]


def _lay(handed: HandedIn, folder: Path) -> None:
    for exercise in handed.texts:
        for name, text in handed.staged(exercise).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def _compiled_exercise(of: Class, name: str, folder: Path) -> Graded:
    from bench.measure.ladder import compiled

    case, exercise = GradeCase(student=STUDENT, exercise=name), of.job.exercise(name)
    file = of.handed[0].student.files[name]
    try:
        rung = registry.find(of.job.device, exercise.op, NAME, [folder])
        arch = compiled.meant_for(rung)
        made = compiled.compiled(rung, params_of(exercise.op, exercise.params), arch)
    except KernelscopeError as error:
        return Graded(case=case, disposition="failed", reason=own_words(str(error), file))
    if made.disposition != "ok":
        return Graded(case=case, disposition=made.disposition, reason=own_words(made.reason, file))
    registers, shared = (made.compiled.get(key, 0) for key in ("registers", "shared_nbytes"))
    told = f"it compiles for {arch}: {registers:.0f} registers, {shared:,.0f} bytes of shared memory"
    return Graded(case=case, disposition="ok", notes=(told, *made.notes))


def _show(of: Class, mark: Mark, runs: bool, lacking: str) -> None:
    for one in mark.exercises:
        points = f": {one.points:g} of {one.most:g} points" if runs else ""
        print(f"{one.exercise.name} ({one.exercise.title}){points}")
        for line in lines(one) if runs else _compile_lines(one.graded):
            print(f"  {line}")
    if not runs:
        print(
            "There is no GPU here: kernels are compiled, and nothing is known of their answers and times; "
            f"{lacking}."
        )
    elif of.job.simulated:
        print(
            "There is no GPU here: kernels ran on the CPU. Answers and counts are judged as on every "
            "machine; times only where there is a GPU."
        )
    for question in mark.questions:
        print(f"question {question.question.name}: {answered(question)}")
    if mark.questions:
        print(f"Questions are answered in {ANSWERS}, beside your kernel.")
    print("Hidden shapes are judged when it is graded.")


def _compile_lines(graded: Graded | None) -> Sequence[str]:
    if graded is None:
        return ()
    return (*filter(None, (graded.reason,)), *graded.notes)
