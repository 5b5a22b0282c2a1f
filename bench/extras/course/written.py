"""What a grading leaves for others: `gradescope/STUDENT/results.json` (Gradescope's form for autograders),
`grades.csv`, and the ranking of each task as CSV and Markdown."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.extras.course.marks import Mark, QuestionMark, TaskMark, ranking
from bench.extras.course.records import Graded, GradeJob, Reached, Task
from bench.extras.course.walls import NONE
from bench.results.store import write_atomically

# What a spreadsheet takes for the beginning of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write(folder: Path, job: GradeJob, marks: Sequence[Mark]) -> tuple[Path, ...]:
    """All of it into a folder; the files that a teacher opens. Raises InputError."""
    for mark in marks:
        text = json.dumps(gradescope(mark), indent=2, ensure_ascii=False)
        write_atomically(folder / "gradescope" / mark.student / "results.json", f"{text}\n".encode())
    written = {
        "grades.csv": grades_csv(job, marks),
        "ranking.csv": ranking_csv(job, marks),
        "ranking.md": ranking_md(job, marks),
    }
    for name, text in written.items():
        write_atomically(folder / name, text.encode())
    return tuple(folder / name for name in written)


def gradescope(mark: Mark) -> dict[str, Any]:
    """One student's results.json."""
    tests = [_test(task) for task in mark.tasks] + [_answer(question) for question in mark.questions]
    seconds = sum(task.graded.seconds for task in mark.tasks if task.graded is not None)
    board = [
        {
            "name": f"{task.task.name}: times as fast as {task.graded.against}",
            "value": round(task.graded.value, 3),
        }
        for task in mark.tasks
        if task.graded is not None and task.graded.value and not task.graded.undecided
    ]
    found: dict[str, Any] = {
        "score": mark.points,
        "execution_time": round(seconds, 1),
        "visibility": "visible",
        "tests": tests,
        "extra_data": {"bands": {task.task.name: task.band for task in mark.tasks}},
    }
    return found | ({"leaderboard": board} if board else {})


def _test(mark: TaskMark) -> dict[str, Any]:
    graded = mark.graded
    passed = graded is not None and graded.disposition == "ok"
    return {
        "name": f"{mark.task.name}: {mark.task.title}" if mark.task.title else mark.task.name,
        "score": mark.points,
        "max_score": mark.most,
        "status": "passed" if passed else "failed",
        "output": "\n".join(lines(mark)),
        "visibility": "visible",
    }


def lines(mark: TaskMark) -> list[str]:
    """What a student reads of a task."""
    graded = mark.graded
    if graded is None:
        return ["It was not judged yet."]
    said = [mark.band]
    if graded.reason:
        said.append(graded.reason)
    if mark.hint:
        said.append(f"Hint: {mark.hint}")
    said += [
        _reached(mark.task, number, found, "not decided" if graded.undecided else "")
        for number, found in enumerate(graded.thresholds)
        if found.value
    ]
    if graded.walls == NONE:
        said.append("Nothing kept in what was handed in while it was graded (--no-walls).")
    return [*said, *graded.notes]


def _reached(task: Task, number: int, found: Reached, undecided: str) -> str:
    word = undecided or ("reached" if found.reached else "not reached")
    words = task.thresholds[number].words
    close = "; the threshold lies within the interval, which counts" if found.close else ""
    return (
        f"{words}: {word}, {found.value:.2f} times as fast as {found.rung} "
        f"(95 %: {found.low:.2f} to {found.high:.2f}; asked for {found.ratio:g}){close}"
    )


def _answer(mark: QuestionMark) -> dict[str, Any]:
    if mark.given is None:
        words, status = "not answered", "failed"
    elif mark.right is None:
        words, status = f"to be read by a person: {mark.given}", None
    else:
        words, status = ("right", "passed") if mark.right else ("wrong", "failed")
    made = {
        "name": f"question {mark.question.name}",
        "score": mark.points,
        "max_score": mark.question.points,
        "output": words,
        "visibility": "visible",
    }
    return made | ({"status": status} if status else {})


def grades_csv(job: GradeJob, marks: Sequence[Mark]) -> str:
    """A row a student."""
    head = ["student", "points", "of"]
    for task in job.tasks:
        head += [f"{task.name} points", f"{task.name} band", f"{task.name} times", f"{task.name} low",
                 f"{task.name} high", f"{task.name} why"]  # fmt: skip
    questions = marks[0].questions if marks else ()
    head += [f"question {q.question.name}" for q in questions]
    rows = []
    for mark in marks:
        row: list[object] = [mark.student, f"{mark.points:g}", f"{mark.most:g}"]
        for t in mark.tasks:
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


def _of(task: Task, marks: Sequence[Mark]) -> list[Graded]:
    return [t.graded for m in marks for t in m.tasks if t.task.name == task.name and t.graded is not None]


def ranking_csv(job: GradeJob, marks: Sequence[Mark]) -> str:
    rows: list[list[object]] = [["task", "rank", "tied", "student", "times as fast", "low", "high"]]
    for task in job.tasks:
        rows += [
            [
                task.name,
                p.rank,
                "yes" if p.tied else "no",
                p.student,
                f"{p.value:.4g}",
                f"{p.low:.4g}",
                f"{p.high:.4g}",
            ]
            for p in ranking(_of(task, marks))
        ]
    return _csv(rows)


def ranking_md(job: GradeJob, marks: Sequence[Mark]) -> str:
    """The same to be read: a table a task."""
    parts = [f"# {job.title or job.name}: ranking\n"]
    for task in job.tasks:
        places = ranking(_of(task, marks))
        against = next((g.against for g in _of(task, marks) if g.value), "")
        parts.append(f"\n## {task.name}\n")
        if not places:
            parts.append("\nNobody passed.\n")
            continue
        parts.append(
            f"\nHow many times as fast as `{against}`, with its 95 % interval. Whoever's interval reaches "
            "that of the first of a rank shares it.\n\n"
            "| rank | student | times as fast | 95 % |\n|--:|---|--:|---|\n"
        )
        for p in places:
            rank = f"{p.rank} =" if p.tied else str(p.rank)
            name = p.student.replace("|", "\\|")
            parts.append(f"| {rank} | {name} | {p.value:.2f} | {p.low:.2f} to {p.high:.2f} |\n")
    return "".join(parts)


def _csv(rows: Sequence[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in rows:
        writer.writerow([_cell(value) for value in row])
    return out.getvalue()


def _cell(value: object) -> object:
    """What a student wrote is never a formula of the teacher's spreadsheet."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
