"""A grading to be read: a page for each student, which prints well, and one of the class for the teacher.
Each is one file of HTML that asks no network for anything."""

from __future__ import annotations

import datetime
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.extras.course import alike
from bench.extras.course.marks import ExerciseMark, Mark, ranking
from bench.extras.course.records import Exercise, Grade, Graded, GradeJob
from bench.extras.course.told import answered, flags, late
from bench.results.store import write_atomically
from bench.views.reports import report_html
from bench.views.reports.report_form import rendered

STUDENTS, CLASS = "students", "class.html"
_LEFT, _RIGHT, _WIDE, _HIGH = 190, 70, 760, 24  # pixels of a drawing: beside its axis, in all, of a row
_TICKS = (1, 2, 5)
_BARS = 12  # of a distribution, at most


@dataclass(frozen=True)
class Row:
    """A line of a drawing. kind: "rung", "reached", "missed", "asked" (a threshold), "own", "class". at: the
    places of its marks; low, high: of the one interval; words: behind it."""

    label: str
    kind: str
    at: tuple[float, ...]
    words: str = ""
    low: float = 0.0
    high: float = 0.0
    y: int = 0


@dataclass(frozen=True)
class Ladder:
    """A drawing: how many times as fast as a rung others are, on an axis of powers."""

    rows: tuple[Row, ...]
    ticks: tuple[tuple[float, str], ...]
    against: str
    told: str
    wide: int = _WIDE
    left: int = _LEFT

    @property
    def high(self) -> int:
        return _HIGH * (len(self.rows) + 2)

    @property
    def below(self) -> int:
        return _HIGH * len(self.rows) + 8


def ladder(exercise: Exercise, graded: Sequence[Graded], own: bool) -> Ladder | None:
    """The rungs that were timed, the thresholds, and the kernels beside them; None where none was timed. own:
    graded is one student's."""
    timed = [g for g in graded if g.disposition == "ok" and g.value > 0]
    if not timed:
        return None
    against = timed[0].against
    beside: dict[str, list[float]] = {}
    for one in timed:
        for reached in one.thresholds:
            if reached.value > 0:
                beside.setdefault(reached.rung, []).append(one.value / reached.value)
    speeds = {against: 1.0} | {rung: statistics.median(found) for rung, found in beside.items()}
    rows = [Row(rung, "rung", (speed,), _times(speed)) for rung, speed in speeds.items()]
    for number, threshold in enumerate(exercise.thresholds):
        if threshold.rung not in speeds:
            continue
        at = speeds[threshold.rung] * threshold.ratio
        decided = [one for one in timed if not one.undecided]
        found = [one.thresholds[number] for one in decided if number < len(one.thresholds)]
        count = sum(one.reached for one in found)
        if not own:
            kind, words = "asked", f"{count} of {len(found)}"
        elif timed[0].undecided:
            kind, words = "asked", "not decided"
        else:
            kind, words = ("reached", "reached") if count else ("missed", "not reached")
        rows.append(Row(threshold.words, kind, (at,), words))
    values = tuple(one.value for one in timed)
    if own:
        rows.append(Row("your kernel", "own", values, _times(values[0]), timed[0].low, timed[0].high))
    else:
        rows.append(Row(f"{len(timed)} students", "class", values))
    rows.sort(key=lambda row: statistics.median(row.at))
    ends = [end for row in rows for end in (*row.at, row.low, row.high) if end > 0]
    low, high = min(ends) / 1.15, max(ends) * 1.15

    def place(value: float) -> float:
        part = math.log(value / low) / math.log(high / low)
        return round(_LEFT + part * (_WIDE - _LEFT - _RIGHT), 1)

    drawn = tuple(
        Row(
            row.label if len(row.label) <= 26 else f"{row.label[:25]}…",
            row.kind,
            tuple(map(place, row.at)),
            row.words,
            place(row.low) if row.low > 0 else 0.0,
            place(row.high) if row.high > 0 else 0.0,
            _HIGH * number + _HIGH // 2,
        )
        for number, row in enumerate(rows)
    )
    ticks = tuple((place(tick), f"{tick:g}×") for tick in _nice(low, high))
    told = "; ".join(f"{row.label}: {row.words}" for row in rows if row.words)
    return Ladder(drawn, ticks, against, told)


