"""The inputs of a task, drawn as its file says, and its answers in the order in which they are compared."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from kernels import expressions
from kernels.ops import Params
from kernels.tasks import TaskParams
from kernels.tasks.spec import Draw, whole

if TYPE_CHECKING:
    from bench.measure.answers.samples import Sample

LOW, HIGH = HALVES = ("lower", "upper")  # of the range that an input's numbers are drawn from
EMPTY_ROWS = 0.2  # of rows between offsets, where there are several


def drawn(p: TaskParams, random: np.random.Generator, half: str = "") -> tuple[np.ndarray, ...]:
    """New inputs of a task. half: one of HALVES, from which all numbers are then, so that a kernel that
    begins with 0 where it looks for the largest is seen."""
    return tuple(
        _values(_of_half(given.draw, p.sizes, half), shape, p.sizes, random, half).astype(
            given.type, copy=False
        )
        for given, shape in zip(p.task.spec.input, p.input_shapes, strict=True)
    )


def _of_half(draw: Draw, sizes: dict[str, int], half: str) -> Draw:
    """A draw between two ends, from one half of what lies between these."""
    if not half or draw.kind not in ("integers", "uniform"):
        return draw
    if draw.kind == "uniform":
        low, high = float(draw.low), float(draw.high)
        middle: int | float = (low + high) / 2
    else:
        low, high = (expressions.value(whole(side), sizes) for side in (draw.low, draw.high))
        if high - low < 2:
            return draw
        middle = (low + high) // 2
    return msgspec.structs.replace(draw, **({"high": middle} if half == LOW else {"low": middle}))


def timed(p: TaskParams) -> list[TaskParams]:
    """The task in all the sizes that its kernels are timed on."""
    return [type(p)(**sizes) for sizes in p.task.spec.time]


def _values(
    draw: Draw, shape: tuple[int, ...], sizes: dict[str, int], random: np.random.Generator, half: str
) -> np.ndarray:
    if draw.kind == "normal":
        values = random.standard_normal(shape, np.float32)
        if half:
            np.copysign(values, -1 if half == LOW else 1, values)
        values *= np.float32(draw.std)
        values += np.float32(draw.mean)
        return values
    if draw.kind == "uniform":
        return random.uniform(float(draw.low), float(draw.high), shape)
    if draw.kind == "integers":
        low, high = (expressions.value(whole(side), sizes) for side in (draw.low, draw.high))
        return random.integers(low, high, shape)
    if draw.kind == "permutation":
        return random.permuted(np.broadcast_to(np.arange(shape[-1]), shape), axis=-1)
    return _offsets(shape[-1], expressions.value(draw.total, sizes), random) + np.zeros(shape, np.int64)


def _offsets(count: int, total: int, random: np.random.Generator) -> np.ndarray:
    """From 0 to total, never falling: rows of very different lengths, some of them empty."""
    rows = count - 1
    shares = random.exponential(1.0, max(1, rows)) ** 2
    if rows > 1:
        shares[random.random(rows) < EMPTY_ROWS] = 0.0
        shares[random.integers(rows)] += 1.0  # so that there is one that has something
    ends = np.floor(np.cumsum(shares) / shares.sum() * total).astype(np.int64)
    ends[-1] = total
    return np.concatenate([[0], ends])[:count]


def ordered(p: Params) -> bool:
    """Whether an answer's elements have their places: else it is compared in an order of their own."""
    return not isinstance(p, TaskParams) or p.task.spec.output[0].compare == "close"


