"""An assignment: the teacher's one TOML file, read. `template` writes one that says what each entry means;
`exercises` makes of it what is measured."""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any, Literal

import msgspec

from bench.extras.course.records import Asked, CountLimit, Threshold
from bench.results import reading
from kernels import tasks, toml
from kernels.errors import InputError

FILE = "assignment.toml"
_NAME = re.compile(r"[A-Za-z0-9][\w-]{0,39}")  # an exercise's: files and columns are called after it
MODULES = ("numpy", "numba")  # what a kernel may import beside Python's own and what its template imports


class _Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base: what is not known is refused, so that a typing error is no rule that nobody applies."""


Side = int | tuple[int, ...]


class Work(_Entry, frozen=True):
    """Which problem: a node of a model, a convolution's shape, or the params of any operator."""

    model: str = ""
    node: str = ""
    batch: int = 0
    shape: tuple[int, ...] = ()
    stride: Side = 1
    pad: Side = 0
    dilation: Side = 1
    group: int = 1
    bias: bool = True
    activation: str = ""
    params: dict[str, Any] = {}


class ExerciseEntry(Work, frozen=True, kw_only=True):
    name: str
    op: str
    title: str = ""
    file: str = ""
    points: float = 0.0
    checks: Literal["full", "quick"] = "full"
    precision: tuple[str, ...] = ("fp32",)
    threshold: tuple[Threshold, ...] = ()
    count: tuple[CountLimit, ...] = ()
    hidden: tuple[Work, ...] = ()
    hints: dict[str, str] = {}


class Limits(_Entry, frozen=True):
    """Of one exercise of one student. seconds: those in which it waits for the device not among them; budget:
    seconds of samples a kernel; memory_mib: of the process that runs it, or what a CUDA kernel itself takes
    of the GPU's."""

    seconds: float = 120.0
    budget: float = 0.5
    memory_mib: int = 4096


class Assignment(_Entry, frozen=True):
    name: str
    title: str = ""
    device: Literal["cpu", "cuda"] = "cpu"
    threads: int = 1
    seed: int = 0
    deadline: datetime.datetime | None = None
    modules: tuple[str, ...] = MODULES
    limits: Limits = Limits()
    hints: dict[str, str] = {}
    exercise: tuple[ExerciseEntry, ...] = ()
    question: tuple[Asked, ...] = ()

    @property
    def points(self) -> float:
        """All that there are to have, but for what lies in a threshold above another."""
        of_exercises = sum(
            t.points + sum(x.points for x in t.threshold) + sum(x.points for x in t.count)
            for t in self.exercise
        )
        return of_exercises + sum(q.points for q in self.question)


def read(path: Path) -> Assignment:
    """The assignment in a file, or in the folder that has one. A folder beside it that is called as an
    exercise's `op`, and is a task (kernels.tasks), is what that kernel is for. Raises InputError, one
    sentence."""
    path = Path(path)
    file = path / FILE if path.is_dir() else path
    try:
        text = reading.text(file, toml.CHARACTERS * 4)
    except (OSError, reading.Unreadable) as error:
        raise InputError(f"there is no assignment to be read in {file}: {reading.words(error)}") from error
    try:
        made = msgspec.convert(_renamed(toml.read(text)), Assignment)
    except toml.UnreadableTomlError as error:
        raise InputError(f"{file} {error}") from error
    except msgspec.ValidationError as error:
        raise InputError(f"{file}: {error}") from error
    _check(made, file)
    tasks.learn(dict.fromkeys(file.absolute().parent / entry.op for entry in made.exercise))
    return made


def _renamed(held: dict[str, Any]) -> dict[str, Any]:
    """With `[[exercise]]` for `[[task]]`, as files of earlier versions call it."""
    older, own = held.pop("task", []), held.get("exercise", [])
    if older:
        held["exercise"] = [*older, *own] if isinstance(older, list) and isinstance(own, list) else older
    return held


def _check(made: Assignment, file: Path) -> None:
    if not made.exercise:
        raise InputError(f"{file} has no [[exercise]]; `course new` writes one to begin from")
    for what, names in (
        ("exercise", [t.name for t in made.exercise]),
        ("question", [q.name for q in made.question]),
    ):
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise InputError(f"{file}: there are two of {what} {twice[0]!r}; give one another name")
    for threshold in (x for t in made.exercise for x in t.threshold):
        if not threshold.ratio > 0:
            raise InputError(f"{file}: a threshold's ratio is above 0, not {threshold.ratio:g}")
    for limit in (x for t in made.exercise for x in t.count):
        if made.device != "cuda":
            raise InputError(f"{file}: a count is of CUDA kernels, and the assignment is for {made.device}")
        if limit.most < 0:
            raise InputError(f"{file}: the most of a count is 0 or above, not {limit.most:g}")
    for name in (exercise.name for exercise in made.exercise):
        if not _NAME.fullmatch(name):
            raise InputError(f"{file}: an exercise is called with letters, digits, `_` and `-`, not {name!r}")
    if (of := made.deadline) is not None and of.tzinfo is None:
        raise InputError(
            f"{file}: the deadline says no time zone; write {of.isoformat()}+01:00, with your own offset"
        )
    for question in made.question:
        if not 0 <= question.within < 1:
            raise InputError(
                f"{file}: question {question.name!r}: within is a part of the answer, from 0 to below 1 "
                f"(0.05: 5 % either way), not {question.within:g}"
            )
    limits = made.limits
    if min(limits.seconds, limits.budget) <= 0 or made.threads < 1 or limits.memory_mib < 0:
        raise InputError(f"{file}: seconds, budget and threads are above 0")
