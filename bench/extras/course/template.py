"""A new assignment, one TOML that says what each entry means; and the copy that students are given."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from bench.extras.course import assignment as assignments
from bench.extras.course.assignment import FILE, Assignment
from bench.extras.course.records import REFERENCE
from bench.extras.course.submissions import ANSWERS
from bench.questions import ladder_plan
from bench.questions import rung_template as kernel_template
from bench.results.ladder_records import OF_FUNCTION
from bench.results.store import write_atomically
from kernels import registry, toml
from kernels.errors import InputError
from kernels.registry import SUFFIX
from kernels.tasks import FILE as TASK_FILE
from kernels.tasks import TaskParams, own_folder, record_of, spec

ABOUT = "README.md"  # of what is handed out
_RUNG = re.compile(r"(\d{2,})_([a-z][a-z0-9_]*)")
_TEXT = """\
# An assignment. `course handout` writes what students get: this file without hidden shapes and answers, and a
# kernel to begin from for each exercise. In that folder `course check` judges what they wrote.
name = "{name}"
title = "{title}"
# cpu: kernels in Python with NumPy. cuda: kernels in CUDA C++; students need no GPU, whoever grades does.
device = "{device}"
# Of a CPU kernel; each has as many.
threads = 1
# Inputs are drawn from it. Leave it away: then each class gets inputs that nobody knew before. With a number
# all gradings use the same inputs, and somebody who knows it could write down the answers.
# seed = 1
# What is handed in later is marked as late; what that costs is up to you. Write your own offset from UTC.
# deadline = 2026-11-30T23:59:00+01:00
# What a CPU kernel may import beside Python's own and what the kernel to begin from imports.
modules = ["numpy", "numba"]

[limits]  # of one exercise of one student
seconds = 120       # the time that it waits for the device is not counted
budget = 0.5        # seconds of samples a kernel, at most
memory_mib = 4096   # of the process that runs it (cpu); of the GPU, what a kernel itself takes (cuda)

# What a student is told, by what was found: stray_write, input_written, unwritten, nan, stale, remembers,
# race, pad, stride, bias, …, wrong; or by how it ended: crashed, timed_out, out_of_memory, unsupported,
# failed.
[hints]
stray_write = "You write where no output is: look at the last index of each loop."
unwritten = "Some elements of the output are never written."
pad = "Look at what your kernel reads at the border of the image."
timed_out = "Does every loop end? Try it with `course check` on a small shape first."

[[exercise]]
name = "{op}"
op = "{op}"
# Which problem: a model's node (model, node, batch), params of the operator, or of a conv its
# shape = [N, C, H, W, M, K] with stride, pad, dilation, group, bias, activation.
{problem}
points = 10          # for right answers on every shape, the hidden ones among them
checks = "full"      # quick: fewer of the small shapes on which each kernel is tried first
precision = ["fp32"] # what a kernel may compute in
# file = "90_*"      # where two exercises have one operator: which file is for this one

{thresholds}{counts}# Shapes that are judged and never told: what they do not say is as above.
[[exercise.hidden]]
{hidden}

# Answered in answers.toml, as in: why = "…". kind: text (read by a person), choice (with `choices` and the
# `answer`) or number (with the `answer`, and `within`: how far off it may be, as a part of it; 0.05 is 5 %).
[[question]]
name = "why"
text = "What bounds your kernel, arithmetic or memory? Name the figure that shows it."
points = 0
"""


_THRESHOLDS = """\
{words}
[[exercise.threshold]]
rung = "{rung}"
ratio = 0.9
points = 5
[[exercise.threshold]]
rung = "{rung}"
ratio = 2.0
points = 5

"""


_COUNTS = """\
# What it may cost in counts, which are the same on every machine: sectors (of global memory), wavefronts (of
# shared memory), instructions, divergent, barriers, atomics …; at most `most` times the "least" that there
# can be (of sectors and wavefronts), or `most` times the count of a rung that `of` names; without `of` the
# count.
[[exercise.count]]
what = "sectors"
most = 1.1
of = "least"
points = 5

