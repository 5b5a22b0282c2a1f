"""The engine's CUDA kernels on a machine without a GPU: are their answers right? A GPU's program runs on the
CPU (kernels.ptx), so there are no times, and it takes part only where it is named."""

from __future__ import annotations

import importlib
from typing import Any

from engine.backend import Options, Session
from engine.graph.graph import Graph
from kernels import numba_support, nvrtc, registry
from kernels.errors import InputError, UnavailableError, UnsupportedError
from kernels.precision import FP32


class EngineCudaSimulated:
    """See engine.backend.Backend and Answering."""

    name = "engine-cuda-simulated"
    title = "Engine (CUDA), simulated"
    device = "cpu"
    reference = "ort-cpu"
    apart = ""
    untimed = True
    rungs_of = "cuda"

    @property
    def precisions(self) -> tuple[str, ...]:
        return registry.precisions("cuda")

    def unavailable(self) -> str | None:
        return nvrtc.unavailable() or numba_support.unavailable()

    def supports(self, graph: Graph, batch: int, precision: str) -> str | None:
        try:
            _net().planned(graph, batch, precision, Options())
        except (UnsupportedError, InputError) as error:
            return str(error)
        return None

    def prepare(
        self, graph: Graph, batch: int, precision: str = FP32, options: Options | None = None
    ) -> Session:
        """A session ready to bind and run. Raises UnsupportedError, UnavailableError, KernelError."""
        if reason := self.unavailable():
            raise UnavailableError(f"{self.name} cannot run here: {reason}")
        session: Session = _net().SimulatedNetSession(graph, batch, precision, options or Options())
        return session


def _net() -> Any:
    """Loaded when it is needed: whoever lists the backends does not wait for it."""
    return importlib.import_module("engine.cuda.simulated_net")


BACKEND = EngineCudaSimulated()
