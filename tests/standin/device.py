"""The device: streams of work that is done when somebody waits for it, events on a clock of its own, graphs.

Nothing is done when it is put on a stream: whoever reads without having waited reads what was there before,
as on a device that is slow. The clock of a stream is the sum of what its work costs by a model; neither the
host's pauses nor the time that NumPy takes are on it, so that times are the same in every run.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any, Protocol

from tests.standin.errors import BAD_HANDLE, CAPTURING, NOT_READY, CudaError
from tests.standin.memory import Memory
from tests.standin.settings import Settings

# A device slower than NumPy, so that trains of launches that fill a time are short.
LAUNCH_US, FLOPS_A_US, NBYTES_A_US = 500.0, 1_600.0, 400.0
_MOST_WAITING = 1024  # pieces of work on a stream; beyond it the host waits, as for CUDA's own queue


@dataclass(frozen=True)
class Launched:
    """A kernel that was put on a stream; early: it may begin before the one in front has ended."""

    function: str
    early: bool = False
    flops: int = 0
    nbytes: int = 0


@dataclass(frozen=True)
class Work:
    """What is put on a stream. cost_us: on its clock, where it is no kernel. call: CUDA's function that puts
    it there. told: what a profiler records of its being done, by the names of CUPTI's records ({}: nothing).
    graph: what is done in its place, one after another."""

    do: Callable[[], object]
    cost_us: float = 0.0
    launched: Launched | None = None
    call: str = ""
    told: dict[str, Any] = field(default_factory=dict)
    graph: Sequence[Work] = ()


class Watcher(Protocol):
    """A profiler. Times are perf_counter's."""

    def called(self, name: str, start_ns: int, end_ns: int, correlation: int) -> None: ...

    def did(
        self, stream: Stream, work: Work, start_ns: int, end_ns: int, correlation: int, node: int | None
    ) -> None: ...


def modelled_us(launches: Sequence[Launched], index: int) -> float:
    """What a launch takes: the longer of computing and moving, half of its start where it begins early."""
    it = launches[index]
    start = LAUNCH_US / 2 if it.early else LAUNCH_US
    return start + max(it.flops / FLOPS_A_US, it.nbytes / NBYTES_A_US)


class Device:
    """cost_us(launches, index): what a launch takes, of all those that are put on a stream together. broken:
    why every capture fails. ran: the kernels, in the order in which they ran."""

    def __init__(
        self,
        settings: Settings | None = None,
        cost_us: Callable[[Sequence[Launched], int], float] = modelled_us,
        broken: str = "",
    ) -> None:
        self.settings = settings or Settings.here()
        self.memory = Memory(self.settings.memory_mib << 20)
        self.cost_us, self.broken = cost_us, broken
        self.lost: CudaError | None = None
        self.ran: deque[Launched] = deque(maxlen=1 << 16)
        self.streams: dict[int, Stream] = {}
        self.watcher: Watcher | None = None
        self.correlation = 0
        self._thread = threading.local()
        self.null = Stream(self, handle=0)

    def check(self) -> None:
        """A context that has faulted answers nothing any more."""
        if self.lost is not None:
            raise self.lost

    @property
    def current(self) -> Stream:
        stack = self._stack()
        return stack[-1] if stack else self.null

    def call(self, name: str, do: Callable[[int], None]) -> None:
        """A call into CUDA by its name, given its number."""
        self.check()
        self.correlation += 1
        correlation = self.correlation
        if self.watcher is None or not name:
            do(correlation)
            return
        started = perf_counter_ns()
        do(correlation)
        self.watcher.called(name, started, perf_counter_ns(), correlation)

    def _stack(self) -> list[Stream]:
        if not hasattr(self._thread, "stack"):
            self._thread.stack = []
        return self._thread.stack

    def enter(self, stream: Stream) -> None:
        self._stack().append(stream)

    def leave(self) -> None:
        self._stack().pop()

    def stream(self, handle: int) -> Stream:
        if handle not in self.streams:
            raise CudaError(BAD_HANDLE)
        return self.streams[handle]

    def synchronize(self) -> None:
        self.check()
        for stream in list(self.streams.values()):
            stream.synchronize()

    def finish(self) -> None:
        """Before memory is given back, everything ends; a device that has faulted has nothing to end."""
        if self.lost is None:
            for stream in list(self.streams.values()):
                if stream.captured is None:
                    stream.drain()


