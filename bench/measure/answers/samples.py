"""The small shapes on which a rung is tried. Inputs of a check with their float64 answers: for a few images,
which a larger batch repeats; and which images of a batch are looked at if not all are."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bench.measure.answers import one_node, oracle
from engine.rung_rows import Given, Rows
from kernels import launch
from kernels.ops import WIDER, Params, Shape
from kernels.ops.cast import Cast
from kernels.registry import Rung

# An oracle's evaluation is kept below this (at about a GFLOP/s); a batch beyond repeats the images that it
# had.
ORACLE_FLOPS = 3e9
REPEATED = 4  # rows of a sample that is the same at every batch size
KEPT_NBYTES = 1 << 30  # of such samples, in memory
# Elements of four bytes at which an index or an offset of 32 bits, with a sign or without, may overflow.
OVERFLOWS = (1 << 29, 1 << 30, 1 << 31, 1 << 32)
FEW = 64  # values of a row; fewer may all come out near 0 by chance


@dataclass(frozen=True)
class Sample:
    """Inputs and their right answers. params: of the distinct images; rows: which of these is at each place
    of the batch (None: each once, in order). inputs: of the distinct images; expected: float64. typical: the
    root mean square that an element of the answer should have; errors are compared with at least this; 0 if
    the answer itself shows it. half: see `draw`."""

    params: Params
    inputs: tuple[np.ndarray, ...]
    expected: np.ndarray
    rows: np.ndarray | None = None
    typical: float = 0.0
    half: str = ""

    def whole(self, array: np.ndarray) -> np.ndarray:
        """An input or the answer at the full batch."""
        return array if self.rows is None else array[self.rows]

    def at(self, rows: np.ndarray) -> Sample:
        """What these rows of the full batch should give."""
        return replace(self, rows=rows if self.rows is None else self.rows[rows])

    @property
    def whole_inputs(self) -> list[np.ndarray]:
        """All inputs at the full batch, weights among them."""
        data = self.params.data_inputs
        return [self.whole(a) if i in data else a for i, a in enumerate(self.inputs)]

    def given(self, p: Params) -> list[Given]:
        """The inputs as a rung's session is given them for `p`, the params of the full batch."""
        if self.rows is None:
            return list(self.inputs)
        few = self.params.rows or 1
        return [
            Rows(array.reshape(few, -1), self.rows, shape) if p.has_rows(i) else array
            for i, (array, shape) in enumerate(zip(self.inputs, p.input_shapes, strict=True))
        ]


def distinct(p: Params) -> Params:
    """The params of the images that the oracle answers for; a batch beyond repeats them."""
    return p.of_rows(min(p.rows, _few(p, oracle.MAX_IMAGES))) if p.images and p.rows else p


def _few(p: Params, most: int) -> int:
    """How many rows the oracle answers for, at least two."""
    return max(2, min(most, int(ORACLE_FLOPS / max(1, p.of_rows(1).flops))))


def draw(
    p: Params, random: np.random.Generator, weights: Sequence[np.ndarray] = (), half: str = ""
) -> Sample:
    """New inputs for `p` and their answer; `weights`: inputs out of which those that are weights are
    taken; half: of a task, that all numbers are from (of_tasks.drawn)."""
    few = distinct(p)
    drawn = one_node.draw(few, random, half)
    data = few.data_inputs
    inputs = tuple(a if i in data or not weights else weights[i] for i, a in enumerate(drawn))
    rows = None
    if few.rows and p.rows and few.rows < p.rows:
        rows = random.integers(0, few.rows, p.rows)
        rows[: few.rows] = np.arange(few.rows)
    answer = one_node.answer(few, inputs)
    return Sample(few, inputs, as_held(few, answer), rows, typical(few, inputs), half)


def typical(p: Params, inputs: Sequence[np.ndarray]) -> float:
    """The root mean square that an answer of few sums would have with random signs: the variance of a sum is
    then the sum of its terms' squares. A sum whose terms happened to cancel is near 0, but its rounding
    errors are not. 0 for answers of many values, or without sums."""
    row = p if p.rows is None else p.of_rows(1)
    of_squares = p.of_squares()
    if of_squares is None or row.outputs >= FEW:
        return 0.0
    squares = [np.square(array, dtype=np.float32) for array in inputs]
    return math.sqrt(float(np.mean(one_node.answer(of_squares, squares))))


