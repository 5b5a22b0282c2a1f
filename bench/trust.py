"""Whether the kernels that a record names are run without asking.

A kernel is a program, and a record (`run.json`, `ladder.json`) may come from anybody: going on with it runs
what it names only where the user recorded it on this machine and the kernels are what they were then, or has
agreed. What was recorded is kept in the user's cache, out of reach of whoever wrote the folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from kernels.errors import InputError
from models.cache import atomic_file, cache_dir

OPTION = "--trust-kernels"
MOST_FILES = 2000  # in a folder of kernels; one with more is asked about each time
MOST_NBYTES = 64 << 20  # of them all
MOST_KEPT = 1000  # runs that are remembered, the latest
_NAMED = 6  # files named in a sentence
_INCLUDE = re.compile(rb'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)


class _Recorded(msgspec.Struct):
    """A run of this user's: the sha256 of every file of the kernel folders that it was started with."""

    folder: str
    kernels: dict[str, str]


def remember(folder: Path, kernel_dirs: Sequence[str]) -> None:
    """The user has asked for these kernels in this run: going on with it asks no more while they stay the
    same. Nothing is kept of a run without any, or where the cache cannot be written (it is then asked)."""
    found = fingerprint(kernel_dirs) if kernel_dirs else None
    if found is None:
        return
    with contextlib.suppress(OSError), atomic_file(_entry(folder)) as temporary:
        temporary.write_bytes(msgspec.json.encode(_Recorded(str(_place(folder)), found)))
    _forget_old()


def doubt(folder: Path, kernel_dirs: Sequence[str]) -> str:
    """Why the kernels that the record in `folder` names are not run unasked, as the first half of a sentence;
    "" where they may be."""
    if not kernel_dirs:
        return ""
    found, recorded = fingerprint(kernel_dirs), _recorded(folder)
    where = " and ".join(map(str, kernel_dirs))
    if found is None or recorded is None:
        names = [] if found is None else sorted({Path(path).name for path in found})
        of = f" ({', '.join(names[:_NAMED])}{', …' if len(names) > _NAMED else ''})" if names else ""
        return f"{folder} was not recorded by you on this machine, and has kernels of {where} run{of}"
    changed = sorted({Path(p).name for p in {*found, *recorded} if found.get(p) != recorded.get(p)})
    if not changed:
        return ""
    few = ", ".join(changed[:_NAMED]) + (", …" if len(changed) > _NAMED else "")
    return f"the kernels in {where} are not those that {folder} was recorded with (changed: {few})"


def ask(folder: Path, kernel_dirs: Sequence[str], trusted: bool) -> None:
    """Before a run is gone on with on the command line. Raises InputError where its kernels are in doubt and
    the user has not said that they are `trusted`; where he has, that is remembered."""
    if not trusted and (reason := doubt(folder, kernel_dirs)):
        raise InputError(f"{reason}; read them, then {OPTION} runs them")
    remember(folder, kernel_dirs)


def fingerprint(kernel_dirs: Iterable[str]) -> dict[str, str] | None:
    """The sha256 of every file in the folders, and of what these include from outside them, by path; None
    where there are more than anybody's kernels."""
    found: dict[str, str] = {}
    left = MOST_NBYTES
    queue = [path for folder in kernel_dirs for path in _files(Path(folder).expanduser().resolve())]
    while queue:
        path = queue.pop()
        if str(path) in found:
            continue
        try:
            left -= path.stat().st_size
            if len(found) >= MOST_FILES or left < 0:
                return None
            data = path.read_bytes()
        except OSError:
            return None
        found[str(path)] = hashlib.sha256(data).hexdigest()
        for name in _INCLUDE.findall(data):
            beside = Path(os.path.normpath(path.parent / os.fsdecode(name)))
            if beside.is_file():
                queue.append(beside)
    return found


def _files(folder: Path) -> list[Path]:
    found: list[Path] = []
    for path in folder.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            found.append(path)
            if len(found) > MOST_FILES:
                break
    return found


def _place(folder: Path) -> Path:
    return Path(folder).resolve()


def _kept() -> Path:
    return cache_dir() / "recorded"


def _entry(folder: Path) -> Path:
    return _kept() / f"{hashlib.sha256(os.fsencode(_place(folder))).hexdigest()[:32]}.json"


def _recorded(folder: Path) -> dict[str, str] | None:
    try:
        held = msgspec.json.decode(_entry(folder).read_bytes(), type=_Recorded)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return held.kernels if held.folder == str(_place(folder)) else None


def _forget_old() -> None:
    with contextlib.suppress(OSError):
        entries = sorted(_kept().glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
        for path in entries[:-MOST_KEPT]:
            path.unlink(missing_ok=True)
