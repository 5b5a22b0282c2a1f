"""The user's cache folder: writing files that appear whole or not at all (`atomic_file`), and small JSON
entries (`Store`).

While a file is written it has another name, `.name.xxxxxxxx.part`. If the process is killed then, that file
stays, and `clear_leftovers` removes it. An entry of a store has a kind and a key. The key is a mapping from
names to values that says what the entry depends on; only an equal key finds the entry. A broken entry, or one
of another version, is treated as if it were not there.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec
import platformdirs

from kernels.errors import KernelError, system_words

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

VARIABLE = "KERNELSCOPE_CACHE"


def cache_dir() -> Path:
    """The folder for files that can be made or downloaded again: the environment variable KERNELSCOPE_CACHE,
    else this program's folder in the system's cache folder. It may not exist yet. If it cannot be written (a
    home that is read-only, or is not there), a folder of this user's in the temporary folder, which is said
    once: processes that this one starts are told by the variable."""
    override = os.environ.get(VARIABLE)
    if override:
        return Path(override).expanduser()
    usual = platformdirs.user_cache_path("kernelscope", appauthor=False)
    if _writable(usual):
        return usual
    import logging

    instead = _temporary()
    os.environ[VARIABLE] = str(instead)
    os.environ.setdefault(
        "MPLCONFIGDIR", str(instead / "matplotlib")
    )  # which would say the same in two lines
    logging.getLogger("kernelscope.cache").warning(
        "%s cannot be written: what is kept for the next time lies in %s; %s names another folder",
        usual, instead, VARIABLE,
    )  # fmt: skip
    return instead


@functools.cache
def _writable(folder: Path) -> bool:
    """Whether a folder is there, or can be made, and files can be written in it."""
    for path in (folder, *folder.parents):
        try:
            if path.exists():
                return path.is_dir() and os.access(path, os.W_OK | os.X_OK)
        except OSError:  # in a folder that may not be looked into
            return False
    return False


def _temporary() -> Path:
    """This user's folder in the temporary folder. One of that name that somebody else made or may write into
    is not taken: compiled kernels are read from it."""
    import tempfile  # which takes milliseconds, and no other way here needs it

    own = os.getuid() if hasattr(os, "getuid") else "user"
    folder = Path(tempfile.gettempdir()) / f"kernelscope-{own}"
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if stat.S_ISDIR(found.st_mode) and (
            own == "user" or (found.st_uid, found.st_mode & 0o077) == (own, 0)
        ):
            return folder
    return Path(tempfile.mkdtemp(prefix="kernelscope-"))


OLD_S = 3600.0  # seconds after which an unfinished file is taken for one that nobody writes any more
_UNFINISHED = re.compile(r"\..+\.[a-z0-9_]{8}\.part")


def clear_leftovers(folder: Path, old_s: float = OLD_S) -> int:
    """Remove the unfinished files of killed processes in a folder and below it. Returns how many were
    removed. A file younger than `old_s` seconds stays: somebody may be writing it. Links to folders are not
    followed. Raises nothing for a file that cannot be removed."""
    removed = 0
    before = time.time() - old_s
    for here, _, names in os.walk(folder):
        for name in filter(_UNFINISHED.fullmatch, names):
            path = Path(here) / name
            with contextlib.suppress(OSError):
                if path.lstat().st_mtime < before:
                    path.unlink()
                    removed += 1
    return removed


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """A lock for `with`: only one process or thread at a time is inside such a block of this folder; others
    wait. The folder is created where it is missing. The lock is freed when the block or the process ends.
    Where the system has no file locks (Windows, some network drives) there is no protection. Raises OSError
    where the folder cannot be written."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("ab") as held:
        if fcntl is not None:
            with contextlib.suppress(OSError):  # a file system of a network may have none
                fcntl.flock(held, fcntl.LOCK_EX)
        yield


