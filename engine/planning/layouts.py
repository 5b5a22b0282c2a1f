"""In which layout and element type each tensor between two steps travels (kernels.layouts).

A tensor is NHWC, in float16, rounded to TF32 or in eight bits as it is, if the step that writes it and all
steps that read it have rungs for that, and nobody else reads it: it is no input or output of the model, and
no step reads it in another shape. Rows of a matrix count as images of one pixel (`Params.laid`). Products
keep the rungs that were chosen for them; other steps take rungs that read the layout. Steps that may be one
kernel together (engine.planning.runs) keep what that kernel reads.

Rungs are first chosen by their times alone, on tensors in the model's layout, where most have to convert
their input. A rung that needs no conversion in a layout may be faster there. Which ones were faster, in the
whole plan, is kept with its layouts (`Timed.rungs`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from engine.graph.plan import Plan, Step
from engine.machine import driver as cuda_driver
from engine.options import Options
from engine.planning import choices, runs
from engine.planning.choices import Choice
from kernels import registry
from kernels.cache import Key
from kernels.layouts import PLAIN, as_images
from kernels.ops._quantized import EIGHT_BITS
from kernels.precision import FP32
from kernels.registry import Rung

# As the chosen rungs allow; with one that knows layouts for every product that has such; not at all.
WAYS = ("chosen", "all", "none")
CHOSEN = "layout"  # what chose the rung of a step that has it for the layout's sake


class LayoutRung(msgspec.Struct, frozen=True, kw_only=True):
    """A rung that is faster in the layouts of a step than the step's own rung: nanoseconds of both. whole:
    only a whole pass was faster with it; then these are times of a pass. place: index of the step; names of
    tensors do not matter, because all plans of the same steps share the entry."""

    place: int
    reads: str
    writes: str
    rung: str
    time_ns: float
    own: str
    own_ns: float
    whole: bool = False

    def fits(self, steps: Sequence[Step]) -> bool:
        """Whether these steps have the step that was timed, with its own rung."""
        return self._found(steps) == (self.reads, self.writes, self.own)

    def is_of(self, steps: Sequence[Step]) -> bool:
        """Whether these steps have it with the faster rung."""
        unchanged = self._found(steps) == (self.reads, self.writes, self.rung)
        return unchanged and steps[self.place].chosen == CHOSEN

    def _found(self, steps: Sequence[Step]) -> tuple[str, str, str] | None:
        if not 0 <= self.place < len(steps):
            return None
        step = steps[self.place]
        return step.reads, step.writes, step.rung


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """A rung that was tried in the layouts of a step, by the step's index: its nanoseconds, or why it has
    none."""

    place: int
    rung: str
    time_ns: float | None = None
    refused: str = ""


class Timed(msgspec.Struct, frozen=True, kw_only=True):
    """ways: the choice among WAYS, by the time of a pass; rungs: those that are faster in the best way than
    the steps' own, out of all that were tried."""

    ways: Choice[str]
    rungs: tuple[LayoutRung, ...] = ()
    tried: tuple[Tried, ...] = ()

    @property
    def way(self) -> str:
        return self.ways.best if self.ways.best in WAYS else self.ways.default


LAYOUTS = choices.Part[Timed]("layouts", Timed)


def assigned(plan: Plan, options: Options) -> tuple[Step, ...]:
    """The steps of a plan in the layouts that were chosen, with the rungs that are faster in them. plan:
    without layouts."""
    way, wanted = options.layouts, options.layout_rungs
    if plan.device != "cuda" or way == "none" or not any(map(_knows, plan.steps)):
        return plan.steps
    known = read(plan) if options.tuned and not way else None
    known = known if known is not None and known.ways.done else None
    steps = in_way(plan, known.way if known is not None else way or "chosen", options)
    if known is not None:
        wanted = {better.place: better.rung for better in known.rungs if better.fits(steps)}
    return with_rungs(plan, steps, wanted)