def as_held(p: Params, answer: np.ndarray) -> np.ndarray:
    """What a conversion to fewer bits gives, float64: its rounding is part of the answer, where elsewhere it
    is what the bound allows."""
    if not isinstance(p, Cast) or p.to not in WIDER:
        return answer
    with np.errstate(all="ignore"):
        return answer.astype(p.to).astype(np.float64)


_repeated: OrderedDict[tuple[Params, int], Sample] = OrderedDict()
_keeping = threading.Lock()  # those of a run's next model are worked out beside others


def repeated(p: Params, seed: int = 0) -> Sample:
    """Inputs for `p` and their answer that are the same whatever the batch size: worked out once, and kept in
    memory and in the oracle's cache. Which row lies where is drawn for each batch size, such that neighbours
    differ where there are more than two. `expected` is of rows, as rung_session.output_rows has them."""
    count = p.rows
    if count is None:
        return _kept(p, seed)
    kinds = _few(p, REPEATED)
    steps = np.random.default_rng((seed, count)).integers(min(1, kinds - 2), kinds, count)
    steps[:kinds] = 1
    return replace(_kept(p.of_rows(kinds), seed), rows=(np.cumsum(steps) - 1) % kinds)


def _kept(few: Params, seed: int) -> Sample:
    key = (few, seed)
    found = _repeated.get(key)
    if found is None:
        inputs = one_node.draw(few, np.random.default_rng(seed))
        data = {f"in{i}": inputs[i] for i in few.data_inputs}
        answer = oracle.answered(one_node.graph(few, inputs), data, [one_node.OUTPUT])[one_node.OUTPUT]
        shape = few.output_rows if few.rows is not None else answer.shape
        expected = as_held(few, answer).reshape(shape)
        found = Sample(few, inputs, expected, typical=typical(few, inputs))
    with _keeping:
        _repeated[key] = found
        _repeated.move_to_end(key)
        while len(_repeated) > 1 and sum(map(_nbytes, _repeated.values())) > KEPT_NBYTES:
            _repeated.popitem(last=False)
    return found


def _nbytes(sample: Sample) -> int:
    return sample.expected.nbytes + sum(array.nbytes for array in sample.inputs)


def looked_at(count: int, elements: Sequence[int], most: int, random: np.random.Generator) -> np.ndarray:
    """The rows of a batch that are compared where not all are, in order: always its ends, its middle and what
    lies where indices of 32 bits overflow; of the others about `most`, drawn anew each time, half of them at
    the edges of tiles. elements: of a row of each array that is read or written."""
    if count <= most:
        return np.arange(count)
    always = {0, 1, count // 2 - 1, count // 2, count - 2, count - 1}
    for limit in OVERFLOWS:
        for each in elements:
            always |= {limit // max(1, each) + beside for beside in (-1, 0, 1)}
    chosen = {row for row in always if 0 <= row < count}
    left = max(2, most - len(chosen))
    powers = 1 << random.integers(0, max(1, count.bit_length()), left // 2)
    edges = powers * random.integers(1, 1 + count // powers) + random.integers(-1, 2, left // 2)
    chosen |= {int(row) for row in edges if 0 <= row < count}
    chosen |= set(random.integers(0, count, left - left // 2).tolist())
    return np.array(sorted(chosen))


# ---------------------------------------------------------------------------------------------------- suite

# The small shapes that a rung is tried on.


def small_shapes(rung: Rung, params: Params, quick: bool = False) -> tuple[Shape, ...]:
    """The shapes of this rung's operator that it does not refuse. quick: three that say most."""
    found: dict[Params, Shape] = {}
    for shape in params.small_shapes():
        if shape.params not in found and _taken(rung, shape.params):
            found[shape.params] = shape
    shapes = tuple(found.values())
    if quick:
        kept = [shape for shape in shapes if shape.tag in ("own", "all", "batch")]
        return tuple(kept) or shapes[:3]
    return shapes


def _taken(rung: Rung, params: Params) -> bool:
    if rung.refusal(params) is not None:
        return False
    return rung.device != "cuda" or launch.refusal(params, rung) is None
