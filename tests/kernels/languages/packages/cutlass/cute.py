"""Tensors, and what a thread knows of itself. `run` starts a kernel."""

import math as _math
import threading
from types import SimpleNamespace

import numpy as np

LANES = 32
_here = threading.local()


class Pointer:
    def __init__(self, held, at=0):
        self.held, self.at = held, at

    def __add__(self, elements):
        return Pointer(self.held, self.at + elements)

    def _place(self, i):
        place = self.at + i
        if not 0 <= place < len(self.held):
            raise IndexError(f"element {place} of {len(self.held)}")
        return place

    def __getitem__(self, i):
        return self.held[self._place(i)]

    def __setitem__(self, i, value):
        self.held[self._place(i)] = value


class Tensor:
    def __init__(self, pointer, layout):
        self.pointer, (self.shape, self.stride) = pointer, layout

    def _offset(self, at):
        at = at if isinstance(at, tuple) else (at,)
        assert all(0 <= i < size for i, size in zip(at, self.shape, strict=True)), (at, self.shape)
        return sum(i * step for i, step in zip(at, self.stride, strict=True))

    def __getitem__(self, at):
        return self.pointer[self._offset(at)]

    def __setitem__(self, at, value):
        self.pointer[self._offset(at)] = value

    def fill(self, value):
        self.pointer.held[:] = value


def make_layout(shape, stride=1):
    return tuple(it if isinstance(it, tuple) else (it,) for it in (shape, stride))


def make_tensor(pointer, layout):
    return Tensor(pointer, layout)


def make_rmem_tensor(count, kind):
    return Tensor(Pointer(np.full(count, np.nan, np.float32)), make_layout(count))


def kernel(function):
    return function


def _alloc_smem(kind, count):
    """The same memory for all threads of a block, which ask in the same order."""
    number, _here.asked = _here.asked, _here.asked + 1
    with _here.block.lock:
        held = _here.block.shared.setdefault(number, np.full(count, np.nan, np.float32))
    return Pointer(held)


def _warp_reduction(value, op):
    warp = _here.thread // LANES
    slots, waits = _here.block.slots[warp], _here.block.warps[warp]
    slots[_here.thread % LANES] = value
    waits.wait()
    found = slots[0]
    for other in slots[1:]:
        found = op(found, other)
    waits.wait()
    return found


arch = SimpleNamespace(
    thread_idx=lambda: (_here.thread, 0, 0),
    block_idx=lambda: _here.at,
    block_dim=lambda: (_here.block.threads, 1, 1),
    grid_dim=lambda: _here.grid,
    sync_threads=lambda: _here.block.all.wait(),
    alloc_smem=_alloc_smem,
    warp_reduction=_warp_reduction,
    fmax=max,
)
math = SimpleNamespace(exp=lambda v: np.float32(_math.exp(v)), log=lambda v: np.float32(_math.log(v)))


class _Block:
    def __init__(self, threads):
        self.threads, self.lock, self.shared = threads, threading.Lock(), {}
        self.all = threading.Barrier(threads)
        self.warps = [threading.Barrier(min(LANES, threads - w)) for w in range(0, threads, LANES)]
        self.slots = [[None] * LANES for _ in self.warps]
        self.failed = []

    def thread(self, number, at, grid, function, arguments):
        _here.block, _here.thread, _here.at, _here.grid, _here.asked = self, number, at, grid, 0
        try:
            function(*arguments)
        except BaseException as error:
            self.failed.append(error)
            for barrier in (self.all, *self.warps):
                barrier.abort()


def run(function, arguments, grid, threads):
    """Every block of a grid, one after the other. Raises what a thread raised first."""
    for z in range(grid[2]):
        for y in range(grid[1]):
            for x in range(grid[0]):
                block = _Block(threads)
                started = [
                    threading.Thread(target=block.thread, args=(i, (x, y, z), grid, function, arguments))
                    for i in range(threads)
                ]
                for thread in started:
                    thread.start()
                for thread in started:
                    thread.join()
                if block.failed:
                    raise block.failed[0]
