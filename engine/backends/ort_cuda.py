"""The reference on an NVIDIA GPU: ONNX Runtime's CUDAExecutionProvider; see engine.ort.cuda_session."""

from __future__ import annotations

import importlib.util

from engine.backend import Options, check_runs
from engine.graph.graph import Graph
from engine.machine import driver as cuda_driver
from engine.ort import sessions as ort
from engine.ort.cuda_session import CUDA_EXTRA, PROVIDER, OrtCudaSession
from kernels.errors import UnavailableError
from kernels.precision import FP32


class OrtCuda:
    """ONNX Runtime on an NVIDIA GPU; see engine.backend.Backend."""

    name = "ort-cuda"
    title = "ONNX Runtime (CUDA)"
    device = "cuda"
    reference = "ort-cuda"
    end_to_end = "model"
    precisions: tuple[str, ...] = (FP32, "tf32", "fp16")
    apart = ""

    def unavailable(self) -> str | None:
        missing = cuda_driver.unavailable()
        if missing is not None:
            return missing
        if importlib.util.find_spec("onnxruntime") is None:
            return f"ONNX Runtime is not installed: {CUDA_EXTRA}"
        clash = ort.two_builds()
        if clash is not None:
            return clash
        try:
            runtime = ort.import_onnxruntime()
        except UnavailableError as error:
            return str(error)
        if PROVIDER not in runtime.get_available_providers():
            return f"ONNX Runtime {runtime.__version__} here is built for the CPU alone: {CUDA_EXTRA}"
        missing = cuda_driver.unavailable()
        if missing is not None:
            return missing
        built_for = ort.cuda_major()
        driver = cuda_driver.cuda_version()
        if built_for is not None and driver is not None and driver // 1000 < built_for:
            return (
                f"the installed ONNX Runtime is built for CUDA {built_for} and the driver speaks CUDA "
                f"{driver // 1000}.{driver % 1000 // 10}: install the extra cuda12, or a newer driver"
            )
        if importlib.util.find_spec("cupy") is None:
            return f"CuPy, which times the device, is not installed: {CUDA_EXTRA}"
        return None

    def supports(self, graph: Graph, batch: int, precision: str) -> str | None:
        return ort.refusal(graph, batch, precision, self.precisions, self.name)

    def prepare(
        self, graph: Graph, batch: int, precision: str = FP32, options: Options | None = None
    ) -> OrtCudaSession:
        """A session ready to bind and run, its CUDA graph captured.

        Raises UnsupportedError (batch, precision or a node), UnavailableError (no GPU, or a silent fall-back
        to the CPU), OutOfMemoryError, KernelError.
        """
        check_runs(self, graph, batch, precision)
        return OrtCudaSession(graph, batch, precision, options or Options())


BACKEND = OrtCuda()
