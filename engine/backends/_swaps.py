"""What libraries with kernels of the ladder in the place of nodes share: the kernels, exported and built.

They run as they would for whoever loads the library elsewhere.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.backend import Backend, Options
from engine.graph.graph import Graph
from engine.machine import driver
from engine.planning.exported import Replacement, named, replacement
from kernels.cache import cache_dir
from kernels.exported import library, source
from kernels.exported.operator import Operator

MOST_BUILT = 50  # libraries that are kept; those that were used longest ago go

Write = Callable[[Operator, Path], object]


class Swapped:
    """`plain` with some nodes swapped; see engine.backend.Backend and Swapping."""

    invited = False

    def __init__(self, plain: Backend, precisions: tuple[str, ...], apart: str) -> None:
        self.name, self.title = f"{plain.name}-swapped", f"{plain.title}, with kernels swapped in"
        self.device, self.precisions, self.apart = plain.device, precisions, apart
        self.reference = self.swaps_in = plain.name
        self._plain: Any = plain

    def unavailable(self) -> str | None:
        reason: str | None = self._plain.unavailable()
        return reason


@dataclass(frozen=True)
class Built:
    """What takes the place of nodes, and the folder in which its library lies."""

    replacement: Replacement
    folder: Path

    @property
    def library(self) -> str:
        return str(self.folder / library.file_name(self.replacement.operator))


def built(
    graph: Graph,
    batch: int,
    options: Options,
    device: str,
    write: Write = library.written,
    alone: bool = False,
) -> list[Built]:
    """The kernels of `options.rungs` for nodes that this graph has, built where they are not yet. write: puts
    an operator's files into a folder; alone: each has a name that no other operator has. Raises as
    engine.planning.exported.replacement and library.written."""
    found: list[Built] = []
    taken: set[str] = set()
    for node, name in options.rungs.items():
        if node not in graph.by_name or node in taken:
            continue
        rung = named(graph, node, name, device, options.kernel_dirs, batch)
        one = replacement(graph, node, rung, (batch,), _arch() if device == "cuda" else "")
        if alone:
            own = f"{one.operator.name}_{_digest(one.operator)}"
            one = replace(one, operator=replace(one.operator, name=own))
        found.append(Built(one, _kept(one.operator, write)))
        taken.update(one.nodes)
    if found:
        _trim(keep=[it.folder for it in found])
    return found


def fact(found: Sequence[Built], how: str = "") -> Mapping[str, str]:
    """Which nodes are computed by what, as a fact of a session. how: said of each."""
    words = (
        f"{' + '.join(it.replacement.nodes)} by {it.replacement.operator.rung.label}{how}" for it in found
    )
    return {"swapped": ", ".join(words)} if found else {}


def _digest(operator: Operator) -> str:
    text = source.text(operator).encode()
    parts = (text, operator.tables, *operator.code, *(it.cubin or b"" for it in operator.modules))
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:24]


def _kept(operator: Operator, write: Write) -> Path:
    """The folder of its library, which is built where it is not yet."""
    folder = cache_dir() / "exported" / _digest(operator)
    if not (folder / library.file_name(operator)).exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(folder, ignore_errors=True)  # what a removal that was cut has left
        # Whole, or not there: a library that is cut short takes the process with it.
        building = Path(tempfile.mkdtemp(dir=folder.parent))
        try:
            write(operator, building)
            with contextlib.suppress(OSError):  # another process was as quick
                building.rename(folder)
        finally:
            shutil.rmtree(building, ignore_errors=True)
    with contextlib.suppress(OSError):
        os.utime(folder)  # used last
    return folder


def _trim(keep: Collection[Path]) -> None:
    """Remove the libraries beyond MOST_BUILT that were used longest ago, but none of `keep`."""
    used: dict[Path, float] = {}
    for path in (cache_dir() / "exported").iterdir():
        with contextlib.suppress(OSError):  # another process has removed it, or given it its name
            used[path] = path.stat().st_mtime
    for path in sorted(used, key=lambda path: -used[path])[MOST_BUILT:]:
        if path not in keep:
            shutil.rmtree(path, ignore_errors=True)


def _arch() -> str:
    device = driver.device()
    return f"sm_{device.capability[0]}{device.capability[1]}" if device else ""
