"""The frozen plan of one model for one batch size, device and precision: which steps run in which order, and
where in memory their tensors are. engine.planning makes it; a Session of our engine (engine.backend) runs it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from kernels.layouts import PLAIN
from kernels.ops import Params
from kernels.precision import FP32

# More than any memory holds: sizes beyond it are a fault of the model.
MOST_ELEMENTS = 2**40


@dataclass(frozen=True)
class TensorSpec:
    """Shape and NumPy dtype name of one tensor in the plan; every dimension is known."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def nbytes(self) -> int:
        """Bytes of the dense tensor."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class Step:
    """One operation of a plan, computed by one rung (a kernel file of the ladder, kernels.registry).

    `params`: what it computes, with all sizes. `rung`: the rung's name. `chosen`: what chose the rung:
    "named" (the user), "timed", "ladder" (its order) or "layout" (see engine.planning.planner.Chosen).
    `nodes`: the names of the ONNX nodes that it covers, in order (Conv + BatchNormalization + Relu is one
    step). `inputs`: tensor names in the order of the params' docstring, weights included. `output`: the name
    of the last node's output. `asked`: the precision that was asked for, the plan's where that is not a mixed
    one; `precision`: what the rung computes in, which may be finer.
    `reads`, `writes`: the layouts of the first input and of the output (kernels.layouts). `moved`: the bytes
    that it reads and writes in these layouts, counted by engine.planning.traffic; None if not counted.
    """

    name: str
    nodes: tuple[str, ...]
    params: Params
    inputs: tuple[str, ...]
    output: str
    rung: str
    chosen: str = "ladder"
    asked: str = FP32
    precision: str = FP32
    reads: str = PLAIN
    writes: str = PLAIN
    moved: int | None = None

    @property
    def op(self) -> str:
        """The operator's name, one of kernels.ops.OPS."""
        return self.params.op

    @property
    def nbytes(self) -> int:
        """Bytes that it reads and writes: `moved`; if that is None, of all tensors in the layout of ONNX."""
        return self.params.nbytes if self.moved is None else self.moved


@dataclass(frozen=True)
class ArenaSlot:
    """The place of a tensor in the arena, the one block of memory for all activations. offset: bytes from the
    start of the arena, a multiple of 256; nbytes: its size."""

    offset: int
    nbytes: int


@dataclass(frozen=True)
class Turns:
    """Steps that do not run once over the whole batch, but `count` times over `images` images each.

    The steps are those with index `start` to `end` − 1. In one turn all of them run, in order, over the same
    images; the next turn takes the next images. So the tensors between them need room for `images` images
    only. Nothing but the next step reads what one of them writes. images × count = the batch size.
    """

    start: int
    end: int
    images: int
    count: int

    @property
    def steps(self) -> range:
        """The indices of these steps in the plan."""
        return range(self.start, self.end)


@dataclass(frozen=True)
class Plan:
    """What a Session runs.

    `precision`: what all steps were asked for in, or a mixed one (kernels.precision) where they were not.
    `steps`: in the order in which they run. `tensors`: shape and dtype by name. `placements`: where in the
    arena a tensor is, by name; tensors that are never live at the same time may share bytes. `arena_nbytes`:
    size of the arena; `workspace_nbytes`: of the scratch memory beside it. `aliases`: a tensor that only
    views the bytes of another (Reshape, Flatten, Identity, Dropout) → the tensor that holds the bytes.
    `inputs`, `outputs`: names of the graph's inputs and outputs; they have places of their own, which nothing
    shares that is live between bind and fetch. `weights`: the constants that the steps read, after constant
    folding, by name. `turns`: steps that run over a part of the batch at a time; None: there are none.
    """

    batch: int
    device: str
    precision: str
    steps: tuple[Step, ...]
    tensors: Mapping[str, TensorSpec]
    weights: Mapping[str, np.ndarray]
    placements: Mapping[str, ArenaSlot]
    aliases: Mapping[str, str]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    arena_nbytes: int
    workspace_nbytes: int
    turns: Turns | None = None

    def at_once(self, index: int) -> Step:
        """Step number `index` as one launch computes it: if it takes turns, with params of `turns.images`
        images instead of the whole batch."""
        step = self.steps[index]
        if self.turns is None or index not in self.turns.steps:
            return step
        return replace(step, params=step.params.of_rows(self.turns.images))

    def holder(self, name: str) -> str:
        """The name of the tensor that holds the bytes of tensor `name`: itself, or the one that it views."""
        return self.aliases.get(name, name)

    @property
    def chosen_words(self) -> str:
        """How many rungs were chosen in which way, for people to read: "3 timed, 9 by the ladder". Then, how
        many steps are `finer`: ", 2 products in fp32"."""
        counts = Counter(step.chosen for step in self.steps)
        words = {"named": "named", "timed": "timed", "ladder": "by the ladder", "layout": "for the layout"}
        finer = Counter(step.precision for step in self.steps if self.finer(step))
        counted = [f"{counts[by]} {words[by]}" for by in words if counts[by]]
        counted += [f"{count} product{'s' * (count > 1)} in {name}" for name, count in finer.items()]
        return ", ".join(counted)

    def finer(self, step: Step) -> bool:
        """Whether this step multiplies floats by weights (as Conv and Gemm do) in another precision than was
        asked for, which is then a finer one."""
        real = np.dtype(step.params.dtype).kind == "f"
        return real and bool(step.params.weight_inputs) and step.precision != step.asked

    @property
    def mixed(self) -> bool:
        """Whether not all steps were asked for in the same precision."""
        return any(step.asked != self.precision for step in self.steps)

    @property
    def turns_words(self) -> str:
        """Which steps take turns, in words: "conv1 and norm1 run 256 images at a time", or "conv1 to norm2
        run …"; "" where none do."""
        if self.turns is None:
            return ""
        first, *_, last = (self.steps[index].name for index in self.turns.steps)
        between = "and" if len(self.turns.steps) == 2 else "to"
        return f"{first} {between} {last} run {self.turns.images:,} images at a time"

    @property
    def weights_nbytes(self) -> int:
        """Bytes of all weights."""
        return sum(array.nbytes for array in self.weights.values())

    @property
    def peak_nbytes(self) -> int:
        """Bytes of weights, arena and workspace together."""
        return self.weights_nbytes + self.arena_nbytes + self.workspace_nbytes
