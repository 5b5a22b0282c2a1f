"""Bytecode of the program and its tests, written before the processes that share the tests are started. A new
clone has none: each of them would compile all of it, at the same moment as the others.

What is not written here, whoever imports it compiles, as ever.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader
from importlib.util import cache_from_source, find_spec
from pathlib import Path

import pytest

from kernels import numba_support
from tests import preloaded

ROOT = Path(__file__).parents[1]
FOLDERS = ("bench", "engine", "gui", "kernels", "models", "tests")
# With these come the libraries that most tests need.
IMPORTED = (*preloaded.LOADED, "gui.shell.main_window", "gui.plots.lines", "gui.plots.bars")
LIBRARIES = ("matplotlib", "numpy", "onnx", "onnxruntime", "pyqtgraph")
MOST = 8  # processes; of ever more each has less to do than it takes to start
FEW = 40  # modules that are compiled sooner than shared out


def write(config: pytest.Config) -> None:
    """To be called while this process has one thread. A module that has bytecode of before is left to whoever
    imports it, which looks whether it is still right."""
    packages = (init.parent for folder in FOLDERS for init in (ROOT / folder).rglob("__init__.py"))
    paths = sorted(path for package in packages for path in package.glob("*.py"))
    missing = [path for path in paths if not _kept(path).exists()]
    count = min(os.cpu_count() or 1, MOST)
    if len(missing) < FEW or sys.dont_write_bytecode or sys.platform != "linux":
        return
    children = []
    for number in range(count):
        if (child := os.fork()) == 0:
            try:
                _share(config, missing, number, count)
            finally:
                os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)


def _share(config: pytest.Config, missing: Sequence[Path], number: int, count: int) -> None:
    """What one of the processes does: from its place on, round, whatever no other has done yet. The first
    begins with the libraries, where they have none, and the last with what tests ask while they are
    collected: whether Numba works, which is kept, too."""
    if number == 0 and not all(map(_compiled, LIBRARIES)):
        for name in IMPORTED:
            with contextlib.suppress(Exception):  # told where it is needed
                importlib.import_module(name)
    if number == count - 1:
        numba_support.unavailable()
    place = number * len(missing) // count
    for path in (*missing[place:], *missing[:place]):
        if not _kept(path).exists():
            with contextlib.suppress(Exception):  # pytest's own may be changed in one to come
                _compile(config, path)


def _compiled(library: str) -> bool:
    """Whether it has bytecode, of another clone that uses the same environment, say."""
    spec = find_spec(library)
    return spec is not None and spec.cached is not None and Path(spec.cached).exists()


def _kept(path: Path) -> Path:
    """Where its bytecode is written."""
    from _pytest.assertion import rewrite

    if _is_rewritten(path):
        return rewrite.get_cache_dir(path) / (path.stem + rewrite.PYC_TAIL)
    return Path(cache_from_source(str(path)))


def _compile(config: pytest.Config, path: Path) -> None:
    from _pytest.assertion import rewrite

    if not _is_rewritten(path):
        name = path.stem
        SourceFileLoader(name, str(path)).get_code(name)  # which keeps it
        return
    state = config.stash[rewrite.assertstate_key]
    told, code = rewrite._rewrite_test(path, config)
    kept = _kept(path)
    kept.parent.mkdir(parents=True, exist_ok=True)
    rewrite._write_pyc(state, code, told, kept)


def _is_rewritten(path: Path) -> bool:
    """As pytest does with those that hold tests."""
    return path.name.startswith("test_") or path.name == "conftest.py"