def in_order(got: np.ndarray, sample: Sample, nears: Sequence[float]) -> tuple[np.ndarray, Sample]:
    """An answer and the right one in the order in which they are compared: where a task says `sorted`, each
    row by size; where it says `set`, each row of the last axis beside one that it is within `nears` of, the
    smallest first, as far as there is one that no other row has."""
    if ordered(sample.params):
        return got, sample
    expected = sorted_(sample.params, sample.expected.reshape(got.shape))
    got = sorted_(sample.params, got)
    if _of_rows(sample.params, got):
        rows = got.reshape(-1, got.shape[-1])
        wanted = expected.reshape(rows.shape).astype(np.float64)
        got = rows[_partners(rows.astype(np.float64), wanted, nears)].reshape(got.shape)
    return got, replace(sample, expected=expected)


def sorted_(p: Params, values: np.ndarray) -> np.ndarray:
    """See in_order; the values as they are where their places count."""
    if ordered(p):
        return values
    if not _of_rows(p, values):
        return np.sort(values, axis=-1)
    rows = values.reshape(-1, values.shape[-1])
    return rows[np.lexsort(rows.T[::-1])].reshape(values.shape)


def _of_rows(p: Params, values: np.ndarray) -> bool:
    """Whether its rows may be in any order, not the elements of each."""
    return isinstance(p, TaskParams) and p.task.spec.output[0].compare == "set" and values.ndim > 1


ROUNDS, WINDOW = 8, 256  # of looking for partners, and among how many rows at once


def _partners(got: np.ndarray, wanted: np.ndarray, nears: Sequence[float]) -> np.ndarray:
    """For each row of `wanted` the row of `got` that is held against it, each once. Rows that lie in one
    place when both are sorted by value may differ where rounding alone decides that order; so those that do
    are sorted by a random direction, in which rows that are alike in one column seldom are, and what is
    still left looks for its nearest among those beside it."""
    partner = np.full(len(wanted), -1)
    free = np.ones(len(got), bool)
    direction = np.random.default_rng(len(got)).uniform(0.5, 1.5, got.shape[1])
    with np.errstate(all="ignore"):
        along_got, along_wanted = got @ direction, wanted @ direction

    def pair(mine: np.ndarray, theirs: np.ndarray, near: float) -> None:
        with np.errstate(all="ignore"):
            fit = (np.abs(got[mine] - wanted[theirs]) <= near).all(axis=1)
        partner[theirs[fit]], free[mine[fit]] = mine[fit], False

    def left() -> tuple[np.ndarray, np.ndarray]:
        return np.flatnonzero(free), np.flatnonzero(partner < 0)

    for near in nears:
        pair(*left(), near)
        mine, theirs = left()
        pair(mine[np.argsort(along_got[mine])], theirs[np.argsort(along_wanted[theirs])], near)
        for _ in range(ROUNDS):
            mine, theirs = left()
            if not mine.size:
                break
            found, at = _nearest(got[mine], along_got[mine], wanted[theirs], along_wanted[theirs], near)
            if not found.size:
                break
            pair(mine[found], theirs[at], near)
    mine, theirs = left()
    partner[theirs] = mine
    return partner


