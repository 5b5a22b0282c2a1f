"""The user's cache folder, and files that appear there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs


def cache_dir() -> Path:
    """Folder for what can be made or downloaded again: KERNELSCOPE_CACHE, else the system's place for it."""
    override = os.environ.get("KERNELSCOPE_CACHE")
    if override:
        return Path(override).expanduser()
    return platformdirs.user_cache_path("kernelscope", appauthor=False)


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A temporary file beside `path`, renamed to it when the block ends well and removed otherwise.

    Ctrl-C and a full disk thus leave either the old file or none. Raises OSError as the system gives it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb") as stream:
            os.fsync(stream.fileno())  # a rename must not overtake the bytes it promises
        temporary.chmod(0o644)  # mkstemp makes files private; a shared cache is meant to be read
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
