"""What wrong answers have in common with the right ones: a factor, an amount, or the rounding of a narrower
type. Each is reported only if it holds on every failing shape."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.judge.tried_shape import Explanation, TriedShape

FEWEST = 8  # elements, of which a factor says something
LOOSE = 10  # times the bound, what may be left once the pattern is taken away
ALIKE = 2e-3  # of a factor: that of another shape is the same
# Relative errors that numbers of 8 to 11 bits leave in an answer.
NARROW = (3e-5, 3e-2)
_SMOOTH = ("tanh", "sigmoid")


def explain(wrong: Sequence[TriedShape]) -> Explanation | None:
    """(fault, words), or None."""
    if not all(case.got is not None and np.isfinite(case.got).all() for case in wrong):
        return None
    return _factor(wrong) or _amount(wrong) or _rounded(wrong)


def _factor(wrong: Sequence[TriedShape]) -> Explanation | None:
    telling = [case for case in wrong if case.expected.size >= FEWEST and np.ptp(case.expected) > 0]
    if not telling:
        return None
    factors = []
    for case in wrong:
        got, expected = _both(case)
        square = float((expected * expected).sum())
        factor = float((got * expected).sum()) / square if square else 1.0
        if _left(case, got - factor * expected) > LOOSE * case.bound * max(1.0, abs(factor)):
            return None
        factors.append(factor)
    if abs(factors[0] - 1) <= 3 * wrong[0].bound:
        return None
    lowest, highest = min(factors), max(factors)
    if highest - lowest <= ALIKE * max(map(abs, factors)):
        return "scale", f"every element is {_number(float(np.mean(factors)))} times what it should be"
    if len(telling) < 2:
        return None
    span = f"{_number(lowest)} to {_number(highest)}"
    return "scale", f"every element is off by a factor that depends on the shape, {span}"


def _amount(wrong: Sequence[TriedShape]) -> Explanation | None:
    if not any(case.expected.size >= FEWEST for case in wrong):
        return None
    amounts = []
    for case in wrong:
        got, expected = _both(case)
        amount = float((got - expected).mean())
        if (
            _left(case, got - expected - amount) > LOOSE * case.bound
            or abs(amount) <= LOOSE * case.bound * case.largest
        ):
            return None
        amounts.append(amount)
    if max(amounts) - min(amounts) > ALIKE * max(map(abs, amounts)):
        return None
    return "scale", f"{_number(float(np.mean(amounts)))} is added to every element"


def _rounded(wrong: Sequence[TriedShape]) -> Explanation | None:
    """Every answer is one that a narrower type can hold, and hardly another than the right one. Whole numbers
    are that anyway."""
    for case in wrong:
        if np.dtype(case.params.out_dtype).kind != "f":
            return None
        got, expected = _both(case)
        norm = float(np.sqrt((expected * expected).sum())) or 1.0
        off = float(np.sqrt(np.square(got - expected).sum())) / norm
        if not NARROW[0] <= off <= NARROW[1]:
            return None
    # Where something is done in float32 behind the sum, what the sum was held in cannot be seen.
    bare = [case for case in wrong if not _followed(case)]
    if sum(case.expected.size for case in bare) < FEWEST:
        return None
    # Eight bits are among eleven.
    for name, held in (("bfloat16", _bfloat), ("half precision (fp16)", _half)):
        if all(held(_both(case)[0]).all() for case in bare):
            return "half_precision", f"sums or answers are held in {name}: each is a number that it can hold"
    return None


def _followed(case: TriedShape) -> bool:
    parts = [getattr(case.params, name, None) for name in ("conv", "pool")]
    all_parts = [case.params, *(part for part in parts if part is not None)]
    return any(getattr(p, "bias", False) or getattr(p, "activation", None) in _SMOOTH for p in all_parts)


def _half(values: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(values.astype(np.float16).astype(np.float64) == values)


def _bfloat(values: np.ndarray) -> np.ndarray:
    return np.asarray((values.astype(np.float32).view(np.uint32) & 0xFFFF) == 0)


def _both(case: TriedShape) -> tuple[np.ndarray, np.ndarray]:
    assert case.got is not None
    return case.got, case.expected


def _left(case: TriedShape, difference: np.ndarray) -> float:
    """The largest of what is left, as a part of the answer's largest."""
    return float(np.abs(difference).max(initial=0.0)) / case.largest


def _number(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
