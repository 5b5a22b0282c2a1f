"""All that is known of one student's hand-in, as lines: what an appeal is decided by."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.extras.course import grading
from bench.extras.course.marks import ExerciseMark, marks
from bench.extras.course.records import KIND, Graded, GradeJob
from bench.extras.course.told import answered, flags, late, lines
from kernels.errors import InputError


def told(grades: Path | None, name: str) -> Iterator[str]:
    """Lines for a teacher. Raises InputError where there are no grades, or nobody of that name."""
    path = grades or _here()
    with KIND.open(path) as folder:
        header, found = folder.header, folder.measurements()
    (key,) = grading.named(header.students, [name])
    names = {one.key: one.name for one in header.students}
    (mark,) = (one for one in marks(header.job, header.students, found) if one.student.key == key)
    one = mark.student
    yield f"{one.name}: {mark.points:g} of {mark.most:g} points"
    for what, value in (
        ("id", one.id),
        ("e-mail", one.email),
        ("section", one.section),
        ("files are called after", one.key if one.key != one.name else ""),
        ("handed in as", ", ".join(one.sources)),
        ("handed in", f"{one.at} (by {one.at_by})" if one.at else ""),
        ("late", late(one)),
        ("flags", "; ".join(flags(mark, header.alike, names))),
        ("graded on", f"{header.environment.machine} {header.environment.cpu}".strip()),
        ("seed of the inputs", str(header.job.seed)),
    ):
        if value:
            yield f"  {what}: {value}"
    for one_mark in mark.exercises:
        asked = one_mark.exercise
        yield ""
        yield f"{asked.name} ({asked.title}): {one_mark.points:g} of {one_mark.most:g} points"
        yield from (f"  {line}" for line in (*lines(one_mark), *_measured(header.job, one_mark, path)))
    for question in mark.questions:
        yield ""
        yield f"question {question.question.name}: {question.points:g} of {question.question.points:g} points"
        yield f"  {answered(question)}"
        if question.given is not None and question.right is not None:
            yield f"  given: {question.given}; right: {question.question.answer}"


def _measured(job: GradeJob, mark: ExerciseMark, path: Path) -> Iterator[str]:
    graded: Graded | None = mark.graded
    if graded is None:
        return
    yield f"how it ended: {graded.disposition}"
    if (finding := graded.finding) is not None:
        for what in ("fault", "when", "params", "index", "expected", "got", "wrong", "elements"):
            if value := getattr(finding, what, ""):
                yield f"{what}: {value}"
    if graded.median_ns:
        yield f"median of its passes: {graded.median_ns / 1e3:,.1f} µs"
    if graded.value:
        ends = f"{graded.low:.4g} to {graded.high:.4g}"
        yield f"ranked by: {graded.value:.4g} times as fast as {graded.against} ({ends})"
    yield f"judged on its own shape and {len(mark.exercise.hidden)} hidden, in {graded.seconds:.1f} s"
    yield f"judged at: {graded.started_at}" if graded.started_at else "never run: there was nothing to run"
    yield f"SHA-256 of what was judged: {graded.digest}"
    copy = path / grading.HANDED_IN / graded.case.student / graded.case.exercise
    if copy.is_dir():
        yield f"a copy of it: {copy}"
    yield from (f"{what}: {value}" for what, value in sorted(graded.facts.items()))


def _here() -> Path:
    """The grades in the current folder. Raises InputError."""
    found = [path.parent for path in sorted([*Path().glob(KIND.file), *Path().glob(f"grades-*/{KIND.file}")])]
    if len(found) != 1:
        have = f"there are {len(found)}: {', '.join(map(str, found))}" if found else "there are none here"
        raise InputError(f"--grades names the folder of grades; {have}")
    return found[0]
