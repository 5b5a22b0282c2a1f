"""Which steps of a plan can be one kernel (kernels.net), and whether that was timed to be faster. The result
is kept, like the choices of rungs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import msgspec
import numpy as np

from engine.graph.plan import Plan, Step
from engine.planning import choices
from kernels import registry
from kernels.cache import Key
from kernels.layouts import PLAIN
from kernels.net.layers import Layer, layers
from kernels.net.plan import MOST_WEIGHTS_NBYTES, weights_nbytes
from kernels.net.records import Way
from kernels.net.text import FILE, Weights


@dataclass(frozen=True)
class Run:
    """Consecutive steps, from `start` to before `end`, each of which is the only one to read the output of
    the step before. layers: what each does to one image."""

    start: int
    end: int
    steps: tuple[Step, ...]
    layers: tuple[Layer, ...]

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(name for step in self.steps for name in step.nodes)

    def weights(self, plan: Plan) -> list[Weights | None]:
        """For each step its weight and bias, as they are in the model; None where it has none."""

        def of(step: Step) -> Weights | None:
            arrays = [np.asarray(plan.weights[plan.holder(name)]) for name in step.inputs[1:] if name]
            return (arrays[0], arrays[1] if len(arrays) > 1 else None) if arrays else None

        return [of(step) for step in self.steps]


class Timed(msgspec.Struct, frozen=True, kw_only=True):
    """The result of trying it. way: the fastest way as (ranks, images, threads, blocks, most, on tensor
    cores, the type of 16 bits that products are in or "", values sent, images beside); None where single
    kernels are faster. one_ns, apart_ns: nanoseconds of a pass in that way, and with single kernels."""

    way: tuple[int, int, int, int, int, bool, str, bool, int] | None
    one_ns: float
    apart_ns: float

    @property
    def taken(self) -> Way | None:
        return None if self.way is None else Way(*self.way)


NETS = choices.Part[Timed]("nets", Timed)


def longest(plan: Plan) -> Run | None:
    """The longest run of steps that can be one kernel, at least two. A step whose kernel was named stays a
    step of its own, and so does one whose output is an output of the plan."""
    best: Run | None = None
    for start in range(len(plan.steps)):
        if best is not None and start < best.end:
            continue
        end = start
        longest_layers: tuple[Layer, ...] = ()
        while end < len(plan.steps) and (end == start or reads_only_previous(plan, end)):
            try:
                more = layers([step.params for step in plan.steps[start : end + 1]], plan.batch)
            except ValueError:
                break
            if not _fit(plan, plan.steps[end]):
                break
            longest_layers, end = more, end + 1
        if end - start > max(1, best.end - best.start if best else 1):
            best = Run(start, end, plan.steps[start:end], longest_layers)
    return best


def worthwhile(plan: Plan) -> Run | None:
    """The longest run, if its weights are so few that one kernel may be faster; else None."""
    run = longest(plan)
    return run if run is not None and weights_nbytes(run.layers) <= MOST_WEIGHTS_NBYTES else None


def _fit(plan: Plan, step: Step) -> bool:
    """Whether its rung was not named, and it reads one tensor in the model's layout, and constants."""
    constants = (plan.holder(name) in plan.weights for name in step.inputs[1:] if name)
    if step.reads != PLAIN or step.writes != PLAIN:
        return False
    return step.chosen != "named" and plan.holder(step.inputs[0]) not in plan.weights and all(constants)


def reads_only_previous(plan: Plan, place: int) -> bool:
    """Whether this step reads the output of the step before it, and nothing else does."""
    handed_on = plan.steps[place - 1].output
    uses = Counter(plan.holder(name) for step in plan.steps for name in step.inputs)
    output_holders = {plan.holder(name) for name in plan.outputs}
    return (
        plan.holder(plan.steps[place].inputs[0]) == handed_on
        and uses[handed_on] == 1
        and handed_on not in output_holders
    )


def read(plan: Plan, run: Run) -> Timed | None:
    """What is kept for this run."""
    return NETS.read(choices.of_plan(plan), _on(plan, run))


def write(plan: Plan, run: Run, timed: Timed) -> None:
    """Keep it. Raises KernelError where the cache cannot be written."""
    NETS.write(choices.of_plan(plan), _on(plan, run), timed)


def _on(plan: Plan, run: Run) -> Key:
    """By the kernels that it stands against, too."""
    rungs = [registry.find(plan.device, step.op, step.rung) for step in run.steps]
    made_of = (FILE, *sorted((registry.ROOT / "net").glob("*.py")))
    texts = (*(path.read_text(encoding="utf-8") for path in made_of), *(rung.source for rung in rungs))
    return {
        "steps": f"{run.start} to {run.end}",
        "rungs": ", ".join(rung.name for rung in rungs),
        "sources": choices.digest(plan.device, texts),
    }
