"""Functions of one element on the CPU: one NumPy call, or a few on blocks that stay in the cache."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
# (x, y, t, alpha, beta): writes y; t is SCRATCH rows of scratch of the same length. Nothing is allocated but
# what conditions take.
Function = Callable[[Array, Array, Array, float, float], object]

BLOCK = 1 << 14  # elements: x, y and t of float32 take 320 KB, which a core's own cache holds
SCRATCH = 3


def calls(kind: str, x: Array, y: Array, t: Array, alpha: float, beta: float) -> list[Callable[[], object]]:
    """What to call to have y = kind(x), dense and flat. t: scratch of `scratch_elements` elements."""
    if kind in PLAIN:
        return [partial(PLAIN[kind], x, y)]
    rows = t.reshape(SCRATCH, -1)
    return [
        partial(FUNCTIONS[kind], x[i : i + BLOCK], y[i : i + BLOCK], rows[:, : len(x) - i], alpha, beta)
        for i in range(0, len(x), BLOCK)
    ]


def scratch_elements(kind: str, size: int) -> int:
    """Elements of scratch that `calls` needs."""
    return SCRATCH * min(size, BLOCK) if kind in FUNCTIONS else 0


def _erf(x: Array, y: Array, t: Array, alpha: float = 0, beta: float = 0) -> None:
    """A quotient of polynomials in x², right to float32's last bits; beyond |x| = 4 it is ±1 there. x may be
    y."""
    inside, square, bottom = t
    _clip(x, inside, t, -4, 4)
    np.multiply(inside, inside, square)
    _polynomial(ERF_TOP, square, y)
    np.multiply(y, inside, y)
    _polynomial(ERF_BOTTOM, square, bottom)
    np.divide(y, bottom, y)


ERF_TOP = (
    *(-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05),
    *(-7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02),
)
ERF_BOTTOM = (
    *(-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03),
    *(-7.37332916720468e-03, -1.42647390514189e-02),
)


def _polynomial(coefficients: tuple[float, ...], x: Array, y: Array) -> None:
    """By Horner, the highest power first."""
    y.fill(coefficients[0])
    for coefficient in coefficients[1:]:
        np.multiply(y, x, y)
        np.add(y, coefficient, y)


def _clip(x: Array, y: Array, t: Array, low: float, high: float) -> None:
    np.maximum(x, low, out=y)
    np.minimum(y, high, out=y)


def _leaky_relu(x: Array, y: Array, t: Array, alpha: float, beta: float) -> None:
    np.multiply(x, alpha, y)
    np.copyto(y, x, where=x >= 0)


def _thresholded_relu(x: Array, y: Array, t: Array, alpha: float, beta: float) -> None:
    y.fill(0)
    np.copyto(y, x, where=x > alpha)


def _hard_sigmoid(x: Array, y: Array, t: Array, alpha: float, beta: float) -> None:
    np.multiply(x, alpha, y)
    np.add(y, beta, y)
    _clip(y, y, t, 0, 1)


def _hard_swish(x: Array, y: Array, t: Array, alpha: float, beta: float) -> None:
    _hard_sigmoid(x, y, t, 1 / 6, 0.5)
    np.multiply(x, y, y)


def _shrink(x: Array, y: Array, t: Array, lambd: float, bias: float) -> None:
    y.fill(0)
    np.add(x, bias, y, where=x < -lambd)
    np.subtract(x, bias, y, where=x > lambd)


def _elu(x: Array, y: Array, t: Array, alpha: float, beta: float) -> None:
    np.minimum(x, 0, out=t[0])
    np.expm1(t[0], t[0])
    np.multiply(t[0], alpha, y)
    np.copyto(y, x, where=x >= 0)


def _selu(x: Array, y: Array, t: Array, alpha: float, gamma: float) -> None:
    _elu(x, y, t, alpha, 0)
    np.multiply(y, gamma, y)


def _celu(x: Array, y: Array, t: Array, alpha: float, beta: float) -> None:
    np.minimum(x, 0, out=t[0])
    np.divide(t[0], alpha, t[0])
    np.expm1(t[0], t[0])
    np.multiply(t[0], alpha, y)
    np.copyto(y, x, where=x >= 0)


def _softplus(x: Array, y: Array) -> None:
    np.logaddexp(x, x.dtype.type(0), y)


def _softsign(x: Array, y: Array, t: Array, alpha: float, beta: float) -> None:
    np.abs(x, y)
    np.add(y, 1, y)
    np.divide(x, y, y)


def _gelu(x: Array, y: Array, t: Array, alpha: float, beta: float) -> None:
    np.multiply(x, math.sqrt(0.5), y)
    _erf(y, y, t)
    np.add(y, 1, y)
    np.multiply(y, x, y)
    np.multiply(y, 0.5, y)


def _gelu_tanh(x: Array, y: Array, t: Array, alpha: float, beta: float) -> None:
    np.multiply(x, x, y)
    np.multiply(y, 0.044715, y)
    np.add(y, 1, y)
    np.multiply(y, x, y)
    np.multiply(y, math.sqrt(2 / math.pi), y)
    np.tanh(y, y)
    np.add(y, 1, y)
    np.multiply(y, x, y)
    np.multiply(y, 0.5, y)


def _swish(x: Array, y: Array, t: Array, alpha: float, beta: float) -> None:
    # x / (1 + exp(−αx)): exp overflows to infinity for αx ≪ 0, and the quotient is the right answer, 0.
    np.multiply(x, -alpha, y)
    np.exp(y, y)
    np.add(y, 1, y)
    np.divide(x, y, y)


def _mish(x: Array, y: Array, t: Array, alpha: float, beta: float) -> None:
    _softplus(x, y)
    np.tanh(y, y)
    np.multiply(x, y, y)


def _pow(x: Array, y: Array, t: Array, alpha: float, beta: float) -> None:
    np.power(x, x.dtype.type(alpha), y)


def _relu(x: Array, y: Array) -> None:
    np.maximum(x, x.dtype.type(0), out=y)


# One call for all elements.
PLAIN: Mapping[str, Callable[[Array, Array], object]] = {
    "relu": _relu,
    "identity": lambda x, y: np.copyto(y, x),
    "softplus": _softplus,
    **{name: getattr(np, name) for name in ("tanh", "exp", "log", "sqrt", "reciprocal", "abs", "sign")},
    **{name: getattr(np, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "floor", "ceil")},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "neg": np.negative,
    "round": np.rint,
    "not": np.logical_not,
}
FUNCTIONS: Mapping[str, Function] = {
    "clip": _clip,
    "leaky_relu": _leaky_relu,
    "thresholded_relu": _thresholded_relu,
    "hard_sigmoid": _hard_sigmoid,
    "hard_swish": _hard_swish,
    "shrink": _shrink,
    "elu": _elu,
    "selu": _selu,
    "celu": _celu,
    "softsign": _softsign,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "swish": _swish,
    "mish": _mish,
    "pow": _pow,
    "erf": _erf,
}
