"""What a pass on cuDNN's graphs asks of the GPU: memory that stays, launches of its own few kernels
(cudnn_steps.cu), and how long some work takes on its stream."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engine.cuda import runtime as cuda_runtime
from kernels import nvrtc, registry

THREADS = 256
ROW_THREADS = 128  # of a block that goes along an axis
SOURCE = Path(__file__).parent / "cudnn_steps.cu"
_SHORT_NS, _MOST_PASSES = 500_000, 20


def source(held: str, nhwc: bool, size: int) -> registry.Rung:
    """The kernels as the compiler takes them. held: the type of the pass's tensors; nhwc: whether channels
    lie innermost; size: channels of a local response normalisation."""
    kind = ("float32", "float16", "bfloat16").index(held)
    return registry.code(SOURCE, "cudnn_steps", TYPE=kind, NHWC=int(nhwc), V=chunk(held, nhwc), SIZE=size)


def chunk(held: str, nhwc: bool) -> int:
    """The channels of which a pixel has a multiple: 16 bytes where they are innermost."""
    return 16 // np.dtype(held).itemsize if nhwc else 1


class Gpu:
    """The current device. stream: what the session runs on; pool: CuPy's, which all memory is from."""

    def __init__(self, cupy: Any, pool: Any, stream: Any, held: str, nhwc: bool) -> None:
        self.cupy, self._pool, self.stream = cupy, pool, stream
        self._held, self._nhwc = held, nhwc
        self._kept: list[Any] = []
        self._sizes: dict[int, int] = {}  # of what was allocated, by its address
        self._free: list[tuple[int, int]] = []  # (size, address) of what a later tensor may have
        self._modules: dict[int, Any] = {}
        self._clock = (cupy.cuda.Event(), cupy.cuda.Event())
        self.nbytes = 0

    def take(self, nbytes: int) -> int:
        """The address of memory for what a step writes: what was given back where that is not much too large,
        else new."""
        place = bisect.bisect_left(self._free, (nbytes, 0))
        if place < len(self._free) and self._free[place][0] <= 2 * nbytes:
            return self._free.pop(place)[1]
        return self.new(nbytes)

    def new(self, nbytes: int) -> int:
        """The address of memory that no other step of a pass writes to."""
        memory = self._pool.malloc(max(nbytes, 256))
        self._kept.append(memory)
        self._sizes[int(memory.ptr)] = max(nbytes, 256)
        self.nbytes += max(nbytes, 256)
        return int(memory.ptr)

    def scratch(self, nbytes: int) -> Any:
        """Memory (`ptr`: its address) that is free again when the object is gone."""
        return self._pool.malloc(max(nbytes, 256))

    def give(self, address: int) -> None:
        """Nothing that is launched from now on needs what lies there."""
        bisect.insort(self._free, (self._sizes[address], address))

    def constant(self, array: np.ndarray) -> int:
        """The address of a copy of this array."""
        array = np.ascontiguousarray(array)
        address = self.new(array.nbytes)
        if array.nbytes:
            self.cupy.cuda.runtime.memcpy(address, array.ctypes.data, array.nbytes, cuda_runtime.TO_DEVICE)
        return address

    def launch(
        self, name: str, arguments: Sequence[Any], items: int = 0, blocks: int = 0, size: int = 1
    ) -> Callable[[], None]:
        """What launches a kernel with a thread for each item, or with so many blocks."""
        if size not in self._modules:
            arch = "sm_{}{}".format(*cuda_runtime.capability_of(self.cupy))
            cubin = nvrtc.compile_rung(source(self._held, self._nhwc, size), arch)
            self._modules[size] = cuda_runtime.load_module(self.cupy, cubin)
        function, given = self._modules[size].get_function(name), tuple(arguments)
        grid = (blocks or -(-items // THREADS),)
        block = (ROW_THREADS if blocks else THREADS,)
        return lambda: function(grid, block, given)

    def copy(self, to: int, of: int, nbytes: int) -> Callable[[], None]:
        copy = self.cupy.cuda.runtime.memcpyAsync
        return lambda: copy(to, of, nbytes, cuda_runtime.ON_DEVICE, self.stream.ptr)

    def copy_rows(
        self, to: int, to_pitch: int, of: int, of_pitch: int, width: int, rows: int
    ) -> Callable[[], None]:
        """Rows of `width` bytes, so many bytes apart."""
        copy, kind = self.cupy.cuda.runtime.memcpy2DAsync, cuda_runtime.ON_DEVICE
        return lambda: copy(to, to_pitch, of, of_pitch, width, rows, kind, self.stream.ptr)

    def clear(self, to: int, nbytes: int) -> Callable[[], None]:
        clear = self.cupy.cuda.runtime.memsetAsync
        return lambda: clear(to, 0, nbytes, self.stream.ptr)

    def put(self, work: Callable[[], object]) -> None:
        """Launch it with the stream as the current one."""
        with self.stream:
            work()

    def time_ns(self, work: Callable[[], object]) -> float:
        """Nanoseconds that a pass of this work, which has run before, takes the device: the mean of some, of
        one where it is long. What launching it takes the host is no part of it: a pass is one CUDA graph."""
        once = self._elapsed(work, 1)
        count = int(min(_MOST_PASSES, max(1, _SHORT_NS // max(once, 1))))
        return once if count == 1 else self._elapsed(work, count)

    def _elapsed(self, work: Callable[[], object], count: int) -> float:
        start, stop = self._clock
        with self.stream, cuda_runtime.held_back(self.stream):
            start.record(self.stream)
            for _ in range(count):
                work()
            stop.record(self.stream)
        stop.synchronize()
        return float(self.cupy.cuda.get_elapsed_time(start, stop)) * 1e6 / count

    def synchronize(self) -> None:
        self.stream.synchronize()
