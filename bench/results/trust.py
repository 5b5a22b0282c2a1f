"""Whether the kernels that a record names are run without asking the user.

A kernel is a program, and a record (`run.json`, `ladder.json`) may come from anybody. Resuming a run executes
the kernels that it names only if the user recorded it on this machine and the kernels have not changed since,
or if the user has agreed. What was recorded is noted in the user's cache, which the author of a folder cannot
reach.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from kernels.cache import atomic_file, cache_dir
from kernels.errors import InputError

OPTION = "--trust-kernels"
MOST_FILES = 2000  # in a folder of kernels; one with more is asked about each time
MOST_NBYTES = 64 << 20  # of them all
MOST_KEPT = 1000  # runs that are remembered, the latest
_NAMED = 6  # files named in a sentence
_INCLUDE = re.compile(rb'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)


class _Recorded(msgspec.Struct):
    """A run of this user's: the kernel folders that it was started with, and the sha256 of every file."""

    folder: str
    dirs: tuple[str, ...]
    kernels: dict[str, str]


def remember(folder: Path, kernel_dirs: Sequence[str]) -> None:
    """The user has asked for these kernels in this run: going on with it asks no more while they stay the
    same. Nothing is kept of a run without any, or where the cache cannot be written (it is then asked)."""
    found = fingerprint(kernel_dirs) if kernel_dirs else None
    if found is None:
        return
    with contextlib.suppress(OSError), atomic_file(_entry(folder)) as temporary:
        temporary.write_bytes(msgspec.json.encode(_Recorded(str(_place(folder)), _dirs(kernel_dirs), found)))
    _forget_old()


def doubt(folder: Path, kernel_dirs: Sequence[str]) -> str:
    """Why the kernels that the record in `folder` names are not run unasked, as the first half of a sentence;
    "" where they may be."""
    if not kernel_dirs:
        return ""
    where = " and ".join(map(str, kernel_dirs))
    recorded = _recorded(folder, kernel_dirs)
    # Files that a stranger names are not read before the user agreed: there are some that never end.
    found = fingerprint(kernel_dirs) if recorded is not None else None
    if found is None or recorded is None:
        names = sorted({path.name for place in _dirs(kernel_dirs) for path in _files(Path(place))})
        of = f" ({', '.join(names[:_NAMED])}{', …' if len(names) > _NAMED else ''})" if names else ""
        return f"{folder} was not recorded by you on this machine, and has kernels of {where} run{of}"
    changed = sorted({Path(p).name for p in {*found, *recorded} if found.get(p) != recorded.get(p)})
    if not changed:
        return ""
    few = ", ".join(changed[:_NAMED]) + (", …" if len(changed) > _NAMED else "")
    return f"the kernels in {where} are not those that {folder} was recorded with (changed: {few})"


def ask(folder: Path, kernel_dirs: Sequence[str], trusted: bool) -> None:
    """Called before a run is resumed on the command line. Raises InputError if its kernels are in doubt and
    the user has not said that they are `trusted`; if the user has, that is remembered."""
    if not trusted and (reason := doubt(folder, kernel_dirs)):
        raise InputError(f"{reason}; read them, then {OPTION} runs them")
    remember(folder, kernel_dirs)


def fingerprint(kernel_dirs: Iterable[str]) -> dict[str, str] | None:
    """The sha256 of every file in the folders, and of what these include from outside them, by path; None
    where there are more than anybody's kernels."""
    found: dict[str, str] = {}
    left = MOST_NBYTES
    queue = [path for place in _dirs(kernel_dirs) for path in _files(Path(place))]
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
    for here, below, names in os.walk(folder):
        below[:] = [name for name in below if name != "__pycache__"]
        found += [Path(here, name) for name in names if os.path.isfile(os.path.join(here, name))]
        if len(found) > MOST_FILES:
            break
    return found


def _dirs(kernel_dirs: Iterable[str]) -> tuple[str, ...]:
    return tuple(str(Path(folder).expanduser().resolve()) for folder in kernel_dirs)


def _place(folder: Path) -> Path:
    return Path(folder).resolve()


def _kept() -> Path:
    return cache_dir() / "recorded"


def _entry(folder: Path) -> Path:
    return _kept() / f"{hashlib.sha256(os.fsencode(_place(folder))).hexdigest()[:32]}.json"


def _recorded(folder: Path, kernel_dirs: Sequence[str]) -> dict[str, str] | None:
    try:
        held = msgspec.json.decode(_entry(folder).read_bytes(), type=_Recorded)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    same = held.folder == str(_place(folder)) and held.dirs == _dirs(kernel_dirs)
    return held.kernels if same else None


def _forget_old() -> None:
    with contextlib.suppress(OSError):
        entries = sorted(_kept().glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
        for path in entries[:-MOST_KEPT]:
            path.unlink(missing_ok=True)
