"""A class graded: what was handed in as pieces of work, one a student; what came of it in one folder."""

from __future__ import annotations

import re
import secrets
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from bench.commands.measuring import Ending
from bench.extras.course import alike, exercises, people, submissions
from bench.extras.course.assignment import Assignment
from bench.extras.course.files import FILE_NBYTES
from bench.extras.course.people import folded
from bench.extras.course.records import NAME, NUMBER, Alike, Grade, GradeCase, Graded, GradeJob, Student
from bench.extras.course.submissions import HandedIn
from bench.extras.course.walls import Walls
from bench.extras.fleet.executor import Executor
from bench.extras.fleet.work import Said, Work
from bench.measure.ladder import simulated
from bench.questions.ladder_plan import usable
from bench.results import reading
from bench.results.folder import Folder
from bench.results.store import to_run_again, write_atomically
from kernels.errors import InputError
from kernels.nearest import did_you_mean

GRADES = "bench.extras.course.records:KIND"
HANDED_IN = "handed-in"  # copies of what was judged, in a folder a student and exercise
_REASON = 2000  # characters; what a kernel raises may have millions
Event = Callable[[Any], None]


@dataclass(frozen=True)
class Class:
    """What is to be graded. standing: students of an earlier grading of whom nothing was handed in now: what
    was found of theirs stands."""

    job: GradeJob
    handed: tuple[HandedIn, ...]
    standing: tuple[Student, ...] = ()

    @property
    def students(self) -> tuple[Student, ...]:
        """In the order of their names."""
        every = (*(one.student for one in self.handed), *self.standing)
        return tuple(sorted(every, key=lambda one: (folded(one.name), one.key)))

    @property
    def cases(self) -> tuple[GradeCase, ...]:
        return tuple(
            GradeCase(student=one.key, exercise=exercise.name)
            for one in self.students
            for exercise in self.job.exercises
        )

    def header(self, before: Grade | None = None) -> Grade:
        """The header of its grades; where they are gone on with, what it said before is kept."""
        made = before if before is not None else Grade(job=self.job, cases=())
        return msgspec.structs.replace(made, job=self.job, cases=self.cases, students=self.students)


def gather(
    assignment: Assignment, folder: Path, roster: Path | None = None, before: Grade | None = None
) -> Class:
    """A class out of a folder of submissions. roster: of the class; default: roster.csv in the folder, else
    the one that it was graded with before.
    before: of the grades that are gone on with. Raises InputError."""
    job = exercises.job_of(assignment)
    # Drawn anew for each class unless the teacher names one: inputs that nobody can write an answer to.
    seed = assignment.seed or (before.job.seed if before is not None else secrets.randbelow(1 << 31) + 1)
    job = msgspec.structs.replace(job, folder=str(Path(folder).absolute()), seed=seed)
    if roster is None and (Path(folder) / people.ROSTER).exists():
        roster = Path(folder) / people.ROSTER
    known = before.students if before is not None else ()
    listed = people.roster(roster) if roster is not None else people.remembered(known)
    handed = submissions.students(folder, job, listed, known)
    now = {one.student.who for one in handed if one.student.sources}
    standing = tuple(one for one in known if one.who not in now)
    stays = {one.who for one in standing if one.sources}
    handed = tuple(one for one in handed if one.student.who not in stays)
    kept = {one.student.who for one in handed}
    return Class(job, handed, tuple(one for one in standing if one.who not in kept))


def without_gpu(of: Class) -> Class:
    """The same, its CUDA kernels judged on the CPU where this machine has no GPU; as it is where they cannot
    be, which is told when no device is found. Told on standard error."""
    if of.job.device != "cuda" or "cuda" in usable() or simulated.missing():
        return of
    print(
        "there is no GPU here: kernels run on the CPU; answers and counts are judged, times are not",
        file=sys.stderr,
    )
    return replace(of, job=msgspec.structs.replace(of.job, simulated=True))


def changed(job: GradeJob, before: GradeJob) -> list[str]:
    """What an assignment has become since: a sentence for each exercise that this touches. Raises InputError
    where it is another assignment."""
    if (job.name, job.device) != (before.name, before.device):
        raise InputError(
            f"these grades are of the assignment {before.name!r} for {before.device}; "
            "--out names another folder"
        )
    had = {exercise.name: exercise for exercise in before.exercises}
    told = []
    for exercise in job.exercises:
        old = had.pop(exercise.name, None)
        if old is None:
            told.append(f"exercise {exercise.name} is new")
            continue
        ours, theirs = job.judged(exercise), before.judged(old)
        if differs := [what for what, value in ours.items() if value != theirs[what]]:
            told.append(f"exercise {exercise.name} is graded anew: {', '.join(differs)} changed")
        elif exercise != old:
            told.append(
                f"exercise {exercise.name} is counted anew: only its points, words or file pattern changed"
            )
    told += [f"exercise {name} is gone" for name in had]
    if job.questions != before.questions:
        told.append("the questions are counted anew: they changed")
    return told


def named(students: Sequence[Student], names: Sequence[str]) -> set[str]:
    """The keys of those that names mean. Raises InputError for a name that means nobody or several."""
    found = set()
    for name in names:
        keys = [one.key for one in students if one.called(name)]
        exact = [key for key in keys if key == name]
        if len(exact or keys) > 1:
            raise InputError(f"several are called {name!r}; name one by {', '.join(keys)}")
        if not keys:
            hint = did_you_mean(name, [one.name for one in students])
            raise InputError(f"nobody in this class is called {name!r}{hint}")
        found.add((exact or keys)[0])
    return found


