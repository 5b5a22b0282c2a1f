"""ONNX Runtime with kernels of the ladder in the place of some nodes: what does a kernel do to the whole in
another engine?

The kernels are custom operators (engine.backends._swaps): on the CPU in a process of ONNX Runtime, which
keeps its own time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.backend import Options
from engine.backends import _swaps
from engine.backends.ort_cpu import BACKEND as ORT_CPU
from engine.backends.ort_cpu import OrtCpuIsolated
from engine.backends.ort_cuda import BACKEND as ORT_CUDA
from engine.graph.graph import Graph
from engine.isolated import pool
from engine.ort import sessions as ort
from engine.ort.swapped import swapped
from kernels.errors import UnsupportedError
from kernels.precision import FP32

# Processes of their own: such a kernel takes nobody with it but others of its kind.
KIND = pool.Kind("ONNX Runtime with our kernels", "engine.isolated.open_ort", stays=True, alone=6)
APART = pool.register("ort swapped", KIND)


class OrtSwapped(_swaps.Swapped):
    """See engine.backend.Backend and Swapping."""

    def supports(self, graph: Graph, batch: int, precision: str) -> str | None:
        return ort.refusal(graph, batch, precision, self.precisions, self.name)

    def prepare(self, graph: Graph, batch: int, precision: str = FP32, options: Options | None = None) -> Any:
        """As the plain backend's, with the kernels of `options.rungs` in the place of their nodes; a part of
        a model that has none of these is the plain backend's. Raises as that and as _swaps.built."""
        options = options or Options()
        if reason := self.supports(graph, batch, precision):
            raise UnsupportedError(reason)
        found = _swaps.built(graph, batch, options, self.device)
        if found:
            changed = swapped(graph, [it.replacement for it in found])
            graph = replace(changed, libraries=tuple(it.library for it in found))
        plain = replace(options, rungs={})
        if self.apart:
            session: Any = OrtCpuIsolated(graph, batch, plain, self.apart)
        else:
            session = self._plain.prepare(graph, batch, precision, plain)
        session.backend = self.name
        session.facts = {**session.facts, **_swaps.fact(found)}
        return session


BACKENDS = (OrtSwapped(ORT_CPU, (FP32,), APART), OrtSwapped(ORT_CUDA, (FP32, "tf32"), ""))
