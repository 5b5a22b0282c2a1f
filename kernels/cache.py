"""The user's cache folder: files that appear whole or not at all, and small JSON entries (`Store`).

A file that a kill left unfinished has a name of its own (`.name.xxxxxxxx.part`), by which it is cleared. An
entry of a store has a kind, and a key of names and values that says what it depends on; only the very same
key finds it again. An entry that is broken or of another version does not count.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import platformdirs

from kernels.errors import KernelError, system_words

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def cache_dir() -> Path:
    """The folder for what can be made or downloaded again: KERNELSCOPE_CACHE, else the system's cache
    folder."""
    override = os.environ.get("KERNELSCOPE_CACHE")
    if override:
        return Path(override).expanduser()
    return platformdirs.user_cache_path("kernelscope", appauthor=False)


OLD_S = 3600.0  # after which a file in the making is one that nobody makes any more
_LEFT = re.compile(r"\..+\.[a-z0-9_]{8}\.part")


def clear_leftovers(folder: Path, old_s: float = OLD_S) -> int:
    """Remove unfinished files that kills have left in a folder and below it; returns how many. Files younger
    than `old_s`, which somebody may be writing, stay, and so do links."""
    removed = 0
    before = time.time() - old_s
    for here, _, names in os.walk(folder):
        for name in filter(_LEFT.fullmatch, names):
            path = Path(here) / name
            with contextlib.suppress(OSError):
                if path.lstat().st_mtime < before:
                    path.unlink()
                    removed += 1
    return removed


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
    """A temporary file beside `path`. It is renamed to `path` if the block ends without an exception, and
    removed otherwise.

    So Ctrl-C or a full disk leave the old file or none, even if others write the same file. Its permissions
    follow the umask. Raises OSError.
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


Key = Mapping[str, str]
Value = TypeVar("Value")
MOST_NBYTES = 64 << 20  # of an entry; a larger file is none of ours


@dataclass(frozen=True)
class Store:
    """A kind of entries in the cache. name: of its folder. version: increased when the meaning of entries
    changes, so that no old entry is read. what: its content in words, for errors. most: how many entries of a
    kind are kept; the oldest are removed (0: all are kept)."""

    name: str
    version: int
    what: str
    most: int = 0

    def folder(self) -> Path:
        """The folder of its entries."""
        return cache_dir() / self.name

    def path(self, kind: str, key: Key) -> Path:
        """The file of an entry, whether it exists or not."""
        text = msgspec.json.encode([self.version, sorted(key.items())])
        return self.folder() / kind / f"{hashlib.sha256(text).hexdigest()[:32]}.json"

    def read(self, kind: str, key: Key, of: type[Value]) -> Value | None:
        """The entry of this key; None where there is none that can be read."""
        path = self.path(kind, key)
        try:
            if path.stat().st_size > MOST_NBYTES:
                return None
            entry = msgspec.json.decode(path.read_bytes())
            if entry["key"] != dict(key) or entry["version"] != self.version:
                return None
            return msgspec.convert(entry["value"], of)
        except (OSError, msgspec.DecodeError, msgspec.ValidationError, KeyError, TypeError, ValueError):
            return None
        except RecursionError:  # lists within lists, as no entry of ours has them
            return None

    def change(self, kind: str, key: Key, of: type[Value], how: Callable[[Value | None], Value]) -> None:
        """Keep what `how` makes of the entry that is there; what others change at the same time is kept, too.
        Raises as `write`."""
        folder = self.path(kind, key).parent
        try:
            with alone(folder):
                self.write(kind, key, how(self.read(kind, key, of)))
        except OSError as error:
            raise self._unkept(folder, error) from error

    def write(self, kind: str, key: Key, value: Any) -> None:
        """Keep an entry. Raises KernelError where the cache cannot be written."""
        target = self.path(kind, key)
        content = msgspec.json.format(
            msgspec.json.encode({"version": self.version, "key": dict(key), "value": value}), indent=1
        )
        try:
            with atomic_file(target) as temporary:
                temporary.write_bytes(content)
        except OSError as error:
            raise self._unkept(target.parent, error) from error
        if self.most:
            self._forget_old(target.parent)

    def _unkept(self, folder: Path, error: OSError) -> KernelError:
        return KernelError(
            f"{self.what} cannot be kept in {folder} ({system_words(error)}); "
            "point KERNELSCOPE_CACHE at a folder that can be written"
        )

    def forget(self, kind: str, key: Key) -> None:
        """Remove an entry, if there is one."""
        self.path(kind, key).unlink(missing_ok=True)

    def _forget_old(self, folder: Path) -> None:
        with contextlib.suppress(OSError):  # another process may do so, too
            entries = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
            for path in entries[: -self.most]:
                path.unlink(missing_ok=True)
