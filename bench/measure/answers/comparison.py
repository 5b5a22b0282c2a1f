"""An answer compared with the oracle's, piece by piece, and where it is wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from bench.measure.answers import of_tasks
from bench.measure.answers.accuracy import ELEMENT_FACTOR
from bench.measure.answers.samples import Sample
from bench.results.records import ErrorStats
from engine.machine import host
from engine.rung_rows import bytes_of
from kernels.ops import Params
from kernels.ops.binary import Binary
from kernels.ops.conv import Conv
from kernels.ops.conv3d import Conv3d
from kernels.ops.conv_pool import ConvPool
from kernels.ops.conv_transpose import ConvTranspose
from kernels.ops.gemm import Gemm
from kernels.ops.unary import Unary
from kernels.precision import PRECISIONS
from kernels.tasks import TaskParams

CHUNK_NBYTES = 1 << 20  # of float64 compared at once: with all that is made of it, in the cache of a core
COMPARING = 8  # threads at most
# Relative L2 errors of direct float32: of a sum of n products rounded one after the other, of random signs,
# 2.4e-8 √n (each sum by 2⁻²⁴/√3 of what it has reached), here with a factor of 2.5 and what short sums,
# biases and activations add; of a function of one element or two some units in the last place, 2⁻²³.
SUM_BOUND, TERM_BOUND = 6e-7, 6e-8
ELEMENT_BOUND = 1e-6
# Methods that lose more digits in float32, and who has them. Any other rung is held to direct float32,
# whatever it says (plain sums round like it on the normal values that it is judged on).
_CONVOLUTIONS = (Conv, Conv3d, ConvTranspose, ConvPool)
LOSING = {
    **dict.fromkeys(("winograd", "fft"), _CONVOLUTIONS),
    **dict.fromkeys(("strassen", "split"), (*_CONVOLUTIONS, Gemm)),
}


@dataclass(frozen=True)
class Comparison:
    """An answer against the oracle's. index: the first element that is off by more than the bound × the
    largest value; wrong: how many are; broken: it is NaN or infinite. where: the element in words."""

    stats: ErrorStats
    index: tuple[int, ...] = ()
    expected: str = ""
    got: str = ""
    wrong: int = 0
    broken: bool = False
    where: str = ""


def direct(params: Params, precision: str, method: str) -> bool:
    """Whether a rung with this method may be off only by the rounding of direct float32, and has to use all
    of its bits."""
    return precision == "fp32" and bool(method) and not isinstance(params, LOSING.get(method, ()))


def bound_of(params: Params, precision: str, method: str = "") -> float:
    """How far an answer may be off: by no less than what is computed in half precision, where its elements
    are that; what is only moved or converted stays exact. method: of a rung, which says it (kernels.ops): a
    direct one rounds each of its sums' terms, and no more."""
    if isinstance(params, TaskParams):
        return params.bound(precision)
    if params.dtype == "float16" and params.flops:
        return PRECISIONS["fp16"].bound
    bound = PRECISIONS[precision].bound
    if not direct(params, precision, method) or params.dtype != "float32":
        return bound
    if isinstance(params, Unary | Binary):
        return ELEMENT_BOUND
    if params.terms:
        return min(bound, SUM_BOUND + TERM_BOUND * math.sqrt(params.terms))
    return bound


def compare(got: np.ndarray, sample: Sample, precision: str, method: str = "") -> Comparison:
    """The rule of bench.measure.answers.accuracy.error_stats, piece by piece, so that a batch of any size
    fits in memory beside its answers. method: see bound_of; no element may be off by more than the
    precision's own bound."""
    p = sample.params
    if isinstance(p, TaskParams) and len(p.output_shapes) > 1:
        return _of_several(p, of_tasks.numbers(p, got), sample, precision)
    return _of_one(got, sample, bound_of(p, precision, method), bound_of(p, precision))


