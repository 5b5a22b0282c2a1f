"""What the CUDA engine uses of CuPy: memory, copies, streams; and CuPy's errors in our words.

Only this module imports CuPy, and only when a session is prepared.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import threading
import warnings
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from engine.machine import host
from engine.rung_rows import Given, Rows
from kernels.errors import KernelError, KernelscopeError, Translated, UnavailableError, one_line
from kernels.spans import span

TO_DEVICE, TO_HOST, ON_DEVICE = 1, 2, 3  # cudaMemcpyKind
_OUT_OF_MEMORY = 2  # both cudaErrorMemoryAllocation and CUDA_ERROR_OUT_OF_MEMORY
_HALF_NBYTES = 32 << 20
_MUCH_NBYTES = 4 << 20
# Names of spans.
FILL, EMPTY = "fill page-locked memory", "empty page-locked memory"
LOAD = "module load"
_COPIERS = max(1, min(4, host.physical_cores()))


def import_cupy() -> Any:
    """The module `cupy`. Raises UnavailableError where it is missing or its libraries do not load."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about CUDA's headers, which nothing here compiles with
            return importlib.import_module("cupy")
    except ImportError as error:
        reason = str(error).strip().splitlines()[0]
        raise UnavailableError(f"CuPy, which drives the device, cannot be imported: {reason}") from error


@span(LOAD)
def load_module(cupy: Any, cubin: Path) -> Any:
    """Load a compiled file into the current context. Returns CuPy's RawModule."""
    return cupy.RawModule(path=str(cubin))


class translated(Translated):
    """Around calls of CUDA and CuPy."""

    __slots__ = ()

    def ours(self, error: Exception) -> KernelscopeError | None:
        if isinstance(error, MemoryError) or getattr(error, "status", None) == _OUT_OF_MEMORY:
            return self.ran_out(one_line(error))
        if isinstance(error, RuntimeError):  # CUDARuntimeError and CUDADriverError
            return KernelError(f"CUDA failed on {self._what}: {one_line(error)}")
        return None


@span(FILL)
def fill(pinned: np.ndarray, source: np.ndarray) -> int:
    """Copy into page-locked memory; the bytes copied."""
    _copied(pinned, source)
    return int(pinned.nbytes)


@span(EMPTY)
def empty(pinned: np.ndarray, target: np.ndarray) -> int:
    """Copy out of page-locked memory; the bytes copied."""
    _copied(target, pinned)
    return int(pinned.nbytes)


def _copied(target: np.ndarray, source: np.ndarray) -> None:
    """Copy on the host, by several threads if it is much: one core reaches only a part of the memory
    bandwidth."""
    size = target.size
    if size < _MUCH_NBYTES:
        target[:] = source
        return
    each = -(-size // _COPIERS)
    parts = [slice(start, start + each) for start in range(0, size, each)]
    list(_copiers().map(lambda part: np.copyto(target[part], source[part]), parts))


@cache
def _copiers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_COPIERS, thread_name_prefix="copying")


class Staging:
    """Copies between pageable host memory and the device through pinned memory, which the bus reads directly.

    Two halves take turns: one is filled or emptied by the host while the device copies the other. The pinned
    memory is allocated once, and at most 64 MiB of it however large the tensors are; the next Staging takes
    over what one leaves behind.
    """

    def __init__(self, cupy: Any, stream: Any, largest_nbytes: int) -> None:
        """largest_nbytes: of the largest tensor that will be copied."""
        # A power of two, so that what another leaves behind fits.
        self._half = min(1 << (max(largest_nbytes, 256) - 1).bit_length(), _HALF_NBYTES)
        self._stream = stream
        self._copy = cupy.cuda.runtime.memcpyAsync
        memory = _pinned(cupy, 2 * self._half)
        weakref.finalize(self, _spared, cupy, memory, 2 * self._half).atexit = False
        self._pinned = np.frombuffer(cupy.cuda.PinnedMemoryPointer(memory, 0), np.uint8, 2 * self._half)
        self._pointer = int(memory.ptr)
        self._done = [cupy.cuda.Event(disable_timing=True) for _ in range(2)]

    @property
    def nbytes(self) -> int:
        return 2 * self._half

    def move_to(self, stream: Any) -> None:
        """Copy on another stream from now on."""
        self._stream = stream

    def upload(self, array: Given, pointer: int) -> None:
        """Copy a C-contiguous array to the device; it is there when the stream is synchronised. Of a batch
        that repeats rows each distinct row is sent once, and copied to its other places on the device."""
        if isinstance(array, Rows):
            there: dict[int, int] = {}
            for row, kind in enumerate(array.index.tolist()):
                here = pointer + row * array.row_nbytes
                if kind in there:
                    self._copy(here, there[kind], array.row_nbytes, ON_DEVICE, self._stream.ptr)
                else:
                    there[kind] = here
                    self.upload(array.distinct[kind], here)
            return
        source = array.reshape(-1).view(np.uint8)
        for slot, start, stop in self._pieces(source.nbytes):
            self._done[slot].synchronize()
            here = slot * self._half
            fill(self._pinned[here : here + stop - start], source[start:stop])
            self._copy(pointer + start, self._pointer + here, stop - start, TO_DEVICE, self._stream.ptr)
            self._done[slot].record(self._stream)

    def download(self, pointer: int, array: np.ndarray) -> None:
        """Copy device memory into a C-contiguous array, which is filled on return."""
        target = array.reshape(-1).view(np.uint8)
        under_way: tuple[int, int, int] | None = None
        for piece in self._pieces(target.nbytes):
            slot, start, stop = piece
            here = self._pointer + slot * self._half
            self._copy(here, pointer + start, stop - start, TO_HOST, self._stream.ptr)
            self._done[slot].record(self._stream)
            if under_way:
                self._take(target, under_way)
            under_way = piece
        if under_way:
            self._take(target, under_way)

    def _take(self, target: np.ndarray, piece: tuple[int, int, int]) -> None:
        slot, start, stop = piece
        self._done[slot].synchronize()
        here = slot * self._half
        empty(self._pinned[here : here + stop - start], target[start:stop])

    def _pieces(self, nbytes: int) -> Iterator[tuple[int, int, int]]:
        """(half, start, stop) of each piece of a copy, the halves in turn."""
        for index, start in enumerate(range(0, nbytes, self._half)):
            yield index % 2, start, min(start + self._half, nbytes)


