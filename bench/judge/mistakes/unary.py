"""Mistakes of element-wise functions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from bench.judge.mistakes import Mistake
from bench.judge.mistakes.values import FUNCTIONS, activated
from kernels.cpu import functions
from kernels.ops.unary import Unary


def mistakes(p: Unary, x: np.ndarray) -> Iterator[Mistake]:
    for other in FUNCTIONS:
        if other == "identity" and p.kind != other:
            yield "kind", "the input is given back unchanged", partial(activated, x, other)
        elif other != p.kind:
            yield "kind", f"it is {other} that is computed", partial(activated, x, other)
    if p.kind == "relu":
        yield "kind", "the minimum with 0 is taken, not the maximum", lambda: np.minimum(x, 0)
    yield "kind", "the function is of the negative of each value", partial(made, p, -x)
    for factor, words in ((2.0, "2 times"), (0.5, "half of")):
        yield "scale", f"the function is of {words} each value", partial(made, p, factor * x)
    for name, value in (("first", p.alpha), ("second", p.beta)):
        if value:
            alpha, beta = (0.0, p.beta) if name == "first" else (p.alpha, 0.0)
            yield "kind", f"its {name} parameter is taken to be 0", partial(made, p, x, alpha, beta)


def made(p: Unary, x: np.ndarray, alpha: float | None = None, beta: float | None = None) -> np.ndarray:
    """The function in float64, perhaps with other parameters."""
    if p.kind in FUNCTIONS:
        return activated(x, p.kind)
    flat = np.asarray(x, np.float64).reshape(-1)
    y, scratch = np.empty_like(flat), np.empty(functions.scratch_elements(p.kind, flat.size))
    told = (p.alpha if alpha is None else alpha, p.beta if beta is None else beta)
    with np.errstate(all="ignore"):
        for call in functions.calls(p.kind, flat, y, scratch, *told):
            call()
    return y.reshape(x.shape)