@contextmanager
def turn(lock: Path, done: Callable[[], bool], wait_s: float = 30.0) -> Iterator[None]:
    """For what is made once and takes a while, as `exclusive`; but nobody waits once it is `done`, nor for
    longer than wait_s: whoever holds the lock may be stopped, or hold it out of malice. lock: its file, in a
    folder that is made. Where that cannot be, nobody waits."""
    with contextlib.ExitStack() as stack:
        if fcntl is not None:
            with contextlib.suppress(OSError):
                lock.parent.mkdir(parents=True, exist_ok=True)
                held = stack.enter_context(lock.open("ab"))
                until = time.monotonic() + wait_s
                while not done() and time.monotonic() < until and not _locked(held):
                    time.sleep(0.05)
        yield


def _locked(file: BinaryIO) -> bool:
    """Whether this process holds its lock now. Raises OSError where the file system has no locks."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """For `with`: gives the path of an empty temporary file beside `path`; write the content there. If the
    block ends without an exception, the file is renamed to `path`; else it is removed.

    So after Ctrl-C or with a full disk the old file is there, or none, but never half a file; also if others
    write the same file. Folders that are missing are created. The file's permissions follow the umask. Raises
    OSError where the file cannot be written.
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
    """A folder of the cache with small JSON entries, one file each.

    name: of the folder in `cache_dir`. Each kind of entries has a folder below it. version: increase it when
    the meaning of entries changes; then no old entry is read. what: the content in words, for errors. most:
    how many entries are kept of each kind; `write` removes the oldest (0: all are kept).
    """

    name: str
    version: int
    what: str
    most: int = 0

    def folder(self) -> Path:
        """The folder of all its entries; it may not exist yet."""
        return cache_dir() / self.name

    def path(self, kind: str, key: Key) -> Path:
        """The path of an entry's file, whether it exists or not. Its name is a digest of version and key."""
        text = msgspec.json.encode([self.version, sorted(key.items())])
        return self.folder() / kind / f"{hashlib.sha256(text).hexdigest()[:32]}.json"

    def read(self, kind: str, key: Key, of: type[Value]) -> Value | None:
        """The value of the entry with this key, converted to the type `of`. None where there is none, or
        where it cannot be read or converted."""
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
        """Replace the value v of this key by how(v); v is None where there is none. of: the type of v. A lock
        makes sure that no change of another process is lost meanwhile. Raises as `write`."""
        folder = self.path(kind, key).parent
        try:
            with exclusive(folder):
                self.write(kind, key, how(self.read(kind, key, of)))
        except OSError as error:
            raise self._write_error(folder, error) from error

    def write(self, kind: str, key: Key, value: Any) -> None:
        """Keep `value`, anything that msgspec can write as JSON, under this key; it replaces an older value.
        Raises KernelError where the cache cannot be written."""
        target = self.path(kind, key)
        content = msgspec.json.format(
            msgspec.json.encode({"version": self.version, "key": dict(key), "value": value}), indent=1
        )
        try:
            with atomic_file(target) as temporary:
                temporary.write_bytes(content)
        except OSError as error:
            raise self._write_error(target.parent, error) from error
        if self.most:
            self._forget_old(target.parent)

    def _write_error(self, folder: Path, error: OSError) -> KernelError:
        """The error that says that nothing can be written to this folder, and what helps."""
        return KernelError(
            f"{self.what} cannot be kept in {folder} ({system_words(error)}); "
            "point KERNELSCOPE_CACHE at a folder that can be written"
        )

    def forget(self, kind: str, key: Key) -> None:
        """Remove the entry of this key, if there is one. Raises OSError where it cannot be removed."""
        self.path(kind, key).unlink(missing_ok=True)

    def _forget_old(self, folder: Path) -> None:
        """Remove all but the newest `most` entries of one kind."""
        with contextlib.suppress(OSError):  # another process may do so, too
            entries = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
            for path in entries[: -self.most]:
                path.unlink(missing_ok=True)