# Page-locked memory that nobody uses: the system takes tens of milliseconds for 64 MiB, and a ladder or a
# timed choice prepares hundreds of sessions.
_spare: list[tuple[Any, Any, int]] = []
_SPARE = 3


def _pinned(cupy: Any, nbytes: int) -> Any:
    """Page-locked memory of so many bytes: some that another Staging has left, or new."""
    for index, (module, memory, memory_in_use) in enumerate(_spare):
        if module is cupy and memory_in_use == nbytes:
            del _spare[index]
            return memory
    return cupy.cuda.PinnedMemory(nbytes)


def _spared(cupy: Any, memory: Any, nbytes: int) -> None:
    """Keep the page-locked memory of a Staging for the next one; the oldest is freed where it gets too
    much."""
    _spare.append((cupy, memory, nbytes))
    del _spare[:-_SPARE]


def free_spare() -> None:
    """Free the page-locked memory that nobody uses."""
    _spare.clear()


@contextlib.contextmanager
def held_back(stream: Any, most_s: float = 0.25) -> Iterator[None]:
    """A context in which work that is put on the stream does not start before the end of the block.

    A host function at the head of the queue waits for the end of the block, at most `most_s` seconds: else
    work inside that waits for the stream would never end. Meanwhile Python collects no garbage. A collection
    may run in any thread, and inside a host function CUDA permits no call, such as those that free CuPy's
    objects.
    """
    go, ended = threading.Lock(), threading.Lock()
    go.acquire()
    ended.acquire()

    def wait(_: object) -> None:
        go.acquire(timeout=most_s)
        ended.release()

    collects = gc.isenabled()
    gc.disable()
    try:
        stream.launch_host_func(wait, None)
        try:
            yield
        finally:
            go.release()
            ended.acquire(timeout=most_s)
    finally:
        if collects:
            gc.enable()


_kept: list[object] = []


def lost(cupy: Any) -> bool:
    """Whether the device's context in this process has failed for good, as it has after an illegal access."""
    try:
        cupy.cuda.runtime.deviceSynchronize()
    except Exception:  # whatever CUDA calls it
        return True
    return False


def keep(owner: object) -> None:
    """Keep the members of a session until the process ends. On a device that has failed nothing can be freed,
    and each object of CuPy that tries would print a traceback."""
    _kept.append(dict(owner.__dict__))


class ColdCache:
    """Overwrites the L2 cache: memory of twice its size, allocated at first use and kept."""

    def __init__(self, cupy: Any, pool: Any) -> None:
        self.nbytes = 2 * int(cupy.cuda.Device().attributes["L2CacheSize"])
        self._memory = pool.malloc(self.nbytes)
        self._turn = 0

    def overwrite(self, stream: Any) -> None:
        """Start overwriting it on the stream, with another value each time."""
        self._turn = (self._turn + 1) % 256
        self._memory.memset_async(self._turn, self.nbytes, stream)


def capability_of(cupy: Any) -> tuple[int, int]:
    """Compute capability of the current device."""
    digits = str(cupy.cuda.Device().compute_capability)  # "90"
    return int(digits[:-1]), int(digits[-1])


def machine(cupy: Any, capability: tuple[int, int]) -> dict[str, str]:
    """The facts of the current device, its driver and CuPy for a record."""
    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.runtime.getDevice())
    name = properties["name"]
    version = int(cupy.cuda.runtime.driverGetVersion())
    return {
        "gpu": name.decode() if isinstance(name, bytes) else str(name),
        "compute_capability": f"{capability[0]}.{capability[1]}",
        "driver_cuda": f"{version // 1000}.{version % 1000 // 10}",
        "l2_nbytes": str(cupy.cuda.Device().attributes["L2CacheSize"]),
        "cupy": str(cupy.__version__),
    }
