"""Mistakes of element-wise functions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from bench.judge.mistakes import Mistake
from bench.judge.mistakes.values import FUNCTIONS, activated
from kernels.ops.unary import Unary


def mistakes(p: Unary, x: np.ndarray) -> Iterator[Mistake]:
    for other in FUNCTIONS:
        if other == "identity" and p.kind != other:
            yield "kind", "the input is given back unchanged", partial(activated, x, other)
        elif other != p.kind:
            yield "kind", f"it is {other} that is computed", partial(activated, x, other)
    if p.kind == "relu":
        yield "kind", "the minimum with 0 is taken, not the maximum", lambda: np.minimum(x, 0)
    yield "kind", "the function is of the negative of each value", partial(activated, -x, p.kind)
    for factor, words in ((2.0, "2 times"), (0.5, "half of")):
        yield "scale", f"the function is of {words} each value", partial(activated, factor * x, p.kind)
