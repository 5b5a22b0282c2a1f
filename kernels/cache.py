"""The user's cache folder, and files that appear there whole or not at all.

What a kill leaves of such a file has a name of its own (`.name.xxxxxxxx.part`), by which it is cleared.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def cache_dir() -> Path:
    """Folder for what can be made or downloaded again: KERNELSCOPE_CACHE, else the system's place for it."""
    override = os.environ.get("KERNELSCOPE_CACHE")
    if override:
        return Path(override).expanduser()
    return platformdirs.user_cache_path("kernelscope", appauthor=False)


OLD_S = 3600.0  # after which a file in the making is one that nobody makes any more
_LEFT = re.compile(r"\..+\.[a-z0-9_]{8}\.part")


def clear_leftovers(folder: Path, old_s: float = OLD_S) -> int:
    """Remove what kills have left of files in the making, in a folder and those below it; how many there
    were. Those that somebody may be writing just now stay, and so do links."""
    found = 0
    before = time.time() - old_s
    for here, _, names in os.walk(folder):
        for name in filter(_LEFT.fullmatch, names):
            path = Path(here) / name
            with contextlib.suppress(OSError):
                if path.lstat().st_mtime < before:
                    path.unlink()
                    found += 1
    return found


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Nobody else who asks for this folder is within this block at the same time; the end of a process ends
    its block. Where the system has no such locks, others may be. Raises OSError where the folder cannot be
    written."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("ab") as held:
        if fcntl is not None:
            with contextlib.suppress(OSError):  # a file system of a network may have none
                fcntl.flock(held, fcntl.LOCK_EX)
        yield


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A temporary file beside `path`, renamed to it when the block ends well and removed otherwise.

    Ctrl-C and a full disk thus leave either the old file or none, whoever else writes the same one. It may be
    read by whom the umask lets. Raises OSError as the system gives it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        temporary.touch(exist_ok=False)
        yield temporary
        with temporary.open("r+b") as stream:
            os.fsync(stream.fileno())  # a rename must not overtake the bytes it promises
        temporary.replace(path)
    finally:
        with contextlib.suppress(OSError):  # why it could not be made is said already
            temporary.unlink(missing_ok=True)
