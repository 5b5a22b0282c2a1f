"""The words of grading, as frozen records: what is asked of a class (GradeJob), one student's exercise
(GradeCase) and what came of it (Graded). A folder of grades holds `grade.json` (a Grade) and `results.jsonl`,
in which an exercise is a `task`, as it was called once.

To the client, the supervisor and the folder this is a kind of run (`KIND`); lists of runs do not have it.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from bench.results.finding import Finding
from bench.results.kinds import Kind, Listing
from bench.results.records import CaseResult, Header, Record, check_name
from kernels.tasks import spec

REFERENCE = "reference"
# Whom a student's kernel is called while it is judged, whatever its file is called.
NUMBER, NAME = 90, "submission"


class Threshold(Record, frozen=True, forbid_unknown_fields=True):
    """A time to reach: `ratio` times as fast as the rung (or the "reference") that is timed beside it."""

    rung: str
    ratio: float
    points: float = 0.0
    name: str = ""

    @property
    def words(self) -> str:
        return self.name or f"{self.ratio:g}× {self.rung}"


class CountLimit(Record, frozen=True, forbid_unknown_fields=True):
    """A count of a CUDA kernel that is not to be exceeded, which is the same on every machine. what: by name
    (bench.measure.ladder.counts.totals). of: "" (`most` is the count itself), "least" (`most` times the
    fewest that there can be, of sectors and wavefronts), or a rung, `most` times whose count it is."""

    what: str
    most: float
    of: str = ""
    points: float = 0.0
    name: str = ""

    @property
    def words(self) -> str:
        if self.name:
            return self.name
        if not self.of:
            return f"at most {self.most:,.15g} {self.what}"
        return f"at most {self.most:g}× the {self.what} of {self.of}".replace(
            f"the {self.what} of least", f"the least {self.what}"
        )


class Asked(Record, frozen=True, forbid_unknown_fields=True):
    """A question, answered in the student's answers.toml by its name. kind "text" is read by a person.
    within: how far off a number may be, as a part of the right one."""

    name: str
    text: str
    kind: Literal["number", "choice", "text"] = "text"
    choices: tuple[str, ...] = ()
    answer: float | str | None = None
    within: float = 0.0
    points: float = 0.0

    def right(self, given: object) -> bool | None:
        """Whether an answer is right; None where a person has to say."""
        if self.kind == "text" or self.answer is None:
            return None
        if self.kind == "choice":
            return str(given).strip().casefold() == str(self.answer).strip().casefold()
        if isinstance(given, bool) or not isinstance(given, int | float) or isinstance(self.answer, str):
            return False
        return abs(given - self.answer) <= self.within * abs(self.answer)


class Exercise(Record, frozen=True):
    """One kernel to write, its params resolved. hidden: params that are judged, and never told. precisions:
    what a rung may compute in. file: a pattern its file's name has to fit ("": any of its operator). points:
    for answers that are right on every shape. hints: by finding or by how it ended, in the teacher's
    words. folder, text, reference, models: of a task that is the teacher's own (kernels.tasks), where it
    lies, its file, its reference and its ONNX models by name ("" and none for one of the ladder's)."""

    name: str
    op: str
    params: dict[str, object]
    title: str = ""
    hidden: tuple[dict[str, object], ...] = ()
    precisions: tuple[str, ...] = ("fp32",)
    quick: bool = False
    points: float = 0.0
    thresholds: tuple[Threshold, ...] = ()
    hints: dict[str, str] = msgspec.field(default_factory=dict)
    file: str = ""
    counts: tuple[CountLimit, ...] = ()
    folder: str = ""
    text: str = ""
    reference: str = ""
    models: dict[str, bytes] = msgspec.field(default_factory=dict)

    @property
    def task(self) -> spec.Task:
        """That task. Raises InputError."""
        models = tuple(self.models.items())
        return spec.parsed(self.op, Path(self.folder), self.text, self.reference, models)

    @property
    def judged(self) -> dict[str, object]:
        """What of it decides what a kernel is found to be; all else only says what that is worth."""
        return {
            "op": self.op,
            "params": self.params,
            "hidden": self.hidden,
            "precision": self.precisions,
            "checks": "quick" if self.quick else "full",
            "threshold": [(t.rung, t.ratio) for t in self.thresholds],
            **({"count": [(c.what, c.most, c.of) for c in self.counts]} if self.counts else {}),
            **(
                {"task": [self.text, self.reference, *map(digest, self.models.values())]} if self.text else {}
            ),
        }


class GradeJob(Record, frozen=True):
    """What a class is judged by. timeout_s: seconds that one exercise of one student may take, those in which
    it waits for the device not among them. mib: memory of a process that runs what was handed in (0: as much
    as there is). deadline: as ISO 8601 with its offset from UTC ("": none). modules: what a kernel may import
    beside Python's own and what its template imports. simulated: CUDA kernels run on the CPU, and their times
    are not judged."""

    name: str
    exercises: tuple[Exercise, ...] = msgspec.field(name="tasks")
    device: str = "cpu"
    title: str = ""
    threads: int = 1
    budget_s: float = 0.5
    timeout_s: float = 120.0
    mib: int = 0
    seed: int = 0
    folder: str = ""
    questions: tuple[Asked, ...] = ()
    deadline: str = ""
    modules: tuple[str, ...] = ()
    simulated: bool = False

    @property
    def runs_on(self) -> str:
        """The device that it takes."""
        return "cpu" if self.simulated else self.device

    def exercise(self, name: str) -> Exercise:
        return next(exercise for exercise in self.exercises if exercise.name == name)

    def judged(self, exercise: Exercise) -> dict[str, object]:
        """All that decides what a kernel for an exercise is found to be, by what a teacher calls it."""
        return exercise.judged | {
            "threads": self.threads,
            "modules": self.modules,
            "limits": (self.budget_s, self.timeout_s, self.mib),
            **({"times": "not judged"} if self.simulated else {}),
        }

    def asked(self, exercise: Exercise) -> str:
        """A hash of that: what was found of an exercise that asks the same still holds."""
        return digest(msgspec.json.encode(self.judged(exercise), order="sorted"))


def digest(data: bytes) -> str:
    """SHA-256, in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


Answer = str | bool | int | float


class Student(Record, frozen=True):
    """A person of a class, and what they handed in, without its text. key: what files and cases are called
    after, nobody else's; name: as it was written; who: by what they are known again when the class is graded
    once more. files, digests: by exercise the name of the file, and the hash of what is judged (of the
    sentence, where there is nothing to judge, which problems has). at: when it was handed in, as ISO 8601;
    at_by: who says so; late_s: so many seconds after the deadline (None: not known to be late; 0: the system
    that took it says so, and not how much). remarks: what a teacher should know."""

    key: str
    name: str
    who: str
    id: str = ""
    email: str = ""
    section: str = ""
    sources: tuple[str, ...] = ()
    at: str = ""
    at_by: str = ""
    late_s: float | None = None
    files: dict[str, str] = msgspec.field(default_factory=dict)
    digests: dict[str, str] = msgspec.field(default_factory=dict)
    problems: dict[str, str] = msgspec.field(default_factory=dict)
    answers: dict[str, Answer] = msgspec.field(default_factory=dict)
    answers_problem: str = ""
    remarks: tuple[str, ...] = ()

    def called(self, name: str) -> bool:
        """Whether somebody means this one by a name; also by the first part of the e-mail, or by that of
        what was handed in."""
        wanted = unicodedata.normalize("NFC", name).strip().casefold()
        return any(
            unicodedata.normalize("NFC", own).casefold() == wanted
            for own in (self.key, self.name, self.id, self.email, self.email.partition("@")[0], *self.sources)
            if own
        )


class Alike(Record, frozen=True):
    """A kernel that shares more of its tokens with another than chance explains. other: a student's key, or
    the rung of the ladder; share: of its tokens that are not those of what was handed out."""

    exercise: str = msgspec.field(name="task")
    student: str
    other: str
    rung: bool
    share: float


class GradeCase(Record, frozen=True):
    """One exercise of one student."""

    student: str
    exercise: str = msgspec.field(name="task")

    def __post_init__(self) -> None:
        check_name("student", self.student)
        check_name("exercise", self.exercise)

    @property
    def key(self) -> str:
        return f"{self.student}--{self.exercise}"

    @property
    def words(self) -> str:
        return f"{self.student}, {self.exercise}"


# So many times as fast as it was measured to be a kernel counts, at most, where its interval says it may be:
# whoever is slow now and then has an interval as wide as he likes.
CLOSE = 1.25


class Reached(Record, frozen=True):
    """How a kernel stands to one threshold: how many times as fast as its rung, with its interval. close: the
    threshold lies within the interval, at most CLOSE times what was measured, and counts as reached."""

    rung: str
    ratio: float
    value: float
    low: float
    high: float
    reached: bool
    close: bool = False


class Counted(Record, frozen=True):
    """A kernel's count beside its limit, both as numbers."""

    what: str
    value: int
    limit: float
    reached: bool


class Graded(CaseResult[GradeCase], frozen=True):
    """What came of one case. disposition "ok": right on every shape. finding: what is wrong, if something
    is. thresholds: as the exercise has them. value, low, high: how many times as fast as
    `against` it is, by which it is ranked. digest: of what was judged (Student.digests); asked: of what it
    was judged by (GradeJob.asked). undecided: why nothing is said of its speed, as
    bench.results.stats.load has it: then no threshold is reached or missed, it has no rank, and what was
    measured stands there as it was. walls: the name of what kept it in, as
    bench.extras.course.walls has them. counts: as the exercise has limits of them."""

    finding: Finding | None = None
    thresholds: tuple[Reached, ...] = ()
    median_ns: float = 0.0
    against: str = ""
    value: float = 0.0
    low: float = 0.0
    high: float = 0.0
    file: str = ""
    digest: str = ""
    asked: str = ""
    seconds: float = 0.0
    undecided: str = ""
    walls: str = ""
    counts: tuple[Counted, ...] = ()

    @property
    def band(self) -> int:
        """0: not passed; 1: passed; beyond: so many thresholds reached, where that is decided."""
        reached = sum(t.reached for t in self.thresholds) + sum(c.reached for c in self.counts)
        return 0 if self.disposition != "ok" else 1 + reached


class Grade(Header[GradeJob, GradeCase], frozen=True):
    """`grade.json`: a class's grades. alike: what is flagged, and never judged."""

    students: tuple[Student, ...] = ()
    alike: tuple[Alike, ...] = ()


def listing(grade: Grade, cases: Sequence[GradeCase]) -> Listing:
    return Listing(
        what=f"{grade.job.title or grade.job.name}: {len({case.student for case in cases})} students",
        models=(),
        backends=(f"engine-{grade.job.device}",),
        batches=(),
        machine=grade.environment.machine,
    )


def remark(graded: Graded) -> str:
    if not graded.thresholds:
        return ""
    if graded.undecided:
        return f", thresholds {graded.undecided}"
    reached = sum(t.reached for t in graded.thresholds)
    return f", {reached} of {len(graded.thresholds)} thresholds"


KIND: Kind[Grade, Graded] = Kind(
    name="grading",
    file="grade.json",
    job=GradeJob,
    case=GradeCase,
    header=Grade,
    line=Graded,
    worker=("bench.extras.course.worker",),
    titled=lambda job: f"grades-{job.name}",
    listing=listing,
    stages={"tune": "waiting for the device for", "check": "checking", "time": "timing"},
    dispositions={"ok": "passed", "unsupported": "refused"},
    remark=remark,
    quiet=True,
    verb="course",
)
