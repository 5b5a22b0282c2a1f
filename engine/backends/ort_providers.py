"""ONNX Runtime's other providers as rivals: OpenVINO on the CPU, TensorRT and TensorRT for RTX on a GPU. Each
in an isolated process, since their builds of ONNX Runtime exclude each other."""

from __future__ import annotations

from engine.backend import Options, Session, check_runs
from engine.backends._provider_session import Provider
from engine.graph.graph import Graph
from engine.isolated import pool
from engine.isolated.device import IsolatedDeviceSession
from engine.isolated.pool import Kind
from engine.isolated.session import IsolatedSession
from engine.machine import driver as cuda_driver
from engine.ort.sessions import refusal
from kernels.environment import NEEDED, Environment
from kernels.precision import FP32

_UNTRIED = "nobody has run it here yet; its answers are checked as any other's"


class OrtProvider:
    """See engine.backend.Backend and Rival. The provider's silent fall-back to another is an error."""

    asked_only = True
    untried = _UNTRIED

    def __init__(
        self,
        provider: Provider,
        title: str,
        precisions: tuple[str, ...],
        get: str,
        needs: tuple[str, ...] = (),
    ) -> None:
        self.name, self.title, self.get, self.precisions = provider.backend, title, get, precisions
        self.device = "cuda" if "-cuda" in self.name else "cpu"
        self.reference = f"ort-{self.device}"
        self._provider = provider
        short = self.name.removesuffix(f"-{self.device}")
        beside = ("cupy",) if self.device == "cuda" else ()
        self.environment = Environment(
            short, title, "onnxruntime", get, needs=(*NEEDED, *beside, *needs), holds=self._file
        )
        kind = Kind(title, "engine.backends._provider_session", True, 1, self.environment.interpreter)
        self.apart = pool.register(short, kind)

    @property
    def _file(self) -> tuple[str, str]:
        return "onnxruntime", f"capi/*onnxruntime_providers_{self._provider.library}.*"

    def unavailable(self) -> str | None:
        if self.device == "cuda" and (reason := cuda_driver.unavailable()) is not None:
            return reason
        return self.environment.missing()

    def supports(self, graph: Graph, batch: int, precision: str) -> str | None:
        return refusal(graph, batch, precision, self.precisions, self.name)

    def prepare(
        self, graph: Graph, batch: int, precision: str = FP32, options: Options | None = None
    ) -> Session:
        """A session ready to bind and run. Raises UnsupportedError, UnavailableError (a silent fall-back,
        too), OutOfMemoryError, KernelError."""
        check_runs(self, graph, batch, precision)
        what, cuda = f"{graph.name} on {self.name} at batch {batch}", self.device == "cuda"
        arguments = (self._provider, graph, batch, precision, options or Options(), cuda)
        session: IsolatedSession
        if cuda:
            session = IsolatedDeviceSession(self.apart, f"{what} in {precision}", batch, arguments, precision)
        else:
            session = IsolatedSession(self.apart, what, batch, arguments)
        session.backend = self.name
        return session


def _get(package: str, name: str) -> str:
    return (
        f"it takes an environment with `pip install {package} msgspec onnx platformdirs psutil`, which the "
        f"variable KERNELSCOPE_PYTHON_{name} names"
    )


BACKENDS = (
    OrtProvider(
        Provider(
            "ort-openvino-cpu",
            "OpenVINOExecutionProvider",
            "openvino",
            settings=(("", (("device_type", "CPU"), ("precision", "FP32"))),),
            helps="OpenVINO's libraries did not load",
        ),
        "ONNX Runtime (OpenVINO)",
        (FP32,),
        _get("onnxruntime-openvino", "ORT_OPENVINO"),
    ),
    # TensorRT may compute float32 in TF32, and is not told otherwise: it offers no fp32.
    OrtProvider(
        Provider(
            "ort-tensorrt-cuda",
            "TensorrtExecutionProvider",
            "tensorrt",
            settings=(("fp16", (("trt_fp16_enable", "1"),)), ("", (("trt_timing_cache_enable", "1"),))),
            graph="trt_cuda_graph_enable",
            stream="user_compute_stream",
            device="device_id",
            loads=("tensorrt_libs",),
            behind=("CUDAExecutionProvider",),
            helps="TensorRT's libraries are wanted",
        ),
        "ONNX Runtime (TensorRT)",
        ("tf32", "fp16"),
        _get("onnxruntime-gpu tensorrt-cu13 cupy-cuda13x", "ORT_TENSORRT"),
        needs=("tensorrt_libs",),
    ),
    OrtProvider(
        Provider(
            "ort-tensorrt-rtx-cuda",
            "NvTensorRTRTXExecutionProvider",
            "nv_tensorrt_rtx",
            graph="enable_cuda_graph",
            stream="user_compute_stream",
            device="device_id",
            helps="the libraries of TensorRT for RTX are wanted",
        ),
        "ONNX Runtime (TensorRT for RTX)",
        ("tf32", "fp16"),
        "it takes an environment with a build of ONNX Runtime that has the provider NvTensorRTRTX, which the "
        "variable KERNELSCOPE_PYTHON_ORT_TENSORRT_RTX names",
    ),
)
