"""What is said of a student's marks, wherever it is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.extras.course.marks import ExerciseMark, Mark, QuestionMark
from bench.extras.course.records import CLOSE, Alike, Exercise, Reached, Student
from bench.extras.course.walls import NONE

_DAY_S = 86400


def lines(mark: ExerciseMark) -> list[str]:
    """What a student reads of an exercise."""
    graded = mark.graded
    if graded is None:
        return ["It was not judged yet."]
    said = [mark.band]
    if mark.stale:
        said.append(f"This is not up to date: {mark.stale}.")
    if graded.reason:
        said.append(graded.reason)
    if mark.hint:
        said.append(f"Hint: {mark.hint}")
    said += [
        _reached(mark.exercise, number, found, "not decided" if graded.undecided else "")
        for number, found in enumerate(graded.thresholds)
        if found.value
    ]
    said += [
        f"{limit.words}: {'reached' if found.reached else 'not reached'}, {found.value:,} {found.what} "
        f"(at most {found.limit:,.6g})"
        for limit, found in zip(mark.exercise.counts, graded.counts, strict=False)
    ]
    if graded.walls == NONE:
        said.append("Nothing kept in what was handed in while it was graded (--no-walls).")
    return [*said, *graded.notes]


def _reached(exercise: Exercise, number: int, found: Reached, undecided: str) -> str:
    word = undecided or ("reached" if found.reached else "not reached")
    words = exercise.thresholds[number].words
    within = found.low <= found.ratio <= found.high
    close = "; the threshold lies within the interval, which counts" if found.close else ""
    if within and not found.reached and not undecided:
        most = f"at most {CLOSE:g} times what was measured"
        close = (
            f"; the threshold lies within the interval, of which {most} counts: it is fast now and then only"
        )
    return (
        f"{words}: {word}, {found.value:.2f} times as fast as {found.rung} "
        f"(95 %: {found.low:.2f} to {found.high:.2f}; asked for {found.ratio:g}){close}"
    )


def answered(mark: QuestionMark) -> str:
    """How a question was answered, in words."""
    if mark.given is None:
        return mark.problem or "not answered"
    if mark.right is None:
        return f"to be read by a person: {mark.given}"
    return "right" if mark.right else "wrong"


def late(student: Student) -> str:
    """By how much somebody was late, or ""."""
    if student.late_s is None:
        return ""
    seconds = int(student.late_s)
    if not seconds:
        return "yes"
    if seconds >= _DAY_S:
        return f"{seconds // _DAY_S} d {seconds % _DAY_S // 3600} h"
    return (
        f"{seconds // 3600} h {seconds % 3600 // 60} min" if seconds >= 3600 else f"{-(-seconds // 60)} min"
    )


def flags(mark: Mark, alike: Sequence[Alike], names: Mapping[str, str]) -> list[str]:
    """What a teacher should look at. names: of the students, by key."""
    said = list(mark.student.remarks)
    if lateness := late(mark.student):
        said.append("late" if lateness == "yes" else f"late by {lateness}")
    said += [f"{t.exercise.name}: {t.stale}" for t in mark.exercises if t.stale]
    said += [
        f"{t.exercise.name}: its speed is {t.graded.undecided}"
        for t in mark.exercises
        if t.graded and t.graded.undecided
    ]
    near: dict[str, list[str]] = {}
    for pair in alike:
        if pair.student == mark.student.key:
            other = f"the rung {pair.other}" if pair.rung else names.get(pair.other, pair.other)
            near.setdefault(pair.exercise, []).append(f"{other} ({pair.share:.0%})")
    said += [f"{exercise}: its tokens are those of {', '.join(others)}" for exercise, others in near.items()]
    return said
