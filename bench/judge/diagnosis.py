"""Which mistake explains a rung's wrong answers.

An explanation is given only if it holds on every shape that fails: the answers with that mistake
(bench.judge.mistakes), computed in float64, are exactly the answers of the rung; or all answers are off by
one factor, one amount or the rounding of a narrower type (`_pattern`). The shapes that are right
count, too: a mistake that would also have made those wrong is named for the failing ones only. If two
mistakes give the same answers on everything that was tried, both are named. If nothing explains every failing
shape, the finding says only where it is wrong (bench.judge.places).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bench.judge import tried_shape
from bench.judge.failure import Failure
from bench.judge.tried_shape import Explanation, TriedShape
from bench.measure.answers.samples import Sample
from kernels.ops import Params

TOLD = 2  # mistakes that are named where nothing tells them apart


def explain(
    failures: Sequence[Failure], passed: Sequence[tuple[Params, Sample]], precision: str
) -> Explanation | None:
    """(fault, words) of what explains all failures, or None."""
    wrong = [tried_shape.case(f.params, f.sample, f.got, precision) for f in failures]
    right = [tried_shape.case(p, sample, None, precision) for p, sample in passed]
    wrong.sort(key=lambda case: case.expected.size)
    found = _made(wrong, right)
    if found is None:
        found = _pattern(wrong)
        if found is not None and right:
            found = found[0], f"where it is wrong, {found[1]}"
    return found


def _made(wrong: Sequence[TriedShape], right: Sequence[TriedShape]) -> Explanation | None:
    """The mistake that gives the wrong answers: rather one that leaves the right ones right."""
    if not all(case.small for case in wrong):
        return None
    left = _kept(wrong[0], None, wrong[0].has)
    for case in wrong[1:]:
        left = _kept(case, left, case.has)
    if not left:
        return None
    spared = left
    for case in right:
        if case.small:
            told = _kept(case, spared, case.spoiled)
            spared = [key for key in spared if key not in told]
    chosen = spared or left
    fault = chosen[0][0]
    # What answers zero for one reason could do so for many.
    words = ", or ".join(words for _, words in chosen[: TOLD if fault != "zeros_only" else 1])
    return fault, words if spared else f"where it is wrong, {words}"


def _kept(
    case: TriedShape, among: Sequence[Explanation] | None, wanted: Callable[[np.ndarray, str], bool]
) -> list[Explanation]:
    """The mistakes (None: all that can be made there) whose answer is as wanted, each once, in order."""
    found: dict[Explanation, None] = {}
    for fault, words, answer in case.mistakes():
        key = (fault, words)
        if key in found or (among is not None and key not in among):
            continue
        with np.errstate(all="ignore"):
            if wanted(np.asarray(answer(), np.float64).reshape(case.expected.shape), fault):
                found[key] = None
    return list(found)


# ------------------------------------------------------------------------------------------------- patterns

# What wrong answers have in common with the right ones: a factor, an amount, or the rounding of a narrower
# type. Each is given only where it holds on every failing shape.


FEWEST = 8  # elements, of which a factor says something
LOOSE = 10  # times the bound, what may be left once the pattern is taken away
ALIKE = 2e-3  # of a factor: that of another shape is the same
# Relative errors that numbers of 8 to 11 bits leave in an answer.
NARROW = (3e-5, 3e-2)
_SMOOTH = ("tanh", "sigmoid")


def _pattern(wrong: Sequence[TriedShape]) -> Explanation | None:
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
