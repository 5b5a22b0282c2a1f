"""Functions of single values in float64, and which of them is mistaken for which other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from bench.judge.mistakes import Mistake
from kernels.ops import ACTIVATIONS

FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "relu": lambda y: np.maximum(y, 0),
    "tanh": np.tanh,
    "sigmoid": lambda y: 1 / (1 + np.exp(-y)),
    "relu6": lambda y: np.clip(y, 0, 6),
    "identity": lambda y: y,
}


def _to_bits(x: np.ndarray, bits: int) -> np.ndarray:
    """Rounded to so many significant bits."""
    mantissa, exponent = np.frexp(x)
    return np.asarray(np.ldexp(np.rint(mantissa * 2.0**bits), exponent - bits))


ROUNDINGS: tuple[tuple[str, Callable[[np.ndarray], np.ndarray]], ...] = (
    ("the operands are rounded to half precision, 11 significant bits", lambda x: _to_bits(x, 11)),
    ("the operands are rounded to bfloat16, 8 significant bits", lambda x: _to_bits(x, 8)),
)


def _then(linear: Callable[[], np.ndarray], kind: str) -> np.ndarray:
    return activated(linear(), kind)


def activated(y: np.ndarray, kind: str | None) -> np.ndarray:
    with np.errstate(all="ignore"):
        return FUNCTIONS[kind or "identity"](y)


def other_activations(
    kind: str | None, linear: Callable[[], np.ndarray], which: str = "the"
) -> Iterator[Mistake]:
    """linear: the values that the activation is given. which: as "the pool's"."""
    if kind:
        yield "activation", f"{which} activation is missing", linear
    for other in ACTIVATIONS:
        if other != kind:
            words = f"{which} activation is always {other}"
            yield "activation", words, partial(_then, linear, other)
