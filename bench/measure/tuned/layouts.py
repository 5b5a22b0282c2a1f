"""In which layouts a plan's tensors travel, timed: each way that makes another plan is run whole, and the
fastest is kept of those that answer as the plan without layouts does. Then which rungs are faster in these
layouts than those that were chosen alone (bench.measure.tuned.laid_rungs)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from bench.measure.tuned.laid_rungs import Compile, LaidRungs
from bench.measure.tuned.reference import DeviceLost
from bench.measure.tuned.whole_passes import GAIN, alike, answers, drawn, pass_ns
from engine.backend import Backend, Options
from engine.graph.graph import Graph
from engine.graph.plan import Plan
from engine.machine import driver as cuda_driver
from engine.planning import layouts, planner
from kernels.errors import KernelError, KernelscopeError, OutOfMemoryError, UnsupportedError
from kernels.precision import FP32

Ways = tuple[Plan, tuple[str, ...]]


def untimed(graph: Graph, batch: int, precision: str, options: Options) -> Ways | None:
    """The plan without layouts, and the ways that make different plans of it, where there are several and no
    choice among them is kept."""
    gpu = cuda_driver.device()
    if gpu is None or precision == FP32 or options.layouts or not options.tuned:
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
    compile_ahead: Compile | None = None,
    lost: Callable[[], bool] = lambda: False,
) -> None:
    """Time them and keep the fastest. A way that cannot be prepared is passed over, and one that gives other
    answers than the plan without layouts, where that can be had. compile_ahead, lost: see LaidRungs. Raises
    DeviceLost, the layouts being kept, and KernelError where nothing can be."""
    plain, ways = found
    inputs = drawn(plain)
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
            given = answers(session, inputs)
            right = given if way in unlaid else right
            if right is not None and not alike(given, right, plain.precision):
                progress(f"layouts of {graph.name}, way {way}: other answers than without, left out", None)
                continue
            (measured[way],) = pass_ns(session)
        finally:
            session.close()
    times = {way: measured[way] for way in ways if way in measured}
    if not times:
        return
    first = next(iter(times))
    best = min(times, key=lambda way: times[way])
    way = best if times[best] < (1 - GAIN) * times[first] else first
    # Kept before other rungs are tried in it: one that takes the process or the device with it is tried once.
    layouts.write(plain, layouts.Timed(way=way, times=times, rungs=()))
    of_way = replace(options, layouts=way)
    trial = LaidRungs(backend, graph, plain, of_way, inputs, right, progress, compile_ahead, lost)
    try:
        rungs = trial.faster()
    except DeviceLost:
        raise
    except BaseException:  # it was told to end: they are tried another time
        layouts.forget(plain)
        raise
    if rungs or trial.tried:
        layouts.write(plain, layouts.Timed(way=way, times=times, rungs=rungs, tried=trial.tried))
