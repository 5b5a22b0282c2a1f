"""A session of ONNX Runtime on an NVIDIA GPU, run as fast as ONNX Runtime can.

Each batch size has a session of its own. Inputs and outputs stay in the device memory where the session reads
and writes them (IO binding). The forward pass is replayed as one CUDA graph on a stream of this program, and
CUDA events time it. cuDNN's algorithms are searched exhaustively. In fp32, TF32 is off.

ONNX Runtime falls back to the CPU without a word. Here that is an error where the whole model falls back; a
few nodes on the CPU are noted in the session's `facts`.

There are three ways of running a pass, best first: captured, bound, plain (WAYS). A way may give wrong
answers. So the first `fetch` compares the answer with that of a plain `run` of the same session over the same
inputs. If they differ, or if the way fails, the session is opened again in the next way.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from engine.backend import OpTime, Options
from engine.cuda import runtime as cuda_runtime
from engine.graph.graph import Graph
from engine.machine import host
from engine.options import Configuration
from engine.ort import binding
from engine.ort import sessions as ort
from engine.ort.fused_conv import fused
from engine.ort.precision import to_fp16
from engine.ort.trains import LaunchedSession
from kernels.errors import KernelError, KernelscopeError, OutOfMemoryError, UnavailableError, UnsupportedError
from kernels.spans import span

PROVIDER = "CUDAExecutionProvider"
_ASYNC = "disable_synchronize_execution_providers"
_GRAPH_ID = "gpu_graph_id"
_NO_CAPTURE = "-1"
LOAD = "cuDNN and cuBLAS load"  # the name of its spans
CUDA_EXTRA = "install the extra cuda (cuda12 for drivers older than 580)"

Spec = tuple[tuple[int, ...], np.dtype]
CAPTURED, BOUND, PLAIN = "captured", "bound", "plain"
"""The ways of running a pass, best first: replayed as a CUDA graph; launched over bound memory; `run`, which
copies its inputs to the device and its outputs back."""
WAYS = (CAPTURED, BOUND, PLAIN)
_WORSE_WAY = dict(pairwise(WAYS))

# By what a session is made of (its `_key`): the way whose answer was that of a plain run, and why no better
# way is taken. A later session with this key begins with that way and is not compared again.
_agreed: dict[tuple[object, ...], tuple[str, str]] = {}


@span(LOAD)
def _load_libraries(ort: Any) -> None:
    """CUDA's and cuDNN's, which ONNX Runtime finds in their pip packages."""
    if hasattr(ort, "preload_dlls"):
        ort.preload_dlls()


class OrtCudaSession(LaunchedSession):
    """A model at one batch size on ONNX Runtime's CUDA provider; see engine.backend.Session.

    Create it and run it in the same thread, because ONNX Runtime keeps a captured graph for each thread.
    graph: the model; precision: one of kernels.precision; options: see engine.options. Raises
    UnavailableError where ONNX Runtime or CuPy is missing or the model falls back to the CPU,
    UnsupportedError where ONNX Runtime has no such operator or an input's shape is not known,
    OutOfMemoryError, else KernelError.
    """

    backend = "ort-cuda"
    provider = PROVIDER
    _translated = ort.translated
    _inputs: dict[str, binding.Buffer]
    _outputs: dict[str, binding.Buffer]
    _library, _helps = "CUDA or cuDNN", CUDA_EXTRA
    _behind: tuple[Any, ...] = ("CPUExecutionProvider",)  # providers for nodes that this one cannot run
    _told: tuple[str, ...] = ("use_tf32", "cudnn_conv_algo_search")  # names of settings for `facts`
    _why = ""  # the reason why no better way is taken

    def __init__(self, graph: Graph, batch: int, precision: str, options: Options) -> None:
        self._ort = ort.import_onnxruntime()
        _load_libraries(self._ort)
        self._cupy = cuda_runtime.import_cupy()
        self._pool = self._cupy.cuda.MemoryPool()
        self.batch, self.precision = batch, precision
        self._what = f"{graph.name} on {self.backend} at batch {batch} in {precision}"
        self._options = options
        self._configured = options.ort or Configuration()
        self._facts: dict[str, str] = {}
        self._bound = {}
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
        wanted = CAPTURED if self._options.cuda_graph else BOUND
        if wanted == BOUND:
            self._facts["cuda_graph"] = "no: not asked for"
        self._key = (
            graph.sha256, self.batch, self.precision, self.provider, wanted, self._configured.words,
            *sorted(self._options.provider_options.items()),
        )  # fmt: skip
        known, why = _agreed.get(self._key, (wanted, ""))
        self._checked = self._key in _agreed
        if why:
            self._fell_back(known, why)
        for way in WAYS[WAYS.index(known) :]:
            try:
                self._open(way)
                break
            except (OutOfMemoryError, UnavailableError):
                raise
            except KernelscopeError as error:
                if way == PLAIN or (way == BOUND and isinstance(error, UnsupportedError)):
                    raise
                # Something that is not on the GPU, or a call that cannot be captured: the same without a
                # graph. Or an output that is refused where it is bound.
                self._release()
                self._why = str(error)
                self._fell_back(_WORSE_WAY[way], self._why)

    def _fell_back(self, way: str, why: str) -> None:
        """Note in `facts` that the session falls back to this way, and why."""
        self._facts["cuda_graph"] = f"no: {why}"
        if way == PLAIN:
            self._facts["binding"] = f"no: {why}; each pass copies its inputs to the GPU and its outputs back"

    def _open(self, way: str) -> None:
        """Create session, buffers and binding for this way of running. Then warm up, which searches
        algorithms and captures the graph."""
        self._way, cuda_graph = way, way == CAPTURED
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
        self._facts |= ort.check_placement(
            self._session, self.provider, self._what, f"{self._library} did not load, {self._helps}"
        )
        self._placed = binding.placed(self._session, self._model.proto.graph.node)
        if cuda_graph and not self._placed.all_on_gpu:
            raise KernelError(f"a CUDA graph would not run what is not on the GPU: {self._placed.words}")
        created = time.perf_counter_ns()
        self._phases["load"] = self._conversion_ns + created - started
        inputs = ort.buffers_of(self._session.get_inputs())
        if inputs is None:
            raise UnsupportedError(f"an input of {self._what} has a dimension that is not known")
        with ort.translated(f"the inputs and outputs of {self._what}"):
            self._inputs = self._allocate(inputs, self._placed.inputs)
            inferred = ort.buffers_of(self._session.get_outputs())
            self._shapes_by_trial = inferred is None
            if way == PLAIN:
                shapes = {name: (a.shape, a.dtype) for name, a in self._run_plain().items()}
                self._outputs = self._allocate(shapes, ())
            else:
                self._binding = self._session.io_binding()
                binding.bind(self._binding.bind_input, self._inputs, self._device)
                self._bind_outputs(inferred or self._discover_outputs())
            buffers = (*self._inputs.values(), *self._outputs.values())
            largest = max(buffer.nbytes for buffer in buffers)
            self._staging = cuda_runtime.Staging(self._cupy, self._stream, largest)
        allocated = time.perf_counter_ns()
        self._phases["alloc"] = allocated - created
        self._run_options = self._ort.RunOptions()
        self._run_options.log_severity_level = ort.SILENT
        off_gpu = self._placed.words
        if way == PLAIN:
            off_gpu = "each pass copies its inputs and outputs by itself"
        elif not off_gpu:  # what the CPU reads and writes has to be there when a pass is over
            self._run_options.add_run_config_entry(_ASYNC, "1")
        with ort.translated(f"the first run of {self._what}"):
            # The search of algorithms; for a graph ONNX Runtime adds a second run and the capture by itself.
            if way != PLAIN:
                try:
                    self._session.run_with_iobinding(self._binding)
                except Exception:
                    found = self._discover_outputs()  # raises where the shapes are not what was wrong
                    if found == inferred:
                        raise
                    # Shape inference below opset 22 counts pooling windows of ceil_mode that the operator
                    # leaves out.
                    self._bind_outputs(found)
                    self._session.run_with_iobinding(self._binding)
            self._launch()
            self._stream.synchronize()
        self._phases["compile"] = time.perf_counter_ns() - allocated
        self._timed_over(self._launch, cuda_graph, off_gpu)
        if cuda_graph:
            self._facts["cuda_graph"] = "yes"
        self._facts |= {
            "provider": self._session.get_providers()[0],
            "onnxruntime": self._ort.__version__,
            **{name: settings[name] for name in self._told if name in settings},
            **{name: str(value) for name, value in self._options.provider_options.items()},
            **({"configuration": self._configured.words} if self._options.ort else {}),
        }

    def _settings(self, cuda_graph: bool) -> dict[str, str]:
        """The provider's settings, as ONNX Runtime names them."""
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

    @property
    def _device(self) -> int:
        return int(self._cupy.cuda.runtime.getDevice())

    def _allocate(self, specs: Mapping[str, Spec], on_host: Collection[str]) -> dict[str, binding.Buffer]:
        """A buffer for each of these tensors. on_host: names of those in host memory (plain: all)."""
        if self._way == PLAIN:
            on_host = specs
        return {
            name: binding.OnHost(*spec) if name in on_host else binding.OnGpu(self._pool, *spec, self._stream)
            for name, spec in specs.items()
        }

    def _bind_outputs(self, specs: Mapping[str, Spec]) -> None:
        # An output that is an input is the input's own memory: ONNX Runtime hands it on and copies nothing.
        own = {name: spec for name, spec in specs.items() if name not in self._inputs}
        buffers = self._allocate(own, self._placed.outputs)
        self._outputs = {name: buffers.get(name) or self._inputs[name] for name in specs}
        binding.bind(self._binding.bind_output, buffers, self._device)
        for name in specs.keys() - own.keys():
            self._binding.bind_output(name, "cuda", self._device)

    def _discover_outputs(self) -> dict[str, Spec]:
        """The outputs' shapes and dtypes, from one run that is not captured. For what shape inference cannot
        tell."""
        arguments = self._session.get_outputs()
        for argument in arguments:
            self._binding.bind_output(argument.name, "cuda", self._device)
        options = self._ort.RunOptions()
        options.add_run_config_entry(_GRAPH_ID, _NO_CAPTURE)
        self._stream.synchronize()
        self._session.run_with_iobinding(self._binding, options)
        values = self._binding.get_outputs()
        specs = {
            argument.name: (tuple(value.shape()), ort.dtype_of(argument.name, argument.type))
            for argument, value in zip(arguments, values, strict=True)
        }
        self._binding.clear_binding_outputs()
        return specs

    # --------------------------------------------------------------------------------------------- running

    def _launch(self) -> None:
        if self._way == PLAIN:
            self._answered = self._run_plain()
        else:
            self._session.run_with_iobinding(self._binding, self._run_options)

    def _start(self) -> None:
        try:
            self._launch()
        except Exception as error:
            # An output's shape may hang on the values of the inputs: it was found on others.
            if not self._shapes_by_trial or self._way == PLAIN:
                raise
            self._reopen(PLAIN, f"{self._way}, a pass fails: {ort.first_line(error)}")
            self._launch()

    def _copy_in(self) -> None:
        for name, array in self._bound.items():
            to = self._inputs[name]
            if isinstance(to, binding.OnHost):
                np.copyto(to.array, array)
            else:
                self._staging.upload(array, to.pointer)
        self._stream.synchronize()

    def _copied_out(self) -> dict[str, np.ndarray]:
        outputs = self._read()
        if self._checked or not self._bound:
            return outputs
        while self._way != PLAIN:
            try:
                plain = self._run_plain()
            except Exception as error:  # memory for both, say
                self._checked = True
                self._facts["checked"] = f"no: a plain run of the session failed: {ort.first_line(error)}"
                return outputs
            why = binding.differs(outputs, plain, self.precision)
            if why is None:
                break
            told = f"{self._way}, it does not answer as a plain run of the same session does: {why}"
            self._reopen(_WORSE_WAY[self._way], told)
            self._start()
            self._stream.synchronize()
            outputs = self._read()
        self._checked = True
        _agreed[self._key] = self._way, self._why
        return outputs

    def _read(self) -> dict[str, np.ndarray]:
        """Copies of the outputs of the last pass, by name."""
        if self._way == PLAIN:
            return {name: np.array(array) for name, array in self._answered.items()}
        outputs = {}
        for name, of in self._outputs.items():
            outputs[name] = np.empty(of.shape, of.dtype)
            if isinstance(of, binding.OnHost):
                np.copyto(outputs[name], of.array)
            else:
                self._staging.download(of.pointer, outputs[name])
        return outputs

    def _run_plain(self) -> dict[str, np.ndarray]:
        """The outputs of a plain run of this session over the bound inputs, by name."""
        options = self._ort.RunOptions()
        options.log_severity_level = ort.SILENT
        options.add_run_config_entry(_GRAPH_ID, _NO_CAPTURE)
        names = [argument.name for argument in self._session.get_outputs()]
        return dict(zip(names, self._session.run(names, self._lying(), options), strict=True))

    def _reopen(self, way: str, why: str) -> None:
        """Open the session again in this way, with the same inputs. why: the reason, for `facts`."""
        self._why = why
        self._release()
        self._fell_back(way, why)
        self._open(way)
        self._copy_in()

    def op_times(self, seconds: float) -> tuple[OpTime, ...]:
        """Always (): the profile of ONNX Runtime's pip build has only the host's times, which say nothing of
        the GPU. bench.measure.answers.layers times each group of layers on its own instead."""
        return ()

    def _release(self) -> None:
        """Free the ONNX Runtime session and all device memory."""
        # The session goes first: its graph reads the buffers and runs on the stream.
        for name in (
            "_trains",
            "_binding",
            "_session",
            "_inputs",
            "_outputs",
            "_staging",
            "_stream",
            "_answered",
        ):
            self.__dict__.pop(name, None)
        self._pool.free_all_blocks()

    def close(self) -> None:
        """Free everything. After a CUDA error that broke the context nothing can be freed: it is kept."""
        self._closed = True
        if cuda_runtime.lost(self._cupy):
            cuda_runtime.keep(self)
            return
        self._bound = {}
        self._release()
