"""Which steps of a plan process the batch in turns, some images at a time, to save memory.

The first layers of a net write its largest tensors. In AlexNet the first convolution writes 1,024 images of
96 maps of 55 × 55, as much as all images themselves, and the pool behind it leaves a quarter of that. Where
such a tensor decides how much memory a pass needs, the step that writes it and the one that reads it run for
a quarter of the images at a time.
"""

from __future__ import annotations

from dataclasses import replace

from engine.graph.memory import ALIGNMENT, TEXTURE_ALIGNMENT
from engine.graph.plan import Plan, Step, Turns
from engine.options import Options
from engine.planning import runs
from kernels import launch, registry
from kernels.layouts import nbytes
from kernels.ops import ITEMSIZE

COUNT = 4
LEAST_NBYTES = 512 << 20  # of a tensor: of what is smaller so few images at a time cost more than they save
GAIN = 0.1  # by so much less memory, at least


def choose_turns(plan: Plan, options: Options) -> Turns | None:
    """The two steps with the largest tensor between them that can take turns. None where there are none, or
    where the steps may be one kernel, which needs no such tensor. The caller checks whether it saves
    memory."""
    images = plan.batch // COUNT
    if plan.device != "cuda" or not options.turns or plan.batch % COUNT:
        return None
    best, most = None, LEAST_NBYTES - 1
    for end in range(1, len(plan.steps)):
        size = output_nbytes(plan.steps[end - 1])
        if size > most and runs.reads_only_previous(plan, end):
            turns = Turns(end - 1, end + 1, images, COUNT)
            if all(_able(plan, turns, index, options) for index in turns.steps):
                best, most = turns, size
    return None if best is None or (options.one_kernel and runs.worthwhile(plan) is not None) else best


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


def _able(plan: Plan, turns: Turns, index: int, options: Options) -> bool:
    """Whether a step can take turns: its images are independent, its kernel runs on so few of them, and they
    begin at an address that it can read. A kernel that was named runs as it is."""
    step = plan.steps[index]
    p = step.params
    constant = all(plan.holder(name) in plan.weights for name in step.inputs[1:] if name)
    if step.chosen == "named" or not constant or not p.images or p.rows != plan.batch:
        return False
    rung = registry.find(plan.device, step.op, step.rung, options.kernel_dirs)
    few = p.of_rows(turns.images)
    laid = rung.in_layouts(step.reads, step.writes)
    if rung.user or launch.refusal(few, laid) is not None:
        return False
    # A turn's images begin as tensors do.
    aligned = ALIGNMENT if launch.launch(few, laid).texture is None else TEXTURE_ALIGNMENT
    turn = replace(step, params=few)
    sizes = _input_nbytes(turn), output_nbytes(turn)
    return not any(size % aligned for size in sizes)
