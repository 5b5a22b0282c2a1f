"""Which steps of a plan begin before the step in front has ended. It is found once by trying
(engine.cuda.replays.overlap), and kept, so that every session of a plan runs alike."""

from __future__ import annotations

from collections.abc import Sequence

from engine.graph.plan import Plan
from engine.planning import choices
from kernels.cache import Key
from kernels.registry import Rung

EARLY = choices.Part[frozenset[int]]("early", frozenset[int])
"""The steps that begin early, by their index."""


def read(plan: Plan, rungs: Sequence[Rung]) -> frozenset[int] | None:
    """The steps kept for this plan with these rungs, one for each step; None where nothing is kept."""
    return EARLY.read(choices.of_plan(plan), _on(plan, rungs))


def write(plan: Plan, rungs: Sequence[Rung], begun: frozenset[int]) -> None:
    """Keep them. Raises KernelError where the cache cannot be written."""
    EARLY.write(choices.of_plan(plan), _on(plan, rungs), begun)


def _on(plan: Plan, rungs: Sequence[Rung]) -> Key:
    steps = zip(plan.steps, rungs, strict=True)
    return {
        "rungs": ", ".join(f"{rung.name} {step.reads} {step.writes}" for step, rung in steps),
        "turns": plan.turns_words if plan.turns is not None else "",
        "sources": choices.digest(plan.device, tuple(rung.source for rung in rungs)),
    }
