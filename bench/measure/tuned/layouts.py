"""In which layouts a plan's tensors travel, timed: each way that makes another plan is run whole, and the
fastest is kept."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import replace

from engine.backend import Backend, Options, Session
from engine.graph.graph import Graph
from engine.graph.plan import Plan
from engine.machine import driver as cuda_driver
from engine.planning import layouts, planner
from kernels.errors import KernelError, KernelscopeError, OutOfMemoryError, UnsupportedError
from kernels.ops import PRECISIONS

_TRIES, _TRY_NS = 5, 10e6
_GAIN = 0.01  # by so much another way than the chosen kernels' own has to be faster


Ways = tuple[Plan, tuple[str, ...]]


def untimed(graph: Graph, batch: int, precision: str, options: Options) -> Ways | None:
    """The plan without layouts, and the ways that make different plans of it, where there are several and no
    choice among them is kept."""
    gpu = cuda_driver.device()
    if gpu is None or precision == PRECISIONS[0] or options.layouts or not options.tuned:
        return None
    choose = planner.ladder_choice(options, gpu.capability, precision)
    how = replace(options, layouts="none")
    try:
        plain = planner.plan(graph, batch, "cuda", precision, how, choose=choose)
        made = {layouts.in_way(plain, way, options): way for way in reversed(layouts.WAYS)}
    except KernelscopeError:
        return None
    if len(made) < 2 or layouts.read(plain) is not None:
        return None
    return plain, tuple(way for way in layouts.WAYS if way in made.values())


def choose(
    backend: Backend,
    graph: Graph,
    found: Ways,
    options: Options,
    progress: Callable[[str, float | None], None],
) -> None:
    """Time them and keep the fastest. A way that cannot be prepared is passed over."""
    plain, ways = found
    times: dict[str, float] = {}
    for number, way in enumerate(ways):
        progress(f"layouts of {graph.name}, way {number + 1} of {len(ways)}", number / len(ways))
        try:
            session = backend.prepare(graph, plain.batch, plain.precision, replace(options, layouts=way))
        except (KernelError, OutOfMemoryError, UnsupportedError):
            continue
        try:
            times[way] = _pass_ns(session)
        finally:
            session.close()
    if not times:
        return
    first = next(iter(times))
    best = min(times, key=lambda way: times[way])
    way = best if times[best] < (1 - _GAIN) * times[first] else first
    layouts.write(plain, layouts.Timed(way=way, times=times))


def _pass_ns(session: Session) -> float:
    """Of a pass, the median of a few trains."""
    once = max(1, session.time_runs(1), session.time_runs(1))
    count = max(1, int(_TRY_NS / once))
    return statistics.median(session.time_runs(count) / count for _ in range(_TRIES))
