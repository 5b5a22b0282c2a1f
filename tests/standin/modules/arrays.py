"""cupy.ndarray, as far as tests of single kernels and functions of CuPy use it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.standin.device import Device, Work

# Of a function: longer than this device takes for the bytes of what tests give it.
_LAUNCH_US, _WRITTEN_A_US = 1_000.0, 50_000.0


class Array:
    """A flat array on the device. What is done to it waits for the device first."""

    def __init__(self, device: Device, memory: Any, values: np.ndarray) -> None:
        self._device, self._memory, self.values = device, memory, values
        self.data = SimpleNamespace(ptr=values.ctypes.data)

    @classmethod
    def of(cls, device: Device, memory: Any, values: np.ndarray) -> Array:
        """memory: where it is to lie, of at least its size."""
        there = memory.array[: values.nbytes].view(values.dtype)
        there[:] = values.reshape(-1)
        return cls(device, memory, there)

    def __getitem__(self, part: slice) -> Array:
        return Array(self._device, self._memory, self.values[part])

    def __setitem__(self, part: slice, value: Any) -> None:
        self._device.synchronize()
        self.values[part] = value.values if isinstance(value, Array) else value

    def on_host(self) -> np.ndarray:
        self._device.synchronize()
        return self.values.copy()


class Later:
    """What a function answers once it has run."""

    def __init__(self, made: Callable[[], np.ndarray]) -> None:
        self._made = made

    @property
    def values(self) -> np.ndarray:
        return self._made()


class Placed:
    """An array in memory that its maker has. What is done to it runs on the current stream."""

    def __init__(self, device: Device, shape: Sequence[int], dtype: Any, memptr: Any) -> None:
        self._device, self.shape, self.dtype = device, shape, np.dtype(dtype)
        self.memptr = self.data = memptr

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape)) * self.dtype.itemsize

    @property
    def values(self) -> np.ndarray:
        there: np.ndarray = self.memptr.array[: self.nbytes].view(self.dtype)
        return there.reshape(self.shape)

    def __setitem__(self, part: Any, value: Any) -> None:
        def do() -> None:
            self.values[part] = value.values if isinstance(value, Placed | Later) else value

        self._do(do)

    def sort(self) -> None:
        self._do(lambda: self.values.sort())

    def _do(self, do: Callable[[], object]) -> None:
        cost = _LAUNCH_US + self.nbytes / _WRITTEN_A_US
        self._device.current.put(Work(do, cost, call="cudaLaunchKernel"))
