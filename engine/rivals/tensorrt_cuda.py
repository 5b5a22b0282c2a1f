"""A model at one batch size in TensorRT by itself, in an isolated process (engine.isolated.device): the ONNX
file through TensorRT's parser, an engine for these shapes alone, replayed as one CUDA graph.

TensorRT is told the types: it computes fp16 where the model says so, and a model in float32 becomes one in
float16 as it does for ONNX Runtime (engine.ort.precision). TF32 is off in fp32.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from engine.cuda.stirring import CudaTensor
from engine.graph.graph import Graph
from engine.isolated.device import OnDevice
from engine.options import Options
from engine.ort.precision import to_fp16
from engine.passes.trace import known
from engine.rivals.captured import CapturedSession
from kernels.errors import (
    KernelError,
    KernelscopeError,
    OutOfMemoryError,
    Translated,
    UnavailableError,
    UnsupportedError,
    one_line,
)

WORKSPACE = 4 << 30  # bytes that a step may ask for


class translated(Translated):
    """Around calls of TensorRT and CuPy."""

    __slots__ = ()

    def ours(self, error: Exception) -> KernelscopeError | None:
        said = one_line(error)
        if isinstance(error, MemoryError) or "out of memory" in said.lower():
            return self.ran_out(said)
        return KernelError(f"TensorRT failed on {self._what}: {said}")


def imported() -> Any:
    """The module `tensorrt`. Raises UnavailableError."""
    try:
        return importlib.import_module("tensorrt")
    except Exception as error:  # a library that does not load has many names
        raise UnavailableError(f"TensorRT cannot be imported: {one_line(error)}") from error


class TensorRtSession(CapturedSession):
    """See engine.backend.Session."""

    backend = "tensorrt-cuda"
    _translated = translated
    _held = ("_context", "_engine", "_memory")

    def __init__(self, graph: Graph, batch: int, precision: str, options: Options) -> None:
        self._trt, self._graph = imported(), graph
        super().__init__(batch, precision, f"{graph.name} at batch {batch} in {precision}", options)
        del self._graph
        self.facts = {"tensorrt": str(self._trt.__version__), **self.facts}

    def _prepare(self) -> tuple[Callable[[], object], dict[str, CudaTensor], dict[str, CudaTensor]]:
        trt, started = self._trt, time.perf_counter_ns()
        logger = trt.Logger(trt.Logger.ERROR)
        builder = trt.Builder(logger)
        typed = 1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
        network = builder.create_network(typed)
        _parser = self._read(trt, logger, network)  # whose weights are the network's
        loaded = time.perf_counter_ns()
        config = builder.create_builder_config()
        config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, WORKSPACE)
        if self.precision == "tf32":
            config.set_flag(trt.BuilderFlag.TF32)
        else:
            config.clear_flag(trt.BuilderFlag.TF32)
        plan = builder.build_serialized_network(network, config)
        if plan is None:
            raise UnsupportedError(f"TensorRT builds no engine for {self._what}")
        self._engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
        self._context = self._engine.create_execution_context()
        if self._context is None:
            raise OutOfMemoryError(f"memory did not suffice for {self._what} in TensorRT")
        self.phases: Mapping[str, int] = {
            "load": loaded - started,
            "compile": time.perf_counter_ns() - loaded,
        }
        inputs, outputs = self._placed(trt)
        return self._pass, inputs, outputs

    def _read(self, trt: Any, logger: Any, network: Any) -> Any:
        """The parser that has read the model into the network, its batch fixed. Raises UnsupportedError in
        TensorRT's words."""
        graph = to_fp16(self._graph) if self.precision == "fp16" else self._graph
        parser = trt.OnnxParser(network, logger)
        if not parser.parse(graph.whole_proto().SerializeToString()):
            said = parser.get_error(0).desc() if parser.num_errors else "it does not say why"
            raise UnsupportedError(f"TensorRT does not read {self._graph.name}: {said}")
        scope = known(self._graph, self.batch)
        for index in range(network.num_inputs):
            given = network.get_input(index)
            given.shape = scope.shape(given.name)
        return parser

    def _placed(self, trt: Any) -> tuple[dict[str, CudaTensor], dict[str, CudaTensor]]:
        """Memory for inputs and outputs, which the context is told."""
        self._memory, inputs, outputs = [], dict[str, CudaTensor](), dict[str, CudaTensor]()
        for index in range(self._engine.num_io_tensors):
            name = self._engine.get_tensor_name(index)
            shape = tuple(int(size) for size in self._engine.get_tensor_shape(name))
            dtype = np.dtype(trt.nptype(self._engine.get_tensor_dtype(name)))
            memory = self._pool.malloc(max(256, int(np.prod(shape, dtype=np.int64)) * dtype.itemsize))
            self._memory.append(memory)
            if not self._context.set_tensor_address(name, int(memory.ptr)):
                raise KernelError(f"TensorRT takes no address for {name!r} of {self._what}")
            mode = self._engine.get_tensor_mode(name)
            into = inputs if mode == trt.TensorIOMode.INPUT else outputs
            into[name] = CudaTensor(int(memory.ptr), shape, dtype)
        names = [info.name for info in self._graph.outputs]
        return inputs, {name: outputs[name] for name in names}

    def _pass(self) -> None:
        if not self._context.execute_async_v3(self._stream.ptr):
            raise KernelError(f"TensorRT could not start a pass of {self._what}")


def opened(*arguments: Any) -> OnDevice:
    return OnDevice(TensorRtSession(*arguments))
