"""As much of a GPU and of ONNX Runtime's CUDA provider as a session asks for, on the CPU: the device's memory
is the host's, and what a binding copies, and when, is as ONNX Runtime has it.

An input is copied when it is bound where it lies on another device than its readers run on. A captured graph
runs what is on the GPU, over the memory that was bound, and nothing of the CPU.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import onnxruntime

from tests.engine.ort.mixed import ON_CPU

CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"


class Memory:
    def __init__(self, nbytes: int) -> None:
        self._held = (ctypes.c_uint8 * nbytes)()
        self.ptr = ctypes.addressof(self._held)

    def memset_async(self, value: int, nbytes: int, stream: Any) -> None:
        ctypes.memset(self.ptr, value, nbytes)


class Stream(contextlib.nullcontext[None]):
    ptr = 0

    def __init__(self, non_blocking: bool = False) -> None:
        super().__init__()

    def synchronize(self) -> None: ...


class Staging:
    def __init__(self, cupy: Any, stream: Any, largest: int) -> None: ...

    def upload(self, array: np.ndarray, pointer: int) -> None:
        ctypes.memmove(pointer, array.ctypes.data, array.nbytes)

    def download(self, pointer: int, array: np.ndarray) -> None:
        ctypes.memmove(array.ctypes.data, pointer, array.nbytes)


def cupy() -> Any:
    runtime = SimpleNamespace(memGetInfo=lambda: (1 << 30, 1 << 30), getDevice=lambda: 0)
    pool = lambda: SimpleNamespace(malloc=Memory, free_all_blocks=lambda: None)  # noqa: E731
    return SimpleNamespace(cuda=SimpleNamespace(MemoryPool=pool, Stream=Stream, runtime=runtime))


class RunOptions:
    def __init__(self) -> None:
        self.entries: dict[str, str] = {}
        self.log_severity_level = 0

    def add_run_config_entry(self, name: str, value: str) -> None:
        self.entries[name] = value


class Runtime:
    """In the place of the module onnxruntime. on_cpu: operators that the provider leaves to the CPU. Faults
    to plant: `tells`: whether a session says where inputs and outputs lie; `lies`: it says that all are on
    the GPU; `refuses`: whether a session with nodes on the CPU refuses to be captured; `stale`: a captured
    graph answers as it did when it was captured; `unbound`: a bound output is refused, whatever its shape.
    """

    __version__ = "1.31.1"
    SessionOptions, OrtValue = onnxruntime.SessionOptions, onnxruntime.OrtValue
    GraphOptimizationLevel = onnxruntime.GraphOptimizationLevel
    RunOptions = RunOptions

    def __init__(self, on_cpu: Collection[str] = ON_CPU, **faults: bool) -> None:
        self.on_cpu = set(on_cpu)
        self.faults = {
            "tells": True,
            "lies": False,
            "refuses": True,
            "stale": False,
            "unbound": False,
            **faults,
        }
        self.sessions: list[Session] = []
        self.plain_runs = 0

    def InferenceSession(self, model: bytes, how: Any, providers: Any, enable_fallback: bool) -> Session:
        self.sessions.append(Session(self, model, how, dict(providers[0][1])))
        return self.sessions[-1]


class Session:
    def __init__(self, runtime: Runtime, model: bytes, how: Any, settings: dict[str, str]) -> None:
        self.runtime, self.settings = runtime, settings
        self.real = onnxruntime.InferenceSession(model, how, providers=[CPU])
        self.nodes = onnx.load_from_string(model).graph.node
        self.off = [node for node in self.nodes if node.op_type in runtime.on_cpu]
        self.captures = settings["enable_cuda_graph"] == "1"
        if self.captures and self.off and runtime.faults["refuses"]:
            raise RuntimeError("This session cannot use the graph capture feature as requested by the user")
        self.get_inputs, self.get_outputs = self.real.get_inputs, self.real.get_outputs
        self._replayed: list[np.ndarray] | None = None
        if runtime.faults["tells"]:
            self.get_input_memory_infos = lambda: self._infos([it.name for it in self.get_inputs()])
            self.get_output_memory_infos = lambda: self._infos([it.name for it in self.get_outputs()])

    def reads_on_cpu(self, name: str) -> bool:
        return any(name in node.input for node in self.off)

    def _infos(self, names: list[str]) -> list[Any]:
        here = {name for node in self.off for name in (*node.input, *node.output)}
        lies = self.runtime.faults["lies"]
        return [SimpleNamespace(name="Cpu" if name in here and not lies else "Cuda") for name in names]

    def get_providers(self) -> list[str]:
        return [CUDA, CPU]

    def get_provider_graph_assignment_info(self) -> list[Any]:
        parts = []
        for node in self.nodes:
            by = CPU if node.op_type in self.runtime.on_cpu else CUDA
            told = SimpleNamespace(name=node.name, op_type=node.op_type)
            parts.append(SimpleNamespace(ep_name=by, get_nodes=lambda told=told: [told]))
        return parts if self.runtime.faults["tells"] else parts[:0]

    def io_binding(self) -> Binding:
        return Binding(self)

    def run(self, names: Any, given: Any, options: Any = None) -> list[np.ndarray]:
        assert not self.captures or options.entries["gpu_graph_id"] == "-1"
        self.runtime.plain_runs += 1
        return list(self.real.run(names, dict(given)))

    def run_with_iobinding(self, binding: Binding, options: RunOptions | None = None) -> None:
        if self.runtime.faults["unbound"] and binding.outputs:
            raise RuntimeError("OrtValue shape verification failed")
        captured = self.captures and not (options and options.entries.get("gpu_graph_id") == "-1")
        given = {name: array.copy() for name, array in binding.inputs.items()}
        found = list(self.real.run(None, given))
        if captured and (self.runtime.faults["stale"] or self.off):
            self._replayed = found if self._replayed is None else self._replayed
            found = self._replayed
        binding.left = found
        for argument, array in zip(self.get_outputs(), found, strict=True):
            to = binding.outputs.get(argument.name)
            if to is None:
                continue
            if to.shape != array.shape:
                raise RuntimeError(f"output {argument.name} has shape {array.shape}, not {to.shape}")
            to[...] = array


class Binding:
    def __init__(self, session: Session) -> None:
        self.session = session
        self.inputs: dict[str, np.ndarray] = {}
        self.outputs: dict[str, np.ndarray] = {}
        self.left: list[np.ndarray] = []

    def bind_input(self, name: str, device: str, number: int, dtype: Any, shape: Any, pointer: int) -> None:
        lying = _at(pointer, dtype, shape)
        elsewhere = (device == "cpu") != self.session.reads_on_cpu(name)
        self.inputs[name] = lying.copy() if elsewhere else lying

    def bind_output(
        self,
        name: str,
        device: str,
        number: int,
        dtype: Any = None,
        shape: Any = None,
        pointer: int | None = None,
    ) -> None:
        self.outputs.pop(name, None)
        if pointer is not None:
            self.outputs[name] = _at(pointer, dtype, shape)

    def clear_binding_outputs(self) -> None:
        self.outputs.clear()

    def get_outputs(self) -> list[Any]:
        return [
            SimpleNamespace(shape=lambda it=it: list(it.shape), numpy=lambda it=it: it) for it in self.left
        ]


def _at(pointer: int, dtype: Any, shape: Any) -> np.ndarray:
    size = max(1, int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize)
    held = np.frombuffer((ctypes.c_uint8 * size).from_address(pointer), np.uint8)
    return held[: int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize].view(dtype).reshape(shape)
