"""Mistakes of what is worked out element by element, and functions of single values in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from bench.judge.mistakes.common import Mistake, mistakes
from kernels.cpu import functions
from kernels.ops import ACTIVATIONS, GELUS
from kernels.ops.binary import Binary
from kernels.ops.cast import Cast
from kernels.ops.compare import COMPARE_KINDS, Compare
from kernels.ops.multiply_add import MultiplyAdd
from kernels.ops.qadd import QAdd
from kernels.ops.quantize import Quantize
from kernels.ops.unary import Unary
from kernels.ops.where import Where

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
    if kind in GELUS:
        return _function(Unary(kind, y.size), y)
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


@mistakes.register
def _unary(p: Unary, x: np.ndarray) -> Iterator[Mistake]:
    for other in FUNCTIONS:
        if other == "identity" and p.kind != other:
            yield "kind", "the input is given back unchanged", partial(activated, x, other)
        elif other != p.kind:
            yield "kind", f"it is {other} that is computed", partial(activated, x, other)
    if p.kind == "relu":
        yield "kind", "the minimum with 0 is taken, not the maximum", lambda: np.minimum(x, 0)
    yield "kind", "the function is of the negative of each value", partial(_function, p, -x)
    for factor, words in ((2.0, "2 times"), (0.5, "half of")):
        yield "scale", f"the function is of {words} each value", partial(_function, p, factor * x)
    for name, value in (("first", p.alpha), ("second", p.beta)):
        if value:
            alpha, beta = (0.0, p.beta) if name == "first" else (p.alpha, 0.0)
            yield "kind", f"its {name} parameter is taken to be 0", partial(_function, p, x, alpha, beta)


def _function(p: Unary, x: np.ndarray, alpha: float | None = None, beta: float | None = None) -> np.ndarray:
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


_ARITHMETIC: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "pow": np.power,
    "max": np.maximum,
    "min": np.minimum,
    "mod": np.remainder,
    "fmod": np.fmod,
    "prelu": lambda a, b: np.where(a < 0, a * b, a),
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}


@mistakes.register
def _binary(p: Binary, a: np.ndarray, b: np.ndarray) -> Iterator[Mistake]:
    yield "kind", "the operands are swapped", partial(_arithmetic, p, b, a)
    for other in _ARITHMETIC:
        if other != p.kind:
            words = f"it is {other} that is computed, not {p.kind}"
            yield "kind", words, partial(_arithmetic, replace(p, kind=other), a, b)
    yield from other_activations(p.activation, partial(_arithmetic, replace(p, activation=None), a, b))
    for which, first, second in (("first", True, False), ("second", False, True), ("other", True, True)):
        words = f"the {which} operand's first element is taken for all of it"
        if which != "other":
            yield "layout", words, partial(_arithmetic, p, _one(a) if first else a, _one(b) if second else b)
    words = "operand is read in a row: its broadcast axes are not heeded"
    yield "layout", f"the first {words}", partial(_arithmetic, p, np.resize(a.reshape(-1), p.shape), b)
    yield "layout", f"the second {words}", partial(_arithmetic, p, a, np.resize(b.reshape(-1), p.shape))
    yield "kind", "the first operand is given back unchanged", lambda: np.broadcast_to(a, p.shape)
    yield "kind", "the second operand is given back unchanged", lambda: np.broadcast_to(b, p.shape)


def _one(a: np.ndarray) -> np.ndarray:
    return np.full_like(a, a.flat[0])


def _arithmetic(p: Binary, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return activated(np.broadcast_to(_ARITHMETIC[p.kind](a, b), p.shape), p.activation)


@mistakes.register
def _compare(p: Compare, a: np.ndarray, b: np.ndarray) -> Iterator[Mistake]:
    yield "kind", "the operands are swapped", partial(_compared, p, b, a)
    for other in COMPARE_KINDS:
        if other != p.kind:
            words = f"it is {other} that is computed, not {p.kind}"
            yield "kind", words, partial(_compared, replace(p, kind=other), a, b)
    yield "kind", "true and false are swapped", lambda: 1 - _compared(p, a, b)
    yield "kind", "fractions are cut off before it compares", lambda: _compared(p, np.trunc(a), np.trunc(b))
    words = "operand is read in a row: its broadcast axes are not heeded"
    yield "layout", f"the first {words}", partial(_compared, p, np.resize(a.reshape(-1), p.shape), b)
    yield "layout", f"the second {words}", partial(_compared, p, a, np.resize(b.reshape(-1), p.shape))


def _compared(p: Compare, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.broadcast_to(getattr(np, p.kind)(a, b), p.shape).astype(np.float64)


@mistakes.register
def _cast(p: Cast, x: np.ndarray) -> Iterator[Mistake]:
    to = np.dtype(p.to)
    if to.kind in "iu":
        for words, function in (
            ("values are rounded to the nearest, not towards zero", np.rint),
            ("values are rounded down, not towards zero", np.floor),
            ("values are rounded up, not towards zero", np.ceil),
        ):
            yield "kind", words, partial(_cast_rounded, x, function)
        yield "kind", "the sign is lost", lambda: np.abs(np.trunc(x))
        yield "kind", "negative values become 0", lambda: np.maximum(0, np.trunc(x))
    if to.kind == "b":
        yield "kind", "true is what is positive, not what differs from 0", lambda: (x > 0).astype(float)
        yield (
            "kind",
            "true is what is at least 1, not what differs from 0",
            lambda: (np.abs(x) >= 1).astype(float),
        )
        yield "kind", "true and false are swapped", lambda: (x == 0).astype(float)


def _cast_rounded(x: np.ndarray, function: np.ufunc) -> np.ndarray:
    return np.asarray(function(x))


Array = np.ndarray


@mistakes.register
def _quantize(p: Quantize, x: Array, scale: Array, zero: Array) -> Iterator[Mistake]:
    made = partial(quantized, p, x, scale, zero)
    low, _ = p.limits
    if p.dtype == "float32":
        yield "kind", "halves are rounded away from 0", partial(made, rounded=_away)
        yield "kind", "halves are rounded up", partial(made, rounded=lambda v: np.floor(v + 0.5))
        yield "kind", "it is rounded towards 0, not to the nearest", partial(made, rounded=np.trunc)
        yield "kind", "it is rounded down, not to the nearest", partial(made, rounded=np.floor)
        yield "kind", "it is not rounded", partial(made, rounded=lambda v: v)
        yield "kind", "what the type does not hold wraps around", partial(made, wraps=True)
        yield "kind", "the lowest number is left out of the range", partial(made, low=low + 1)
        yield "scale", "it multiplies by the scale instead of dividing", partial(made, inverse=True)
    yield "bias", "the zero is ignored", lambda: quantized(p, x, scale, np.zeros_like(zero))
    if p.channels > 1:
        first = np.full_like(scale, scale[0])
        yield "layout", "the first channel's scale serves all", lambda: quantized(p, x, first, zero)


def quantized(
    p: Quantize,
    x: Array,
    scale: Array,
    zero: Array,
    *,
    rounded: Callable[[Array], Array] = np.rint,
    wraps: bool = False,
    low: int | None = None,
    inverse: bool = False,
) -> Array:
    """What `p` says of x. rounded: how; wraps: what is too large is taken modulo the type's numbers; low: the
    lowest number that it holds."""
    scale, zero = scale.reshape(1, -1, 1), zero.reshape(1, -1, 1)
    whole = x
    if p.dtype == "float32":
        least, most = p.limits
        whole = rounded(x * scale if inverse else x / scale) + zero
        if wraps:
            whole = (whole - least) % (most - least + 1) + least
        whole = np.clip(whole, least if low is None else low, most)
    return np.asarray((whole - zero) * scale if p.to == "float32" else whole)


@mistakes.register
def _qadd(p: QAdd, a: Array, b: Array) -> Iterator[Mistake]:
    made = partial(_added, p, a, b)
    yield "kind", "halves are rounded away from 0", partial(made, rounded=_away)
    yield "kind", "halves are rounded up", partial(made, rounded=lambda v: np.floor(v + 0.5))
    yield "kind", "it is rounded towards 0, not to the nearest", partial(made, rounded=np.trunc)
    yield "kind", "what the type does not hold wraps around", partial(made, wraps=True)
    yield "bias", "the zero point of a is ignored", lambda: _added(replace(p, a_zero=0), a, b)
    yield "bias", "the zero point of b is ignored", lambda: _added(replace(p, b_zero=0), a, b)
    yield "bias", "the zero point of y is ignored", lambda: _added(replace(p, out_zero=0), a, b)
    yield "scale", "the scale of a serves both", lambda: _added(replace(p, b_scale=p.a_scale), a, b)
    yield "bias", "b is left out", lambda: _added(replace(p, b_scale=0.0), a, b)


def _added(
    p: QAdd, a: Array, b: Array, *, rounded: Callable[[Array], Array] = np.rint, wraps: bool = False
) -> Array:
    """What `p` says of a and b; as `quantized`."""
    left = (a.astype(np.float64) - p.a_zero) * np.float32(p.a_scale)
    right = (b.astype(np.float64) - p.b_zero) * np.float32(p.b_scale)
    whole = rounded((left + right) / np.float32(p.out_scale)) + p.out_zero
    least = np.iinfo(p.to).min
    return np.asarray((whole - least) % 256 + least if wraps else np.clip(whole, p.low, p.high))


def _away(v: Array) -> Array:
    return np.asarray(np.copysign(np.floor(np.abs(v) + 0.5), v))


@mistakes.register
def _where(p: Where, c: np.ndarray, a: np.ndarray, b: np.ndarray) -> Iterator[Mistake]:
    yield "kind", "the operands are swapped", partial(_chosen, p, c, b, a)
    yield "kind", "the first operand is given back, whatever the condition", partial(_chosen, p, c, a, a)
    yield "kind", "the second operand is given back, whatever the condition", partial(_chosen, p, c, b, b)
    yield "kind", "0 is given where the condition is false", partial(_chosen, p, c, a, np.zeros_like(b))
    words = "is read in a row: its broadcast axes are not heeded"

    def in_a_row(operand: np.ndarray) -> np.ndarray:
        return np.resize(operand.reshape(-1), p.shape)

    yield "layout", f"the condition {words}", partial(_chosen, p, in_a_row(c), a, b)
    yield "layout", f"the first operand {words}", partial(_chosen, p, c, in_a_row(a), b)
    yield "layout", f"the second operand {words}", partial(_chosen, p, c, a, in_a_row(b))


def _chosen(p: Where, c: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.broadcast_to(np.where(c, a, b), p.shape)


@mistakes.register
def _multiply_add(p: MultiplyAdd, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Iterator[Mistake]:
    yield (
        "kind",
        "the sum is missing: the product alone is computed",
        partial(_summed, p, a, b, 0 * c),
    )
    yield (
        "kind",
        "the factor is missing: the sum alone is computed",
        partial(_summed, p, a, b**0, c),
    )
    yield "kind", "the factor and the summand are swapped", partial(_summed, p, a, c, b)
    yield (
        "kind",
        "the summand is added before the product, not behind it",
        lambda: _summed(p, a + c, b, 0 * c),
    )
    yield "kind", "the summand is subtracted", partial(_summed, p, a, b, -c)
    yield from other_activations(p.activation, partial(_summed, replace(p, activation=None), a, b, c))
    words = "operand is read in a row: its broadcast axes are not heeded"
    for which, place in (("first", 0), ("second", 1), ("third", 2)):
        operands = [a, b, c]
        operands[place] = np.resize(operands[place].reshape(-1), p.shape)
        yield "layout", f"the {which} {words}", partial(_summed, p, *operands)


def _summed(p: MultiplyAdd, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return activated(np.broadcast_to(a * b + c, p.shape), p.activation)