def _of_several(p: TaskParams, got: np.ndarray, sample: Sample, precision: str) -> Comparison:
    """Each output by itself: where one is wrong, the first of these; `index` is its place among the elements
    of all. Else the one whose error is the largest share of its bound."""
    found: list[Comparison] = []
    at = wrong = 0
    flat, expected = got.reshape(-1), sample.expected.reshape(-1)
    for shape, bound in zip(p.output_shapes, p.bounds(precision), strict=True):
        own = slice(at, at + math.prod(shape))
        one = _of_one(flat[own], replace(sample, expected=expected[own]), bound, bound)
        wrong += one.wrong
        index = (one.index[0] + at,) if one.index else ()
        name, where = p.named(at)[0], of_tasks.place_in_words(p, index)
        stats = one.stats
        if not stats.ok:
            told = stats.reason.replace(str(one.index), where) if index else stats.reason
            stats = msgspec.structs.replace(stats, reason=told if told != stats.reason else f"{name}: {told}")
        found.append(replace(one, stats=stats, index=index, where=where))
        at = own.stop
    bad = next((one for one in found if not one.stats.ok), None)
    worst = bad or max(found, key=lambda one: one.stats.rel_l2 / (one.stats.bound or 1.0))
    return replace(worst, wrong=wrong)


def _of_one(got: np.ndarray, sample: Sample, bound: float, loose: float) -> Comparison:
    largest = max(float(np.abs(sample.expected).max(initial=0.0)), sample.typical) or 1.0
    got, sample = of_tasks.in_order(got, sample, (bound * largest, ELEMENT_FACTOR * loose * largest))
    squares = reference = total = worst = 0.0
    wrong = 0
    index: tuple[int, ...] = ()
    broken = False
    for piece in _compared(got, sample, bound * largest):
        if piece.index and not index:
            index, broken = piece.index, piece.broken
        wrong += piece.wrong
        squares += piece.squares
        total += piece.total
        reference += piece.reference
        worst = max(worst, piece.worst)
    norm = max(math.sqrt(reference), sample.typical * math.sqrt(got.size)) or math.sqrt(max(1, got.size))
    rel_l2 = math.sqrt(squares) / norm
    reason = ""
    if broken:
        word = "NaN" if np.isnan(got[index]) else "infinity"
        reason = f"{word} at element {index}, where {value_at(sample, index):.6g} should be"
        rel_l2 = worst = float(np.finfo(np.float64).max)
    elif not math.isfinite(largest):
        reason = "the right answer has NaN or infinity, which no answer can be held against"
        rel_l2 = worst = float(np.finfo(np.float64).max)
    elif rel_l2 > bound:
        reason = f"relative L2 error {rel_l2:.2e} is above {bound:.1e}"
        if rel_l2 <= loose:
            reason += ", the rounding of direct float32"
    elif worst > ELEMENT_FACTOR * loose * largest:
        reason = f"element {index} is off by more than {ELEMENT_FACTOR:.0f} × {loose:.0e} of the largest"
    stats = ErrorStats(
        rel_l2=rel_l2,
        max_abs=worst,
        mean_abs=total / max(1, got.size),
        max_rel=worst / largest if worst < np.finfo(np.float64).max else worst,
        bound=bound,
        ok=not reason,
        reason=reason,
    )
    if not index:
        return Comparison(stats)
    expected, found = in_words(value_at(sample, index), got[index])
    return Comparison(stats, index, expected, found, wrong, broken, str(index))


def in_words(*values: Any) -> tuple[str, ...]:
    """Numbers that differ, in as many digits as it takes to see that; large whole numbers in all."""
    if all(isinstance(value, int | np.integer) for value in values):
        return tuple(str(int(value)) for value in values)
    if all(float(value).is_integer() and abs(float(value)) < 1 << 53 for value in values):
        return tuple(f"{value:.0f}" for value in values)
    for digits in (6, 9, 17):
        told = tuple(f"{value:.{digits}g}" for value in values)
        if len(set(told)) == len(told):
            break
    return told


@dataclass(frozen=True)
class _Piece:
    """Some rows compared: sums over them; index: the first element that is wrong."""

    squares: float
    total: float
    reference: float
    worst: float
    wrong: int
    index: tuple[int, ...] = ()
    broken: bool = False


