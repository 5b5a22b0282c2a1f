"""Whether compiled CPU rungs can run here: they need Numba.

This module does not import Numba, which takes longer than the window takes to start. A separate process tries
it once (kernels.cpu.trial); the result is kept as long as the packages stay the same.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from kernels import confine
from kernels.cache import atomic_file, cache_dir
from kernels.environment import for_children

PACKAGES = ("numba", "llvmlite", "numpy")
TRIED = "from kernels.cpu import trial; trial.run()"
WAIT_S = 120.0


def folder() -> Path:
    """Where compiled functions are kept: KERNELSCOPE_COMPILED, else in the cache."""
    override = os.environ.get("KERNELSCOPE_COMPILED")
    return Path(override).expanduser() if override else cache_dir() / "compiled"


def object_files() -> Path:
    """Where this process writes compiled functions. One that runs a user's kernels has a folder of its own
    beside ours: what such a kernel writes there, no process of ours loads."""
    return confine.writable_cache() if confine.forbidden() else folder()


def places() -> tuple[Path, ...]:
    """Where this process looks for compiled functions: among ours, which no user's kernel can write, and then
    where it writes itself. A net with one kernel of a user has many of ours, compiled long before."""
    return tuple(dict.fromkeys((folder(), object_files())))


def known() -> bool:
    """Whether the result for these packages is known already."""
    return not any(importlib.util.find_spec(name) is None for name in PACKAGES[:2]) and _kept().is_file()


def _kept() -> Path:
    return folder() / f"tried-{_packages()}"


@functools.cache
def unavailable() -> str | None:
    """Why compiled rungs cannot run here, in words that follow "because"; None if they can."""
    for name in PACKAGES[:2]:
        if importlib.util.find_spec(name) is None:
            return f"the package {name} is not installed"
    try:
        cached = _kept()
        if cached.is_file():
            return cached.read_text(encoding="utf-8") or None
    except OSError:
        cached = None
    if confine.forbidden():
        return None  # it may start no process to try it: whoever judges it has
    reason = _tried()
    if cached is None:
        return reason or None
    try:
        with atomic_file(cached) as file:
            file.write_text(reason, encoding="utf-8")
    except OSError:
        pass  # it is tried anew the next time
    return reason or None


def _packages() -> str:
    """A digest of the versions of the packages and of Python."""
    facts = [sys.version, sys.executable]
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        facts.append(f"{name} {importlib.metadata.version(name)} {spec.origin if spec else ''}")
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]


def _tried() -> str:
    try:
        trial = subprocess.run(
            [sys.executable, "-P", "-c", TRIED],
            env=for_children(),
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"Numba could not be tried: {error}"
    if trial.returncode == 0:
        return ""
    last = (trial.stderr.strip().splitlines() or [f"it ended with exit code {trial.returncode}"])[-1]
    return f"Numba cannot be used: {last[:300]}"
