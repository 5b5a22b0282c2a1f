"""The time of each step of a plan: alone, in trains of its launches, as a CUDA graph if the session uses one;
or its share of the one kernel of which it is a part in a pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from engine.backend import OpTime
from engine.cuda.replays.one_kernel import Taken
from engine.cuda.stream import Stream, Work
from engine.graph.plan import Step
from kernels.net.text import FILE

_TRAIN_NS = 500_000  # a train lasts about so long, far above the clock's resolution
_LONGEST_TRAIN = 100

Capture = Callable[[Work], Any]


def measured(
    stream: Stream,
    steps: Sequence[Step],
    starts: Sequence[Work],
    one: Taken | None,
    capture: Capture | None,
    seconds: float,
) -> list[OpTime]:
    """A time a step, all together in about `seconds`. starts: what launches each of them alone; one: those
    that are one kernel; capture: see train_ns."""
    shares = one.shares() if one is not None else None
    within: dict[int, float] = {}
    if one is not None and shares is not None:
        whole = train_ns(stream, one.start, capture, seconds / 2)
        within = {one.run.start + i: share * whole for i, share in enumerate(shares)}
    found = []
    for i, (step, start) in enumerate(zip(steps, starts, strict=True)):
        if one is not None and i in within:
            nbytes = one.moved[i - one.run.start]
            found.append(OpTime(step.nodes, step.op, within[i], "stamps", FILE.stem, "timed", nbytes))
        else:
            time_ns = train_ns(stream, start, capture, seconds / len(steps))
            found.append(OpTime(step.nodes, step.op, time_ns, "events", step.rung, step.chosen, step.nbytes))
    return found


def train_ns(stream: Stream, start: Work, capture: Capture | None, seconds: float) -> float:
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
