"""Which of our rungs is the fastest right one for each step of a model on this machine
(bench.measure.tuned.sweep, engine.planning.choices).

All rungs of a step are fed the same inputs, whose answer is computed once for all batch sizes. They are tried
in the order in which they were fast at a batch size that is near, else in the ladder's; one that took a third
longer than the fastest there is left out. Each is judged in some images, and the fastest once more in every
image: only then is it taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec

from bench.measure.answers.batch_check import BatchCheck
from bench.measure.answers.samples import repeated
from bench.measure.timing import Rules
from bench.measure.tuned.sweep import FAR, SLOWER, UNTRIED, Judge, Looks, Progress, Sweep
from engine import rung_devices
from engine.backend import Options
from engine.graph.graph import Graph
from engine.machine import driver as cuda_driver
from engine.planning import choices, planner, step_fusion
from engine.planning.choices import Choice, Tried
from engine.planning.planner import Chosen
from engine.rung_session import RungSession
from kernels.errors import KernelscopeError, OutOfMemoryError
from kernels.ops import Params
from kernels.registry import Rung

FINAL = Rules(warmup_s=0.005, rewarm_s=0.002, rounds=3, min_s=0.015, width=0.02, budget_s=0.1)
# A rung that gains less than a fiftieth on the ladder's own is not taken.
LOOKS = Looks(final=FINAL, first_s=0.005, short_ns=1e6, far=FAR, worth=0.02, open=True)
FADES = 0.6  # of a pace at each batch size where its rung is not tried, so that it is again before long


@dataclass(frozen=True)
class Untimed:
    """Params whose rungs were not timed yet, with the node that they are of. rungs: the candidates."""

    params: Params
    node: str
    rungs: tuple[Rung, ...]


def wanted(graph: Graph, batch: int, device: str, precision: str, options: Options) -> tuple[Untimed, ...]:
    """The distinct params of a plan with two rungs or more to choose from and no choice kept; of both plans
    where times decide whether two operators are one step. Nodes whose rung is named, and models that the
    engine refuses, want none."""
    gpu = cuda_driver.device() if device == "cuda" else None
    if device == "cuda" and gpu is None:
        return ()
    capability = gpu.capability if gpu else None
    untold = planner.ladder_choice(replace(options, tuned=False), capability)
    found: dict[tuple[Params, bool], Untimed] = {}

    def choose(on: str, params: Params, node: str, weights_known: bool, asked: str) -> Chosen:
        if node not in options.rungs:
            rungs = choices.candidates(on, params, precision, weights_known, capability)
            found.setdefault((params, weights_known), Untimed(params, node, rungs))
        return untold(on, params, node, weights_known, asked)

    try:
        for joins in step_fusion.ways(device, options, precision):
            planner.plan(graph, batch, device, precision, options, choose=choose, joined=joins)
    except KernelscopeError:
        return ()
    return tuple(item for item in found.values() if _lacks(item, device, precision, options))


def _lacks(item: Untimed, device: str, precision: str, options: Options) -> bool:
    if len(item.rungs) < 2:
        return False
    kept = choices.read(device, item.params, precision, item.rungs, options.threads)
    return kept is None or not kept.done


def choose(
    item: Untimed,
    device: str,
    precision: str,
    options: Options,
    progress: Progress,
    lost: Callable[[], bool] = lambda: False,
    prepare: Callable[..., RungSession] = rung_devices.prepare,
    looks: Looks | None = None,
) -> Choice[str]:
    """The choice among the rungs of one step, kept and returned. Raises DeviceLost, OutOfMemoryError and
    UnsupportedError where the step itself cannot be tried, KernelError where nothing can be kept, and what
    `progress` raises."""
    params, threads = item.params, options.threads
    at = (device, params, precision, item.rungs, threads)
    by_name = {rung.name: rung for rung in item.rungs}
    paces = choices.nearby(*at)
    try:
        sample = repeated(params)
        check, given = BatchCheck(params, sample, precision), sample.given(params)
    except MemoryError as error:
        raise OutOfMemoryError(f"memory did not suffice to try {params.words}") from error
    choice = Sweep(
        [*by_name],
        lambda name: prepare(by_name[name], params, given, threads),
        _Images(check),
        lambda choice: choices.write(*at, choice),
        looks or LOOKS,
        f"{item.node}'s kernels",
        progress,
        device,
        choices.read(*at),
        _order([*by_name], paces),
        paces,
        lost=lost,
    ).run()
    if paces := _paces(choice, paces):
        choices.remember(*at, paces)
    return choice


class _Images(Judge[str, RungSession]):
    """Whether a rung's answer is right: in some images at first, in every one where it is the fastest."""

    def __init__(self, check: BatchCheck) -> None:
        self._check = check

    def first(self, session: RungSession, tried: Tried[str]) -> Tried[str]:
        return msgspec.structs.replace(tried, refused=self._check.somewhere(session))

    def again(self, session: RungSession) -> tuple[str, str]:
        return self._check.everywhere(session), ""


def _order(names: list[str], paces: dict[str, float]) -> list[str]:
    """The rungs as they were fast at the nearest batch size; then those that are not known from there, in the
    ladder's order, and last those that were far slower. What the ladder takes is never put back."""

    def place(name: str) -> tuple[int, float]:
        pace, first = paces.get(name), name == names[0]
        if pace is None:
            return (0, FAR) if first else (1, 0.0)
        return (0 if pace < FAR or first else 2, pace)

    return sorted(names, key=place)


def _paces(choice: Choice[str], before: dict[str, float]) -> dict[str, float]:
    """How many times as long as the fastest each rung took; of one that was not tried what was known before,
    a little less each time."""
    times = {t.variant: t.ns for t in choice.tried if t.ns and t.refused in ("", SLOWER)}
    best = min(times.values(), default=1.0)
    untried = {t.variant for t in choice.tried if t.refused == UNTRIED} if times else set()
    faded = {name: pace * FADES for name, pace in before.items() if name in untried}
    return {
        name: round(pace, 3) for name, pace in (faded | {v: ns / best for v, ns in times.items()}).items()
    }
