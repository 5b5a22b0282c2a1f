"""Tasks: what a kernel can be written for beside the operators of `kernels.ops`. A task is one folder.

A folder with a `task.toml` (`spec`) and a reference (`reference`) is a task, called as the folder. Its record
(`record`) is one of an operator, with the sizes as fields: so whatever is done with an operator's kernels is
done with a task's. Its rungs lie beside the file, `NN_name.cu` and `NN_name.py` in one folder.

Those below this folder are shipped, and found by their name. A user's folder is found where it is named as a
folder of kernels (`registry.rungs(…, [folder])`, `--kernels`): the kernels in it are the user's.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from kernels.errors import InputError
from kernels.nearest import did_you_mean
from kernels.ops import OPS, Params
from kernels.tasks import record, spec
from kernels.tasks.record import TaskParams, forget, know, known
from kernels.tasks.spec import FILE, ROOT, Task, shipped

__all__ = [
    "FILE",
    "Task",
    "TaskParams",
    "find",
    "folder_of",
    "forget",
    "in_order",
    "is_known",
    "know",
    "learn",
    "record_of",
    "shipped",
]


def record_of(op: str) -> type[Params]:
    """The record of an operator or a task, by name. Raises InputError with the nearest name."""
    if op in OPS:
        return OPS[op]
    if op in known:
        return known[op]
    if op in shipped():
        return _shipped(op)
    raise InputError(
        f"no operator or task {op!r} in the ladder{did_you_mean(op, (*OPS, *known, *shipped()))}"
    )


def is_known(op: str) -> bool:
    """Whether there is an operator or a task of this name."""
    return op in OPS or op in known or op in shipped()


@lru_cache(maxsize=64)
def _shipped(name: str) -> type[TaskParams]:
    return record.of(spec.read(ROOT / name))


def in_order() -> list[type[TaskParams]]:
    """The shipped tasks as one learns them, the simple ones first."""
    return sorted(map(_shipped, shipped()), key=lambda of: of.task.spec.order)


def folder_of(op: str) -> Path | None:
    """The folder of a task, None of an operator."""
    of = record_of(op)
    return of.task.folder if issubclass(of, TaskParams) else None


def own_folder(op: str) -> Path | None:
    """The same of a task of the user's, which a command finds by its folder alone; None of a shipped one."""
    return None if op in shipped() else folder_of(op)


def learn(folders: Iterable[Path | str], broken: list[InputError] | None = None) -> None:
    """Know the tasks that these folders are, as far as they are tasks. Raises InputError for one that cannot
    be read; with a list `broken` the error is put there."""
    for folder in map(Path, folders):
        try:
            if (folder / FILE).is_file():
                know(spec.read(folder))
        except InputError as error:
            if broken is None:
                raise
            broken.append(error)


def find(named: str | Path) -> type[TaskParams]:
    """A task by its name, or by its folder (or the file in it). Raises InputError."""
    path = Path(named).expanduser()
    folder = path.parent if path.name == FILE else path
    if str(named) in shipped():
        return _shipped(str(named))
    if (folder / FILE).is_file():
        return know(spec.read(folder))
    if str(named) in known:
        return known[str(named)]
    hint = did_you_mean(str(named), shipped())
    raise InputError(
        f"{named} is no task: neither a folder with a {FILE}, nor one of the ladder's own{hint}; these are "
        f"{', '.join(shipped())}"
    )
