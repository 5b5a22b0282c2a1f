"""A model at one batch size in OpenVINO on the CPU, in an isolated process: one stream, for the least
latency, in float32 (some processors would use bfloat16 by default)."""

from __future__ import annotations

import importlib
import time
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from engine.graph.graph import Graph
from engine.isolated.slots import Copies
from engine.machine import host
from engine.options import Options
from engine.passes.trace import known
from kernels.errors import (
    KernelError,
    KernelscopeError,
    Translated,
    UnavailableError,
    UnsupportedError,
)


class OpenVinoSession:
    """A session as engine.isolated.child needs it."""

    def __init__(self, graph: Graph, batch: int, options: Options) -> None:
        self._what = f"{graph.name} in OpenVINO at batch {batch}"
        try:
            openvino = importlib.import_module("openvino")
        except Exception as error:
            raise UnavailableError(f"OpenVINO cannot be imported: {error}") from error
        threads = options.threads or host.physical_cores()
        settings = {
            "PERFORMANCE_HINT": "LATENCY",
            "NUM_STREAMS": "1",
            "INFERENCE_NUM_THREADS": str(threads),
            "INFERENCE_PRECISION_HINT": "f32",
        }
        started = time.perf_counter_ns()
        scope = known(graph, batch)
        try:
            core = openvino.Core()
            model = core.read_model(graph.whole_proto().SerializeToString(), b"")
            model.reshape({port: list(scope.shape(port.get_any_name())) for port in model.inputs})
        except Exception as error:
            raise UnsupportedError(f"OpenVINO does not read {graph.name}: {_line(error)}") from error
        loaded = time.perf_counter_ns()
        with _translated(self._what):
            self._compiled = core.compile_model(model, "CPU", settings)
            self._request = self._compiled.create_infer_request()
            self.given = {
                info.name: np.zeros(scope.shape(info.name), scope.spec(info.name).dtype)
                for info in graph.inputs
            }
            self._outputs: dict[str, np.ndarray] = {}
            for name, array in self.given.items():
                self._request.set_tensor(name, openvino.Tensor(array, shared_memory=True))
            for port, info in zip(self._compiled.outputs, graph.outputs, strict=True):
                port_memory = np.zeros(tuple(port.get_shape()), port.get_element_type().to_dtype())
                self._outputs[info.name] = port_memory
                self._request.set_tensor(port, openvino.Tensor(port_memory, shared_memory=True))
            self._infer = partial(self._request.infer, share_outputs=True)  # nothing is copied
            self._infer()
        self.phases: Mapping[str, int] = {
            "load": loaded - started,
            "compile": time.perf_counter_ns() - loaded,
        }
        self.memory: Mapping[str, int] = {
            "weights": sum(array.nbytes for array in graph.initializers.values()),
            "inputs": sum(array.nbytes for array in self.given.values()),
            "outputs": sum(array.nbytes for array in self._outputs.values()),
        }
        self.facts: Mapping[str, str] = {
            "openvino": str(openvino.__version__),
            "threads": str(threads),
            "inference_precision": str(self._compiled.get_property("INFERENCE_PRECISION_HINT")),
        }

    def answers(self) -> dict[str, np.ndarray]:
        return self._outputs

    def run(self) -> None:
        with _translated(self._what):
            self._infer()

    def each(self, copies: Sequence[Copies]) -> None:
        """One pass for each of these inputs, its answer copied to where it belongs."""
        infer = self._infer
        with _translated(self._what):
            for inputs, outputs in copies:
                for to, of in inputs:
                    np.copyto(to, of)
                infer()
                for to, of in outputs:
                    np.copyto(to, of)

    def close(self) -> None:
        del self._infer, self._request, self._compiled
        self.given.clear()
        self._outputs.clear()


opened = OpenVinoSession


class _translated(Translated):
    __slots__ = ()

    def ours(self, error: Exception) -> KernelscopeError | None:
        if isinstance(error, MemoryError):
            return self.ran_out(_line(error))
        return KernelError(f"OpenVINO failed on {self._what}: {_line(error)}")


def _line(error: BaseException) -> str:
    text = (str(error).strip() or type(error).__name__).splitlines()[-1]
    return text if len(text) <= 300 else text[:299] + "…"
