"""The reference on an NVIDIA GPU: ONNX Runtime's CUDAExecutionProvider, run at its best.

One session a batch size, inputs and outputs on the device (IO binding), the forward pass replayed as one
CUDA graph on a stream of ours that CUDA events time, exhaustive search of cuDNN's algorithms, TF32 off for
the fp32 row. ONNX Runtime falls back to the CPU in silence; here that is an error, not a result.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from engine.backend import OpTime, Options
from engine.configuration import Configuration
from engine.cuda import runtime as cuda_runtime
from engine.graph.graph import Graph
from engine.machine import driver as cuda_driver
from engine.machine import host
from engine.ort import placement
from engine.ort import sessions as ort
from engine.ort.fused_conv import fused
from engine.ort.precision import to_fp16
from engine.ort.trains import LaunchedSession
from kernels.errors import KernelscopeError, OutOfMemoryError, UnavailableError, UnsupportedError

PROVIDER = "CUDAExecutionProvider"
_ASYNC = "disable_synchronize_execution_providers"
_GRAPH_ID = "gpu_graph_id"
_NO_CAPTURE = "-1"
_CUDA_EXTRA = "install the extra cuda (cuda12 for drivers older than 580)"


class _Buffer:
    """One input or output: its place on the device, its shape and its dtype there."""

    def __init__(self, pool: Any, shape: tuple[int, ...], dtype: np.dtype, stream: Any) -> None:
        self.shape, self.dtype = shape, dtype
        self.nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        self._memory = pool.malloc(max(self.nbytes, 1))
        self._memory.memset_async(0, max(self.nbytes, 1), stream)

    @property
    def pointer(self) -> int:
        return int(self._memory.ptr)


class OrtCudaSession(LaunchedSession):
    """A model at one batch size on the CUDA provider; see engine.backend.Session.

    ONNX Runtime keeps a captured graph by thread: prepare and run belong on the same one.
    """

    backend = "ort-cuda"
    provider = PROVIDER
    _translated = ort.translated
    _inputs: dict[str, _Buffer]
    _outputs: dict[str, _Buffer]
    _library, _helps = "CUDA or cuDNN", _CUDA_EXTRA
    _behind: tuple[Any, ...] = ("CPUExecutionProvider",)  # providers that take what this one does not
    _told: tuple[str, ...] = ("use_tf32", "cudnn_conv_algo_search")  # of its settings, in the record

    def __init__(self, graph: Graph, batch: int, precision: str, options: Options) -> None:
        self._ort = ort.import_onnxruntime()
        if hasattr(self._ort, "preload_dlls"):
            self._ort.preload_dlls()  # finds CUDA's and cuDNN's libraries in their pip packages
        self._cupy = cuda_runtime.import_cupy()
        self._pool = self._cupy.cuda.MemoryPool()
        self.batch, self.precision = batch, precision
        self._what = f"{graph.name} on {self.backend} at batch {batch} in {precision}"
        self._options = options
        self._configured = options.ort or Configuration()
        self._facts: dict[str, str] = {}
        self._bound: dict[str, np.ndarray] = {}
        self._phases = {"load": 0, "alloc": 0, "compile": 0}
        with ort.translated(self._what):
            free_before = self._cupy.cuda.runtime.memGetInfo()[0]
            self._prepare(graph)
            free_after = self._cupy.cuda.runtime.memGetInfo()[0]
        self.phases: Mapping[str, int] = self._phases
        self.memory: Mapping[str, int] = {
            "weights": sum(array.nbytes for array in self._model.initializers.values()),
            "inputs": sum(buffer.nbytes for buffer in self._inputs.values()),
            "outputs": sum(buffer.nbytes for buffer in self._outputs.values()),
            "device": max(0, free_before - free_after),  # everything: arena, cuDNN workspace, handles
        }
        self.facts: Mapping[str, str] = self._facts

    # ------------------------------------------------------------------------------------------- preparing

    def _prepare(self, graph: Graph) -> None:
        started = time.perf_counter_ns()
        self._model = graph
        if self.precision == "fp16":
            self._model = to_fp16(graph)
        if self._configured.fused_conv:
            self._model = fused(self._model)
        self._conversion_ns = time.perf_counter_ns() - started
        wanted = self._options.cuda_graph
        try:
            self._open(wanted)
            self._facts["cuda_graph"] = "yes" if wanted else "no: not asked for"
        except (OutOfMemoryError, UnavailableError):
            raise
        except KernelscopeError as error:
            if not wanted:
                raise
            # Nodes on the CPU, or a call that cannot be captured: the same session without a graph.
            self._release()
            self._open(False)
            self._facts["cuda_graph"] = f"no: {error}"

    def _open(self, cuda_graph: bool) -> None:
        """Create session, buffers and binding; warm up, which searches algorithms and captures the graph."""
        started = time.perf_counter_ns()
        self._stream = self._cupy.cuda.Stream(non_blocking=True)
        threads = self._options.threads or host.physical_cores()
        settings = self._settings(cuda_graph)
        self._session = ort.create_session(
            self._ort,
            self._model,
            self.batch,
            lambda: ort.session_options(self._ort, threads, self._configured.optimization),
            [(self.provider, settings), *self._behind],
        )
        self._facts |= placement.check(
            self._session, self.provider, self._what, f"{self._library} did not load, {self._helps}"
        )
        created = time.perf_counter_ns()
        self._phases["load"] = self._conversion_ns + created - started
        inputs = ort.buffers_of(self._session.get_inputs())
        if inputs is None:
            raise UnsupportedError(f"an input of {self._what} has a dimension that is not known")
        with ort.translated(f"the inputs and outputs of {self._what}"):
            self._inputs = self._allocate(inputs)
            self._binding = self._session.io_binding()
            self._bind(self._binding.bind_input, self._inputs)
            inferred = ort.buffers_of(self._session.get_outputs())
            self._bind_outputs(inferred or self._discover_outputs())
            buffers = (*self._inputs.values(), *self._outputs.values())
            largest = max(buffer.nbytes for buffer in buffers)
            self._staging = cuda_runtime.Staging(self._cupy, self._stream, largest)
        allocated = time.perf_counter_ns()
        self._phases["alloc"] = allocated - created
        with ort.translated(f"the first run of {self._what}"):
            # The search of algorithms; for a graph ONNX Runtime adds a second run and the capture by itself.
            try:
                self._session.run_with_iobinding(self._binding)
            except Exception:
                found = self._discover_outputs()  # raises where the shapes are not what was wrong
                if found == inferred:
                    raise
                # Shape inference below opset 22 counts pooling windows of ceil_mode that the operator leaves
                # out.
                self._bind_outputs(found)
                self._session.run_with_iobinding(self._binding)
            self._run_options = self._ort.RunOptions()
            self._run_options.log_severity_level = ort.SILENT
            self._run_options.add_run_config_entry(_ASYNC, "1")
            self._session.run_with_iobinding(self._binding, self._run_options)
            self._stream.synchronize()
        self._phases["compile"] = time.perf_counter_ns() - allocated
        launch = partial(self._session.run_with_iobinding, self._binding, self._run_options)
        self._timed_over(launch, cuda_graph)
        self._facts |= {
            "provider": self._session.get_providers()[0],
            "onnxruntime": self._ort.__version__,
            **{name: settings[name] for name in self._told if name in settings},
            **{name: str(value) for name, value in self._options.provider_options.items()},
            **({"configuration": self._configured.words} if self._options.ort else {}),
        }

    def _settings(self, cuda_graph: bool) -> dict[str, str]:
        """Of the provider."""
        return {
            # Off, it also keeps cuDNN's fp16 convolutions from the tensor cores; fp16 has no TF32 to lose.
            "use_tf32": "0" if self.precision == "fp32" else "1",
            "cudnn_conv_algo_search": "EXHAUSTIVE",
            "cudnn_conv_use_max_workspace": "1",
            "arena_extend_strategy": "kSameAsRequested",
            **dict(self._configured.provider_options),
            **self._options.provider_options,
            "enable_cuda_graph": "1" if cuda_graph else "0",
            "device_id": str(self._cupy.cuda.runtime.getDevice()),
            "user_compute_stream": str(self._stream.ptr),
        }

    def _allocate(self, specs: Mapping[str, tuple[tuple[int, ...], np.dtype]]) -> dict[str, _Buffer]:
        return {name: _Buffer(self._pool, *spec, self._stream) for name, spec in specs.items()}

    def _bind(self, bind: Any, buffers: Mapping[str, _Buffer]) -> None:
        device = self._cupy.cuda.runtime.getDevice()
        for name, buffer in buffers.items():
            bind(name, "cuda", device, buffer.dtype.type, buffer.shape, buffer.pointer)

    def _bind_outputs(self, specs: Mapping[str, tuple[tuple[int, ...], np.dtype]]) -> None:
        self._outputs = self._allocate(specs)
        self._bind(self._binding.bind_output, self._outputs)

    def _discover_outputs(self) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
        """Output shapes that inference could not tell, from one run that is not captured."""
        arguments = self._session.get_outputs()
        for argument in arguments:
            self._binding.bind_output(argument.name, "cuda", self._cupy.cuda.runtime.getDevice())
        options = self._ort.RunOptions()
        options.add_run_config_entry(_GRAPH_ID, _NO_CAPTURE)
        self._stream.synchronize()
        self._session.run_with_iobinding(self._binding, options)
        values = self._binding.get_outputs()
        found = {
            argument.name: (tuple(value.shape()), ort.dtype_of(argument.name, argument.type))
            for argument, value in zip(arguments, values, strict=True)
        }
        self._binding.clear_binding_outputs()
        return found

    # --------------------------------------------------------------------------------------------- running

    def _start(self) -> None:
        self._session.run_with_iobinding(self._binding, self._run_options)

    def op_times(self, seconds: float) -> tuple[OpTime, ...]:
        """(): the pip build's profile holds host times alone; bench.measure.answers.layers times each group
        on its own.
        """
        return ()

    def _release(self) -> None:
        # The session goes first: its graph reads the buffers and runs on the stream.
        for name in ("_trains", "_binding", "_session", "_inputs", "_outputs", "_staging", "_stream"):
            self.__dict__.pop(name, None)
        self._pool.free_all_blocks()

    def close(self) -> None:
        self._closed = True
        if cuda_runtime.lost(self._cupy):
            cuda_runtime.keep(self)
            return
        self._bound = {}
        self._release()


class OrtCuda:
    """ONNX Runtime on an NVIDIA GPU; see engine.backend.Backend."""

    name = "ort-cuda"
    title = "ONNX Runtime (CUDA)"
    device = "cuda"
    reference = "ort-cuda"
    end_to_end = "model"
    precisions: tuple[str, ...] = ("fp32", "tf32", "fp16")
    apart = ""

    def unavailable(self) -> str | None:
        missing = cuda_driver.unavailable()
        if missing is not None:
            return missing
        if importlib.util.find_spec("onnxruntime") is None:
            return f"ONNX Runtime is not installed: {_CUDA_EXTRA}"
        clash = ort.two_builds()
        if clash is not None:
            return clash
        try:
            runtime = ort.import_onnxruntime()
        except UnavailableError as error:
            return str(error)
        if PROVIDER not in runtime.get_available_providers():
            return f"ONNX Runtime {runtime.__version__} here is built for the CPU alone: {_CUDA_EXTRA}"
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
            return f"CuPy, which times the device, is not installed: {_CUDA_EXTRA}"
        return None

    def supports(self, graph: Graph, batch: int, precision: str) -> str | None:
        return ort.refusal(graph, batch, precision, self.precisions, self.name)

    def prepare(
        self, graph: Graph, batch: int, precision: str = "fp32", options: Options | None = None
    ) -> OrtCudaSession:
        """A session ready to bind and run, its CUDA graph captured.

        Raises UnsupportedError (batch, precision or a node), UnavailableError (no GPU, or a silent fall-back
        to the CPU), OutOfMemoryError, KernelError.
        """
        reason = self.supports(graph, batch, precision)
        if reason is not None:
            raise UnsupportedError(reason)
        reason = self.unavailable()
        if reason is not None:
            raise UnavailableError(f"ort-cuda cannot run here: {reason}")
        return OrtCudaSession(graph, batch, precision, options or Options())


BACKEND = OrtCuda()
