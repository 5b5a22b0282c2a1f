"""What a grading leaves for others: `gradescope/STUDENT/results.json` (Gradescope's form for autograders),
`grades.csv`, and the ranking of each exercise as CSV and Markdown."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.extras.course import pages
from bench.extras.course.marks import ExerciseMark, Mark, QuestionMark, ranking
from bench.extras.course.records import Alike, Exercise, Grade, Graded, GradeJob
from bench.extras.course.told import answered, flags, late, lines
from bench.words import plain

GRADESCOPE = "gradescope"


def write(folder: Path, header: Grade, marks: Sequence[Mark]) -> tuple[Path, ...]:
    """All of it into a folder; the files that a teacher opens. Raises InputError."""
    for mark in marks:
        text = json.dumps(gradescope(mark), indent=2, ensure_ascii=False)
        pages.put(folder / GRADESCOPE / mark.student.key / "results.json", f"{text}\n")
    job = header.job
    written = {
        "grades.csv": grades_csv(job, marks, header.alike),
        "ranking.csv": ranking_csv(job, marks),
        "ranking.md": ranking_md(job, marks),
    }
    for name, text in written.items():
        pages.put(folder / name, text)
    return (*(folder / name for name in written), *pages.write(folder, header, marks), folder / GRADESCOPE)


def gradescope(mark: Mark) -> dict[str, Any]:
    """One student's results.json."""
    tests = [*map(_test, mark.exercises), *map(_answer, mark.questions)]
    seconds = sum(one.graded.seconds for one in mark.exercises if one.graded is not None)
    board = [
        {
            "name": f"{one.exercise.name}: times as fast as {one.graded.against}",
            "value": round(one.graded.value, 3),
        }
        for one in mark.exercises
        if one.graded is not None and one.graded.value and not one.graded.undecided
    ]
    found: dict[str, Any] = {
        "score": mark.points,
        "execution_time": round(seconds, 1),
        "visibility": "visible",
        "tests": tests,
        "extra_data": {"bands": {one.exercise.name: one.band for one in mark.exercises}},
    }
    return found | ({"leaderboard": board} if board else {})


def _test(mark: ExerciseMark) -> dict[str, Any]:
    graded = mark.graded
    passed = graded is not None and graded.disposition == "ok"
    return {
        "name": f"{mark.exercise.name}: {mark.exercise.title}" if mark.exercise.title else mark.exercise.name,
        "score": mark.points,
        "max_score": mark.most,
        "status": "passed" if passed else "failed",
        "output": "\n".join(lines(mark)),
        "visibility": "visible",
    }


def _answer(mark: QuestionMark) -> dict[str, Any]:
    read = mark.given is not None and mark.right is None
    status = None if read else "passed" if mark.right else "failed"
    made = {
        "name": f"question {mark.question.name}",
        "score": mark.points,
        "max_score": mark.question.points,
        "output": answered(mark),
        "visibility": "visible",
    }
    return made | ({"status": status} if status else {})


def grades_csv(job: GradeJob, marks: Sequence[Mark], alike: Sequence[Alike]) -> str:
    """A row a student."""
    head = ["student", "id", "e-mail", "section", "points", "of", "handed in", "late", "flags"]
    for exercise in job.exercises:
        of_it = ("points", "band", "times", "low", "high", "why")
        head += [f"{exercise.name} {column}" for column in of_it]
    head += [f"question {q.name}" for q in job.questions]
    rows = []
    names = {mark.student.key: mark.student.name for mark in marks}
    for mark in marks:
        one = mark.student
        row: list[object] = [
            *(one.name, one.id, one.email, one.section, f"{mark.points:g}", f"{mark.most:g}", one.at),
            late(one),
            "; ".join(flags(mark, alike, names)),
        ]
        for t in mark.exercises:
            g = t.graded
            times = [
                f"{v:.4g}" if g is not None and v else ""
                for v in ((g.value, g.low, g.high) if g else (0, 0, 0))
            ]
            row += [f"{t.points:g}", t.band, *times, g.reason if g is not None else ""]
        row += [
            f"{q.points:g}" if q.right is not None or q.given is None else "by hand" for q in mark.questions
        ]
        rows.append(row)
    return _csv([head, *rows])


def _of(exercise: Exercise, marks: Sequence[Mark]) -> list[Graded]:
    return [
        t.graded
        for m in marks
        for t in m.exercises
        if t.exercise.name == exercise.name and t.graded is not None
    ]


def ranking_csv(job: GradeJob, marks: Sequence[Mark]) -> str:
    names = {mark.student.key: mark.student.name for mark in marks}
    rows: list[list[object]] = [["exercise", "rank", "tied", "student", "times as fast", "low", "high"]]
    for exercise in job.exercises:
        rows += [
            [
                exercise.name,
                p.rank,
                "yes" if p.tied else "no",
                names[p.student],
                f"{p.value:.4g}",
                f"{p.low:.4g}",
                f"{p.high:.4g}",
            ]
            for p in ranking(_of(exercise, marks))
        ]
    return _csv(rows)


def ranking_md(job: GradeJob, marks: Sequence[Mark]) -> str:
    """The same to be read: a table an exercise."""
    names = {mark.student.key: mark.student.name for mark in marks}
    parts = [f"# {plain.markdown(job.title or job.name)}: ranking\n"]
    for exercise in job.exercises:
        places = ranking(_of(exercise, marks))
        against = next((g.against for g in _of(exercise, marks) if g.value), "")
        parts.append(f"\n## {exercise.name}\n")
        if not places:
            parts.append("\nNobody is ranked: nobody passed whose speed is decided.\n")
            continue
        parts.append(
            f"\nHow many times as fast as `{against}`, with its 95 % interval. Whoever's interval reaches "
            "that of the first of a rank shares it.\n\n"
            "| rank | student | times as fast | 95 % |\n|--:|---|--:|---|\n"
        )
        for p in places:
            rank = f"{p.rank} =" if p.tied else str(p.rank)
            name = plain.markdown(names[p.student])
            parts.append(f"| {rank} | {name} | {p.value:.2f} | {p.low:.2f} to {p.high:.2f} |\n")
    return "".join(parts)


def _csv(rows: Sequence[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in rows:
        writer.writerow([plain.csv(value) for value in row])
    return out.getvalue()
