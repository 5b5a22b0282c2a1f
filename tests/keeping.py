"""What compilers made of kernels, kept beside pytest's own cache: who runs the tests again waits for what has
changed since, and for nothing else. A name holds a digest of all that went in."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

from kernels.cache import atomic_file

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".pytest_cache" / "built"
OLD_S = 30 * 86_400.0  # nobody looks which of them are still asked for
# Whose words are not in the digest of a cubin: they compile it.
_WHO_COMPILES = ("kernels/nvrtc.py", "kernels/overlaps.py", "tests/kernels/ptx.py")


def digest(*parts: str | bytes) -> str:
    key = hashlib.sha256()
    for part in parts:
        held = part.encode() if isinstance(part, str) else part
        key.update(b"%d " % len(held) + held)
    return key.hexdigest()[:24]


def kept(name: str, make: Callable[[], bytes]) -> bytes:
    """What `make` gave under that name, in this run or one before."""
    _clear()
    path = FOLDER / name
    if not path.is_file():
        with atomic_file(path) as part:
            part.write_bytes(zlib.compress(make(), 1))
    return zlib.decompress(path.read_bytes())


@cache
def cubins() -> Path:
    """A folder for KERNELSCOPE_CACHE, of those who only compile."""
    _clear()
    name = "cache-" + digest(*((ROOT / file).read_bytes() for file in _WHO_COMPILES))
    for other in FOLDER.glob("cache-*"):
        if other.name != name:
            shutil.rmtree(other, ignore_errors=True)
    return FOLDER / name


@cache
def _clear() -> None:
    """Of what is old nothing stays."""
    before = time.time() - OLD_S
    for folder, _, names in os.walk(FOLDER):
        for path in (Path(folder) / name for name in names):
            try:
                if path.stat().st_mtime < before:
                    path.unlink()
            except FileNotFoundError:
                pass  # another worker was first


def forget() -> None:
    """What this process has looked at is looked at anew."""
    _clear.cache_clear()
    cubins.cache_clear()