def with_rungs(plan: Plan, steps: Sequence[Step], wanted: Mapping[int, str]) -> tuple[Step, ...]:
    """The steps of this plan in their layouts, some with other rungs. wanted: names of rungs by index of the
    step; a rung that cannot do its step there is ignored."""
    changed_steps = list(steps)
    for place, name in wanted.items():
        able = able_rungs(plan, changed_steps[place]) if 0 <= place < len(changed_steps) else ()
        if (rung := next((rung for rung in able if rung.name == name), None)) is not None:
            changed_steps[place] = replace(
                changed_steps[place], rung=name, precision=rung.precision, chosen=CHOSEN
            )
    return tuple(changed_steps)


def able_rungs(plan: Plan, step: Step) -> tuple[Rung, ...]:
    """The rungs that the engine may take for a step in its layouts. None where its rung was named, or where
    all its layouts are the model's."""
    if step.chosen == "named" or step.reads == step.writes == PLAIN:
        return ()
    return tuple(r for r in candidates(plan, step) if _able(step, r, step.reads, step.writes))


def candidates(plan: Plan, step: Step) -> tuple[Rung, ...]:
    """The rungs among which the rung of a step was chosen alone."""
    known = all(plan.holder(name) in plan.weights for name in step.inputs[1:])
    return choices.candidates(plan.device, step.params, step.asked, known)


def in_way(plan: Plan, way: str, options: Options) -> tuple[Step, ...]:
    """The steps of a plan without layouts, in one of WAYS."""
    if way == "none":
        return plan.steps
    assignment = _Assignment.of(plan, options, every=way == "all")
    for place in range(len(plan.steps)):
        assignment.settle(place)
    # What took a rung for a layout that did not come of it keeps its own.
    idle = (step.chosen == CHOSEN and step.reads == step.writes == PLAIN for step in assignment.steps)
    return tuple(
        own if no else step for own, step, no in zip(plan.steps, assignment.steps, idle, strict=True)
    )


def read(plan: Plan) -> Timed | None:
    """What is kept for this plan without layouts, complete or not."""
    return LAYOUTS.read(choices.of_plan(plan), _on(plan))


def write(plan: Plan, timed: Timed) -> None:
    """Keep it. Raises KernelError where the cache cannot be written."""
    LAYOUTS.write(choices.of_plan(plan), _on(plan), timed)


def forget(plan: Plan) -> None:
    """Remove what is kept for it."""
    LAYOUTS.forget(choices.of_plan(plan), _on(plan))


def _knows(step: Step) -> bool:
    """Whether a step may have a tensor in a layout of its own: in float32 only what has numbers of eight
    bits."""
    return step.asked != FP32 or not {step.params.dtype, step.params.out_dtype}.isdisjoint(EIGHT_BITS)


def _on(plan: Plan) -> Key:
    wanted = sorted({(step.op, step.asked) for step in plan.steps})
    rungs = [rung for op, precision in wanted for rung in _knowing(plan, op, precision)]
    return {
        "rungs": ", ".join(step.rung for step in plan.steps),
        "sources": choices.digest(plan.device, tuple(rung.source for rung in rungs)),
    }


def _knowing(plan: Plan, op: str, precision: str) -> list[Rung]:
    """The rungs of ours in a precision, or of whole numbers, that know other layouts than ONNX's, best guess
    first."""
    ours = sorted(registry.rungs(plan.device, op), key=lambda r: (r.priority, r.number), reverse=True)
    able = [r for r in ours if max(len(r.reads), len(r.writes)) > 1]
    return [r for r in able if r.precision == precision or r.precision == FP32]


