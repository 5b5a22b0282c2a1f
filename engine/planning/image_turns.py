"""Which steps of a plan process the batch in turns, some images at a time, to save memory.

The first layers of a net write its largest tensors. In AlexNet the first convolution writes 1,024 images of
96 maps of 55 × 55, as much as all images themselves, and the pool behind it leaves a quarter of that. Where
such a tensor decides how much memory a pass needs, the step that writes it and the one that reads it run for
a quarter of the images at a time; and steps in front of them or behind them as well, where that saves much
again. Fewer images at a time leave some of the device unused at the end of each launch, so that no more steps
take turns than memory is worth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from engine.graph.memory import ALIGNMENT, TEXTURE_ALIGNMENT, Life
from engine.graph.plan import Plan, Step, Turns
from engine.options import Options
from engine.planning import runs
from kernels import launch, registry
from kernels.layouts import nbytes
from kernels.ops import ITEMSIZE

COUNT = 4
LEAST_NBYTES = 512 << 20  # of a tensor: of what is smaller so few images at a time cost more than they save
GAIN = 0.1  # by so much less memory, at least
MORE_GAIN = 0.15  # by so much less again, where more than two steps take turns


def choose_turns(plan: Plan, options: Options, arena: Callable[[Plan], int]) -> Turns | None:
    """The steps that take turns: the two with the largest tensor between them that can, or more around these
    where that saves enough again. arena: the bytes of a plan's arena. None where there are none, where they
    save too little, or where the steps may be one kernel, which needs no such tensor."""
    if plan.device != "cuda" or not options.turns or plan.batch % COUNT:
        return None
    by_size = sorted(range(1, len(plan.steps)), key=lambda end: -output_nbytes(plan.steps[end - 1]))
    large = (end for end in by_size if output_nbytes(plan.steps[end - 1]) >= LEAST_NBYTES)
    middle = next((end for end in large if _pair(plan, end, options)), None)
    if middle is None or (options.one_kernel and runs.worthwhile(plan) is not None):
        return None
    first = last = middle
    while first > 1 and _pair(plan, first - 1, options):
        first -= 1
    while last + 1 < len(plan.steps) and _pair(plan, last + 1, options):
        last += 1
    images = plan.batch // COUNT
    best, least, gain = None, arena(plan), GAIN
    around = [(start, end) for start in range(first - 1, middle) for end in range(middle + 1, last + 2)]
    for start, end in sorted(around, key=lambda pair: (pair[1] - pair[0], pair[0])):
        turns = Turns(start, end, images, COUNT)
        needed = arena(replace(plan, turns=turns))
        if needed <= (1 - gain) * least:
            best, least = turns, needed
        gain = MORE_GAIN
    return best


def lasting(plan: Plan, lives: dict[str, Life]) -> dict[str, Life]:
    """The lives of tensors where steps take turns: what the first of them reads must be whole until the last
    turn, and what the last of them writes begins in the first turn."""
    turns = plan.turns
    if turns is None:
        return lives
    read, written = plan.holder(plan.steps[turns.start].inputs[0]), plan.steps[turns.end - 1].output
    found = dict(lives)
    if read in found:
        found[read] = replace(found[read], last=max(found[read].last, turns.end - 1))
    found[written] = replace(found[written], first=min(found[written].first, turns.start))
    return found


def output_nbytes(step: Step) -> int:
    """Bytes of the output of a step, in its layout."""
    return nbytes(step.writes, step.params.laid[1], ITEMSIZE[step.params.out_dtype])


def _input_nbytes(step: Step) -> int:
    return nbytes(step.reads, step.params.laid[0], ITEMSIZE[step.params.dtype])


def launch_offsets(plan: Plan, index: int) -> tuple[tuple[int, int], ...]:
    """For each launch of a step: by how many bytes its first input and its output are moved on."""
    turns = plan.turns
    if turns is None or index not in turns.steps:
        return ((0, 0),)
    step = plan.at_once(index)
    read = 0 if index > turns.start else _input_nbytes(step)
    written = 0 if index < turns.end - 1 else output_nbytes(step)
    return tuple((turn * read, turn * written) for turn in range(turns.count))


def _pair(plan: Plan, end: int, options: Options) -> bool:
    """Whether this step and the one in front of it can take turns together."""
    both = (end - 1, end)
    return runs.reads_only_previous(plan, end) and all(_able(plan, index, options) for index in both)


def _able(plan: Plan, index: int, options: Options) -> bool:
    """Whether a step can take turns: its images are independent, its kernel runs on so few of them, and they
    begin at an address that it can read. A kernel that was named runs as it is."""
    step = plan.steps[index]
    p = step.params
    constant = all(plan.holder(name) in plan.weights for name in step.inputs[1:] if name)
    if step.chosen == "named" or not constant or not p.images or p.rows != plan.batch:
        return False
    rung = registry.find(plan.device, step.op, step.rung, options.kernel_dirs)
    few = p.of_rows(plan.batch // COUNT)
    laid = rung.in_layouts(step.reads, step.writes)
    if rung.user or launch.refusal(few, laid) is not None:
        return False
    # A turn's images begin as tensors do.
    aligned = ALIGNMENT if launch.launch(few, laid).texture is None else TEXTURE_ALIGNMENT
    turn = replace(step, params=few)
    sizes = _input_nbytes(turn), output_nbytes(turn)
    return not any(size % aligned for size in sizes)
