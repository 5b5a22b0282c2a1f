"""Names of files in a record, which may only lead into the folder of that record.

A record may come from anybody. A name in it never leads out of its folder: it may not be absolute, contain
`..`, or go through a link. And what it names has to be a file, not a pipe or a device that never ends.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath

from kernels.errors import InputError, system_words


def inside(folder: Path, name: str) -> Path:
    """The path in `folder` that a record calls `name`, there or not. Raises InputError, a sentence, where it
    lies anywhere else or is no regular file."""
    folder = Path(folder)
    named(folder, name)
    path = folder / name
    try:
        root, real = folder.resolve(), path.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"the record in {folder} names a file that cannot be found: {name!r}") from error
    if not real.is_relative_to(root):
        raise InputError(f"the record in {folder} names a file outside it ({name!r} leads to {real})")
    try:
        held = path.stat()
    except FileNotFoundError:
        return path
    except OSError as error:
        words = system_words(error)
        raise InputError(f"the record in {folder} names {name!r}, which cannot be read: {words}") from error
    if not stat.S_ISREG(held.st_mode):
        raise InputError(f"{path} is no file ({kind(held.st_mode)}), so it is not read")
    return path


def named(folder: Path, name: str) -> None:
    """Raises InputError for a name that leads out of a folder by itself, on any system."""
    windows = PureWindowsPath(name)
    parts = (*PurePosixPath(name).parts, *windows.parts)
    if not name or "\0" in name or os.path.isabs(name) or windows.drive or windows.root or ".." in parts:
        raise InputError(f"the record in {folder} names a file outside it: {name!r}")


def kind(mode: int) -> str:
    """What else than a file something is, in words."""
    for test, words in (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
    ):
        if test(mode):
            return words
    return "something else"


def own_parts(folder: Path, names: Iterable[str]) -> None:
    """Raises InputError where a part of a run's folder is a link that leads out of it, or no file or folder:
    what is written into the run would be written elsewhere."""
    root = Path(folder).resolve()
    for name in names:
        path = Path(folder) / name
        try:
            held = path.lstat()
            real = path.resolve()
            mode = real.stat().st_mode
        except FileNotFoundError:
            continue
        except (OSError, RuntimeError) as error:
            raise InputError(f"{path} cannot be read: {error}") from error
        if stat.S_ISLNK(held.st_mode) and not real.is_relative_to(root):
            raise InputError(f"{path} is a link that leads out of the folder, to {real}; remove it")
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise InputError(f"{path} is no file ({kind(mode)}), so nothing is read from it; remove it")


def files(folder: Path) -> Iterator[tuple[Path, PurePosixPath]]:
    """Every file below a run's folder with its name in there, those in the making (`.…`) left out. Raises
    InputError for a link that leads out of the folder or to another folder, and for what is no file."""
    waiting = [(Path(folder), PurePosixPath())]
    while waiting:
        here, below = waiting.pop()
        for path in sorted(here.iterdir()):
            name = below / path.name
            if path.name.startswith("."):
                continue
            if path.is_dir():
                if path.is_symlink():
                    raise InputError(f"{path} is a link to a folder; remove it, or put the folder there")
                waiting.append((path, name))
            elif inside(folder, str(name)).exists():  # no longer, where it was in the making
                yield path, name
