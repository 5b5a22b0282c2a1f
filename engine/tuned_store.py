"""What was measured once on a machine and is kept for the next run: small JSON files in the user's cache.

An entry stands under a kind ("reference", "rungs") and a key of names and values that says what it was
measured on; it is found again by the very same key alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kernels.cache import atomic_file, cache_dir
from kernels.errors import KernelError

Key = Mapping[str, str]
Value = TypeVar("Value")
VERSION = 1  # of the entries: goes up where their meaning changes, so that no old one is read


def folder() -> Path:
    """Where entries are kept, beside the other caches."""
    return cache_dir() / "tuned"


def path(kind: str, key: Key) -> Path:
    """The file of an entry, there or not."""
    text = msgspec.json.encode([VERSION, sorted(key.items())])
    return folder() / kind / f"{hashlib.sha256(text).hexdigest()[:32]}.json"


def read(kind: str, key: Key, of: type[Value]) -> Value | None:
    """The entry of this key; None where there is none that can be read."""
    try:
        data = path(kind, key).read_bytes()
        held = msgspec.json.decode(data)
        if held["key"] != dict(key) or held["version"] != VERSION:
            return None
        return msgspec.convert(held["value"], of)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError, KeyError, TypeError, UnicodeDecodeError):
        return None


def write(kind: str, key: Key, value: Any) -> None:
    """Keep an entry, whole or not at all. Raises KernelError where the cache cannot be written."""
    target = path(kind, key)
    content = msgspec.json.format(
        msgspec.json.encode({"version": VERSION, "key": dict(key), "value": value}), indent=1
    )
    try:
        with atomic_file(target) as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        raise KernelError(
            f"what was tuned cannot be kept in {target.parent} ({error.strerror}); "
            "point KERNELSCOPE_CACHE at a folder that can be written"
        ) from error


def forget(kind: str, key: Key) -> None:
    """Remove an entry, if there is one."""
    path(kind, key).unlink(missing_ok=True)