"""


def write(folder: Path, op: str = "conv", device: str = "cpu", name: str = "") -> Path:
    """A new assignment in `folder`. Raises InputError where there is one already."""
    own = own_folder(op)
    first = registry.rungs(device, op)
    if not first and own is None:
        raise InputError(f"there is no rung of {op} on {device} to measure a kernel by")
    path = Path(folder) / FILE
    if path.exists():
        raise InputError(f"{path} is there already; name another folder")
    name = name or re.sub(r"\W+", "-", Path(folder).absolute().name).strip("-") or op
    problems = _problems(op)
    text = _TEXT.format(
        name=name, title=f"A {op} that is right, then fast", device=device, op=op,
        problem=problems["exercise"], hidden=problems["hidden"],
        thresholds=_thresholds(op, device, first[0].name if first else ""),
        counts=_COUNTS if device == "cuda" else "",
    )  # fmt: skip
    write_atomically(path, text.encode())
    if own is not None:
        _copy_task(own, path.parent / op)
    return path


def _thresholds(op: str, device: str, rung: str) -> str:
    """Two times to reach: of a rung, or where there is none of what says what is right, if that is timed."""
    record, beside = record_of(op), "ONNX Runtime"
    if issubclass(record, TaskParams):
        beside = ladder_plan.beside(record(**record.task.spec.time[0]), device)
        if beside.startswith(OF_FUNCTION.partition("{")[0]):
            beside = f"{record.task.file.name} itself"
    named = [f"a rung of the ladder that is timed beside it (`ladder {op}` shows them)"] * bool(rung)
    named += [f'"{REFERENCE}", which is {beside}'] * bool(beside)
    if not named:
        return ""
    told = f"A time to reach: how many times as fast as {', or as '.join(named)}. "
    told += "A threshold within the interval counts as reached."
    words = textwrap.fill(told, 110, initial_indent="# ", subsequent_indent="# ")
    return _THRESHOLDS.format(words=words, rung=rung or REFERENCE)


def _copy_task(own: Path, to: Path) -> list[Path]:
    """What a task is, without its kernels. The files that were written."""
    task = spec.read(own)
    written = [to / name for name in dict.fromkeys((TASK_FILE, task.file.name, *dict(task.models)))]
    for path in written:
        if path.resolve() != (own / path.name).resolve():
            write_atomically(path, (own / path.name).read_bytes())
    return written


def _problems(op: str) -> dict[str, str]:
    """What a first exercise of this operator is judged on, and a hidden shape; of one of kernels.tasks sizes
    that its own file names."""
    record = record_of(op)
    if not issubclass(record, TaskParams):
        return dict(toml.read((Path(__file__).parent / "problems.toml").read_text(encoding="utf-8"))[op])
    spec = record.task.spec
    timed, hidden = (
        f"params = {{{', '.join(f'{name} = {size}' for name, size in sizes.items())}}}"
        for sizes in (spec.time[0], (*spec.time[1:], spec.check[-1])[0])
    )
    return {"exercise": timed, "hidden": hidden}


_HIDDEN = re.compile(r"^\s*\[\[\s*(?:exercise|task)\s*\.\s*hidden\s*\]\]")
_TABLE = re.compile(r"^\s*\[")
_QUESTION = re.compile(r"^\s*\[\[\s*question\s*\]\]")
_ANSWER = re.compile(r"^\s*(answer|within|seed)\s*=")


def without_secrets(text: str) -> str:
    """An assignment's text as students get it: hidden shapes, answers and the seed left out."""
    kept: list[str] = []
    hidden = question = False
    for line in text.splitlines(keepends=True):
        if _TABLE.match(line):
            hidden, question = bool(_HIDDEN.match(line)), bool(_QUESTION.match(line))
            while hidden and kept and kept[-1].lstrip().startswith("#"):
                kept.pop()  # what is said above a hidden shape is of it
        if hidden or (_ANSWER.match(line) and (question or line.lstrip().startswith("seed"))):
            continue
        kept.append(line)
    return "".join(kept)


