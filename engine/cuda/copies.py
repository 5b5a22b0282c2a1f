"""Copies of each layer's output to the host and back, over pageable, page-locked or managed memory, as in a
program that keeps its tensors on the host between layers. The AlexNet of a CUDA course did this, and its
table shows the cost. Our engine keeps tensors on the device."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

Memory = Literal["pageable", "pinned", "managed"]
MEMORIES: tuple[Memory, ...] = ("pageable", "pinned", "managed")
_TO_HOST, _TO_DEVICE = 2, 1  # cudaMemcpyKind


class LayerCopies:
    """Memory on both sides for copies of these sizes. The content is arbitrary: it does not change the
    time."""

    def __init__(self, cupy: Any, nbytes: Sequence[int], memory: Memory) -> None:
        self._runtime = cupy.cuda.runtime
        self._nbytes, self._memory = tuple(nbytes), memory
        largest = max(nbytes, default=0) or 1
        self._pageable: np.ndarray | None = None
        self._host = 0
        self._device = self._runtime.malloc(largest)
        try:
            if memory == "pageable":
                self._pageable = np.zeros(largest, np.uint8)
                self._host = int(self._pageable.ctypes.data)
            elif memory == "pinned":
                self._host = self._runtime.hostAlloc(largest, 0)
            else:
                self._host = self._runtime.mallocManaged(largest)
        except BaseException:
            self.close()
            raise

    def run(self) -> None:
        """Copy layer by layer, to the host and back."""
        for nbytes in self._nbytes:
            self._runtime.memcpy(self._host, self._device, nbytes, _TO_HOST)
            if self._memory == "managed":
                self._touch(nbytes)
            self._runtime.memcpy(self._device, self._host, nbytes, _TO_DEVICE)

    def _touch(self, nbytes: int) -> None:
        """Read managed memory on the host, which brings it there."""
        np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(self._host))[::4096].sum()

    def close(self) -> None:
        with contextlib.suppress(Exception):  # of a device that was lost nothing is left to free
            if self._host and self._memory == "pinned":
                self._runtime.freeHost(self._host)
            elif self._host and self._memory == "managed":
                self._runtime.free(self._host)
            self._runtime.free(self._device)
        self._pageable = None
