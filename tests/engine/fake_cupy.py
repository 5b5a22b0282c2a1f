"""A stand-in for what the engine uses of CuPy: memory is the host's, kernels compute nothing but take their
time by a clock of their own, and everything that is put on a stream is written down."""

from __future__ import annotations

import ctypes
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Launched:
    """A kernel that was put on a stream; early: it may begin before the one in front has ended."""

    function: str
    early: bool = False


@dataclass
class FakeCupy:
    """cost_us(launches, index): what a launch takes, of all those of a pass. broken: the capture fails."""

    cost_us: Callable[[list[Launched], int], float] = lambda *_: 1.0
    broken: str = ""
    ran: list[Launched] = field(default_factory=list)
    allocations: int = 0
    now_us: float = 0.0
    __version__: str = "14.0"

    def __post_init__(self) -> None:
        self._capture: list[Launched] | None = None
        self._current: Any = None
        self.cuda = types.SimpleNamespace(
            Stream=lambda non_blocking: _Stream(self),
            get_current_stream=lambda: self._current,
            MemoryPool=lambda: _Pool(self),
            PinnedMemory=lambda nbytes: _Memory(self, nbytes),
            PinnedMemoryPointer=lambda memory, _: memory.array,
            Event=lambda disable_timing=False: _Event(self),
            get_elapsed_time=lambda start, stop: (stop.at_us - start.at_us) / 1e3,
            Device=lambda: types.SimpleNamespace(
                compute_capability="90", attributes={"L2CacheSize": 1 << 20, "MultiProcessorCount": 132}
            ),
            runtime=types.SimpleNamespace(
                memcpyAsync=lambda to, source, nbytes, *_: ctypes.memmove(to, source, nbytes),
                getDevice=lambda: 0,
                getDeviceProperties=lambda _: {"name": b"none"},
                driverGetVersion=lambda: 13000,
            ),
        )

    def RawModule(self, path: str) -> Any:
        return types.SimpleNamespace(
            get_function=lambda name: lambda *_, **__: self.put(Launched(name)), path=path
        )

    def put(self, launched: Launched) -> None:
        """On the stream: into the graph that is captured, if one is."""
        if self._capture is not None:
            self._capture.append(launched)
        else:
            self.run([launched])

    def run(self, launches: list[Launched]) -> None:
        self.ran += launches
        self.now_us += sum(self.cost_us(launches, i) for i in range(len(launches)))


@dataclass
class _Stream:
    cupy: FakeCupy

    @property
    def ptr(self) -> int:
        return id(self)

    def __enter__(self) -> _Stream:
        self.cupy._current = self
        return self

    def __exit__(self, *_: object) -> None:
        self.cupy._current = None

    def begin_capture(self) -> None:
        self.cupy._capture = []

    def end_capture(self) -> _Graph:
        launches, self.cupy._capture = self.cupy._capture, None
        if self.cupy.broken:
            raise RuntimeError(self.cupy.broken)
        assert launches is not None
        return _Graph(self.cupy, launches)

    def synchronize(self) -> None:
        assert self.cupy._capture is None, "nothing may wait while a graph is captured"


@dataclass
class _Graph:
    cupy: FakeCupy
    launches: list[Launched]

    def upload(self, stream: _Stream) -> None: ...

    def launch(self, stream: _Stream) -> None:
        self.cupy.run(self.launches)


class _Memory:
    def __init__(self, cupy: FakeCupy, nbytes: int) -> None:
        cupy.allocations += 1
        self.array = np.zeros(nbytes + 256, np.uint8)
        self.ptr = self.array.ctypes.data

    def __add__(self, offset: int) -> _Memory:
        there = _Memory.__new__(_Memory)
        there.array, there.ptr = self.array[offset:], self.ptr + offset
        return there

    def memset_async(self, value: int, nbytes: int, stream: _Stream) -> None:
        self.array[:nbytes] = value


@dataclass
class _Pool:
    cupy: FakeCupy
    freed: bool = False

    def malloc(self, nbytes: int) -> _Memory:
        return _Memory(self.cupy, nbytes)

    def free_all_blocks(self) -> None:
        self.freed = True


@dataclass
class _Event:
    cupy: FakeCupy
    at_us: float = 0.0

    def record(self, stream: _Stream) -> None:
        self.at_us = self.cupy.now_us

    def synchronize(self) -> None: ...
