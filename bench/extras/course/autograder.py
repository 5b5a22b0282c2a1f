"""The zip with which Gradescope grades each student: its two scripts, the assignment, and this program as it
stands here, so that nothing but packages of the registry is installed there."""

from __future__ import annotations

import io
import re
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

from bench.extras.course import assignment as assignments
from bench.extras.course import exercises
from bench.extras.course.assignment import FILE, Assignment
from bench.results.store import write_atomically
from bench.words import version
from kernels.environment import PACKAGED, ROOT
from kernels.errors import InputError
from kernels.tasks import FILE as TASK_FILE

SCRIPTS = ("setup.sh", "run_autograder", "Containerfile")
INSIDE = "lib/kernelscope"
# Of the program what grades; the window is nobody's there.
_FOLDERS = ("bench", "engine", "kernels", "models")
_FILES = ("main.py", "pyproject.toml", "LICENSE")
_OF_THE_WINDOW = re.compile(r"pyside6|pyqtgraph|qtawesome", re.IGNORECASE)
_LEFT_OUT = re.compile(r"(^|/)(\.|__pycache__/)|\.pyc$")
_UNFIT = re.compile(r"[^\w-]+")
_DATE = (1980, 1, 1, 0, 0, 0)  # equal content makes equal bytes


def write(assignment: Path, out: Path | None = None) -> Path:
    """The zip for an assignment; where it lies. Raises InputError."""
    made = assignments.read(assignment)
    exercises.job_of(made)  # what cannot be graded is told here, and not there
    if made.device != "cpu":
        raise InputError(
            "Gradescope's machines have no GPU; grade this assignment by `course grade` where there is one"
        )
    if models := sorted({exercise.model for exercise in made.exercise if exercise.model.endswith(".onnx")}):
        raise InputError(f"{models[0]} lies here and not on Gradescope; write the problem as shape or params")
    out = out or Path(f"autograder-{_UNFIT.sub('-', made.name)}.zip")
    if out.suffix != ".zip":
        raise InputError(f"{out} is no .zip file, which Gradescope takes alone")
    file = Path(assignment) / FILE if Path(assignment).is_dir() else Path(assignment)
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted([*_scripts(), (FILE, file.read_bytes()), *_own_tasks(made), *_program()]):
            info = zipfile.ZipInfo(name, _DATE)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (0o100755 if name in SCRIPTS[:2] else 0o100644) << 16
            archive.writestr(info, data)
    write_atomically(out, held.getvalue())
    return out


def _scripts() -> Iterator[tuple[str, bytes]]:
    for name in SCRIPTS:
        yield name, (Path(__file__).parent / "gradescope" / name).read_bytes()
    needed = [*version.requirements(), *version.requirements("cpu"), *_numba()]
    wanted = [line for line in needed if not _OF_THE_WINDOW.match(line)]
    yield "requirements.txt", "".join(f"{line}\n" for line in wanted).encode()


def _own_tasks(made: Assignment) -> Iterator[tuple[str, bytes]]:
    """The files of the teacher's own tasks, beside the assignment."""
    for exercise in exercises.job_of(made).exercises:
        if exercise.text:
            of = {TASK_FILE: exercise.text.encode(), **exercise.models}
            if exercise.reference:
                of[exercise.task.file.name] = exercise.reference.encode()
            yield from ((f"{exercise.op}/{name}", data) for name, data in of.items())


def _numba() -> list[str]:
    """What compiles kernels of the CPU."""
    found: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
        "dependency-groups"
    ]["numba"]
    return found


def _program() -> Iterator[tuple[str, bytes]]:
    """The package as a wheel has it."""
    package = ROOT.parent if PACKAGED else ROOT / "kernelscope"
    for path in sorted(package.glob("*.py*")):
        if path.is_file():
            yield f"{INSIDE}/{path.name}", path.read_bytes()
    for name in _FILES:
        yield f"{INSIDE}/_program/{name}", (ROOT / name).read_bytes()
    yield f"{INSIDE}/_program/commit.txt", f"{version.commit()}\n".encode()
    for folder in _FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.is_file() and not _LEFT_OUT.search(name):
                yield f"{INSIDE}/_program/{name}", path.read_bytes()
