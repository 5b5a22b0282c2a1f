"""TensorRT by itself as a rival (through ONNX Runtime: ort_providers), in an isolated process, in the
environment that has it."""

from __future__ import annotations

from engine.backend import Options, Session, check_runs
from engine.graph.graph import Graph
from engine.isolated import pool
from engine.isolated.device import IsolatedDeviceSession
from engine.isolated.pool import Kind
from engine.machine import driver as cuda_driver
from engine.ort.sessions import refusal
from kernels.environment import NEEDED, Environment
from kernels.precision import FP32

GET = (
    "it takes an environment with `pip install tensorrt-cu13 cupy-cuda13x cuda-bindings msgspec onnx "
    "platformdirs psutil`, which the variable KERNELSCOPE_PYTHON_TENSORRT names"
)
ENVIRONMENT = Environment("tensorrt", "TensorRT", "tensorrt", GET, needs=(*NEEDED, "cupy"))
APART = pool.register(
    "tensorrt", Kind("TensorRT on the GPU", "engine.rivals.tensorrt_cuda", True, 1, ENVIRONMENT.interpreter)
)


class TensorRt:
    """See engine.backend.Backend and Rival."""

    name = "tensorrt-cuda"
    title = "TensorRT"
    device = "cuda"
    reference = "ort-cuda"
    precisions: tuple[str, ...] = (FP32, "tf32", "fp16")
    apart = APART
    asked_only = True
    get = GET
    untried = "nobody has run it here yet; its answers are checked as any other's"

    def unavailable(self) -> str | None:
        return cuda_driver.unavailable() or ENVIRONMENT.missing()

    def supports(self, graph: Graph, batch: int, precision: str) -> str | None:
        return refusal(graph, batch, precision, self.precisions, self.name)

    def prepare(
        self, graph: Graph, batch: int, precision: str = FP32, options: Options | None = None
    ) -> Session:
        """A session ready to bind and run, its engine built and its pass captured. Raises UnsupportedError,
        UnavailableError, OutOfMemoryError, KernelError."""
        check_runs(self, graph, batch, precision)
        what = f"{graph.name} on {self.name} at batch {batch} in {precision}"
        arguments = (graph, batch, precision, options or Options())
        session = IsolatedDeviceSession(APART, what, batch, arguments, precision)
        session.backend = self.name
        return session


BACKEND = TensorRt()
