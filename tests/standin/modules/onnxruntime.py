"""ONNX Runtime with a CUDA provider: its CPU provider, run when the stand-in device comes to it.

A session that is asked for on CUDA says that all its nodes are there, takes its inputs and leaves its outputs
in memory of the device, and is put on the stream that it was given. Without CUDA among the providers all is
as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

PROVIDER, _CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
_ASYNC = "disable_synchronize_execution_providers"
_RUN_US, _NODE_US, _NBYTES_A_US = 50.0, 75.0, 4_000.0


def change(runtime: ModuleType) -> None:
    """Give the module a CUDA provider."""
    plain, plain_providers = runtime.InferenceSession, runtime.get_available_providers

    def session(model: Any, options: Any = None, providers: Any = None, **more: Any) -> Any:
        options = more.pop("sess_options", options)  # as onnxruntime calls it
        wanted = dict(it if isinstance(it, tuple) else (it, {}) for it in providers or ())
        if PROVIDER not in wanted:
            return plain(model, options, providers=providers, **more)
        inner = plain(model, options, providers=[_CPU], **more)
        return _Session(inner, len(model), wanted[PROVIDER])

    runtime.InferenceSession = session  # type: ignore[attr-defined]
    runtime.get_available_providers = lambda: [PROVIDER, *plain_providers()]  # type: ignore[attr-defined]


class _Session:
    """onnxruntime.InferenceSession on CUDA; what is not said here is the CPU's."""

    def __init__(self, inner: Any, model_nbytes: int, settings: dict[str, str]) -> None:
        from tests.standin.here import device

        self._inner = inner
        self._stream = device().stream(int(settings["user_compute_stream"]))
        nodes = sum(len(part.get_nodes()) for part in inner.get_provider_graph_assignment_info())
        self._cost_us = _RUN_US + _NODE_US * nodes + model_nbytes / _NBYTES_A_US

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def get_providers(self) -> list[str]:
        return [PROVIDER, _CPU]

    def get_provider_graph_assignment_info(self) -> list[SimpleNamespace]:
        parts = self._inner.get_provider_graph_assignment_info()
        return [SimpleNamespace(ep_name=PROVIDER, get_nodes=part.get_nodes) for part in parts]

    def get_input_memory_infos(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(name="Cuda") for _ in self._inner.get_inputs()]

    def get_output_memory_infos(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(name="Cuda") for _ in self._inner.get_outputs()]

    def io_binding(self) -> _Binding:
        return _Binding(self._inner.io_binding(), self._stream.device.memory)

    def run_with_iobinding(self, binding: _Binding, options: Any = None) -> None:
        from tests.standin.device import Work

        def do() -> None:
            binding.check()
            self._inner.run_with_iobinding(binding.inner)

        told = {"kind": "CONCURRENT_KERNEL", "name": "ort_stand_in", "grid": (1, 1, 1), "block": (128, 1, 1)}
        moved = binding.nbytes / _NBYTES_A_US
        if binding.waits:  # outputs that nobody has made room for: their shapes are asked for next
            self._stream.synchronize()
            do()
            return
        self._stream.put(Work(do, self._cost_us + moved, call="cudaLaunchKernel", told=told))
        if options is None or not _entry(options, _ASYNC):
            self._stream.synchronize()


def _entry(options: Any, name: str) -> bool:
    """Whether a setting of RunOptions is "1"."""
    try:
        return options.get_run_config_entry(name) == "1"
    except RuntimeError:  # it was never set
        return False


class _Binding:
    """onnxruntime.IOBinding, of tensors on the device."""

    def __init__(self, inner: Any, memory: Any) -> None:
        self.inner, self._memory = inner, memory
        self._places: dict[str, tuple[int, int]] = {}
        self.waits = False

    @property
    def nbytes(self) -> int:
        return sum(nbytes for _, nbytes in self._places.values())

    def check(self) -> None:
        for address, nbytes in self._places.values():
            self._memory.at(address, nbytes)

    def bind_input(
        self, name: str, device: str, number: int, dtype: Any, shape: Sequence[int], pointer: int
    ) -> None:
        self._bind(self.inner.bind_input, name, dtype, shape, pointer)

    def bind_output(
        self,
        name: str,
        device: str = "cuda",
        number: int = 0,
        dtype: Any = None,
        shape: Sequence[int] = (),
        pointer: int | None = None,
    ) -> None:
        if pointer is None:
            self.waits = True
            self.inner.bind_output(name, "cpu")
        else:
            self._bind(self.inner.bind_output, name, dtype, shape, pointer)

    def _bind(
        self, bind: Callable[..., None], name: str, dtype: Any, shape: Sequence[int], pointer: int
    ) -> None:
        nbytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        self._memory.at(pointer, nbytes)
        self._places[name] = (pointer, nbytes)
        bind(name, "cpu", 0, dtype, list(shape), pointer)

    def get_outputs(self) -> list[Any]:
        return self.inner.get_outputs()

    def clear_binding_outputs(self) -> None:
        self.waits = False
        self.inner.clear_binding_outputs()
