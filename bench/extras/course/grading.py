"""A class graded: what was handed in as pieces of work, one a student; what came of it in one folder."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from bench.commands.measuring import Ending
from bench.extras.course import submissions, tasks
from bench.extras.course.assignment import Assignment
from bench.extras.course.marks import Mark, marks
from bench.extras.course.records import NAME, NUMBER, Grade, GradeCase, Graded, GradeJob
from bench.extras.course.submissions import HandedIn
from bench.extras.course.walls import Walls
from bench.extras.fleet.executor import Executor
from bench.extras.fleet.work import Said, Work
from bench.results.folder import Folder

GRADES = "bench.extras.course.records:KIND"
Event = Callable[[Any], None]


@dataclass(frozen=True)
class Class:
    """What is to be graded."""

    assignment: Assignment
    job: GradeJob
    handed: tuple[HandedIn, ...]

    @property
    def cases(self) -> tuple[GradeCase, ...]:
        return tuple(
            GradeCase(student=one.student, task=task.name) for one in self.handed for task in self.job.tasks
        )

    def header(self) -> Grade:
        return Grade(job=self.job, cases=self.cases)


def gather(assignment: Assignment, folder: Path, hidden: bool = True) -> Class:
    """A class out of a folder of submissions. Raises InputError."""
    job = tasks.job_of(assignment, hidden)
    # Drawn anew for each grading unless the teacher names one: inputs that nobody can write an answer to.
    seed = assignment.seed or secrets.randbelow(1 << 31) + 1
    job = msgspec.structs.replace(job, folder=str(Path(folder).absolute()), seed=seed)
    return Class(assignment, job, submissions.students(folder, job))


def works(of: Class, missing: Iterable[GradeCase], walls: Walls | None) -> list[Work]:
    """One a student: the cases that have something to judge."""
    wanted = set(missing)
    found = []
    for one in of.handed:
        cases = tuple(
            case
            for task in of.job.tasks
            if (case := GradeCase(student=one.student, task=task.name)) in wanted and task.name in one.files
        )
        if cases:
            found.append(
                Work(
                    one.student,
                    GRADES,
                    of.job,
                    cases,
                    of.job.device,
                    files=one.staged(of.job),
                    cores=of.job.threads,
                    twice=("timed_out",),
                    walls=walls,
                )
            )
    return found


def without_kernel(of: Class, missing: Iterable[GradeCase]) -> list[Graded]:
    """What comes of the cases that have nothing to judge: it costs their author alone."""
    problems = {(one.student, task): why for one in of.handed for task, why in one.problems.items()}
    return [
        Graded(case=case, disposition="failed", reason=problems[case.student, case.task])
        for case in missing
        if (case.student, case.task) in problems
    ]


def grade(
    of: Class, folder: Folder[Grade, Graded], executor: Executor, walls: Walls | None, on_event: Event
) -> Ending:
    """Grade what is missing of a folder, which is claimed. Each result is on the disk before it is told."""
    missing = folder.missing()
    files = {(one.student, task): name for one in of.handed for task, (name, _) in one.files.items()}

    def settle(graded: Graded, place: str = "") -> None:
        file = files.get((graded.case.student, graded.case.task), "")
        facts = graded.facts | ({"on": place} if place else {})
        graded = msgspec.structs.replace(
            graded,
            file=file,
            facts=facts,
            reason=own_words(graded.reason, file),
            walls=walls.name if walls is not None else "",
        )
        folder.append(graded)
        on_event(graded)

    def heard(work: Work, said: Said) -> None:
        if said.settled:
            settle(said.message, said.place)
        elif said.message is not None:
            folder.take_message(said.message)
            on_event(said.message)

    for graded in without_kernel(of, missing):
        settle(graded)
    try:
        ended = executor.run(works(of, missing, walls), heard)
        folder.check()
    finally:
        folder.close()
    return ended


def own_words(reason: str, file: str) -> str:
    """A reason with the student's own file in it, and not with the copy that was judged; without the last
    words of a judge that ended, which may be the kernel's."""
    reason = re.sub(r"^(the worker [^:]*\(at: [^)]*\)): .*", r"\1", reason, flags=re.DOTALL)
    reason = re.sub(rf"\S*[/\\]{NUMBER}_{NAME}\.\w+", lambda _: file, reason) if file else reason
    reason = reason.partition("; a loop may never end, or it needs")[0]
    return re.sub(rf"\b(\w+ )?{NUMBER} {NAME}\b", "the kernel", reason)


def marked(of: Class, graded: Sequence[Graded]) -> tuple[Mark, ...]:
    return marks(of.assignment, of.job, of.handed, graded)
