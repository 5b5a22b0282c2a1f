"""What a class handed in: a folder a student, or a file a student; each task's kernel found by its header.

Nothing of it is run here, and nothing that is wrong with one student's is another's: what cannot be read is
told of the task that it would have been for. To be judged a kernel is copied under a number and a name that
are free (`staged`): whatever its file is called, two students' `90_mine` never meet, and none meets a rung of
the ladder.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from bench.extras.course.records import NAME, NUMBER, GradeJob, Task, fit
from kernels.errors import InputError, KernelError, system_words
from kernels.header import parse
from kernels.registry import SUFFIX, SUFFIXES, is_rung_file

FILE_NBYTES = 1 << 20
MOST_FILES = 200
ANSWERS = "answers.toml"
# The files that a kernel may lean on: they travel with it.
_HELPERS = {"cuda": (".cuh", ".h"), "cpu": ()}
_NUMBERED = re.compile(r"^([ \t#*]*)rung[ \t]*=[ \t]*\d+", re.MULTILINE)
_NAMED = re.compile(r'^([ \t#*]*)name[ \t]*=[ \t]*"[^"\n]*"', re.MULTILINE)


@dataclass(frozen=True)
class HandedIn:
    """One student's. files: by task the file's name and what is to be judged; helpers: by name; problems: by
    task why there is nothing to judge; answers: to the questions."""

    student: str
    files: dict[str, tuple[str, str]] = field(default_factory=dict)
    helpers: dict[str, str] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    answers_problem: str = ""

    def staged(self, job: GradeJob) -> dict[str, str]:
        """The files to be judged by relative name, a folder a task."""
        made = {}
        for task, (file, text) in self.files.items():
            made[f"{task}/{NUMBER}_{NAME}{Path(file).suffix}"] = renamed(text)
            made |= {f"{task}/{name}": held for name, held in self.helpers.items()}
        return made


def renamed(text: str) -> str:
    """The text of a rung under the name that it is judged by, each line where it was."""
    text = _NUMBERED.sub(rf"\g<1>rung = {NUMBER}", text, count=1)
    return _NAMED.sub(rf'\g<1>name = "{NAME}"', text, count=1)


def students(folder: Path, job: GradeJob) -> tuple[HandedIn, ...]:
    """All that was handed in, by student's name. Raises InputError where there is nothing."""
    folder = Path(folder)
    try:
        entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith((".", "_")))
    except OSError as error:
        raise InputError(f"the submissions {folder} cannot be read: {system_words(error)}") from error
    found: dict[str, HandedIn] = {}
    for entry in entries:
        if entry.is_dir():
            handed = of_files(fit(entry.name), _below(entry), job)
        elif entry.suffix in SUFFIXES[job.device]:
            handed = of_files(fit(entry.stem), [entry], job)
        else:
            continue
        if handed.student in found:
            raise InputError(f"two submissions in {folder} are both called {handed.student!r}; rename one")
        found[handed.student] = handed
    if not found:
        raise InputError(
            f"there is no submission in {folder}: a folder or a {SUFFIX[job.device]} file a student"
        )
    return tuple(found.values())


def _below(folder: Path) -> list[Path]:
    """The files of a student's folder, links and what is hidden left out."""
    found: list[Path] = []
    queue = [folder]
    while queue and len(found) < MOST_FILES:
        try:
            entries = sorted(queue.pop(0).iterdir())
        except OSError:
            continue
        for entry in entries:
            if entry.is_symlink() or entry.name.startswith(".") or entry.name == "__pycache__":
                continue
            (queue if entry.is_dir() else found).append(entry)
    return found[:MOST_FILES]


def of_files(student: str, paths: Sequence[Path], job: GradeJob) -> HandedIn:
    """One student's, out of these files."""
    handed = HandedIn(student)
    suffix = SUFFIX[job.device]
    kernels: list[tuple[str, str, str]] = []  # operator, file's name, text
    broken: list[str] = []
    others: list[str] = []  # of Python that is no kernel for this device
    for path in paths:
        if path.name == ANSWERS:
            _answers(handed, path)
            continue
        helper = path.suffix in _HELPERS[job.device]
        if not helper and path.suffix not in SUFFIXES[job.device]:
            continue
        try:
            text = _text(path)
            if helper or path.name.startswith("_"):
                handed.helpers[path.name] = text
            elif is_rung_file(job.device, path.name, text):
                kernels.append((parse(Path(path.name), job.device, text)["op"], path.name, text))
            else:
                others.append(path.name)
        except KernelError as error:
            broken.append(str(error))
    taken: set[str] = set()
    for task in job.tasks:
        fitting = [k for k in kernels if k[0] == task.op and (not task.file or fnmatch(k[1], task.file))]
        if len(fitting) == 1:
            handed.files[task.name] = fitting[0][1:]
            taken.add(fitting[0][1])
        else:
            handed.problems[task.name] = _problem(task, [k[1] for k in fitting], broken, suffix, others)
    return handed


def _problem(
    task: Task, names: Sequence[str], broken: Sequence[str], suffix: str, others: Sequence[str]
) -> str:
    if names:
        return f"there are {len(names)} kernels for {task.op}, and one is wanted: {', '.join(names)}"
    if broken:
        return "; ".join(broken)
    wanted = f" called {task.file}" if task.file else ""
    nothing = f"no {suffix} file{wanted} for {task.op} was handed in"
    if not others:
        return nothing
    be = "is no kernel for this device" if len(others) == 1 else "are no kernels for this device"
    return f"{nothing}; {', '.join(others)} {be}: for CUDA the header of a .py names its language"


def _answers(handed: HandedIn, path: Path) -> None:
    try:
        handed.answers.update(tomllib.loads(_text(path)))
    except (KernelError, tomllib.TOMLDecodeError) as error:
        object.__setattr__(handed, "answers_problem", f"{path.name} cannot be read: {error}")


def _text(path: Path) -> str:
    """Raises KernelError, one sentence, with the file's name alone: the rest of its path is the teacher's."""
    try:
        if path.stat().st_size > FILE_NBYTES:
            raise KernelError(f"{path.name}: it is larger than {FILE_NBYTES >> 20} MiB")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise KernelError(f"{path.name}: it is no UTF-8 text") from None
    except OSError as error:
        raise KernelError(f"{path.name}: it cannot be read: {system_words(error)}") from None
