"""Mistakes that are made, and the answers that they give: what a wrong answer is held against.

One file an operator, named as it is, whose `mistakes(p, *inputs)` tells each mistake with a function that
works out its answer in float64; `common` has those of any operator, told from the right answer alone. A
mistake is known by its words, which say nothing of a shape: it explains a rung where it gives the rung's very
answers on every shape that fails (bench.judge.diagnosis). The likelier of two that give the same answers
comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from kernels.ops import Params, file_of

# fault (of bench.results.finding.Fault), words, and its answer
Mistake = tuple[str, str, Callable[[], np.ndarray]]


def of(p: Params, inputs: Sequence[np.ndarray]) -> Iterator[Mistake]:
    """The mistakes of its operator that can be made on `p`, given float64 inputs (whole numbers as they
    are)."""
    made: Iterator[Mistake] = file_of(__name__, p.op, "mistakes").mistakes(p, *inputs)
    return made
