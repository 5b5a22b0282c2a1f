"""The engine on an NVIDIA GPU: kernels of our own ladder, launched one by one or as one CUDA graph.

What a session does is in engine.cuda.session; this says whether there can be one here.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import sys

from engine.backend import Options
from engine.cuda.session import EngineCudaSession
from engine.graph.graph import Graph
from engine.machine import driver as cuda_driver
from engine.planning import planner
from kernels import nvrtc, registry
from kernels.errors import KernelscopeError, UnavailableError, UnsupportedError
from kernels.precision import FP32, MIXED

_CUDA_EXTRA = "install the extra cuda (cuda12 for drivers older than 580)"
_CUPY_BUILDS = {"cupy-cuda13x": 13, "cupy-cuda12x": 12}


def _no_device() -> str | None:
    """What the driver itself says of its devices, which starts none of them."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        count = ctypes.c_int(0)
        result = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    except (OSError, AttributeError) as error:
        return f"the NVIDIA driver cannot be loaded ({error})"
    if result:
        return f"the NVIDIA driver finds no usable GPU (error {result}): nvidia-smi should say more"
    return None if count.value else "the NVIDIA driver finds no GPU in this machine"


class EngineCuda:
    """Our kernels on an NVIDIA GPU; see engine.backend.Backend."""

    name = "engine-cuda"
    title = "Engine (CUDA)"
    device = "cuda"
    reference = "ort-cuda"
    end_to_end = "kernel"
    apart = ""

    @property
    def precisions(self) -> tuple[str, ...]:
        return (*registry.precisions(self.device), MIXED)

    def unavailable(self) -> str | None:
        reason = cuda_driver.unavailable() or _no_device()
        if reason is not None:
            return reason
        if importlib.util.find_spec("cupy") is None:
            return f"CuPy, which drives the device, is not installed: {_CUDA_EXTRA}"
        spoken = (cuda_driver.cuda_version() or 0) // 1000
        for package, major in _CUPY_BUILDS.items():
            try:
                importlib.metadata.version(package)
            except importlib.metadata.PackageNotFoundError:
                continue
            if spoken < major:
                return (
                    f"the installed {package} is built for CUDA {major} and the driver speaks CUDA {spoken}: "
                    "install the extra cuda12, or a newer driver"
                )
        return nvrtc.unavailable()

    def supports(self, graph: Graph, batch: int, precision: str) -> str | None:
        try:
            planner.plan(graph, batch, "cuda", precision)
        except UnsupportedError as error:
            return str(error)
        except KernelscopeError:
            return None  # not a matter of the model: `prepare` says what it is
        return None

    def prepare(
        self, graph: Graph, batch: int, precision: str = FP32, options: Options | None = None
    ) -> EngineCudaSession:
        """A session ready to bind and run, its CUDA graph captured.

        Raises InputError, UnsupportedError (batch, precision or a node), UnavailableError (no GPU or a
        missing package), OutOfMemoryError, KernelError (a rung that does not compile, load or launch).
        """
        planner.check_precision(precision, self.device)
        if reason := self.unavailable():
            raise UnavailableError(f"engine-cuda cannot run here: {reason}")
        return EngineCudaSession(graph, batch, precision, options or Options())


BACKEND = EngineCuda()
