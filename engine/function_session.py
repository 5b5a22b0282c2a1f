"""A library's function for the GPU as a session: what kernels of a task are timed beside where ONNX has no
such operator. Its file is one of ours and stands beside the task's:

    import cupy

    def yardstick(keys, y):
        def run():
            y[...] = keys
            y.sort()

        return run

Its parameters are inputs, outputs and sizes by their names, as many as it wants. Inputs and outputs come as
CuPy arrays, which stay where they are; what can be made ready once for all passes is made in `yardstick`, and
`run` is one pass: it reads the inputs, a few values of which are others each time, and writes the outputs.

It is timed as whoever calls it waits for it, with what it allocates and what it asks the host meanwhile.
"""

from __future__ import annotations

import runpy
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from engine.backend import OpTime
from engine.cuda import runtime as cuda_runtime
from engine.cuda.stirring import CudaTensor
from engine.ort.trains import LaunchedSession
from kernels.errors import KernelError, KernelscopeError, UnavailableError, one_line
from kernels.tasks import TaskParams
from kernels.tasks.child import wanted

NAME = "yardstick"  # of the function in its file
WARM_UP = 2  # passes before any is timed: libraries load, kernels are compiled


class translated(cuda_runtime.translated):
    """Around calls of the function: whatever it raises is told of it."""

    __slots__ = ()

    def ours(self, error: Exception) -> KernelscopeError | None:
        if (told := super().ours(error)) is not None:
            return told
        if isinstance(error, ImportError | OSError):  # a library of CUDA's that is not installed
            return UnavailableError(f"{self._what} needs a library that cannot be loaded: {one_line(error)}")
        return KernelError(f"{self._what} failed: {type(error).__name__}: {one_line(error)}")


class FunctionSession(LaunchedSession):
    """See engine.backend.Session. Inputs are called in0, in1, … in the task's order, those of them that
    change from pass to pass.

    inputs: all, in the task's order; output: what its one output is called. Raises UnavailableError where a
    library is missing, OutOfMemoryError, else KernelError."""

    backend = "cupy"
    precision = "fp32"
    batch = 1
    _translated = translated

    def __init__(self, params: TaskParams, inputs: Sequence[np.ndarray], output: str) -> None:
        file = params.task.function
        assert file is not None
        self._cupy = cupy = cuda_runtime.import_cupy()
        self._what = f"the function of CuPy for {params.op}"
        self._pool = cupy.cuda.MemoryPool()
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._facts = {"cupy": str(cupy.__version__)}
        self._bound = {}
        started = time.perf_counter_ns()
        with self._translated(self._what):
            given = [self._placed(array.shape, array.dtype) for array in inputs]
            left = self._placed(params.output_shape, np.dtype(params.out_dtype))
            self._inputs = {f"in{i}": _tensor(given[i]) for i in params.data_inputs}
            self._outputs = {output: _tensor(left)}
            names = [tensor.name for tensor in (*params.task.spec.input, *params.task.spec.output)]
            self._held = dict(zip(names, (*given, left), strict=True))
            largest = max(array.nbytes for array in self._held.values())
            self._staging = cuda_runtime.Staging(cupy, self._stream, largest)
            for array, values in zip(given, inputs, strict=True):
                self._staging.upload(np.ascontiguousarray(values), int(array.data.ptr))
            self._stream.synchronize()
            placed = time.perf_counter_ns()
            with self._stream:
                make = runpy.run_path(str(file))[NAME]
                known = {**self._held, **params.sizes}
                self._run: Callable[[], object] = make(**wanted(make, known))
            for _ in range(WARM_UP):
                self._launch()
            self._stream.synchronize()
            self._timed_over(self._launch, captured=False)
        self.phases: Mapping[str, int] = {
            "load": 0,
            "alloc": placed - started,
            "compile": time.perf_counter_ns() - placed,
        }
        self.memory: Mapping[str, int] = {"inputs and outputs": sum(it.nbytes for it in self._held.values())}
        self.facts: Mapping[str, str] = self._facts

    def _placed(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        """An array of CuPy's in memory of this session."""
        nbytes = max(1, int(np.prod(shape, dtype=np.int64)) * dtype.itemsize)
        return self._cupy.ndarray(shape, dtype, self._pool.malloc(nbytes))

    def _launch(self) -> None:
        with self._stream:
            self._run()

    def _start(self) -> None:
        self._launch()

    def fetch(self) -> dict[str, np.ndarray]:
        """Copies of the outputs of the last pass, by name, each in its own type."""
        self._check_open()
        with self._translated(f"the outputs of {self._what}"):
            return self._copied_out()

    def op_times(self, seconds: float) -> tuple[OpTime, ...]:
        """Always (): it is one function."""
        return ()

    def close(self) -> None:
        """Free everything. After a CUDA error that broke the context nothing can be freed: it is kept."""
        if self._closed:
            return
        self._closed = True
        if cuda_runtime.lost(self._cupy):
            cuda_runtime.keep(self)
            return
        self._bound = {}
        for name in ("_trains", "_run", "_held", "_staging", "_inputs", "_outputs", "_stream"):
            self.__dict__.pop(name, None)
        self._pool.free_all_blocks()
        self._cupy.get_default_memory_pool().free_all_blocks()  # what the function has allocated for itself


def _tensor(array: Any) -> CudaTensor:
    return CudaTensor(int(array.data.ptr), tuple(array.shape), np.dtype(array.dtype.name))
