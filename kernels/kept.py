"""What is kept for the next run on a machine: small JSON files in a folder of the user's cache.

An entry stands under a kind and a key of names and values that says what it was found on; it is found again
by the very same key alone. One that is broken or of another version is none.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kernels.cache import alone, atomic_file, cache_dir
from kernels.errors import KernelError, system_words

Key = Mapping[str, str]
Value = TypeVar("Value")
MOST_NBYTES = 64 << 20  # of an entry; a larger file is none of ours


@dataclass(frozen=True)
class Store:
    """name: of its folder in the cache. version: of its entries, goes up where their meaning changes, so that
    no old one is read. what: it keeps, in words, for who is told that it cannot. most: entries of a kind,
    beyond which those that were written longest ago go (0: as many as there are)."""

    name: str
    version: int
    what: str
    most: int = 0

    def folder(self) -> Path:
        """Where entries are kept, beside the other caches."""
        return cache_dir() / self.name

    def path(self, kind: str, key: Key) -> Path:
        """The file of an entry, there or not."""
        text = msgspec.json.encode([self.version, sorted(key.items())])
        return self.folder() / kind / f"{hashlib.sha256(text).hexdigest()[:32]}.json"

    def read(self, kind: str, key: Key, of: type[Value]) -> Value | None:
        """The entry of this key; None where there is none that can be read."""
        path = self.path(kind, key)
        try:
            if path.stat().st_size > MOST_NBYTES:
                return None
            held = msgspec.json.decode(path.read_bytes())
            if held["key"] != dict(key) or held["version"] != self.version:
                return None
            return msgspec.convert(held["value"], of)
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
        """Keep an entry, whole or not at all. Raises KernelError where the cache cannot be written."""
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
