"""NVIDIA's libraries put together by hand as a rival: cuDNN's graph API, cuBLASLt, one CUDA graph a pass. In
an isolated process, in the environment that has cuDNN's frontend (kernels.environment)."""

from __future__ import annotations

from engine.backend import Options, Session, check_runs
from engine.graph.graph import Graph
from engine.isolated import pool
from engine.isolated.device import IsolatedDeviceSession
from engine.isolated.pool import Kind
from engine.machine import driver as cuda_driver
from engine.ort.sessions import refusal
from engine.rivals import cudnn_net
from kernels.environment import NEEDED, Environment, how_to_install
from kernels.precision import FP32

GET = how_to_install("cudnn", "nvidia-cudnn-frontend")
ENVIRONMENT = Environment("cudnn", "cuDNN's frontend", "cudnn", GET, needs=(*NEEDED, "cupy"))
APART = pool.register(
    "cudnn", Kind("cuDNN's graphs on the GPU", "engine.rivals.cudnn_cuda", True, 1, ENVIRONMENT.interpreter)
)


class CudnnGraph:
    """See engine.backend.Backend and Rival."""

    name = "cudnn-graph"
    title = "cuDNN graphs, cuBLASLt"
    device = "cuda"
    reference = "ort-cuda"
    precisions: tuple[str, ...] = (FP32, "tf32", "fp16", "bf16")
    apart = APART
    asked_only = True
    get = GET
    untried = ""

    def unavailable(self) -> str | None:
        return cuda_driver.unavailable() or ENVIRONMENT.missing()

    def supports(self, graph: Graph, batch: int, precision: str) -> str | None:
        reason = refusal(graph, batch, precision, self.precisions, self.name)
        return reason or cudnn_net.refusal(graph, batch)

    def prepare(
        self, graph: Graph, batch: int, precision: str = FP32, options: Options | None = None
    ) -> Session:
        """A session ready to bind and run, with its plans chosen and its pass captured. Raises
        UnsupportedError, UnavailableError, OutOfMemoryError, KernelError."""
        check_runs(self, graph, batch, precision)
        what = f"{graph.name} on {self.name} at batch {batch} in {precision}"
        arguments = (graph, batch, precision, options or Options())
        session = IsolatedDeviceSession(APART, what, batch, arguments, precision)
        session.backend = self.name
        return session


BACKEND = CudnnGraph()