class Stream:
    def __init__(self, device: Device, handle: int | None = None) -> None:
        self.device = device
        self.handle = id(self) if handle is None else handle
        self.number = len(device.streams) + 1
        self.now_us = 0.0
        self.captured: list[Work] | None = None
        self._waiting: deque[tuple[Work, int]] = deque()
        self._doing = threading.RLock()
        device.streams[self.handle] = self

    def put(self, work: Work) -> None:
        self.device.call(work.call, lambda correlation: self._put(work, correlation))

    def _put(self, work: Work, correlation: int) -> None:
        if self.captured is not None:
            self.captured.append(work)
            return
        self._waiting.append((work, correlation))
        if len(self._waiting) > _MOST_WAITING:
            self._next()

    def drain(self, until: Callable[[], bool] = lambda: False) -> None:
        """Do what waits, all of it or until that holds."""
        with self._doing:
            while self._waiting and not until():
                self._next()

    def synchronize(self) -> None:
        self.device.call("cudaStreamSynchronize", lambda _: self._synchronize())

    def _synchronize(self) -> None:
        if self.captured is not None:
            raise CudaError(CAPTURING)
        self.drain()

    def _next(self) -> None:
        work, correlation = self._waiting.popleft()
        try:
            self._do(work, correlation)
        except CudaError as error:
            self.device.lost = error
            self._waiting.clear()
            raise

    def _do(self, it: Work, correlation: int) -> None:
        works = it.graph or (it,)
        launches = [work.launched for work in works if work.launched is not None]
        index, watcher = 0, self.device.watcher
        for node, work in enumerate(works):
            started = perf_counter_ns()
            work.do()
            if work.launched is None:
                self.now_us += work.cost_us
            else:
                self.device.ran.append(work.launched)
                self.now_us += self.device.cost_us(launches, index)
                index += 1
            if watcher is not None and work.told:
                ended = perf_counter_ns()
                watcher.did(self, work, started, ended, correlation, node if it.graph else None)

    def begin_capture(self) -> None:
        self.device.call("cudaStreamBeginCapture", lambda _: None)
        self.captured = []

    def end_capture(self) -> Graph:
        self.device.call("cudaStreamEndCapture", lambda _: None)
        works, self.captured = self.captured, None
        if self.device.broken:
            raise RuntimeError(self.device.broken)
        if works is None:
            raise CudaError(CAPTURING)
        return Graph(works)


@dataclass(frozen=True)
class Graph:
    """What was captured; replayed, all of it is done again."""

    works: list[Work]

    def put_on(self, stream: Stream) -> None:
        if self.works:
            stream.put(Work(lambda: None, call="cudaGraphLaunch", graph=self.works))


class Event:
    """A place on a stream."""

    def __init__(self, timed: bool) -> None:
        self._timed = timed
        self._stream: Stream | None = None
        self._recorded = self._done = 0
        self._at_us = 0.0

    def record(self, stream: Stream) -> None:
        self._recorded += 1
        self._stream, number = stream, self._recorded

        def arrive() -> None:
            self._at_us, self._done = stream.now_us, number

        stream.put(Work(arrive, call="cudaEventRecord"))

    @property
    def _passed(self) -> bool:
        return self._done == self._recorded

    def synchronize(self) -> None:
        stream = self._stream
        if stream is not None:
            stream.device.call("cudaEventSynchronize", lambda _: stream.drain(lambda: self._passed))

    def ms_until(self, stop: Event) -> float:
        for event in (self, stop):
            if event._stream is None or not event._timed:
                raise CudaError(BAD_HANDLE)
            if not event._passed:
                raise CudaError(NOT_READY)
        return (stop._at_us - self._at_us) / 1e3
