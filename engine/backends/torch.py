"""PyTorch as a rival: eager, compiled by torch.compile, and on a GPU replayed as a CUDA graph, too.

Each runs in an isolated process, in the environment that has PyTorch (kernels.environment).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from engine.backend import Options, Session, check_runs
from engine.graph.graph import Graph
from engine.isolated import pool
from engine.isolated.device import IsolatedDeviceSession
from engine.isolated.pool import Kind
from engine.isolated.session import IsolatedSession
from engine.machine import driver as cuda_driver
from engine.ort.sessions import refusal
from engine.rivals import torch_net
from engine.rivals.torch_translation import Swap
from kernels.environment import NEEDED, Environment, how_to_install
from kernels.precision import FP32

GET = how_to_install("torch")
ENVIRONMENT = Environment("torch", "PyTorch", "torch", GET, needs=NEEDED)
CPU = pool.register(
    "torch", Kind("PyTorch on the CPU", "engine.rivals.torch_cpu", True, 1, ENVIRONMENT.interpreter)
)
CUDA = pool.register(
    "torch cuda", Kind("PyTorch on the GPU", "engine.rivals.torch_cuda", True, 1, ENVIRONMENT.interpreter)
)


class Torch:
    """See engine.backend.Backend and Rival. how: eager, compiled or tuned; replayed: as a CUDA graph."""

    asked_only = True
    get = GET
    untried = ""

    def __init__(self, name: str, title: str, how: str, replayed: bool = False) -> None:
        self.name, self.title = name, title
        self.device = "cuda" if "-cuda" in name else "cpu"
        self.reference = f"ort-{self.device}"
        self.precisions: tuple[str, ...] = (
            (FP32, "tf32", "fp16", "bf16") if self.device == "cuda" else (FP32,)
        )
        self.apart = CUDA if self.device == "cuda" else CPU
        self._how, self._replayed = how, replayed

    def unavailable(self) -> str | None:
        if self.device == "cuda" and (reason := cuda_driver.unavailable()) is not None:
            return reason
        if (reason := ENVIRONMENT.missing()) is not None:
            return reason
        if self.device == "cpu":
            return None
        if not _built_for_cuda():
            return "the PyTorch that is installed is built for the CPU alone: one for CUDA is wanted"
        if ENVIRONMENT.place("cupy") is None:
            return (
                "CuPy, which times the device, is not installed beside PyTorch: install the extra cuda there"
            )
        return None

    def supports(self, graph: Graph, batch: int, precision: str) -> str | None:
        return refusal(graph, batch, precision, self.precisions, self.name) or torch_net.refusal(graph)

    def prepare(
        self, graph: Graph, batch: int, precision: str = FP32, options: Options | None = None
    ) -> Session:
        """A session ready to bind and run, compiled and captured. Raises UnsupportedError, UnavailableError,
        OutOfMemoryError, KernelError."""
        check_runs(self, graph, batch, precision)
        return self.opened(graph, batch, precision, options or Options())

    def opened(
        self,
        graph: Graph,
        batch: int,
        precision: str,
        options: Options,
        swaps: Sequence[Swap] = (),
        apart: str = "",
    ) -> IsolatedSession:
        """A session with exported operators in the place of nodes, in that kind of process ("": as all).
        Raises as `prepare`."""
        what = f"{graph.name} on {self.name} at batch {batch}"
        apart = apart or self.apart
        session: IsolatedSession
        if self.device == "cpu":
            session = IsolatedSession(apart, what, batch, (graph, batch, options, self._how, swaps))
        else:
            replayed = self._replayed and options.cuda_graph
            arguments = (graph, batch, precision, options, self._how, replayed, swaps)
            session = IsolatedDeviceSession(apart, f"{what} in {precision}", batch, arguments, precision)
        session.backend = self.name
        return session


def _built_for_cuda() -> bool:
    """As its own version file says, without importing it."""
    folder = ENVIRONMENT.place("torch")
    try:
        text = (folder / "version.py").read_text(encoding="utf-8") if folder is not None else ""
    except OSError:
        return False
    return re.search(r"^cuda\b[^=]*= *['\"]", text, re.MULTILINE) is not None


BACKENDS = (
    Torch("torch-cpu", "PyTorch (CPU)", "eager"),
    Torch("torch-compile-cpu", "torch.compile (CPU)", "compiled"),
    Torch("torch-cuda", "PyTorch (CUDA)", "eager"),
    Torch("torch-cuda-graph", "PyTorch, CUDA graph", "eager", replayed=True),
    Torch("torch-compile-cuda", "torch.compile, CUDA graph", "compiled", replayed=True),
    Torch("torch-compile-cuda-tuned", "torch.compile, max-autotune, CUDA graph", "tuned", replayed=True),
)
