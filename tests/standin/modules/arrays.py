"""cupy.ndarray, as far as tests of single kernels use it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.standin.device import Device


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
