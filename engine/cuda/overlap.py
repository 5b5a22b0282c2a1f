"""Launches that may begin while the kernel before them ends: CUDA's programmatic dependent launch.

For rungs whose header says `overlaps = true`: their kernels wait themselves, on the device, for what the
kernel in front wrote (kernels/cuda/overlap.cuh), so that their own start and the reading of weights cost
nothing. It takes compute capability 9.0; CuPy has no such launch, so this calls the driver by cuda.bindings.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kernels.launch import Stage

CAPABILITY = (9, 0)
Begun = frozenset[int]  # the steps of a plan that begin early
_ROUNDS = 2  # what one step gains may depend on those beside it
_GAIN = 0.005  # of a pass, below which a difference is noise
_TYPES: dict[type, type[Any]] = {
    np.uint64: ctypes.c_uint64,
    np.int64: ctypes.c_int64,
    np.int32: ctypes.c_int32,
    np.float32: ctypes.c_float,
}


def overlapping(cupy: Any, kernel: Any, stage: Stage, arguments: Sequence[Any]) -> Callable[[], None]:
    """What starts this stage on the current stream. kernel: a cupy.RawKernel. The function called raises
    RuntimeError with CUDA's name of the error."""
    from cuda.bindings import driver

    held = _Arguments(arguments)
    function = driver.CUfunction(int(kernel.kernel.ptr))
    attribute = driver.CUlaunchAttribute()
    attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    attribute.value.programmaticStreamSerializationAllowed = 1
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = stage.grid
    config.blockDimX, config.blockDimY, config.blockDimZ = stage.block
    config.sharedMemBytes = stage.shared_nbytes
    config.attrs, config.numAttrs = [attribute], 1

    def start() -> None:
        config.hStream = driver.CUstream(int(cupy.cuda.get_current_stream().ptr))
        (result,) = driver.cuLaunchKernelEx(config, function, held.address, 0)
        if result != driver.CUresult.CUDA_SUCCESS:
            raise RuntimeError(f"{driver.CUresult(result).name} when {stage.function} was launched")

    return start


def fastest(can: Sequence[int], time: Callable[..., Sequence[float]]) -> Begun:
    """Which of the steps that `can` begin early should: `time(way, other)` measures two ways beside each
    other, in the same unit. From the better of none and all of them on, each is turned round in its order and
    stays so where that gains."""
    none, every = frozenset[int](), frozenset(can)
    best = _better(none, every, time)
    for _ in range(_ROUNDS if len(every) > 1 else 0):
        before = best
        for step in can:
            best = _better(best, best ^ {step}, time)
        if best == before:
            break
    return best


def _better(known: Begun, other: Begun, time: Callable[..., Sequence[float]]) -> Begun:
    was, now = time(known, other)
    return other if now < (1 - _GAIN) * was else known


class _Arguments:
    """A kernel's arguments in memory; address: of the pointers to them, as the driver takes them."""

    def __init__(self, arguments: Sequence[Any]) -> None:
        self._values = [_TYPES[type(value)](value.item()) for value in arguments]
        self._pointers = (ctypes.c_void_p * len(self._values))(*map(ctypes.addressof, self._values))
        self.address = ctypes.addressof(self._pointers)