def to_judge(
    of: Class, found: Sequence[Graded], only: Sequence[str] = (), regrade: Sequence[str] = ()
) -> tuple[GradeCase, ...]:
    """The cases that are to be judged: those of which nothing was found yet, or of something else than what
    lies there now. only: of these students alone; regrade: of these all. Raises InputError."""
    chosen, again = named(of.students, only), named(of.students, regrade)
    before = {one.case.key: one for one in found}
    digests = {one.student.key: one.student.digests for one in of.handed}
    if lacking := sorted((chosen | again) - digests.keys()):
        raise InputError(
            f"what {lacking[0]} handed in does not lie in {of.job.folder}, so it cannot be graded"
        )
    left = []
    for case in of.cases:
        if case.student not in digests or (chosen and case.student not in chosen | again):
            continue
        held = before.get(case.key)
        stands = (
            held is not None
            and not to_run_again(held, retry=False)
            and held.digest == digests[case.student][case.exercise]
            and held.asked == of.job.asked(of.job.exercise(case.exercise))
        )
        if not stands or case.student in again:
            left.append(case)
    return tuple(left)


def works(of: Class, missing: Iterable[GradeCase], walls: Walls | None) -> list[Work]:
    """One a student: the cases that have something to judge."""
    wanted = set(missing)
    job = msgspec.structs.replace(of.job, questions=())  # their answers are nothing for who runs a kernel
    found = []
    for one in of.handed:
        key = one.student.key
        cases = tuple(
            case
            for exercise in of.job.exercises
            if (case := GradeCase(student=key, exercise=exercise.name)) in wanted
            and exercise.name in one.texts
        )
        if cases:
            found.append(
                Work(
                    key,
                    GRADES,
                    job,
                    cases,
                    of.job.runs_on,
                    files={name: text for case in cases for name, text in one.staged(case.exercise).items()},
                    cores=of.job.threads,
                    twice=("timed_out",),
                    walls=walls,
                )
            )
    return found


def without_kernel(of: Class, missing: Iterable[GradeCase]) -> list[Graded]:
    """What comes of the cases that have nothing to judge: it costs their author alone."""
    problems = {
        (one.student.key, exercise): why
        for one in of.handed
        for exercise, why in one.student.problems.items()
    }
    return [
        Graded(case=case, disposition="failed", reason=problems[case.student, case.exercise])
        for case in missing
        if (case.student, case.exercise) in problems
    ]


def grade(
    of: Class,
    missing: Sequence[GradeCase],
    folder: Folder[Grade, Graded],
    executor: Executor,
    walls: Walls | None,
    on_event: Event,
) -> tuple[Ending, tuple[GradeCase, ...]]:
    """Grade cases into a folder, which is claimed; how it ended, and which are left. Each result is on the
    disk before it is told, and a copy of what was judged before that."""
    left = dict.fromkeys(case.key for case in missing)
    handed = {one.student.key: one for one in of.handed}

    def settle(graded: Graded, place: str = "") -> None:
        one, exercise = handed[graded.case.student], graded.case.exercise
        file = one.student.files.get(exercise, "")
        facts = graded.facts | ({"on": place} if place else {})
        graded = msgspec.structs.replace(
            graded,
            file=file,
            facts=facts,
            reason=own_words(graded.reason, file),
            notes=tuple(own_words(note, file) for note in graded.notes),
            digest=one.student.digests[exercise],
            asked=of.job.asked(of.job.exercise(exercise)),
            walls=walls.name if walls is not None else "",
        )
        _keep(folder.path / HANDED_IN / one.student.key / exercise, one, exercise)
        folder.append(graded)
        left.pop(graded.case.key, None)
        on_event(graded)

    def heard(work: Work, said: Said) -> None:
        if said.settled:
            settle(said.message, said.place)
        elif said.message is not None:
            folder.take_message(said.message)
            on_event(said.message)

    for graded in without_kernel(of, missing):
        settle(graded)
    ended = executor.run(works(of, missing, walls), heard)
    folder.check()
    return ended, tuple(case for case in missing if case.key in left)


def _keep(folder: Path, one: HandedIn, exercise: str) -> None:
    """A copy of what was judged, for whoever asks later; of an earlier one nothing stays."""
    shutil.rmtree(folder, ignore_errors=True)
    if exercise in one.texts:
        held = {
            f"kernel{Path(one.student.files[exercise]).suffix}": one.texts[exercise],
            **one.helpers.get(exercise, {}),
        }
        for name, text in held.items():
            write_atomically(folder / name, text.encode())


def flagged(folder: Path, job: GradeJob) -> tuple[Alike, ...]:
    """Kernels among those that were judged that share their tokens."""
    texts = {
        (key, exercise): (reading.text(path, FILE_NBYTES), path.suffix)
        for path, key, exercise in alike.kept(folder / HANDED_IN)
    }
    return alike.alike(job, texts)


def own_words(reason: str, file: str) -> str:
    """A reason on one line with the student's own file in it, and not with the copy that was judged; of one
    that is longer than any of ours the beginning, and without the last words of a judge that ended, which may
    be the kernel's."""
    reason = " ".join(reason[:_REASON].split())
    reason = re.sub(r"^(the worker [^:]*\(at: [^)]*\)): .*", r"\1", reason)
    reason = re.sub(rf"(?:\S*[/\\])?\b{NUMBER}_{NAME}\.\w+", lambda _: file, reason) if file else reason
    reason = reason.partition("; a loop may never end, or it needs")[0]
    reason = re.sub(rf"\b(\w+ )?{NUMBER} {NAME}\b", "the kernel", reason)
    return reason.removeprefix("the kernel: ") if reason.startswith("the kernel: the process of ") else reason