def _nearest(
    got: np.ndarray, along_got: np.ndarray, wanted: np.ndarray, along_wanted: np.ndarray, near: float
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of `got` and for each its nearest of `wanted`, where that is within `near`; no row twice."""
    order = np.argsort(along_wanted)
    sorted_along, reach = along_wanted[order], near * 1.5 * got.shape[1]
    first = np.searchsorted(sorted_along, along_got - reach)
    behind = np.searchsorted(sorted_along, along_got + reach, "right")
    best, at = np.full(len(got), np.inf), np.zeros(len(got), np.int64)
    for step in range(min(WINDOW, int((behind - first).max(initial=0)))):
        which = np.flatnonzero(first + step < behind)
        candidate = order[first[which] + step]
        with np.errstate(all="ignore"):
            far = np.abs(got[which] - wanted[candidate]).max(axis=1)
        nearer = far < best[which]
        best[which[nearer]], at[which[nearer]] = far[nearer], candidate[nearer]
    found = np.flatnonzero(best <= near)
    found = found[np.argsort(best[found], kind="stable")]
    _, once = np.unique(at[found], return_index=True)
    return found[once], at[found[once]]


def strangers(p: Params, found: np.ndarray, right: np.ndarray, near: float) -> np.ndarray:
    """Which of some values of an answer whose order is open are none of the right one's, by more than
    `near`."""
    known = np.sort(right.reshape(-1).astype(np.float64))
    values = found.astype(np.float64)
    at = np.clip(np.searchsorted(known, values), 1, max(1, known.size - 1))
    left, above = known[at - 1], known[np.minimum(at, known.size - 1)]
    with np.errstate(invalid="ignore"):
        return np.asarray(~(np.minimum(np.abs(values - left), np.abs(values - above)) <= near))


# ----------------------------------------------------------------------------------- outputs of several types


def answer_shape(p: Params) -> tuple[int, ...]:
    """The shape of what `numbers` gives of an output."""
    if isinstance(p, TaskParams) and p.mixed:
        return (sum(map(math.prod, p.output_shapes)),)
    return p.output_shape


def numbers(p: Params, output: np.ndarray) -> np.ndarray:
    """An output as it is compared: of several types all elements as float64, those of one output behind those
    of the other; any other as it is."""
    return p.numbers(output) if isinstance(p, TaskParams) else output


def place_in_words(p: Params, index: tuple[int, ...]) -> str:
    """Where an element of an answer is: its index, of several outputs the name of its own and the index in
    that."""
    if isinstance(p, TaskParams) and len(p.output_shapes) > 1 and len(index) == 1:
        name, place = p.named(index[0])
        return f"{name}{list(place)}"
    return str(index)


def seen_in_parts(
    p: TaskParams, places: np.ndarray, found: np.ndarray, right: np.ndarray
) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
    """Of numbers that were left in a buffer of several types, for each output: its place among the outputs,
    which of its elements they are of, these elements, and the right ones. Where a number is only a part of an
    element, the other parts are taken such that it is as near to the right one as it can be."""
    width = right.dtype.itemsize
    outputs = zip(p.output_offsets, p.split(right), strict=True)
    for number, (offset, output) in enumerate(outputs):
        whole = output.reshape(-1)
        parts = whole.itemsize // width
        mine = (places >= offset // width) & (places < offset // width + parts * whole.size)
        if not mine.any():
            continue
        element, part = np.divmod(places[mine] - offset // width, parts)
        kind = np.dtype(f"u{whole.itemsize}")
        expected = whole[element]
        bits = _nearest_bits(expected.view(kind), part, found[mine].view(f"u{width}"))
        yield number, element, bits.astype(kind).view(whole.dtype), expected


def _nearest_bits(bits: np.ndarray, part: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Of all bit patterns that have `found` as that part (0: the lowest), the one next to `bits`, uint64."""
    if bits.itemsize == found.itemsize:
        return found.astype(np.uint64)
    wide, own = 8 * found.itemsize, bits.astype(np.uint64)
    shift = np.uint64(wide) * part.astype(np.uint64)
    top = shift + np.uint64(wide)
    last = top >= np.uint64(8 * bits.itemsize)  # the highest part: nothing lies above it
    high = np.where(last, np.uint64(0), own >> np.where(last, np.uint64(0), top))
    below = (np.uint64(1) << shift) - np.uint64(1)
    best, least = own, np.full(own.shape, np.iinfo(np.uint64).max)
    for step in (0, 1, -1):
        above = high + np.uint64(step) if step >= 0 else high - np.uint64(1)
        base = np.where(last, np.uint64(0), above << np.where(last, np.uint64(0), top))
        base |= found.astype(np.uint64) << shift
        candidate = np.clip(own, base, base | below)
        far = np.where(candidate > own, candidate - own, own - candidate)
        if step:
            far = np.where(last | (above >> (np.uint64(8 * bits.itemsize) - top) != 0), least, far)
        best, least = np.where(far < least, candidate, best), np.minimum(far, least)
    return best