def hand_out(assignment: Path, folder: Path) -> list[Path]:
    """What students get, into a new or empty folder. Raises InputError."""
    made = assignments.read(assignment)
    file = Path(assignment) / FILE if Path(assignment).is_dir() else Path(assignment)
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} holds something already; name an empty or a new folder")
    text = without_secrets(file.read_text(encoding="utf-8"))
    path = folder / FILE
    write_atomically(path, text.encode())
    copied: list[Path] = []
    told = assignments.read(path)
    if any(exercise.hidden for exercise in told.exercise) or any(q.answer is not None for q in told.question):
        path.unlink()
        raise InputError(
            f"{file} writes its hidden shapes or answers in a way that cannot be left out; write each hidden "
            "shape below [[exercise.hidden]], and each answer on a line of its own"
        )
    for op in dict.fromkeys(exercise.op for exercise in made.exercise):
        if (own := own_folder(op)) is not None:
            copied += _copy_task(own, folder / op)
    kernels = _kernels(made, folder)
    about = folder / ABOUT
    write_atomically(about, _about(told, kernels).encode())
    return [path, about, *copied, *kernels]


def _kernels(made: Assignment, folder: Path) -> list[Path]:
    """A kernel to begin from for each exercise, under a name that its pattern fits. Raises InputError."""
    found: list[Path] = []
    for exercise in made.exercise:
        if not exercise.file and any(
            exercise.op == other.op for other in made.exercise[: made.exercise.index(exercise)]
        ):
            continue  # one file serves both
        path = kernel_template.write(exercise.op, made.device, folder)
        if exercise.file and not fnmatchcase(path.name, exercise.file):
            meant = re.sub(r"[*?]+", "90_mine" if exercise.file[0] in "*?" else "mine", exercise.file)
            fitting = _RUNG.match(meant)
            path.unlink()
            if fitting is None:
                raise InputError(
                    f"exercise {exercise.name!r}: no kernel can be called {exercise.file!r}; a kernel's file "
                    'has `_` and a name in small letters: file = "90_*"'
                )
            first = registry.rungs(made.device, exercise.op)[0]
            rung = replace(first, number=int(fitting[1]), name=fitting[2], user=True)
            path = folder / f"{fitting[0]}{SUFFIX[made.device]}"
            rung = replace(rung, path=path)
            write_atomically(path, kernel_template.of(rung).encode())
        found.append(path)
    return found


def _about(told: Assignment, kernels: Sequence[Path]) -> str:
    """What a student is told first."""
    lines = [f"# {told.title or told.name}", ""]
    if told.deadline is not None:
        lines += [f"Due: {told.deadline.isoformat(sep=' ')}", ""]
    lines += [f"Write your kernel into {', '.join(f'`{path.name}`' for path in kernels)}. In this folder", ""]
    lines += ["    kernelscope course check", ""]
    of = {
        "times": any(exercise.threshold for exercise in told.exercise),
        "counts": any(exercise.count for exercise in told.exercise),
    }
    reaches = " and ".join(words for words, some in of.items() if some)
    says = f"says whether it is right{f', and which {reaches} it reaches' if reaches else ''}."
    if of["times"] and told.device == "cuda":
        says += " Times need a GPU; the rest does not."
    lines += [f"{says} Hidden shapes are judged when it is graded."]
    if told.question:
        lines += ["", f"Answer these questions in a file `{ANSWERS}`, a line each:", ""]
        for question in told.question:
            example = '"…"' if question.kind != "number" else "0"
            choices = f" ({', '.join(question.choices)})" if question.choices else ""
            lines.append(f"- `{question.name} = {example}`: {question.text}{choices}")
    return "\n".join([*lines, ""])
