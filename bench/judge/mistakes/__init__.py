"""Known mistakes, and the answers that they give, with which a wrong answer is compared.

One file for each operator, with the operator's name. Its `mistakes(p, *inputs)` gives each mistake with a
function that computes its answer in float64. `common` has those of any operator, which follow from the right
answer alone. A mistake is identified by its words, which do not mention a shape: it explains a rung if it
gives exactly the rung's answers on every shape that fails (bench.judge.diagnosis). Of two that give the same
answers the likelier one comes first.
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
