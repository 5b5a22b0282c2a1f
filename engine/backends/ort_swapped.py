"""ONNX Runtime with kernels of the ladder in the place of some nodes: what does a kernel do to the whole in
another engine?

The kernels are exported as custom operators (kernels.exported), so they run as they would for whoever loads
the library elsewhere: on the CPU in a process of ONNX Runtime, which keeps its own time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.backend import Backend, Options
from engine.backends.ort_cpu import BACKEND as ORT_CPU
from engine.backends.ort_cpu import OrtCpuIsolated
from engine.backends.ort_cuda import BACKEND as ORT_CUDA
from engine.graph.graph import Graph
from engine.isolated import pool
from engine.machine import driver
from engine.ort import sessions as ort
from engine.ort.swapped import swapped
from engine.planning.exported import named, replacement
from kernels.cache import cache_dir
from kernels.errors import UnsupportedError
from kernels.exported import library, source
from kernels.exported.operator import Operator
from kernels.precision import FP32

MOST_BUILT = 50  # libraries that are kept; those that were used longest ago go

# Processes of their own: such a kernel takes nobody with it but others of its kind.
KIND = pool.Kind("ONNX Runtime with our kernels", "engine.isolated.open_ort", stays=True, alone=6)
APART = pool.register("ort swapped", KIND)


class Swapped:
    """`plain` with some nodes swapped; see engine.backend.Backend and Swapping."""

    def __init__(self, plain: Backend, precisions: tuple[str, ...], apart: str) -> None:
        self.name, self.title = f"{plain.name}-swapped", f"{plain.title}, with kernels swapped in"
        self.device, self.precisions, self.apart = plain.device, precisions, apart
        self.reference = self.swaps_in = plain.name
        self._plain = plain

    def unavailable(self) -> str | None:
        return self._plain.unavailable()

    def supports(self, graph: Graph, batch: int, precision: str) -> str | None:
        return ort.refusal(graph, batch, precision, self.precisions, self.name)

    def prepare(self, graph: Graph, batch: int, precision: str = FP32, options: Options | None = None) -> Any:
        """As the plain backend's, with the kernels of `options.rungs` in the place of their nodes; a part of
        a model that has none of these is the plain backend's. Raises as that and as
        engine.planning.exported.replacement."""
        options = options or Options()
        if reason := self.supports(graph, batch, precision):
            raise UnsupportedError(reason)
        graph, words = self._swapped(graph, batch, options)
        plain = replace(options, rungs={})
        if self.apart:
            session: Any = OrtCpuIsolated(graph, batch, plain, self.apart)
        else:
            session = self._plain.prepare(graph, batch, precision, plain)
        session.backend = self.name
        session.facts = {**session.facts, **words}
        return session

    def _swapped(self, graph: Graph, batch: int, options: Options) -> tuple[Graph, Mapping[str, str]]:
        """The model with its kernels, built where they are not yet, and a fact that says which."""
        made, libraries, words = [], [], []
        taken: set[str] = set()
        for node, name in options.rungs.items():
            if node not in graph.by_name or node in taken:
                continue
            rung = named(graph, node, name, self.device, options.kernel_dirs, batch)
            one = replacement(graph, node, rung, (batch,), _arch() if self.device == "cuda" else "")
            library_file = _built(one.operator)
            made.append(one)
            libraries.append(library_file)
            words.append(f"{' + '.join(one.nodes)} by {rung.label}")
            taken.update(one.nodes)
        if not made:
            return graph, {}
        _trim(keep=[Path(file).parent for file in libraries])
        changed = replace(swapped(graph, made), libraries=tuple(libraries))
        return changed, {"swapped": ", ".join(words)}


def _built(operator: Operator) -> str:
    """The path of its library, built where it is not yet."""
    text = source.text(operator).encode()
    parts = (text, operator.tables, *operator.code, *(it.cubin or b"" for it in operator.modules))
    digest = hashlib.sha256(b"\0".join(parts)).hexdigest()[:24]
    folder = cache_dir() / "exported" / digest
    path = folder / library.file_name(operator)
    if not path.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Whole, or not there: a library that is cut short takes the process with it.
        building = Path(tempfile.mkdtemp(dir=folder.parent))
        try:
            library.written(operator, building)
            with contextlib.suppress(OSError):  # another process was as quick
                building.rename(folder)
        finally:
            shutil.rmtree(building, ignore_errors=True)
    with contextlib.suppress(OSError):
        os.utime(folder)  # used last
    return str(path)


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


BACKENDS = (Swapped(ORT_CPU, (FP32,), APART), Swapped(ORT_CUDA, (FP32, "tf32"), ""))
