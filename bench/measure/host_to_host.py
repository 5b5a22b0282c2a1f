"""Passes as an application makes them, from inputs on the host to outputs on the host, by their phases."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bench.measure.timing import no_garbage_collection
from engine.backend import Session


@dataclass(frozen=True)
class HostToHost:
    """Medians in ns over host-to-host passes: phases h2d, compute, d2h, sync, and the wall time of them.
    launched_ns: of passes that were launched and waited for without copies, and its 95 % interval."""

    phases: dict[str, float]
    wall_ns: float
    passes: int
    launched_ns: tuple[float, float, float]


def host_to_host(
    session: Session, inputs: Mapping[str, np.ndarray], device_ns: float | None = None, seconds: float = 0.3
) -> HostToHost:
    """Full passes as an application makes them: bind, run, wait, fetch; at least five, for about `seconds`.

    h2d is `bind`, d2h is `fetch`. Where `run` only launches (a GPU), `device_ns` is what the pass takes on
    the device's clock: that is `compute`, and `sync` what launching it and waiting for it cost beyond. Where
    it is None, `run` is `compute` and `synchronize` is `sync`.
    """
    laps: list[tuple[int, int, int, int, int]] = []
    end = time.perf_counter() + seconds
    with no_garbage_collection():
        while len(laps) < 5 or (time.perf_counter() < end and len(laps) < 1000):
            start = time.perf_counter_ns()
            session.bind(inputs)
            bound = time.perf_counter_ns()
            session.run()
            ran = time.perf_counter_ns()
            session.synchronize()
            waited = time.perf_counter_ns()
            session.fetch()
            fetched = time.perf_counter_ns()
            laps.append((bound - start, ran - bound, waited - ran, fetched - waited, fetched - start))
            if laps[-1][4] > 1e9 * seconds and len(laps) >= 3:
                break  # of passes that take longer than that three tell enough
        launched = _launched(session, seconds / 3)
    h2d, compute, sync, d2h, wall = (float(statistics.median(column)) for column in zip(*laps, strict=True))
    if device_ns is not None:
        compute, sync = min(device_ns, compute + sync), max(compute + sync - device_ns, 0.0)
    return HostToHost({"h2d": h2d, "compute": compute, "d2h": d2h, "sync": sync}, wall, len(laps), launched)


def _launched(session: Session, seconds: float) -> tuple[float, float, float]:
    """Passes one behind the other; by order statistics the interval needs no shape of their times."""
    laps: list[float] = []
    end = time.perf_counter() + seconds
    while len(laps) < 3 or (time.perf_counter() < end and len(laps) < 1000):
        start = time.perf_counter_ns()
        session.run()
        session.synchronize()
        laps.append(float(time.perf_counter_ns() - start))
    laps = sorted(laps[len(laps) // 10 :])  # the first come behind copies
    middle, reach = len(laps) / 2, 0.98 * math.sqrt(len(laps))
    low, high = max(0, int(middle - reach)), min(len(laps) - 1, math.ceil(middle + reach))
    return statistics.median(laps), laps[low], laps[high]
