"""A session's stream on the device: its clock, and the CUDA graphs that run on it."""

from __future__ import annotations

import contextlib
import ctypes
import statistics
import time
from collections.abc import Callable
from typing import Any

from engine.cuda.runtime import ColdCache
from engine.machine import driver

Work = Callable[[], None]

_FEWEST_TRAINS, _MOST_TRAINS = 5, 200


class Stream:
    """`on` is the CuPy stream; it is another after a capture that failed, which leaves one unusable."""

    def __init__(self, cupy: Any, pool: Any) -> None:
        """pool: where memory that is needed for measuring comes from, at its first use."""
        self._cupy, self._pool = cupy, pool
        self._cold: ColdCache | None = None
        self._clock: tuple[Any, Any] | None = None
        self.context = Context()
        self.on = cupy.cuda.Stream(non_blocking=True)

    def synchronize(self) -> None:
        self.on.synchronize()

    def put(self, work: Work) -> None:
        """Launch `work` with this stream as the current one."""
        with self.on:
            work()

    def elapsed_ns(self, work: Work, cold: bool = False, before: Work | None = None) -> float:
        """Nanoseconds between two events around `work`, which starts something on this stream. cold: the L2
        cache is overwritten first. before: launched before all that."""
        if before is not None:
            self.put(before)
        if cold:
            self._cold = self._cold or ColdCache(self._cupy, self._pool)
            self.context.forget_lines()
            self._cold.overwrite(self.on)
        if self._clock is None:
            self._clock = (self._cupy.cuda.Event(), self._cupy.cuda.Event())
        start, stop = self._clock
        start.record(self.on)
        work()
        stop.record(self.on)
        stop.synchronize()
        return float(self._cupy.cuda.get_elapsed_time(start, stop)) * 1e6

    def median_ns(self, work: Work, seconds: float) -> float:
        """The median of `work`, repeated for about so many seconds."""
        samples: list[float] = []
        end = time.perf_counter() + seconds
        while len(samples) < _FEWEST_TRAINS or (len(samples) < _MOST_TRAINS and time.perf_counter() < end):
            samples.append(self.elapsed_ns(work))
        return statistics.median(samples)

    def capture(self, work: Work, trial: bool = True) -> tuple[Any, str]:
        """The launches of `work` as a CUDA graph, replayed once as a trial if wanted; or None and the reason
        why capturing failed; then `on` is another stream."""
        stream = self.on
        try:
            with stream:
                stream.begin_capture()
                try:
                    work()
                finally:
                    graph = stream.end_capture()
            graph.upload(stream)
            if trial:
                graph.launch(stream)
            stream.synchronize()
        except RuntimeError as error:
            self.on = self._cupy.cuda.Stream(non_blocking=True)
            return None, str(error).strip()
        return graph, ""


# -------------------------------------------------------------------------------------------------- context

# What of a device's context the time of a kernel hangs on, beside the kernel: how much of the L2 cache is
# kept for lines that persist, how much is fetched at once, and which lines a stream has stay there.
#
# A kernel has no code on the host, and what compiles it runs in an isolated process. But what a library sets
# in this process stays set for all that follow. So these are looked at before each train, put back, and told.


_LIMITS = {  # CUlimit
    0x05: "how much the L2 cache fetches at once",
    0x06: "how much of the L2 cache is kept for lines that persist",
}
_WINDOW = 1  # CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
_WINDOW_WORDS = "which lines of a stream stay in the L2 cache"


class _Window(ctypes.Structure):
    """CUaccessPolicyWindow, in the room of a CUlaunchAttributeValue."""

    _fields_ = (
        ("base", ctypes.c_void_p),
        ("nbytes", ctypes.c_size_t),
        ("hit_ratio", ctypes.c_float),
        ("hit", ctypes.c_int),
        ("miss", ctypes.c_int),
        ("room", ctypes.c_char * 32),
    )


class Context:
    """The settings of the current CUDA context, as they are when this object is made. cuda: libcuda. undone:
    what was changed since and put back, in words. Settings that the driver does not know are ignored."""

    def __init__(self, cuda: Any = None) -> None:
        self.undone: list[str] = []
        self._cuda = cuda if cuda is not None else driver.library()
        self._limits = {limit: value for limit in _LIMITS if (value := self._limit(limit)) is not None}

    def look(self, stream: int) -> None:
        """Put back what has changed; a stream of ours has no lines that persist in the L2 cache."""
        for limit, value in self._limits.items():
            if self._limit(limit) != value:
                self._call("cuCtxSetLimit", limit, ctypes.c_size_t(value))
                self._told(_LIMITS[limit])
        window = _Window()
        known = self._call("cuStreamGetAttribute", ctypes.c_void_p(stream), _WINDOW, ctypes.byref(window))
        if known and window.nbytes:
            self._call("cuStreamSetAttribute", ctypes.c_void_p(stream), _WINDOW, ctypes.byref(_Window()))
            self._told(_WINDOW_WORDS)

    def forget_lines(self) -> None:
        """Lines that were to persist in the L2 cache become ordinary ones."""
        self._call("cuCtxResetPersistingL2Cache")

    def _told(self, words: str) -> None:
        self.forget_lines()
        if words not in self.undone:
            self.undone.append(words)

    def _limit(self, limit: int) -> int | None:
        value = ctypes.c_size_t(0)
        return value.value if self._call("cuCtxGetLimit", ctypes.byref(value), limit) else None

    def _call(self, name: str, *arguments: Any) -> bool:
        """Whether it was done."""
        with contextlib.suppress(AttributeError):
            return bool(getattr(self._cuda, name)(*arguments) == 0)
        return False
