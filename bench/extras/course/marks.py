"""What was judged as points, bands and ranks.

A score is a band: passed or not, and how many thresholds are reached. A time alone moves nobody: points come
with a threshold, and a threshold that lies within the interval counts as reached. What was timed on an
overloaded machine reaches no threshold and misses none. In a ranking whoever's interval reaches that of the
first of a rank shares it. Of an interval no more counts than CLOSE times what was measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.extras.course.records import CLOSE, Answer, Asked, Exercise, Graded, GradeJob, Student


@dataclass(frozen=True)
class ExerciseMark:
    """graded: None where the exercise was not judged yet. stale: why what was found is not of what lies there
    now, or ""."""

    exercise: Exercise
    graded: Graded | None
    points: float
    most: float
    stale: str = ""

    @property
    def band(self) -> str:
        """In words."""
        if self.graded is None:
            return "not judged"
        if self.graded.disposition != "ok":
            return "not passed"
        reached = [
            threshold.words
            for threshold, found in zip(self.exercise.thresholds, self.graded.thresholds, strict=False)
            if found.reached and not self.graded.undecided
        ]
        reached += [
            limit.words
            for limit, found in zip(self.exercise.counts, self.graded.counts, strict=False)
            if found.reached
        ]
        told = f"passed, reached {', '.join(reached)}" if reached else "passed"
        if self.graded.undecided:
            return f"{told}; its speed is {self.graded.undecided}"
        asked = self.exercise.thresholds or self.exercise.counts
        return f"{told}, no threshold reached" if asked and not reached else told

    @property
    def short(self) -> str:
        """The band without the reason why a speed is not decided."""
        return self.band.partition(":")[0] if self.graded is not None and self.graded.undecided else self.band

    @property
    def hint(self) -> str:
        """The teacher's, for what was found; "" where there is none."""
        graded = self.graded
        if graded is None or graded.disposition == "ok":
            return ""
        names = (graded.finding.fault if graded.finding is not None else "", graded.disposition)
        return next((self.exercise.hints[name] for name in names if name in self.exercise.hints), "")


@dataclass(frozen=True)
class QuestionMark:
    """right: None where a person has to say, or nothing was answered (given is None). problem: why what was
    answered could not be read, or ""."""

    question: Asked
    given: Answer | None
    right: bool | None
    points: float
    problem: str = ""


@dataclass(frozen=True)
class Mark:
    student: Student
    exercises: tuple[ExerciseMark, ...]
    questions: tuple[QuestionMark, ...]

    @property
    def points(self) -> float:
        return sum(t.points for t in self.exercises) + sum(q.points for q in self.questions)

    @property
    def most(self) -> float:
        return sum(t.most for t in self.exercises) + sum(q.question.points for q in self.questions)


def marks(job: GradeJob, students: Iterable[Student], graded: Iterable[Graded]) -> tuple[Mark, ...]:
    """One a student, in their order."""
    found = {(g.case.student, g.case.exercise): g for g in graded}
    return tuple(
        Mark(
            one,
            tuple(
                _exercise(job, exercise, one, found.get((one.key, exercise.name)))
                for exercise in job.exercises
            ),
            tuple(_question(question, one) for question in job.questions),
        )
        for one in students
    )


def _exercise(job: GradeJob, exercise: Exercise, student: Student, graded: Graded | None) -> ExerciseMark:
    most = (
        exercise.points + sum(t.points for t in exercise.thresholds) + sum(c.points for c in exercise.counts)
    )
    points = 0.0
    stale = ""
    if graded is not None:
        if graded.digest not in ("", student.digests.get(exercise.name, graded.digest)):
            stale = "something else was handed in since, and is not graded yet"
        elif graded.asked not in ("", job.asked(exercise)):
            stale = "the exercise has changed since this was graded"
        if graded.disposition == "ok":
            timed = zip(exercise.thresholds, graded.thresholds, strict=False)
            counted = zip(exercise.counts, graded.counts, strict=False)
            points = exercise.points + sum(threshold.points for threshold, found in timed if found.reached)
            points += sum(limit.points for limit, found in counted if found.reached)
    return ExerciseMark(exercise, graded, points, most, stale)


def _question(question: Asked, student: Student) -> QuestionMark:
    given = student.answers.get(question.name)
    right = None if given is None else question.right(given)
    return QuestionMark(
        question,
        given,
        right,
        question.points if right else 0.0,
        student.answers_problem if given is None else "",
    )


@dataclass(frozen=True)
class Place:
    rank: int
    student: str
    value: float
    low: float
    high: float
    tied: bool


def ranking(graded: Sequence[Graded]) -> tuple[Place, ...]:
    """Of one exercise: those that passed and were timed where others left room, the fastest first. A rank is
    shared by all whose interval overlaps that of its first, so that a tie is no matter of luck."""
    timed = sorted(
        (g for g in graded if g.disposition == "ok" and g.value > 0 and not g.undecided),
        key=lambda g: (-g.value, g.case.student),
    )
    ranks: list[int] = []
    first = 0
    for number, one in enumerate(timed):
        if min(one.high, CLOSE * one.value) < timed[first].low:
            first = number
        ranks.append(first + 1)
    return tuple(
        Place(rank, g.case.student, g.value, g.low, g.high, ranks.count(rank) > 1)
        for rank, g in zip(ranks, timed, strict=True)
    )
