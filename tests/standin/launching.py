"""A kernel's launch: held to CUDA's limits, then answered by NumPy from what its arguments say."""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tests.standin import answers, end_to_end, net, stirring
from tests.standin.code import Function, Module
from tests.standin.device import Device, Launched, Work
from tests.standin.errors import INVALID, CudaError

MOST_THREADS, MOST_BLOCK, MOST_GRID = 1024, (1024, 1024, 64), (2**31 - 1, 65535, 65535)
SHARED_NBYTES, MOST_SHARED_NBYTES = 48 << 10, 227 << 10
OF_CUDNN = "cudnn_steps.cu"  # of a rival, and does nothing here: tests/engine/rivals runs it from its PTX
_TYPES = {
    "pointer": np.uint64,
    "uint64": np.uint64,
    "int32": np.int32,
    "int64": np.int64,
    "float32": np.float32,
    "struct": np.ndarray,
}
_handles = itertools.count(1)
by_handle: dict[int, Kernel] = {}  # as CuPy does it, what was once loaded stays


class Kernel:
    """A function of a module on the device. constants: addresses of the module's constant arrays."""

    def __init__(
        self, device: Device, module: Module, function: Function, constants: Sequence[int] = ()
    ) -> None:
        self.device, self._module, self.function = device, module, function
        self._constants = constants
        self.most_shared_nbytes = SHARED_NBYTES
        self.handle = next(_handles)
        by_handle[self.handle] = self
        self._known: dict[tuple[Any, ...], tuple[Callable[[], object], Launched]] = {}
        self._known_since = 0

    def allow_shared(self, nbytes: int) -> None:
        self.device.check()
        if not 0 <= nbytes <= MOST_SHARED_NBYTES:
            raise CudaError(INVALID, f"{nbytes:,} bytes of shared memory a block")
        self.most_shared_nbytes = nbytes

    def work(
        self,
        grid: Sequence[int],
        block: Sequence[int],
        arguments: Sequence[Any],
        shared_nbytes: int = 0,
        early: bool = False,
    ) -> Work:
        """What to put on a stream. Raises CudaError as the launch would."""
        self.device.check()
        self._check(grid, block, shared_nbytes)
        if self._known_since != self.device.memory.freed:  # what is kept would keep memory that was freed
            self._known.clear()
            self._known_since = self.device.memory.freed
        key = (*(v.tobytes() if isinstance(v, np.ndarray) else v for v in arguments), *grid)
        if key not in self._known:
            self._known[key] = self._bound(arguments, grid)
        do, launched = self._known[key]
        if self._module.op == "probe":  # which is told how much a thread does
            launched = replace(launched, flops=launched.flops * math.prod(grid) * math.prod(block))
        if early:
            launched = replace(launched, early=True)
        told = {
            "kind": "CONCURRENT_KERNEL",
            "name": self.function.name,
            "grid": (*grid, 1, 1)[:3],
            "block": (*block, 1, 1)[:3],
            "dynamic_shared_memory": shared_nbytes,
        }
        return Work(do, launched=launched, call="cuLaunchKernelEx" if early else "cuLaunchKernel", told=told)

    def _check(self, grid: Sequence[int], block: Sequence[int], shared_nbytes: int) -> None:
        grid, block = ((*size, 1, 1)[:3] for size in (grid, block))
        wrong = (
            any(not 1 <= size <= most for size, most in zip(grid, MOST_GRID, strict=True))
            or any(not 1 <= size <= most for size, most in zip(block, MOST_BLOCK, strict=True))
            or math.prod(block) > MOST_THREADS
            or not 0 <= shared_nbytes <= self.most_shared_nbytes
        )
        if wrong:
            raise CudaError(INVALID, f"grid {grid}, block {block}, {shared_nbytes:,} bytes of shared memory")

    def _bound(self, arguments: Sequence[Any], grid: Sequence[int]) -> tuple[Callable[[], object], Launched]:
        takes = self.function.takes
        if takes is None:
            return lambda: None, Launched(self.function.name)
        given = [type(value) for value in arguments]
        if given != [_TYPES[kind] for kind in takes]:
            names = ", ".join(kind.__name__ for kind in given)
            raise CudaError(INVALID, f"{self.function.name} takes {', '.join(takes)} and was given {names}")
        structs = [value for value in arguments if isinstance(value, np.ndarray)]
        if any(value.size != 1 for value in structs):  # CuPy's rule
            raise TypeError("an array of the host is passed by value, and has one element then")
        if any(value.nbytes != ctypes.sizeof(self.function.struct) for value in structs):
            raise CudaError(INVALID, f"{self.function.name} takes a struct of another size")
        pointers = [int(value) for value, kind in zip(arguments, takes, strict=True) if kind == "pointer"]
        scalars = [
            scalar
            for value, kind in zip(arguments, takes, strict=True)
            if kind != "pointer"
            for scalar in (self.function.told(value.tobytes()) if kind == "struct" else (value.item(),))
        ]
        if self._module.file in end_to_end.FILES:
            do = end_to_end.FILES[self._module.file](self.device.memory, self._module, pointers, scalars)
            return do, Launched(self.function.name)
        if self._module.file in stirring.FILES:
            bind = stirring.FILES[self._module.file]
            do = bind(self.device.memory, self._module, pointers, scalars, grid[1])
            return do, Launched(self.function.name)
        if self._module.file == OF_CUDNN:
            return lambda: None, Launched(self.function.name)
        if self._module.file == net.FILE:
            stamps = self._constants[0] if self._constants else 0
            answer = net.bind(self.device.memory, self._module, pointers, scalars, stamps)
            return answer.do, Launched(self.function.name, False, answer.flops, answer.nbytes)
        if self._constants:  # the weights, as the kernel reads them
            pointers[1] = self._constants[0]
        answer = answers.bind(self.device.memory, self._module, self.function.name, pointers, scalars)
        return answer.do, Launched(self.function.name, False, answer.flops, answer.nbytes)
