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
from typing import Any

import numpy as np

from engine.cuda.stirring import CudaTensor
from engine.graph.graph import Graph
from engine.isolated.device import OnDevice
from engine.options import Options
from engine.passes.trace import known
from engine.rivals import cublaslt, cudnn_library, cudnn_net
from engine.rivals.captured import CapturedSession
from engine.rivals.cudnn_gpu import Gpu
from kernels.precision import narrow

MOST_WORDS = 1500  # of which plan computes what


class CudnnGraphSession(CapturedSession):
    """See engine.backend.Session."""

    backend = "cudnn-graph"
    _translated = cudnn_library.translated
    _held = ("_net", "_graphs", "_products", "_gpu")

    def __init__(self, graph: Graph, batch: int, precision: str, options: Options) -> None:
        self._cudnn, self._graph = cudnn_library.imported(), graph
        super().__init__(batch, precision, f"{graph.name} at batch {batch} in {precision}", options)
        del self._graph
        self.memory = {"weights": self._net.weights_nbytes, **self.memory}
        words = "; ".join(f"{node}: {plan}" for node, plan in self._net.words.items())
        self.facts = {
            "cudnn_frontend": f"{self._cudnn.__version__} with cuDNN {self._graphs.version}",
            "cublaslt": self._products.version,
            "layout": "channels innermost" if self._nhwc else "as ONNX has it",
            "chosen": f"by time, of {self._graphs.tried + self._products.tried} plans and algorithms",
            "plans": words if len(words) <= MOST_WORDS else words[: MOST_WORDS - 1] + "…",
            "own_kernels": "pooling, LRN, softmax, element-wise steps and layouts: the graph API has none",
            **self.facts,
        }

    def _prepare(self) -> tuple[Callable[[], object], dict[str, CudaTensor], dict[str, CudaTensor]]:
        started = time.perf_counter_ns()
        graph, held = self._graph, narrow(self.precision) or "float32"
        # Without tensor cores cuDNN's engines want images as ONNX has them; the others turn such images.
        self._nhwc = self.precision != "fp32" or cudnn_net.has_eight_bits(graph, self.batch)
        self._gpu = Gpu(self._cupy, self._pool, self._stream, held, self._nhwc)
        self._graphs = cudnn_library.Graphs(self._cudnn, self._gpu)
        self._products = cublaslt.Products(cublaslt.loaded(), self._gpu)
        loaded, tf32 = time.perf_counter_ns(), self.precision == "tf32"
        self._net = net = cudnn_net.built(
            graph, self.batch, held, self._nhwc, tf32, self._gpu, self._graphs, self._products
        )
        self._graphs.settle()
        self.phases: Mapping[str, int] = {
            "load": loaded - started,
            "compile": time.perf_counter_ns() - loaded,
        }
        scope = known(graph, self.batch)
        given = np.dtype(np.float16 if held == "float16" else np.float32)
        inputs, outputs = (
            {name: CudaTensor(at, tuple(scope.shape(name)), given) for name, at in places.items()}
            for places in (net.inputs, net.outputs)
        )
        return self._pass, inputs, outputs

    def _pass(self) -> None:
        for step in self._net.steps:
            step()

    def _follow(self) -> None:
        self._gpu.stream = self._stream
        self._graphs.follow()

    def close(self) -> None:
        if self._closed:
            return
        for part in (self._graphs, self._products):
            part.close()
        super().close()


def opened(*arguments: Any) -> OnDevice:
    return OnDevice(CudnnGraphSession(*arguments))
