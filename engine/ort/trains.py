"""Passes of an ONNX Runtime session on the CUDA provider in a row, timed, no two of them given the same; and
what sessions of libraries have that launch their own passes, ONNX Runtime's and PyTorch's.

ONNX Runtime launches its own graph, so stirring and passes go to its stream one after the other. Launching
takes the host 40 to 90 µs a pass, which on a small net is more than the device takes and changes from one
tenth of a second to the next. Our own trains are one graph and wait for no launch; so neither do these: where
a pass is a captured graph, a train starts when all of it is queued, and its time is that of the device alone.
What launching costs is in an host-to-host pass. Where passes cannot be queued (nodes on the CPU wait for the
device) the host may be what a train waits for.

What stirring takes is taken off: what it takes the device; where the host's loop takes as long as the train,
or nearly, what launching it takes the host.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from engine.cuda import runtime as cuda_runtime
from engine.cuda.batch_slot import OnDevice
from engine.cuda.stirring import TRAIN, CudaStirring, CudaTensor, Stirs, refusal
from engine.cuda.trains import Bound, DeviceSession
from kernels.errors import UnsupportedError

_HOST_BOUND = 0.9  # of a train that the host's loop takes where it is what the train waits for
# Passes that are queued at once, each with its stirring: a queue of the driver's holds a thousand launches
# and some, and one that is full and held back waits for ever.
PIECE = 256


class OrtTrains(Stirs):
    """Of passes that `launch` puts on `stream`. bound: the inputs, as they lie on the device; none are zeros.
    captured: a launch is that of a graph, which waits for nothing. refusal: why inputs cannot be stirred, or
    None. off: what of the session is not on the device, in words: nothing is stirred then, and no pass is
    queued behind another, for nodes on the CPU wait for the device."""

    def __init__(
        self,
        cupy: Any,
        pool: Any,
        stream: Any,
        staging: cuda_runtime.Staging,
        launch: Callable[[], object],
        inputs: Mapping[str, CudaTensor],
        outputs: Mapping[str, CudaTensor],
        bound: Bound,
        captured: bool = False,
        off: str = "",
    ) -> None:
        self._captured, self._off = captured, off
        self._cupy, self._pool, self._stream, self._staging = cupy, pool, stream, staging
        self._launch, self._inputs, self._outputs, self._bound = launch, inputs, outputs, bound
        self._cold: cuda_runtime.ColdCache | None = None
        self._stirring: CudaStirring | None = None
        self._stir_host_ns = math.inf  # of launching one stirring
        self.refusal = off or refusal({**inputs, **outputs})

    @property
    def on_device(self) -> OnDevice:
        """ONNX Runtime launches its own graph, so that nothing is captured with it. Raises UnsupportedError
        where something does not lie on the device."""
        if self._off:
            raise UnsupportedError(f"a batch cannot be carried to the GPU and back: {self._off}")
        return OnDevice(
            self._cupy, self._pool, lambda: self._stream, self._launch, self._inputs, self._outputs
        )

    def time(self, count: int, cold: bool = False, queued: bool = False) -> int:
        """Nanoseconds of so many passes. cold: of one, after the L2 cache was overwritten, and what is
        stirred was stirred before; queued: nothing starts before all is launched, as it is anyway where a
        pass is captured."""
        if cold and count != 1:
            raise ValueError(f"a cold run is timed on its own, not {count} of them")
        stirring = self._ready()
        if stirring is not None:
            stirring.took(count)
        if cold:
            if stirring is not None:
                with self._stream:
                    stirring.stir()
            self._cold = self._cold or cuda_runtime.ColdCache(self._cupy, self._pool)
            self._cold.overwrite(self._stream)
        queued = (queued or self._captured) and not self._off
        elapsed, host_ns = 0.0, 0
        for begin in range(0, count, PIECE):
            piece = partial(self._runs, None if cold else stirring, min(PIECE, count - begin))
            elapsed_ns, launching = self._elapsed(piece, queued)
            elapsed, host_ns = elapsed + elapsed_ns, host_ns + launching
        if stirring is None:
            return round(elapsed)
        with self._stream:
            stirring.settle()
        self._stream.synchronize()
        if cold:
            return stirring.own_ns(elapsed, count, 0.0)
        bound_by_host = not queued and host_ns >= _HOST_BOUND * elapsed
        return stirring.own_ns(elapsed, count, self._stir_host_ns if bound_by_host else None)

    def _runs(self, stirring: CudaStirring | None, count: int) -> None:
        launch = self._launch
        for _ in range(count):
            if stirring is not None:
                stirring.stir()
            launch()

    def _elapsed(self, work: Callable[[], None], queued: bool) -> tuple[float, int]:
        """Nanoseconds between two events round what is put on the stream, and of putting it there."""
        start, stop = self._cupy.cuda.Event(), self._cupy.cuda.Event()
        guard = cuda_runtime.held_back(self._stream) if queued else contextlib.nullcontext()
        with self._stream, guard:
            start.record(self._stream)
            began = time.perf_counter_ns()
            work()
            host_ns = time.perf_counter_ns() - began
            stop.record(self._stream)
        stop.synchronize()
        return float(self._cupy.cuda.get_elapsed_time(start, stop)) * 1e6, host_ns

    def _ready(self) -> CudaStirring | None:
        """What changes the inputs that are bound; None where they are of a type that it cannot."""
        if self.refusal is not None:
            return None
        self._stirring = self._stirring or CudaStirring(self._cupy, self._pool, self._inputs, self._outputs)
        if self._stirring.stirring is None:
            zeros = {name: np.zeros(it.shape, it.dtype) for name, it in self._inputs.items()}
            bound = self._bound() or zeros
            self._stirring.begin(bound, self._staging)
            self._stream.synchronize()
            if self._stirring.cost_ns is None:
                self._stirring.measure(self._stirrings)
                with self._stream:
                    self._stirring.settle()
                self._stirring.begin(bound, self._staging)  # so that the first pass is number 0
                self._stream.synchronize()
        return self._stirring

    def _stirrings(self) -> float:
        """As many as their cost is measured on, on the device; that of the host is kept."""

        def stirrings() -> None:
            assert self._stirring is not None
            for _ in range(TRAIN):
                self._stirring.stir()

        elapsed, host_ns = self._elapsed(stirrings, queued=True)
        self._stir_host_ns = min(self._stir_host_ns, host_ns / TRAIN)
        return elapsed


class LaunchedSession(DeviceSession):
    """A session of a library that launches its own passes; see engine.backend.Queued."""

    _cupy: Any
    _pool: Any
    _stream: Any
    _trains: OrtTrains

    def _timed_over(self, launch: Callable[[], object], captured: bool, off: str = "") -> None:
        """Its passes are these. captured: each is a graph's launch, which waits for nothing; off: see
        OrtTrains."""
        inputs, outputs = (
            {name: CudaTensor(it.pointer, it.shape, it.dtype) for name, it in placed.items()}
            # An output that is an input is written by no pass.
            for placed in (self._inputs, _without(self._outputs, self._inputs))
        )
        self._timed_by(OrtTrains(
            self._cupy, self._pool, self._stream, self._staging, launch, inputs, outputs, self._lying,
            captured, off,
        ))  # fmt: skip

    @property
    def inputs(self) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
        """Shape and type by name, as they lie on the device."""
        return {name: (it.shape, it.dtype) for name, it in self._inputs.items()}

    @property
    def outputs(self) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
        return {name: (it.shape, it.dtype) for name, it in self._outputs.items()}

    def time_queued(self, count: int) -> int:
        self._check_open()
        with self._translated(self._what):
            return self._trains.time(count, queued=True)


def _without(these: Mapping[str, Any], those: Mapping[str, Any]) -> dict[str, Any]:
    return {name: it for name, it in these.items() if name not in those}
