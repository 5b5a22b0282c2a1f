"""A model at one batch size in PyTorch on an NVIDIA GPU, in an isolated process (engine.isolated.device):
eager or compiled, each pass launched by the host or replayed as a CUDA graph.

It is treated as ONNX Runtime is: a stream of ours with CUDA events as clock, a search of cuDNN's algorithms
(cudnn.benchmark), TF32 only in precision tf32, a float16 or bfloat16 copy of the model for fp16 and bf16. In
bf16 inputs and outputs are float32, and a pass converts them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from engine.cuda import runtime as cuda_runtime
from engine.cuda.stirring import CudaTensor
from engine.graph.graph import Graph
from engine.isolated.device import OnDevice
from engine.options import Options
from engine.ort.trains import LaunchedSession
from engine.passes.trace import known
from engine.rivals import torch_here
from engine.rivals.torch_translation import Swap
from engine.rung_rows import Given
from kernels.errors import UnavailableError
from kernels.precision import narrow

WARM_UP = 3  # passes before a graph is captured: libraries load, algorithms are searched


class TorchCudaSession(LaunchedSession):
    """See engine.backend.Session. how: see torch_here; replayed: as a CUDA graph."""

    backend = "torch-cuda"
    _translated = torch_here.translated_errors

    def __init__(
        self,
        graph: Graph,
        batch: int,
        precision: str,
        options: Options,
        how: str,
        replayed: bool,
        swaps: Sequence[Swap] = (),
    ) -> None:
        self._torch = torch = torch_here.imported()
        if not torch.cuda.is_available():
            raise UnavailableError(f"PyTorch {torch.__version__} finds no GPU that it can use")
        self._cupy = cuda_runtime.import_cupy()
        self._pool = self._cupy.cuda.MemoryPool()
        self.batch, self.precision, self._replayed = batch, precision, replayed
        self._what = f"{graph.name} in PyTorch at batch {batch} in {precision}"
        self._facts: dict[str, str] = {}
        self._bound = {}
        with torch_here.translated_errors(self._what):
            free_before = torch.cuda.mem_get_info()[0]
            self._prepare(graph, how, swaps)
            free_after = torch.cuda.mem_get_info()[0]
        self.memory: Mapping[str, int] = {
            "weights": sum(buffer.nbytes for buffer in self._net.buffers()),
            "inputs": sum(tensor.nbytes for tensor in self._given.values()),
            "outputs": sum(tensor.nbytes for tensor in self._left.values()),
            "device": max(0, free_before - free_after),
        }
        self.facts: Mapping[str, str] = {
            "torch": str(torch.__version__),
            "cudnn": str(torch.backends.cudnn.version()),
            "execution": torch_here.WORDS[how],
            "cuda_graph": "yes" if replayed else "no: not asked for",
            "tf32": "yes" if precision == "tf32" else "no",
            "process": "its own: a whole pass from host to host also crosses to it and back",
            **self._facts,
        }

    def _prepare(self, graph: Graph, how: str, swaps: Sequence[Swap]) -> None:
        torch, held = self._torch, narrow(self.precision) or "float32"
        started = time.perf_counter_ns()
        self._stream = self._cupy.cuda.Stream(non_blocking=True)
        self._torch_stream = torch.cuda.ExternalStream(self._stream.ptr)
        self._here()
        self._net = torch_here.net(torch, graph, self.batch, held, swaps).cuda()
        scope = known(graph, self.batch)
        self._given = {}
        for info in graph.inputs:
            dtype = np.dtype(scope.spec(info.name).dtype)
            zeros = np.zeros(
                scope.shape(info.name), np.float16 if held == "float16" and dtype.kind == "f" else dtype
            )
            self._given[info.name] = torch.from_numpy(zeros).cuda()
        torch.cuda.synchronize()
        loaded = time.perf_counter_ns()
        with torch.inference_mode():
            self._call = torch_here.compiled(torch, self._net, how)
            tensors = tuple(self._given.values())
            for _ in range(WARM_UP):
                outputs = self._call(*tensors)
            self._stream.synchronize()
            names = [info.name for info in graph.outputs]
            if self._replayed:
                launch = self._captured(tensors, names)
            else:
                self._left = {
                    n: torch.zeros_like(it).contiguous() for n, it in zip(names, outputs, strict=True)
                }
                launch = self._launching(tensors)
        compiled = time.perf_counter_ns()
        tensors_of = self._given, self._left
        self._inputs, self._outputs = (
            {name: CudaTensor(it.data_ptr(), tuple(it.shape), _dtype(it)) for name, it in zeros.items()}
            for zeros in tensors_of
        )
        largest = max(it.nbytes for zeros in tensors_of for it in zeros.values())
        self._staging = cuda_runtime.Staging(self._cupy, self._stream, largest)
        self._launch = launch
        self._timed_over(launch, self._replayed)
        launch()
        self._stream.synchronize()
        self.phases: Mapping[str, int] = {
            "load": loaded - started,
            "compile": compiled - loaded,
            "alloc": time.perf_counter_ns() - compiled,
        }

    def _captured(self, tensors: Sequence[Any], names: Sequence[str]) -> Callable[[], object]:
        """A function that launches the pass as one CUDA graph; its outputs have fixed addresses."""
        torch = self._torch
        self._graph = graph = torch.cuda.CUDAGraph()
        self._stream.synchronize()
        with torch.cuda.graph(graph, stream=self._torch_stream, capture_error_mode="thread_local"):
            outputs = [_own(it, tensors) for it in self._call(*tensors)]
        self._left = dict(zip(names, outputs, strict=True))

        def launch() -> None:
            self._here()
            graph.replay()

        return launch

    def _launching(self, tensors: Sequence[Any]) -> Callable[[], object]:
        """A function that launches the pass call by call; its outputs are copied to fixed addresses, where an
        application would have them."""
        call, outputs, inference = self._call, tuple(self._left.values()), self._torch.inference_mode

        def launch() -> None:
            self._here()
            with inference():
                for to, of in zip(outputs, call(*tensors), strict=True):
                    to.copy_(of)

        return launch

    def _here(self) -> None:
        """Set PyTorch's global settings to those of this session."""
        global _whose
        if _whose is self:
            return
        torch, tf32 = self._torch, self.precision == "tf32"
        torch.cuda.set_stream(self._torch_stream)
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.allow_tf32 = tf32
        torch.backends.cuda.matmul.allow_tf32 = tf32
        _whose = self

    # --------------------------------------------------------------------------------------------- running

    def _kept(self, array: Given, dtype: np.dtype) -> np.ndarray:
        return np.array(array, dtype, order="C")  # of memory that the parent writes to again

    def _start(self) -> None:
        self._launch()

    def close(self) -> None:
        global _whose
        self._closed = True
        if _whose is self:
            _whose = None
        for name in ("_trains", "_launch", "_graph", "_call", "_net", "_left", "_given", "_staging"):
            self.__dict__.pop(name, None)
        self._pool.free_all_blocks()
        self._torch.cuda.set_stream(self._torch.cuda.default_stream())
        self._torch.cuda.empty_cache()


_whose: TorchCudaSession | None = None


def _dtype(tensor: Any) -> np.dtype:
    return np.dtype(str(tensor.dtype).removeprefix("torch."))


def _own(made: Any, tensors: Sequence[Any]) -> Any:
    """An output in memory of its own, dense; an output that is an input is copied."""
    shared = any(made.data_ptr() == tensor.data_ptr() for tensor in tensors)
    return made.clone() if shared else made.contiguous()


def opened(*arguments: Any) -> OnDevice:
    return OnDevice(TorchCudaSession(*arguments))
