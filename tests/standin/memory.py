"""The device's memory: the host's, with real addresses, of which it is known what was allocated."""

from __future__ import annotations

import bisect
import ctypes
import math
import mmap
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.standin.errors import ILLEGAL, CudaError, OutOfMemoryError

ALIGNMENT = 512
UNWRITTEN = 0xFF  # as float32 a NaN: what is read before it was written shows
_FILLED_NBYTES = 64 << 20  # larger ones are left as the system gives them, which costs nothing
_DONTNEED = getattr(mmap, "MADV_DONTNEED", None)


def fill(part: np.ndarray, value: int) -> None:
    """Set all these bytes of a Block's. Many zeros are the system's to make: pages of private memory that are
    given back are zeros when they are read again, and those that nobody reads cost nothing."""
    if value == 0 and part.nbytes > _FILLED_NBYTES and sys.platform == "linux" and _DONTNEED is not None:
        first = -part.ctypes.data % mmap.PAGESIZE
        last = first + (part.nbytes - first) // mmap.PAGESIZE * mmap.PAGESIZE
        madvise = ctypes.CDLL(None).madvise
        start = ctypes.c_void_p(part.ctypes.data + first)
        if madvise(start, ctypes.c_size_t(last - first), ctypes.c_int(_DONTNEED)) == 0:
            part[:first].fill(0)
            part[last:].fill(0)
            return
    part.fill(value)


class Block:
    """An allocation. version: grows whenever something is copied or set in it, as weights are; kernels that
    write it do not count."""

    def __init__(self, nbytes: int, pinned: bool) -> None:
        held = np.empty(nbytes + ALIGNMENT, np.uint8)
        start = -held.ctypes.data % ALIGNMENT
        self.array = held[start : start + nbytes]
        self.address = self.array.ctypes.data
        self.nbytes, self.pinned, self.version = nbytes, pinned, 0
        if nbytes <= _FILLED_NBYTES:
            self.array.fill(UNWRITTEN)


class Memory:
    """Every allocation of the device, and the host's page-locked ones."""

    def __init__(self, total: int) -> None:
        self.total, self.used, self.allocations, self.freed = total, 0, 0, 0
        self._addresses: list[int] = []
        self._blocks: list[Block] = []
        # Looking up and cutting out is most of what a small launch costs. Another dictionary follows when
        # memory is freed, so that who looks in it meanwhile keeps nothing in the new one.
        self._views: dict[tuple[Any, ...], np.ndarray] = {}

    def allocate(self, nbytes: int, pinned: bool = False) -> Block:
        if not pinned and self.used + nbytes > self.total:
            raise OutOfMemoryError(
                f"Out of memory allocating {nbytes:,} bytes (allocated so far: {self.used:,} bytes)."
            )
        block = Block(max(nbytes, 1), pinned)
        place = bisect.bisect(self._addresses, block.address)
        self._addresses.insert(place, block.address)
        self._blocks.insert(place, block)
        self.used += 0 if pinned else block.nbytes
        self.allocations += 1
        return block

    def free(self, block: Block) -> None:
        place = bisect.bisect_left(self._addresses, block.address)
        del self._addresses[place], self._blocks[place]
        self._views = {}
        self.used -= 0 if block.pinned else block.nbytes
        self.freed += 1

    def find(self, address: int, nbytes: int) -> Block | None:
        """The device's allocation that all these bytes lie in."""
        place = bisect.bisect(self._addresses, address) - 1
        if place < 0:
            return None
        block = self._blocks[place]
        inside = address + nbytes <= block.address + block.nbytes
        return block if inside and not block.pinned else None

    def at(self, address: int, nbytes: int) -> Block:
        """The same, for a kernel: beyond what was allocated it faults."""
        block = self.find(address, nbytes)
        if block is None:
            raise CudaError(ILLEGAL, f"{nbytes:,} bytes at {address:#x} were not allocated")
        return block

    def view(self, address: int, shape: Sequence[int], dtype: type | np.dtype) -> np.ndarray:
        """What lies there as an array, C-contiguous; it keeps the bytes, not their being allocated."""
        views, key = self._views, (address, tuple(shape), dtype)
        found = views.get(key)
        if found is None:
            nbytes = math.prod(map(int, shape)) * np.dtype(dtype).itemsize
            block = self.at(address, nbytes)
            start = address - block.address
            found = views[key] = block.array[start : start + nbytes].view(dtype).reshape(shape)
        return found
