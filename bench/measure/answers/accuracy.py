"""Whether answers are right: errors of tensors against the float64 oracle, top-k and agreement.

A layer that gets exact inputs passes if its relative L2 error is within its precision's bound and no element
is off by more than `ELEMENT_FACTOR` × that bound × the tensor's largest value. NaN and infinity fail, with a
sentence, unless the right answer has the same there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

import msgspec
import numpy as np

from bench.results.records import ErrorStats
from kernels import precision as precisions
from kernels.precision import PRECISIONS, PROPAGATED_FACTOR

Moved = TypeVar("Moved")  # how far the right answer moves: an array, or several by name
# Of those that a reference computes in.
LOOSEST = max(
    (precision.reference for precision in PRECISIONS.values()), key=lambda name: PRECISIONS[name].bound
)
ELEMENT_FACTOR = 100.0
_WITHOUT_MEASURE = float(np.finfo(np.float64).max)  # of a tensor with NaN: JSON has no infinity


class Allowed(IntEnum):
    """What an answer may do beside rounding. LIBRARY: it may lose NaN, which becomes a note. OPTIMISED: each
    value that is quantised may become the second nearest step, too, where an optimiser has put eight bits in
    the place of the operators that the file has."""

    NOTHING = 0
    LIBRARY = 1
    OPTIMISED = 2


def length(values: np.ndarray) -> float:
    """The Euclidean norm. NumPy's own asks a library that shares it out over all cores: on a busy machine its
    threads wait for each other a hundred times as long as the sum takes."""
    with np.errstate(over="ignore"):
        return float(np.sqrt(np.square(values).sum()))


SMALLEST = float(np.finfo(np.float32).tiny)


def error_stats(
    actual: np.ndarray,
    expected: np.ndarray,
    precision: str,
    *,
    factor: float = 1.0,
    ratio: float | None = None,
    moved: np.ndarray | None = None,
    typical: float = 0.0,
    lossy: bool = False,
) -> ErrorStats:
    """How far `actual` is from `expected` (float64, of the same shape), judged by the bound of `precision`.

    `factor` widens the bound (PROPAGATED_FACTOR for tensors that carry earlier layers' errors); `ratio` is
    kept as it is (see `ratio` below). moved: how far the right answer itself moves, element by element, when
    its inputs move by one rounding (bench.measure.answers.oracle.moved); the bound is widened by that.
    typical: the root mean square of such tensors, which errors are held against where this one's is less.
    Integers and Booleans are exact, but where they move so. A reference that is 0 everywhere has no relative
    error: the absolute errors are then held against the bound.
    NaN is right where `expected` is NaN, and infinity where it is that infinity, or beyond the largest
    float32; the errors are those of the other elements. lossy: a number where NaN is right is no failure, but
    a `note`.
    Raises ValueError where the shapes differ.
    """
    if actual.shape != expected.shape:
        raise ValueError(f"shape {actual.shape} is compared with shape {expected.shape}")
    bound = precisions.of(precision).bound * factor
    reference, values = _comparable(actual, expected)
    unknown = ~np.isfinite(reference)
    note = ""
    broken = ~np.isfinite(values) & ~unknown
    if broken.any():
        index = tuple(int(i) for i in np.argwhere(broken)[0])
        such = f"one of {int(broken.sum())} such elements of {values.size}"
        return failure(bound, f"{_word(values[index])} at index {index}, {such}")
    if unknown.any():
        lost = unknown & ~(values == reference) & ~(np.isnan(values) & np.isnan(reference))
        if lost.any():
            index = tuple(int(i) for i in np.argwhere(lost)[0])
            note = (
                f"{int(lost.sum())} of {values.size} elements are numbers where the reference itself holds "
                f"NaN or infinity, first {index}: {_word(values[index])} instead of {_word(reference[index])}"
            )
            if not lossy:
                return failure(bound, note)
        values, reference = (np.where(unknown, 0.0, array) for array in (values, reference))
    if values.size == 0:
        return ErrorStats(rel_l2=0.0, max_abs=0.0, mean_abs=0.0, max_rel=0.0, bound=bound, ok=True, note=note)
    difference = np.abs(values - reference)
    # Below its smallest normal number float32 has fewer digits, and a GPU may have none.
    difference = np.where(difference < SMALLEST, 0.0, difference)
    root = float(np.sqrt(values.size))
    norm = max(length(reference), typical * root) or root
    largest = max(float(np.abs(reference).max()), typical) or 1.0
    rel_l2 = length(difference) / norm
    max_abs = float(difference.max())
    allowed = ELEMENT_FACTOR * bound * largest
    if moved is not None:
        moved = np.where(np.isfinite(moved), moved, 0.0)
        bound += factor * length(moved) / norm
        allowed += factor * float(np.max(moved, initial=0.0))
    reason = ""
    if expected.dtype.kind in "iub":
        off = difference != 0 if moved is None else difference > np.ceil(min(factor, 2.0) * moved)
        if others := int((difference != 0).sum() - off.sum()):
            note = (
                f"{others} of {off.size} whole numbers are off by no more than the right ones themselves move"
            )
        if off.any():
            index = tuple(int(i) for i in np.argwhere(off)[0])
            reason = (
                f"{int(off.sum())} of {off.size} whole numbers differ, first {index}: {values[index]:.9g} "
                f"instead of {reference[index]:.9g}"
            )
    elif rel_l2 > bound:
        reason = f"relative L2 error {_above(rel_l2, bound)}"
    elif max_abs > allowed:
        index = tuple(int(i) for i in np.unravel_index(int(difference.argmax()), difference.shape))
        reason = (
            f"element {index} is {values[index]:.6g} instead of {reference[index]:.6g}, off by more than "
            f"{allowed:.1e} ({ELEMENT_FACTOR:.0f} × {precisions.of(precision).bound * factor:.0e} of the "
            f"tensor's largest value{'' if moved is None else ', and what the right answer itself moves by'})"
        )
    return ErrorStats(
        rel_l2=rel_l2,
        max_abs=max_abs,
        mean_abs=float(difference.mean()),
        max_rel=max_abs / largest,
        bound=bound,
        ok=not reason,
        ratio=ratio,
        reason=reason,
        note=note,
    )


def _above(value: float, bound: float) -> str:
    """Both numbers with as many digits as it takes to see that the first is larger."""
    for digits in range(17):
        one, other = f"{value:.{max(digits, 2)}e}", f"{bound:.{digits}e}"
        if float(one) > float(other):
            break
    return f"{one} is above {other}"


def _comparable(actual: np.ndarray, expected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The right answer and the other, float64. What float32 cannot hold is infinity there, and of whole
    numbers what it makes of them."""
    reference, values = np.asarray(expected, np.float64), np.asarray(actual, np.float64)
    if actual.dtype == np.float32:
        with np.errstate(over="ignore"):
            single = reference.astype(np.float32)
        if expected.dtype.kind in "iu":
            reference = single.astype(np.float64)
        else:
            reference = np.where(np.isfinite(single), reference, single)
    return reference, values


def _word(value: float) -> str:
    return "NaN" if np.isnan(value) else "infinity" if np.isinf(value) else f"{value:.6g}"


def judged(
    actual: np.ndarray,
    expected: np.ndarray,
    precision: str,
    factor: float = 1.0,
    moved: np.ndarray | None = None,
    typical: float = 0.0,
    lossy: bool = False,
) -> ErrorStats:
    """As `error_stats`; an answer of another shape is a wrong one."""
    if actual.shape != expected.shape:
        return failure(
            precisions.of(precision).bound * factor,
            f"the shape is {actual.shape} and should be {expected.shape}",
        )
    return error_stats(actual, expected, precision, factor=factor, moved=moved, typical=typical, lossy=lossy)


def judged_further(
    judge: Callable[[Moved | None], ErrorStats], moves: Callable[[], Iterable[Moved]]
) -> ErrorStats:
    """What is said of an answer by its bound, and where it is beyond that, by how far the right one itself
    moves: further and further, until it is right or `moves` ends."""
    stats = judge(None)
    if stats.ok or not measured(stats):
        return stats
    for moved in moves():
        stats = judge(moved)
        if stats.ok:
            break
    return stats


def failure(bound: float, reason: str) -> ErrorStats:
    largest = _WITHOUT_MEASURE
    return ErrorStats(
        rel_l2=largest,
        max_abs=largest,
        mean_abs=largest,
        max_rel=largest,
        bound=bound,
        ok=False,
        reason=reason,
    )


def moving(stats: ErrorStats | None, precision: str, ties: bool = False, stored: float = 0.0) -> str:
    """A note for a model's output that is right only because its bound was widened by the amount by which the
    right answer itself moves; "" if it was not widened. ties: whether the reason is how QuantizeLinear
    rounds. stored: the largest rounding of the types of the model's tensors; an error of that size needs no
    note."""
    plain = max(precisions.of(precision).bound, stored) * PROPAGATED_FACTOR
    if stats is None or not stats.ok or stats.rel_l2 <= plain or stats.bound <= plain:
        return ""
    moved = (stats.bound - plain) / PROPAGATED_FACTOR
    if ties:
        return (
            f"the error of {stats.rel_l2:.0e} comes of values that QuantizeLinear finds half-way between two "
            "steps, or next to it: the right answer itself moves by as much where they are rounded the other "
            "way; each layer alone is held to the same rule"
        )
    return (
        f"the right answer itself moves by {moved:.0e} when what each layer hands on moves by one rounding "
        f"of its type, so the error of {stats.rel_l2:.0e} says nothing of the kernels; each layer alone does"
    )


def ratio(ours: ErrorStats, reference: ErrorStats | None) -> float | None:
    """Our relative L2 error over the reference backend's own; None where that is unknown or 0."""
    if reference is None or reference.rel_l2 == 0.0 or _WITHOUT_MEASURE in (ours.rel_l2, reference.rel_l2):
        return None
    return ours.rel_l2 / reference.rel_l2


# ------------------------------------------------------------------------------------- golden images placed


@dataclass(frozen=True)
class Placement:
    """Golden images in a batch: `inputs` by name (batch, …); row `rows[i]` holds golden image `golden[i]`."""

    inputs: Mapping[str, np.ndarray]
    rows: tuple[int, ...]
    golden: tuple[int, ...]


def place(
    golden_inputs: Mapping[str, np.ndarray], batch: int, filler: np.ndarray | None = None, seed: int = 0
) -> Placement:
    """A full batch with the golden images at its first, middle and last places.

    golden_inputs: name → (k, …) float32, k images. filler: further images (n, …) of the first input that
    fill the other places, drawn with `seed`; without any, the golden images themselves in another order. A
    batch of at most k images takes the first ones; otherwise a third of them goes to each place, so that an
    index error that only shows far from the start of a batch is met.
    """
    count = next(iter(golden_inputs.values())).shape[0]
    random = np.random.default_rng(seed)
    if batch <= count:
        rows = golden = tuple(range(batch))
        return Placement({name: array[:batch].copy() for name, array in golden_inputs.items()}, rows, golden)
    first, middle, last = (len(part) for part in np.array_split(np.arange(count), 3))
    start = min(max(first, (batch - middle) // 2), batch - last - middle)
    rows = (*range(first), *range(start, start + middle), *range(batch - last, batch))
    golden = tuple(range(count))
    chosen = random.integers(0, count, batch)
    inputs = {}
    for index, (name, array) in enumerate(golden_inputs.items()):
        if index == 0 and filler is not None and len(filler):
            full = filler[random.integers(0, len(filler), batch)].astype(array.dtype)
        else:
            full = array[chosen]
        full[list(rows)] = array
        inputs[name] = full
    return Placement(inputs, rows, golden)


def disturbed(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Other inputs of the same shapes: images in reverse order and negated (integers as they are)."""
    other = {name: a[::-1] if a.ndim else a for name, a in inputs.items()}
    return {name: -a if a.dtype.kind == "f" else a for name, a in other.items()}


def check(
    outputs: Mapping[str, np.ndarray],
    expected: Mapping[str, np.ndarray],
    placement: Placement,
    precision: str,
    moved: Mapping[str, np.ndarray] | None = None,
    lossy: bool = False,
) -> ErrorStats:
    """Compares a model's outputs at a batch size with the oracle, on the rows that hold golden images.
    outputs: name → (batch, …) as fetched; expected: name → (k, …) float64. The bound is that of a propagated
    tensor, widened by `moved` (name → (k, …)) as in `error_stats`. If there are several outputs, the result
    is that of the worst, with its name."""
    rows, golden = list(placement.rows), list(placement.golden)
    found = []
    for name, reference in expected.items():
        distance = None if moved is None or name not in moved else moved[name][golden]
        stats = error_stats(
            outputs[name][rows],
            reference[golden],
            precision,
            factor=PROPAGATED_FACTOR,
            moved=distance,
            lossy=lossy,
        )
        found.append(named(stats, name, len(expected)))
    return worst(found)


def worst(found: Sequence[ErrorStats]) -> ErrorStats:
    """Of several outputs'. ValueError without any."""
    return max(found, key=lambda stats: (not stats.ok, stats.rel_l2))


def unfounded(outputs: Mapping[str, np.ndarray], placement: Placement) -> int | None:
    """The first row without a golden image in which an output is NaN or infinity; None where no row is."""
    for array in outputs.values():
        broken = ~np.isfinite(array.reshape(len(array), -1)).all(axis=1)
        broken[list(placement.rows)] = False
        if broken.any():
            return int(broken.argmax())
    return None


def named(stats: ErrorStats, output: str, of: int) -> ErrorStats:
    """What is said of one of several outputs, with its name."""
    if of < 2 or not (stats.reason or stats.note):
        return stats
    reason, note = (f"output {output}: {text}" if text else "" for text in (stats.reason, stats.note))
    return msgspec.structs.replace(stats, reason=reason, note=note)


def measured(stats: ErrorStats) -> bool:
    """Whether there was an error to measure: no shape was another, and no NaN where a number is right."""
    return stats.rel_l2 < _WITHOUT_MEASURE


# ----------------------------------------------------------------------------------------- labels, agreement


def top_k(scores: np.ndarray, k: int) -> np.ndarray:
    """The k best classes of each row of `scores` (n, classes), best first, (n, min(k, classes)) int64. Equal
    scores are ordered by their class, so that the answer does not depend on a sort; NaN is the worst."""
    clean = np.where(np.isnan(scores), -np.inf, scores)
    return np.argsort(-clean, axis=1, kind="stable")[:, :k].astype(np.int64)


def decided(margin: np.ndarray, precision: str, moved: float = 0.0) -> np.ndarray:
    """Of which images a reference was sure, bool (n,): its two best scores are further apart than two right
    answers in `precision` can differ. margin: the difference of the two best scores over the length (L2) of
    the image's row of scores; moved: what part of that length may be off beside rounding. Two elements of a
    row within the bound of a whole model's output can move against each other by √2 of it, in either
    answer."""
    return np.asarray(margin > 2 * np.sqrt(2) * (PROPAGATED_FACTOR * precisions.of(precision).bound + moved))


def agreement(predicted: np.ndarray, reference: np.ndarray) -> float:
    """The fraction of images whose top-1 answer (n,) equals the reference's (n,)."""
    if predicted.shape != reference.shape:
        raise ValueError(f"{len(predicted)} answers are compared with {len(reference)}")
    return float((predicted == reference).mean())