def _nice(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten between two ends; fewer where they would stand too close."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in (_TICKS, (1, 3), (1,)):
        found = [
            step * 10.0**power for power in powers for step in steps if low <= step * 10.0**power <= high
        ]
        if len(found) <= 9:
            break
    return found


def _times(value: float) -> str:
    return f"{value:.3g}×"


@dataclass(frozen=True)
class Shown:
    """One exercise of a student's page."""

    mark: ExerciseMark
    ladder: Ladder | None

    @property
    def thresholds(self) -> list[tuple[Any, Any]]:
        graded = self.mark.graded
        found = graded.thresholds if graded is not None else ()
        return list(zip(self.mark.exercise.thresholds, found, strict=False))

    @property
    def counts(self) -> list[tuple[Any, Any]]:
        graded = self.mark.graded
        return list(zip(self.mark.exercise.counts, graded.counts if graded is not None else (), strict=False))


def put(path: Path, text: str) -> None:
    """Write a file that does not hold this yet: of a class most stay as they are. Raises InputError."""
    data = text.encode()
    try:
        if path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data:
            return
    except OSError:
        pass  # it is written anew, or that fails in words
    write_atomically(path, data)


def write(folder: Path, header: Grade, marks: Sequence[Mark]) -> tuple[Path, ...]:
    """The class's page and the students' in a folder of their own; which. Raises InputError."""
    among = report_html.templates()
    job = header.job
    context = {"job": job, "title": job.title or job.name, "late": late, "answered": answered, "day": _day}
    for mark in marks:
        exercises = [
            Shown(one, ladder(one.exercise, [one.graded], own=True) if one.graded else None)
            for one in mark.exercises
        ]
        text = rendered(
            "grade_student",
            context
            | {"mark": mark, "exercises": exercises, "student": mark.student, "heading": _heading(mark, job)},
            among,
        )
        put(folder / STUDENTS / f"{mark.student.key}.html", text)
    names = {mark.student.key: mark.student.name for mark in marks}
    text = rendered(
        "grade_class",
        context
        | {
            "heading": f"{context['title']}: the class",
            "marks": marks,
            "ids": any(mark.student.id for mark in marks),
            "sections": any(mark.student.section for mark in marks),
            "run": alike.RUN,
            "names": names,
            "flags": {mark.student.key: flags(mark, header.alike, names) for mark in marks},
            "most": max((mark.most for mark in marks), default=0.0),
            "bars": distribution([mark.points for mark in marks], max((m.most for m in marks), default=0.0)),
            "exercises": [_of_class(job, exercise, marks) for exercise in job.exercises],
            "strip": _strip(job, marks),
            "folder": STUDENTS,
            "machine": header.environment.machine,
        },
        among,
    )
    put(folder / CLASS, text)
    return folder / CLASS, folder / STUDENTS


def _heading(mark: Mark, job: GradeJob) -> str:
    return f"{job.title or job.name}: {mark.student.name}"


def _of_class(job: GradeJob, exercise: Exercise, marks: Sequence[Mark]) -> dict[str, Any]:
    found = [
        t.graded for mark in marks for t in mark.exercises if t.exercise.name == exercise.name and t.graded
    ]
    return {
        "exercise": exercise,
        "passed": sum(g.disposition == "ok" for g in found),
        "places": ranking(found),
        "against": next((g.against for g in found if g.value), ""),
        "ladder": ladder(exercise, found, own=False),
    }


def _strip(job: GradeJob, marks: Sequence[Mark]) -> list[str]:
    """What a teacher wants to know first."""
    handed = [mark for mark in marks if mark.student.sources]
    said = [f"{len(handed)} of {len(marks)} students handed something in."]
    if marks:
        points = sorted(mark.points for mark in marks)
        said.append(
            f"Points: median {statistics.median(points):g}, from {points[0]:g} to {points[-1]:g} of "
            f"{max(mark.most for mark in marks):g}."
        )
    lateness = sum(mark.student.late_s is not None for mark in marks)
    said += [f"{lateness} handed in late."] * bool(lateness)
    open_ = sum(exercise.graded is None for mark in marks for exercise in mark.exercises)
    said += [f"{open_} of {len(marks) * len(job.exercises)} kernels are not judged yet."] * bool(open_)
    return said


@dataclass(frozen=True)
class Bar:
    """So many students with points from one end to another."""

    low: float
    high: float
    count: int
    part: float  # of the highest bar


def distribution(points: Sequence[float], most: float) -> list[Bar]:
    """How many students have how many points: in steps of whole points, at most so many bars."""
    step = max(1, math.ceil((most + 1) / _BARS))
    last = math.floor(max([most, *points])) + 1
    ends = range(0, last, step)
    counts = [sum(low <= point < low + step for point in points) for low in ends]
    largest = max(counts, default=0) or 1
    return [
        Bar(low, min(low + step, last), count, count / largest)
        for low, count in zip(ends, counts, strict=True)
    ]


def _day(text: str) -> str:
    """A time as people read it."""
    try:
        return datetime.datetime.fromisoformat(text).strftime("%Y-%m-%d %H:%M %z").strip()
    except ValueError:
        return text