def _compared(got: np.ndarray, sample: Sample, allowed: float) -> Iterator[_Piece]:
    """Every piece of an answer, in order; of a large one several at a time."""

    def one(rows: slice) -> _Piece:
        part, wanted = _side_by_side(got, sample, rows)
        exact = part.dtype.kind in "iu" and wanted.dtype.kind in "iu"
        with np.errstate(all="ignore"):
            expected = wanted.astype(np.float64, copy=False)
            values = part.astype(np.float64)
            difference = np.abs(values - expected)
            if exact:  # float64 does not tell large whole numbers from their neighbours
                difference[(part != wanted) & (difference == 0)] = 1.0
            bad = ~(difference <= allowed)
        finite = np.isfinite(difference)
        index: tuple[int, ...] = ()
        broken = False
        if bad.any():
            broken = not np.isfinite(values).all()
            chosen = ~np.isfinite(values) if broken else bad
            at = np.unravel_index(int(chosen.argmax()), part.shape)
            index = (int(at[0]) + rows.start, *(int(i) for i in at[1:]))
        clean = difference if finite.all() else difference[finite]
        return _Piece(
            squares=float(np.square(clean).sum()),
            total=float(clean.sum()),
            reference=float(np.square(expected).sum()),
            worst=float(clean.max(initial=0.0)),
            wrong=int(bad.sum()),
            index=index,
            broken=broken,
        )

    pieces = _pieces(got)
    if len(pieces) < 4:
        yield from map(one, pieces)
        return
    with ThreadPoolExecutor(min(COMPARING, host.physical_cores())) as pool:
        yield from pool.map(one, pieces)


def error_map(got: np.ndarray, sample: Sample) -> np.ndarray:
    """The largest |error| over everything but the last two axes: where on the image it is wrong. NaN where an
    answer is no number."""
    found = np.zeros(got.shape[-2:] if got.ndim > 1 else (1, *got.shape))
    for rows in _pieces(got) if got.ndim > 1 else [slice(0, len(got))]:
        part, wanted = _side_by_side(got, sample, rows)
        with np.errstate(all="ignore"):
            difference = np.abs(part.astype(np.float64) - wanted)
        difference[~np.isfinite(part.astype(np.float64))] = np.nan
        folded = difference.reshape(-1, *found.shape)
        found = np.maximum(found, folded.max(axis=0, initial=0.0))
    return found


def _pieces(got: np.ndarray) -> list[slice]:
    """An answer's rows in pieces that are compared at once."""
    a_row = max(1, math.prod(got.shape[1:])) * 8
    step = max(1, CHUNK_NBYTES // a_row)
    return [slice(start, start + step) for start in range(0, got.shape[0], step)]


def _side_by_side(got: np.ndarray, sample: Sample, rows: slice) -> tuple[np.ndarray, np.ndarray]:
    """These rows of an answer, and what they should be."""
    part = got[rows]
    if sample.rows is None:
        wanted = sample.expected.reshape(got.shape)[rows]
    else:
        wanted = sample.expected[sample.rows[rows]]
    return part, wanted.reshape(part.shape)


def value_at(sample: Sample, index: tuple[int, ...]) -> float | int:
    """The right value there, a whole number as one."""
    if sample.rows is not None:
        index = (int(sample.rows[index[0]]), *index[1:])
    elif len(index) != sample.expected.ndim:
        return sample.expected.reshape(-1)[index[-1]].item()
    return sample.expected[index].item()


def first_difference(a: np.ndarray, b: np.ndarray) -> tuple[int, ...] | None:
    """The first element whose bytes differ."""
    left, right = bytes_of(a), bytes_of(b)
    for start in range(0, left.size, CHUNK_NBYTES):
        changed = left[start : start + CHUNK_NBYTES] != right[start : start + CHUNK_NBYTES]
        if changed.any():
            element = (start + int(changed.argmax())) // a.itemsize
            return tuple(int(i) for i in np.unravel_index(element, a.shape))
    return None
