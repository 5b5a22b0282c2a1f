"""What one step takes alone: trains of launches of it, as a CUDA graph where the session uses one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from engine.cuda.stream import Stream, Work

_TRAIN_NS = 500_000  # a train lasts about so long, far above the clock's resolution
_LONGEST_TRAIN = 100


def train_ns(stream: Stream, start: Work, capture: Callable[[Work], Any] | None, seconds: float) -> float:
    """Median nanoseconds of one launch, out of trains that take about `seconds` together. capture: makes a
    graph of launches, None where it does not work; without it steps below about 4 µs are bound by the
    host."""

    def once() -> None:
        stream.put(start)

    shortest = min(stream.elapsed_ns(once) for _ in range(3))
    length = min(_LONGEST_TRAIN, max(1, math.ceil(_TRAIN_NS / max(shortest, 1))))

    def several() -> None:
        for _ in range(length):
            start()

    graph = capture(several) if capture is not None else None

    def train() -> None:
        if graph is not None:
            graph.launch(stream.on)
        else:
            for _ in range(length):
                once()

    return stream.median_ns(train, seconds) / length
