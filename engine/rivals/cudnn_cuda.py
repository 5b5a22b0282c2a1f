"""A model at one batch size as a careful engineer would put it together from NVIDIA's libraries, in an
isolated process (engine.isolated.device): cuDNN's graph API for convolutions with what follows them, cuBLASLt
for products, a few small kernels for the rest, replayed as one CUDA graph.

It is treated as the other rivals are: a stream of ours with CUDA events as clock; plans and algorithms are
chosen by time when the session is made; no tensor core in fp32, TF32 only in tf32. In fp16 inputs and outputs
are float16, in bf16 float32.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from engine.cuda import runtime as cuda_runtime
from engine.cuda.stirring import CudaTensor
from engine.graph.graph import Graph
from engine.isolated.device import OnDevice
from engine.options import Options
from engine.ort.trains import LaunchedSession
from engine.passes.trace import known
from engine.rivals import cublaslt, cudnn_library, cudnn_net
from engine.rivals.cudnn_gpu import Gpu
from engine.rung_rows import Given
from kernels.precision import narrow

MOST_WORDS = 1500  # of which plan computes what


class CudnnGraphSession(LaunchedSession):
    """See engine.backend.Session."""

    backend = "cudnn-graph"
    _translated = cudnn_library.translated

    def __init__(self, graph: Graph, batch: int, precision: str, options: Options) -> None:
        self._cudnn = cudnn_library.imported()
        self._cupy = cuda_runtime.import_cupy()
        self._pool = self._cupy.cuda.MemoryPool()
        self.batch, self.precision = batch, precision
        self._what = f"{graph.name} at batch {batch} in {precision}"
        self._facts: dict[str, str] = {}
        self._bound: dict[str, Given] = {}
        self._stream = self._cupy.cuda.Stream(non_blocking=True)
        with self._translated(self._what):
            free_before = self._cupy.cuda.runtime.memGetInfo()[0]
            self._prepare(graph, options)
            free_after = self._cupy.cuda.runtime.memGetInfo()[0]
        self.memory: Mapping[str, int] = {
            "weights": self._net.weights_nbytes,
            "inputs": _nbytes(self._inputs),
            "outputs": _nbytes(self._outputs),
            "device": max(0, free_before - free_after),
        }
        words = "; ".join(f"{node}: {plan}" for node, plan in self._net.words.items())
        self.facts: Mapping[str, str] = {
            "cudnn_frontend": f"{self._cudnn.__version__} with cuDNN {self._graphs.version}",
            "cublaslt": self._products.version,
            "layout": "channels innermost" if self._nhwc else "as ONNX has it",
            "tf32": "yes" if precision == "tf32" else "no",
            "chosen": f"by time, of {self._graphs.tried + self._products.tried} plans and algorithms",
            "plans": words if len(words) <= MOST_WORDS else words[: MOST_WORDS - 1] + "…",
            "own_kernels": "pooling, LRN, softmax, element-wise steps and layouts: the graph API has none",
            "process": "its own: a whole pass from host to host also crosses to it and back",
            **self._facts,
        }

    def _prepare(self, graph: Graph, options: Options) -> None:
        started = time.perf_counter_ns()
        held = narrow(self.precision) or "float32"
        # Without tensor cores cuDNN's engines want images as ONNX has them; the others turn such images.
        self._nhwc = self.precision != "fp32" or cudnn_net.has_eight_bits(graph, self.batch)
        self._gpu = Gpu(self._cupy, self._pool, self._stream, held, self._nhwc)
        self._graphs = cudnn_library.Graphs(self._cudnn, self._gpu)
        self._products = cublaslt.Products(cublaslt.loaded(), self._gpu)
        loaded = time.perf_counter_ns()
        self._net = net = cudnn_net.built(
            graph,
            self.batch,
            held,
            self._nhwc,
            self.precision == "tf32",
            self._gpu,
            self._graphs,
            self._products,
        )
        self._gpu.put(self._pass)
        self._gpu.synchronize()
        launch = self._captured() if options.cuda_graph else None
        compiled = time.perf_counter_ns()
        scope = known(graph, self.batch)
        given = np.dtype(np.float16 if held == "float16" else np.float32)
        self._inputs, self._outputs = (
            {name: CudaTensor(at, tuple(scope.shape(name)), given) for name, at in places.items()}
            for places in (net.inputs, net.outputs)
        )
        largest = max(it.size * it.dtype.itemsize for it in (*self._inputs.values(), *self._outputs.values()))
        self._staging = cuda_runtime.Staging(self._cupy, self._stream, largest)
        self._facts["cuda_graph"] = "yes" if launch else self._facts.get("cuda_graph", "no: not asked for")
        self._launch = launch or partial(self._gpu.put, self._pass)
        self._timed_over(self._launch, launch is not None)
        self._launch()
        self._stream.synchronize()
        self.phases: Mapping[str, int] = {
            "load": loaded - started,
            "compile": compiled - loaded,
            "alloc": time.perf_counter_ns() - compiled,
        }

    def _pass(self) -> None:
        for step in self._net.steps:
            step()

    def _captured(self) -> Callable[[], object] | None:
        """A function that launches the pass as one CUDA graph; None, with the reason in the facts, where a
        plan that was chosen cannot be captured."""
        stream = self._stream
        try:
            with stream:
                stream.begin_capture()
                try:
                    self._pass()
                finally:
                    graph = stream.end_capture()
            graph.upload(stream)
            graph.launch(stream)
            stream.synchronize()
        except Exception as error:
            self._facts["cuda_graph"] = f"no: {cudnn_library.line(error)}"
            # A capture that failed leaves a stream that cannot be used.
            self._stream = self._gpu.stream = self._cupy.cuda.Stream(non_blocking=True)
            self._graphs.follow()
            return None
        self._graph = graph
        return partial(graph.launch, stream)

    # --------------------------------------------------------------------------------------------- running

    def _kept(self, array: Given, dtype: np.dtype) -> np.ndarray:
        return np.array(array, dtype, order="C")  # of memory that the parent writes to again

    def _start(self) -> None:
        self._launch()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for part in (self._graphs, self._products):
            part.close()
        for name in ("_trains", "_launch", "_graph", "_net", "_graphs", "_products", "_gpu", "_staging"):
            self.__dict__.pop(name, None)
        self._pool.free_all_blocks()


def _nbytes(placed: Mapping[str, Any]) -> int:
    return sum(it.size * it.dtype.itemsize for it in placed.values())


def opened(*arguments: Any) -> OnDevice:
    return OnDevice(CudnnGraphSession(*arguments))
