"""Inputs of a check with their float64 answers: of few images, which a batch beyond repeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bench import one_node, oracle
from engine.rung_session import data_inputs
from kernels.params import Conv, ConvPool, Lrn, LrnPool, Params, Pool

# An oracle's evaluation is kept below this (at about a GFLOP/s); a batch beyond repeats the images that it
# had.
ORACLE_FLOPS = 3e9

Images = Conv | Pool | Lrn | LrnPool | ConvPool  # operators whose first axis is the batch


@dataclass(frozen=True)
class Sample:
    """Inputs and what they should give. params: of the distinct images; rows: which of them lies at each
    place of the batch (None: each once, in order). inputs: of the distinct images; expected: float64."""

    params: Params
    inputs: tuple[np.ndarray, ...]
    expected: np.ndarray
    rows: np.ndarray | None = None

    def whole(self, array: np.ndarray) -> np.ndarray:
        """An input or the answer at the full batch."""
        return array if self.rows is None else array[self.rows]

    def at(self, rows: np.ndarray) -> Sample:
        """What these rows of the full batch should give."""
        return replace(self, rows=rows if self.rows is None else self.rows[rows])

    @property
    def whole_inputs(self) -> list[np.ndarray]:
        """All inputs at the full batch, weights among them."""
        data = data_inputs(self.params, len(self.inputs))
        return [self.whole(a) if i in data else a for i, a in enumerate(self.inputs)]


def distinct(p: Params) -> Params:
    """The params of the images that the oracle answers for; a batch beyond repeats them."""
    if not isinstance(p, Images):
        return p
    most = min(oracle.MAX_IMAGES, int(ORACLE_FLOPS / max(1, p.flops / p.n)))
    few = min(p.n, max(2, most))
    return p.of_images(few) if isinstance(p, ConvPool) else replace(p, n=few)


def draw(p: Params, random: np.random.Generator, weights: Sequence[np.ndarray] = ()) -> Sample:
    """New inputs for `p` and their answer; `weights`: inputs out of which those that are weights are
    taken."""
    few = distinct(p)
    drawn = one_node.draw(few, random)
    data = data_inputs(few, len(drawn))
    inputs = tuple(a if i in data or not weights else weights[i] for i, a in enumerate(drawn))
    rows = None
    if isinstance(p, Images) and isinstance(few, Images) and few.n < p.n:
        rows = random.integers(0, few.n, p.n)
        rows[: few.n] = np.arange(few.n)
    made = one_node.graph(few, inputs)
    answer = oracle.run(made, {f"in{i}": inputs[i] for i in data}, [one_node.OUTPUT])[one_node.OUTPUT]
    return Sample(few, inputs, answer, rows)
