"""In which layouts a plan's tensors travel, timed: each way that makes another plan is run whole, and the
fastest is kept of those that answer as the plan without layouts does."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from bench.measure import instances
from bench.measure.answers import accuracy
from engine.backend import Backend, Options, Session
from engine.graph.graph import Graph
from engine.graph.plan import Plan
from engine.machine import driver as cuda_driver
from engine.planning import layouts, planner
from kernels.errors import KernelError, KernelscopeError, OutOfMemoryError, UnsupportedError
from kernels.ops import PRECISIONS

_TRIES, _TRY_NS = 5, 10e6
_DRAWN = (1 << 20) + 7  # values: no image is another one then
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
    """Time them and keep the fastest. A way that cannot be prepared is passed over, and one that gives other
    answers than the plan without layouts, where that can be had."""
    plain, ways = found
    inputs = _drawn(plain)
    right: Mapping[str, np.ndarray] | None = None
    measured: dict[str, float] = {}
    unlaid = [way for way in ways if layouts.in_way(plain, way, options) == plain.steps]
    for number, way in enumerate([*unlaid, *(way for way in ways if way not in unlaid)]):
        progress(f"layouts of {graph.name}, way {number + 1} of {len(ways)}", number / len(ways))
        try:
            session = backend.prepare(graph, plain.batch, plain.precision, replace(options, layouts=way))
        except (KernelError, OutOfMemoryError, UnsupportedError):
            continue
        try:
            answers = _answers(session, inputs)
            right = answers if way in unlaid else right
            if right is not None and not _alike(answers, right, plain.precision):
                progress(f"layouts of {graph.name}, way {way}: other answers than without, left out", None)
                continue
            measured[way] = _pass_ns(session)
        finally:
            session.close()
    times = {way: measured[way] for way in ways if way in measured}
    if not times:
        return
    first = next(iter(times))
    best = min(times, key=lambda way: times[way])
    way = best if times[best] < (1 - _GAIN) * times[first] else first
    layouts.write(plain, layouts.Timed(way=way, times=times))


def _drawn(plan: Plan) -> dict[str, np.ndarray]:
    """Inputs: so many drawn values, and these again."""
    random = np.random.default_rng(0)
    found = {}
    for name in plan.inputs:
        spec = plan.tensors[name]
        count = min(math.prod(spec.shape), _DRAWN)
        real = np.dtype(spec.dtype).kind == "f"
        drawn = random.standard_normal(count, np.float32) if real else random.integers(0, 2, count)
        found[name] = np.resize(drawn.astype(spec.dtype), spec.shape)
    return found


def _answers(session: Session, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    session.bind(inputs)
    session.run()
    session.synchronize()
    return session.fetch()


def _alike(got: Mapping[str, np.ndarray], right: Mapping[str, np.ndarray], precision: str) -> bool:
    return instances.alike(got, right, precision, accuracy.PROPAGATED_FACTOR).ok


def _pass_ns(session: Session) -> float:
    """Of a pass, the median of a few trains."""
    once = max(1, session.time_runs(1), session.time_runs(1))
    count = max(1, int(_TRY_NS / once))
    return statistics.median(session.time_runs(count) / count for _ in range(_TRIES))
