"""A session's stream on the device: its clock, and the CUDA graphs that run on it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from engine.cuda.context import Context
from engine.cuda.runtime import ColdCache

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
        """Run what launches on the current stream, this one being it."""
        with self.on:
            work()

    def elapsed_ns(self, work: Work, cold: bool = False, before: Work | None = None) -> float:
        """Between two events round `work`, which starts something on this stream. cold: after the L2 cache
        was overwritten. before: launched in front of all that."""
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
        """Of `work`, again and again for about so long."""
        samples: list[float] = []
        end = time.perf_counter() + seconds
        while len(samples) < _FEWEST_TRAINS or (len(samples) < _MOST_TRAINS and time.perf_counter() < end):
            samples.append(self.elapsed_ns(work))
        return statistics.median(samples)

    def capture(self, work: Work, trial: bool = True) -> tuple[Any, str]:
        """What `work` launches as a CUDA graph, replayed once for a trial if wanted; or None and why that did
        not work, `on` being another stream then."""
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
