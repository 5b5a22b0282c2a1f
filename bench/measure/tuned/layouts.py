"""In which layouts a plan's tensors travel, timed: each way that makes another plan is run whole, and the
fastest is kept of those that answer as the plan without layouts does. Then which rungs are faster in these
layouts than those that were chosen alone (bench.measure.tuned.layout_rungs)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from bench.measure.timing import Rules, answers
from bench.measure.tuned.layout_rungs import Compile, LayoutRungs
from bench.measure.tuned.sweep import DeviceLost, Judge, Looks, Progress, Sweep
from bench.measure.tuned.whole_passes import GAIN, agree, drawn
from engine.backend import Backend, Options, Session
from engine.graph.graph import Graph
from engine.graph.plan import Plan
from engine.machine import driver as cuda_driver
from engine.planning import layouts, planner
from engine.planning.choices import Tried
from kernels.errors import KernelscopeError
from kernels.precision import FP32

FINAL = Rules(warmup_s=0.02, rewarm_s=0.005, min_s=0.05, width=0.01, budget_s=0.1)
LOOKS = Looks(final=FINAL, first_s=0.02, worth=GAIN, open=True)

Ways = tuple[Plan, tuple[str, ...]]


def untimed(graph: Graph, batch: int, precision: str, options: Options) -> Ways | None:
    """The plan without layouts, and the ways that make different plans of it, where there are several and no
    choice among them is kept."""
    gpu = cuda_driver.device()
    if gpu is None or not (precision != FP32 or _in_bytes(graph)) or options.layouts or not options.tuned:
        return None
    choose = planner.ladder_choice(options, gpu.capability)
    how = replace(options, layouts="none")
    try:
        plain = planner.plan(graph, batch, "cuda", precision, how, choose=choose)
        made = {layouts.in_way(plain, way, options): way for way in reversed(layouts.WAYS)}
    except KernelscopeError:
        return None
    if len(made) < 2 or ((kept := layouts.read(plain)) is not None and kept.ways.done):
        return None
    return plain, tuple(way for way in layouts.WAYS if way in made.values())


def _in_bytes(graph: Graph) -> bool:
    """Whether a model computes in eight bits, as far as the names of its operators tell: in float32 nothing
    else travels in another layout, and no plan is made to find that out."""
    return any(
        word in node.op_type for node in graph.nodes for word in ("Quantize", "QLinear", "QGemm", "Integer")
    )


def choose(
    backend: Backend,
    graph: Graph,
    found: Ways,
    options: Options,
    progress: Progress,
    compile_ahead: Compile | None = None,
    lost: Callable[[], bool] = lambda: False,
) -> None:
    """Time them and keep the fastest. A way that cannot be prepared is passed over, and one that gives other
    answers than the plan without layouts, where that can be had. compile_ahead, lost: see LayoutRungs. Raises
    DeviceLost, the layouts being kept, and KernelError where nothing can be."""
    plain, ways = found
    plain_ways = tuple(way for way in ways if layouts.in_way(plain, way, options) == plain.steps)
    judge = _Answers(plain_ways, plain.precision, drawn(plain))
    known = None
    if (
        kept := layouts.read(plain)
    ) is not None:  # its process ended: what the others are held against is had anew
        left = tuple(tried for tried in kept.ways.tried if tried.variant not in plain_ways or tried.refused)
        known = msgspec.structs.replace(kept.ways, tried=left)
    choice = Sweep(
        ways,
        lambda way: backend.prepare(graph, plain.batch, plain.precision, replace(options, layouts=way)),
        judge,
        # Kept before other rungs are tried in it: one that takes the device with it is tried once.
        lambda choice: layouts.write(plain, layouts.Timed(ways=choice)),
        LOOKS,
        f"layouts of {graph.name}",
        progress,
        plain.device,
        known,
        order=(*plain_ways, *(way for way in ways if way not in plain_ways)),
        lost=lost,
    ).run()
    if choice.best is None:
        layouts.forget(plain)
        return
    of_way = replace(options, layouts=choice.best)
    trial = LayoutRungs(
        backend, graph, plain, of_way, judge.inputs, judge.right, progress, compile_ahead, lost
    )
    try:
        rungs = trial.faster()
    except DeviceLost:
        raise
    except BaseException:  # it was told to end: they are tried another time
        layouts.forget(plain)
        raise
    if rungs or trial.tried:
        layouts.write(plain, layouts.Timed(ways=choice, rungs=rungs, tried=trial.tried))


@dataclass
class _Answers(Judge[str, Session]):
    """Whether a way answers as those without layouts do, where their answer can be had."""

    plain_ways: tuple[str, ...]
    precision: str
    inputs: Mapping[str, np.ndarray]
    right: Mapping[str, np.ndarray] | None = None

    def first(self, session: Session, tried: Tried[str]) -> Tried[str]:
        given = answers(session, self.inputs)
        if tried.variant in self.plain_ways:
            self.right = given
        if self.right is None or agree(given, self.right, self.precision):
            return tried
        return msgspec.structs.replace(tried, refused="other answers than without layouts")