@dataclass
class _Assignment:
    """steps, rungs: as assigned so far. readers: by tensor that may change its layout, the steps that read
    it. kept: indices of the steps that keep their layouts."""

    plan: Plan
    steps: list[Step]
    rungs: list[Rung]
    readers: Mapping[str, list[int]]
    kept: frozenset[int]

    @classmethod
    def of(cls, plan: Plan, options: Options, every: bool) -> _Assignment:
        """every: products also take rungs that know layouts, unless one was named for them."""
        steps = list(plan.steps)
        rungs = [registry.find(plan.device, s.op, s.rung, options.kernel_dirs) for s in steps]
        for place, step in enumerate(steps if every else ()):
            known = all(plan.holder(name) in plan.weights for name in step.inputs[1:] if name)
            free = known and step.params.weight_inputs and step.chosen != "named"
            if not free or len(rungs[place].reads) > 1 or len(rungs[place].writes) > 1:
                continue
            meant = (
                r for r in _knowing(plan, step.op, step.asked) if len(r.reads) > 1 and r.suits(step.params)
            )
            able = (r for r in meant if _able(step, r, PLAIN, PLAIN))
            if (other := next(able, None)) is not None:
                steps[place] = replace(step, rung=other.name, precision=other.precision, chosen=CHOSEN)
                rungs[place] = other
        run = runs.worthwhile(plan) if options.one_kernel and not plan.mixed else None
        in_one_kernel = range(run.start, run.end) if run is not None else ()
        return cls(plan, steps, rungs, _readers(plan), frozenset(in_one_kernel))

    def settle(self, place: int) -> None:
        """Choose the layout of the output of this step, for it and for those that read it."""
        step, rung = self.steps[place], self.rungs[place]
        readers = self.readers.get(step.output, [])
        if not readers or self.kept & {place, *readers}:
            return
        for layout in rung.writes[1:]:
            reading_rungs = [self._reading(reader, layout) for reader in readers]
            rungs_able = [rung for rung in reading_rungs if rung is not None]
            if len(rungs_able) == len(readers) and _able(step, rung, step.reads, layout):
                self.steps[place] = replace(step, writes=layout)
                for reader, its in zip(readers, rungs_able, strict=True):
                    self._take(reader, its, layout)
                return

    def _reading(self, place: int, layout: str) -> Rung | None:
        """The rung with which a step would read this layout: its own if it can."""
        step, own = self.steps[place], self.rungs[place]
        if _able(step, own, layout, PLAIN):
            return own
        if step.chosen == "named" or step.params.weight_inputs:
            return None
        beside = registry.side_rungs(self.plan.device, step.op, step.asked)
        return next((rung for rung in beside if _able(step, rung, layout, PLAIN)), None)

    def _take(self, place: int, rung: Rung, layout: str) -> None:
        step = replace(self.steps[place], reads=layout)
        if rung != self.rungs[place]:
            step = replace(step, rung=rung.name, precision=rung.precision, chosen=CHOSEN)
        self.steps[place], self.rungs[place] = step, rung


def _readers(plan: Plan) -> dict[str, list[int]]:
    """The steps that read each tensor, for tensors that are images of a step and nothing else."""
    by_tensor: dict[str, list[int]] = defaultdict(list)
    apart = {plan.holder(name) for name in plan.outputs} | set(plan.inputs)
    output_shapes = {step.output: step.params.laid[1] for step in plan.steps}
    for place, step in enumerate(plan.steps):
        for i, name in enumerate(filter(None, step.inputs)):
            tensor = plan.holder(name)  # whatever shape it has in the model: the steps' own are compared
            shape = output_shapes.get(tensor)
            alike = shape is not None and _images(shape) and _pixels(step.params.laid[0]) == _pixels(shape)
            if not alike or i != 0 or plan.tensors[name].dtype not in ("float32", *EIGHT_BITS):
                apart.add(tensor)
            by_tensor[tensor].append(place)
    return {name: places for name, places in by_tensor.items() if name not in apart}


def _images(shape: Sequence[int]) -> bool:
    """Whether a step treats a tensor of this shape as images, or as the matrix of one product."""
    return len(shape) == 4 or (len(shape) == 3 and shape[0] == 1)


def _pixels(shape: Sequence[int]) -> tuple[int, ...]:
    """Images, channels and pixels of a shape."""
    images, channels, *rest = as_images(shape)
    return images, channels, math.prod(rest)


def _able(step: Step, rung: Rung, reads: str, writes: str) -> bool:
    """Whether a rung can do this step in these layouts, on the device that is here, if one is."""
    gpu = cuda_driver.device()
    refused = rung.refusal(step.params, None if gpu is None else gpu.capability) is not None
    if reads not in rung.reads or writes not in rung.writes or refused:
        return False
    return choices.launched(step.params, rung.in_layouts(reads, writes))[0] is None
