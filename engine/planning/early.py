"""How a plan's pass is replayed, as was timed to be the fastest on this machine: which of its steps begin
before the one in front has ended, and which weights are fetched ahead. Found once by trying
(engine.cuda.replays), so that every session of a plan runs alike.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from engine import tuned_store
from engine.graph.plan import Plan
from engine.planning import choices
from engine.tuned_store import Key
from kernels.registry import Rung

KIND = "early"


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """How many bytes of weights are fetched ahead, and how long each thread waits after 16 KiB."""

    nbytes: int = 0
    pause_ns: int = 0


class Timed(msgspec.Struct, frozen=True, kw_only=True):
    """The steps that begin early, by their index; what is fetched ahead (None: not tried)."""

    steps: tuple[int, ...]
    fetched: Fetched | None = None


def read(plan: Plan, rungs: Sequence[Rung]) -> Timed | None:
    """What is kept of this plan with these rungs, one a step."""
    key = _key(plan, rungs)
    return None if key is None else tuned_store.read(KIND, key, Timed)


def write(plan: Plan, rungs: Sequence[Rung], timed: Timed) -> None:
    """Keep it. Raises KernelError where the cache cannot be written."""
    if (key := _key(plan, rungs)) is not None:
        tuned_store.write(KIND, key, timed)


def _key(plan: Plan, rungs: Sequence[Rung]) -> Key | None:
    found = choices.machine(plan.device, None)
    if found is None:
        return None
    steps = zip(plan.steps, rungs, strict=True)
    return {
        **found,
        "steps": " ".join(choices.encoded(step.params) for step in plan.steps),
        "rungs": ", ".join(f"{rung.name} {step.reads} {step.writes}" for step, rung in steps),
        "batch": str(plan.batch),
        "precision": plan.precision,
        "turns": plan.turns_words if plan.turns is not None else "",
        "sources": choices.digest(plan.device, tuple(rung.source for rung in rungs)),
    }
