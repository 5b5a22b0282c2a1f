"""What sessions of rivals share whose pass is work on a stream of ours over fixed addresses: it is replayed
as one CUDA graph, and timed as every session on a GPU is (engine.cuda.trains)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from engine.cuda import runtime as cuda_runtime
from engine.cuda.stirring import CudaTensor
from engine.options import Options
from engine.ort.trains import LaunchedSession
from engine.rung_rows import Given
from kernels.errors import one_line


class CapturedSession(LaunchedSession):
    """See engine.backend.Session. A subclass prepares its pass in `_prepare`, which gives what puts it on the
    current stream, and where its inputs and outputs lie, by name; `_held` are its members that hold memory of
    the device."""

    _held: tuple[str, ...] = ()
    _inputs: dict[str, CudaTensor]
    _outputs: dict[str, CudaTensor]

    def __init__(self, batch: int, precision: str, what: str, options: Options) -> None:
        self._cupy = cuda_runtime.import_cupy()
        self._pool = self._cupy.cuda.MemoryPool()
        self.batch, self.precision, self._what = batch, precision, what
        self._facts: dict[str, str] = {}
        self._bound: dict[str, Given] = {}
        self._stream = self._cupy.cuda.Stream(non_blocking=True)
        with self._translated(self._what):
            free_before = self._cupy.cuda.runtime.memGetInfo()[0]
            work, self._inputs, self._outputs = self._prepare()
            launch = self._ready(work, options)
            free_after = self._cupy.cuda.runtime.memGetInfo()[0]
        self._launch = launch
        self.memory: Mapping[str, int] = {
            "inputs": _nbytes(self._inputs),
            "outputs": _nbytes(self._outputs),
            "device": max(0, free_before - free_after),
        }
        self.facts: Mapping[str, str] = {
            "tf32": "yes" if precision == "tf32" else "no",
            "process": "its own: a whole pass from host to host also crosses to it and back",
            **self._facts,
        }

    def _prepare(self) -> tuple[Callable[[], object], dict[str, CudaTensor], dict[str, CudaTensor]]:
        raise NotImplementedError

    def _follow(self) -> None:
        """Work on `_stream`, which is another one now."""

    def _ready(self, work: Callable[[], object], options: Options) -> Callable[[], object]:
        """What launches the pass, as one CUDA graph where that is asked for and can be."""
        with self._stream:
            work()  # libraries load
        self._stream.synchronize()
        graph = self._captured(work) if options.cuda_graph else None
        self._facts["cuda_graph"] = "yes" if graph else self._facts.get("cuda_graph", "no: not asked for")
        launch = partial(graph.launch, self._stream) if graph else partial(self._put, work)
        largest = max(it.size * it.dtype.itemsize for it in (*self._inputs.values(), *self._outputs.values()))
        self._staging = cuda_runtime.Staging(self._cupy, self._stream, largest)
        self._timed_over(launch, graph is not None)
        launch()
        self._stream.synchronize()
        return launch

    def _put(self, work: Callable[[], object]) -> None:
        with self._stream:
            work()

    def _captured(self, work: Callable[[], object]) -> Any:
        """The pass as a CUDA graph; None, with the reason in the facts, where it cannot be captured."""
        stream = self._stream
        try:
            with stream:
                stream.begin_capture()
                try:
                    work()
                finally:
                    graph = stream.end_capture()
            graph.upload(stream)
            graph.launch(stream)
            stream.synchronize()
        except Exception as error:
            self._facts["cuda_graph"] = f"no: {one_line(error)}"
            # A capture that failed leaves a stream that cannot be used.
            self._stream = self._cupy.cuda.Stream(non_blocking=True)
            self._follow()
            return None
        return graph

    # --------------------------------------------------------------------------------------------- running

    def _kept(self, array: Given, dtype: np.dtype) -> np.ndarray:
        return np.array(array, dtype, order="C")  # of memory that the parent writes to again

    def _start(self) -> None:
        self._launch()

    def close(self) -> None:
        self._closed = True
        for name in ("_trains", "_launch", "_staging", *self._held):
            self.__dict__.pop(name, None)
        self._pool.free_all_blocks()


def _nbytes(placed: Mapping[str, CudaTensor]) -> int:
    return sum(it.size * it.dtype.itemsize for it in placed.values())
