"""Which steps of a plan begin before the one in front has ended, as was timed to be the fastest on this
machine: found once by trying (engine.cuda.replays.overlap), so that every session of a plan runs alike.
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


class Timed(msgspec.Struct, frozen=True, kw_only=True):
    """The steps that begin early, by their index."""

    steps: tuple[int, ...]


def read(plan: Plan, rungs: Sequence[Rung]) -> frozenset[int] | None:
    """What is kept of this plan with these rungs, one a step."""
    key = _key(plan, rungs)
    found = None if key is None else tuned_store.read(KIND, key, Timed)
    return None if found is None else frozenset(found.steps)


def write(plan: Plan, rungs: Sequence[Rung], begun: frozenset[int]) -> None:
    """Keep it. Raises KernelError where the cache cannot be written."""
    if (key := _key(plan, rungs)) is not None:
        tuned_store.write(KIND, key, Timed(steps=tuple(sorted(begun))))


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
