"""Runs of whichever kind: begun, opened, copied."""

from __future__ import annotations

import datetime
import shutil
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from bench.results import packed, trust
from bench.results.folder import CannotMake, Folder
from bench.results.inside import files
from bench.results.kinds import Kind, any_kind, kinds, meant
from bench.results.records import CaseResult, Header
from bench.results.store import new_folder
from kernels.errors import InputError

H = TypeVar("H", bound=Header[Any, Any])
M = TypeVar("M", bound=CaseResult[Any])


def begin(kind: Kind[H, M], header: H, path: Path | None, runs: Path, command: str) -> Folder[H, M]:
    """A new one in `path` (None: a dated folder in `runs`), started now by `command`; going on with it runs
    the kernels that it names unasked. Raises InputError where it cannot be made."""
    stamp = datetime.datetime.now().astimezone()
    header = msgspec.structs.replace(header, command=command, created_at=stamp.isoformat(timespec="seconds"))
    job: Any = header.job
    try:
        folder = kind.create(path or new_folder(runs, stamp, kind.titled(job)), header)
    except CannotMake as error:
        if path is not None:
            raise
        # Nobody has named this folder: it is where runs are kept.
        where = Path(runs).absolute()
        raise InputError(
            f"{error.cannot}; allow writing to {where}, or start Kernelscope in another folder"
        ) from error
    trust.remember(folder.path, getattr(job, "kernel_dirs", ()))
    return folder


def open_folder(path: Path) -> Folder[Any, Any]:
    """path: a folder, or the file of a packed one. Raises InputError where there is none, or it is broken or
    of a newer version."""
    if packed.is_packed(path):
        path = packed.unpacked(path)
    kind = meant(path)
    if kind is None:
        if Path(path).is_file():
            raise InputError(f"{path} is a file; name the folder of {any_kind()}")
        if not Path(path).exists():
            raise InputError(
                f"{path} holds no run: there is no such folder; `runs list` shows those there are"
            )
        names = ", ".join(kind.file for kind in kinds())
        raise InputError(f"{path} holds no run: there is none of {names} in it")
    return kind.open(path)


def copy(source: Path, target: Path) -> Path:
    """Copy one to the new or empty folder `target`, files in the making left out; to a file that ends with
    ".zip", packed. A packed one is unpacked.

    Raises InputError where the source is none or has links that lead out of it, the target holds something
    or cannot be written.
    """
    held = open_folder(source)
    target = Path(target)
    try:
        if target.resolve().is_relative_to(held.path.resolve()):
            raise InputError(f"{target} lies in {source} itself; name a folder beside it")
        if target.suffix.lower() == packed.SUFFIX:
            if target.exists():
                raise InputError(f"{target} is there already; name a new file")
            packed.pack(held.path, target)
            return target
        if target.exists() and any(target.iterdir()):
            raise InputError(f"{target} holds something already; name an empty or a new folder")
        found = list(files(held.path))  # all of it is looked at before any of it is copied
        target.mkdir(parents=True, exist_ok=True)
        for path, name in found:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / name)
    except OSError as error:
        words = (error.strerror or "").lower() or "some of its files could not be read or written"
        raise InputError(f"cannot copy {source} to {target}: {words}") from error
    return target
