"""The frozen plan of one model for one batch size, device and precision: what runs, where the bytes lie."""

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
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class Step:
    """One kernel launch: `params` says what, `rung` by which file of the ladder, `chosen` what chose it (see
    engine.planning.planner.Chosen).

    `nodes` are the ONNX nodes it covers, in order (Conv + BatchNormalization + Relu is one step); `inputs`
    are tensor names in the order of the params' docstring, weights included; `output` is the last node's
    output. `precision`: what the rung computes in, which may be finer than what was asked for.
    `reads`, `writes`: how the first input and the output lie (kernels.layouts). `moved`: the bytes that it
    reads and writes so, as engine.planning.traffic counts them; None where nobody has.
    """

    name: str
    nodes: tuple[str, ...]
    params: Params
    inputs: tuple[str, ...]
    output: str
    rung: str
    chosen: str = "ladder"
    precision: str = FP32
    reads: str = PLAIN
    writes: str = PLAIN
    moved: int | None = None

    @property
    def op(self) -> str:
        return self.params.op

    @property
    def nbytes(self) -> int:
        """Bytes that it reads and writes; where nobody has counted, all tensors being as ONNX has them."""
        return self.params.nbytes if self.moved is None else self.moved


@dataclass(frozen=True)
class ArenaSlot:
    """Where a tensor lies in the arena of activations: bytes from its start, 256-byte aligned."""

    offset: int
    nbytes: int


@dataclass(frozen=True)
class Turns:
    """Steps `start` to `end` (not itself one of them), each of which alone reads what the one before it
    gives, run for `images` images at a time: all of them for the first, then all for the next, `count` times.
    What they hand on has room for those images alone."""

    start: int
    end: int
    images: int
    count: int

    @property
    def steps(self) -> range:
        return range(self.start, self.end)


@dataclass(frozen=True)
class Plan:
    """What a Session runs. Buffers that are never live together share bytes of the arena.

    `aliases` maps a tensor that is only another view of bytes (Reshape, Flatten, Identity, Dropout) to the
    tensor that holds them; graph inputs and outputs have places of their own in the arena and are never
    shared with anything live between bind and fetch. `weights` are the constants that the steps read, after
    folding.
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
        """A step as it is launched: of the images of a turn, where it takes turns."""
        step = self.steps[index]
        if self.turns is None or index not in self.turns.steps:
            return step
        return replace(step, params=step.params.of_rows(self.turns.images))

    def holder(self, name: str) -> str:
        """The tensor whose bytes `name` is: itself, or what it is a view of."""
        return self.aliases.get(name, name)

    @property
    def chosen_words(self) -> str:
        """What chose the rungs, counted: "3 timed, 9 by the ladder"; and how many products compute in another
        precision than the plan's: ", 2 products in fp32"."""
        counts = Counter(step.chosen for step in self.steps)
        words = {"named": "named", "timed": "timed", "ladder": "by the ladder", "layout": "for the layout"}
        finer = Counter(step.precision for step in self.steps if self.finer(step))
        counted = [f"{counts[by]} {words[by]}" for by in words if counts[by]]
        counted += [f"{count} product{'s' * (count > 1)} in {name}" for name, count in finer.items()]
        return ", ".join(counted)

    def finer(self, step: Step) -> bool:
        """Whether a product of real numbers (what it multiplies by is a weight) computes in a finer precision
        than the plan's."""
        real = np.dtype(step.params.dtype).kind == "f"
        return real and bool(step.params.weight_inputs) and step.precision != self.precision

    @property
    def turns_words(self) -> str:
        """Which steps take turns: "conv1 and norm1 run 256 images at a time"; "" where none do."""
        if self.turns is None:
            return ""
        names = " and ".join(self.steps[index].name for index in self.turns.steps)
        return f"{names} run {self.turns.images:,} images at a time"

    @property
    def weights_nbytes(self) -> int:
        return sum(array.nbytes for array in self.weights.values())

    @property
    def peak_nbytes(self) -> int:
        """Weights, activations and workspace together."""
        return self.weights_nbytes + self.arena_nbytes + self.workspace_nbytes
