"""One rung on one shape: samples of inputs with their float64 answers, and checks of what the rung makes of
them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bench import one_node, oracle
from bench.accuracy import BOUNDS, ELEMENT_FACTOR
from bench.judge.suite import words
from bench.ladder_records import Finding
from bench.records import ErrorStats
from engine import host
from engine.rung_session import POISONS, RungSession, data_inputs, output_shape, prepare
from kernels.params import Conv, Lrn, LrnPool, Params, Pool
from kernels.registry import Rung

# An oracle's evaluation is kept below this (at about a GFLOP/s); a batch beyond repeats the images that it
# had.
ORACLE_FLOPS = 3e9
CHUNK_NBYTES = 8 << 20  # of float64 compared at once: little enough to stay in the caches
# An output beyond this is looked at as a whole once a check, and otherwise in its first and last images and
# some between, drawn anew each time.
LARGE_NBYTES = 64 << 20
PART_NBYTES = 24 << 20
COMPARING = 8  # threads at most
UNLIKELY = 1e30  # larger than any answer here: a sentinel was read


Images = Conv | Pool | Lrn | LrnPool  # operators whose first axis is the batch


@dataclass(frozen=True)
class Sample:
    """Inputs and what they should give. params: of the distinct images; rows: which of them lies at each
    place of the batch (None: each once, in order). inputs: of the distinct images; expected: float64."""

    params: Params
    inputs: tuple[np.ndarray, ...]
    expected: np.ndarray
    rows: np.ndarray | None = None

    def whole(self, array: np.ndarray) -> np.ndarray:
        """An input or the answer at the full batch."""
        return array if self.rows is None else array[self.rows]

    def at(self, rows: np.ndarray) -> Sample:
        """What these rows of the full batch should give."""
        return replace(self, rows=rows if self.rows is None else self.rows[rows])

    @property
    def whole_inputs(self) -> list[np.ndarray]:
        """All inputs at the full batch, weights among them."""
        data = data_inputs(self.params, len(self.inputs))
        return [self.whole(a) if i in data else a for i, a in enumerate(self.inputs)]


def distinct(p: Params) -> Params:
    """The params of the images that the oracle answers for; a batch beyond repeats them."""
    if not isinstance(p, Images):
        return p
    most = min(oracle.MAX_IMAGES, int(ORACLE_FLOPS / max(1, p.flops / p.n)))
    return replace(p, n=min(p.n, max(2, most)))


def draw(p: Params, random: np.random.Generator, weights: Sequence[np.ndarray] = ()) -> Sample:
    """New inputs for `p` and their answer; `weights`: inputs out of which those that are weights are
    taken."""
    few = distinct(p)
    drawn = one_node.draw(few, random)
    data = data_inputs(few, len(drawn))
    inputs = tuple(a if i in data or not weights else weights[i] for i, a in enumerate(drawn))
    rows = None
    if isinstance(p, Images) and isinstance(few, Images) and few.n < p.n:
        rows = random.integers(0, few.n, p.n)
        rows[: few.n] = np.arange(few.n)
    made = one_node.graph(few, inputs)
    answer = oracle.run(made, {f"in{i}": inputs[i] for i in data}, [one_node.OUTPUT])[one_node.OUTPUT]
    return Sample(few, inputs, answer, rows)


@dataclass(frozen=True)
class Failure:
    """A finding with what it was found on, for a diagnosis; got is the whole batch's answer."""

    finding: Finding
    params: Params
    sample: Sample
    got: np.ndarray
    error_map: np.ndarray | None = None


@dataclass
class Trial:
    """A rung's session and the judge of it; also what bench.timing takes samples of. `notes`: what should be
    known of a right answer; `error`: the worst of the checks; `checks`: how many passes were judged."""

    rung: Rung
    params: Params
    precision: str = "fp32"
    seed: int = 0
    threads: int | None = None
    notes: list[str] = field(default_factory=list)
    error: ErrorStats | None = None
    checks: int = 0
    failure: Failure | None = None

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)
        self._random_part = np.random.default_rng(self.seed + 1)
        self._weights = one_node.draw(distinct(self.params), self._random)
        self._sample = first = self.fresh()
        self._other: Sample | None = None
        self._data = data_inputs(self.params, len(first.inputs))
        self.session: RungSession = prepare(self.rung, self.params, first.whole_inputs, self.threads)

    def __enter__(self) -> Trial:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.session.close()

    def fresh(self) -> Sample:
        """Inputs never seen before, with the trial's weights."""
        return draw(self.params, self._random, self._weights)

    # ----------------------------------------------------------------------------------------------- checks

    def check(self, when: str, sample: Sample | None = None) -> Failure | None:
        """Fresh inputs, two passes on different poison, sentinels, inputs, answer. None where all is
        right."""
        session, last = self.session, self._sample
        self._sample = sample = sample or self.fresh()
        session.write([sample.whole(sample.inputs[i]) for i in self._data])
        part = self._part(sample)
        if part and self._right_throughout(sample, part) and not session.strays():
            return None
        first, second = (self._pass(byte) for byte in POISONS)
        if strays := session.strays():
            fault = "input_written" if strays[0].buffer.startswith("input") and (
                0 <= strays[0].offset < strays[0].size
            ) else "stray_write"  # fmt: skip
            return self._fail(when, fault, strays[0].words, sample, first)
        differs = _first_difference(first, second)
        if differs is not None:
            return self._unsteady(when, sample, first, second, differs)
        return self._judged(when, sample, first, last)

    def spot_check(self, when: str) -> Failure | None:
        """The answer that the last timed pass left; then other inputs lie there, and poison, for the next
        ones."""
        sample = self._sample
        self.session.synchronize()
        part = self._part(sample)
        if not (part and self._right(sample, part)) and (
            failure := self._judged(when, sample, self.session.output(), self._other)
        ):
            return failure
        self._other, self._sample = sample, self._other or self.fresh()
        self.session.write([self._sample.whole(self._sample.inputs[i]) for i in self._data])
        self.session.poison(POISONS[0])
        return None

    def time_runs(self, count: int, cold: bool = False) -> int:
        """As the session's; a trial that has failed takes no more samples."""
        if self.failure is not None:
            from bench.judge import Wrong

            raise Wrong(self.failure.finding, self.failure.error_map, self.failure)
        return self.session.time_runs(count, cold)

    def _pass(self, byte: int) -> np.ndarray:
        self._start(byte)
        return self.session.output()

    def _start(self, byte: int) -> None:
        self.session.poison(byte)
        self.session.run()
        self.session.synchronize()
        self.checks += 1

    # ------------------------------------------------------------------------------------- a part of it

    def _part(self, sample: Sample) -> list[slice]:
        """Rows of a large output that are looked at where not all of it is; none of one that is not large."""
        count = output_shape(self.params)[0]
        a_row = 4 * math.prod(output_shape(self.params)[1:])
        if sample.rows is None or count * a_row <= LARGE_NBYTES:
            return []
        third = max(1, PART_NBYTES // 3 // a_row)
        start = int(self._random_part.integers(third, max(third + 1, count - 2 * third)))
        return [slice(0, third), slice(start, start + third), slice(count - third, count)]

    def _right(self, sample: Sample, part: Sequence[slice]) -> bool:
        """Whether a part of the answer of the last pass is right."""
        for rows in part:
            found = compare(self.session.output(rows), sample.at(_places(rows)), self.precision)
            if not found.stats.ok:
                return False
            self._note(found.stats)
        return True

    def _right_throughout(self, sample: Sample, part: Sequence[slice]) -> bool:
        """Whether all of a large answer is right, fetched piece by piece, and a pass on other poison gives
        the same bits in a part of it. What is wrong is left to a look at the whole."""
        self._start(POISONS[0])
        held = [self.session.output(rows) for rows in part]
        count, step = len(sample.rows if sample.rows is not None else ()), part[0].stop
        if not self._right(sample, [slice(i, min(i + step, count)) for i in range(0, count, step)]):
            return False
        self._start(POISONS[1])
        again = (self.session.output(rows) for rows in part)
        return all(_first_difference(*both) is None for both in zip(held, again, strict=True))

    def _note(self, stats: ErrorStats) -> None:
        if self.error is None or stats.rel_l2 > self.error.rel_l2:
            self.error = stats

    # ----------------------------------------------------------------------------------------- findings

    def _unsteady(
        self, when: str, sample: Sample, first: np.ndarray, second: np.ndarray, index: tuple[int, ...]
    ) -> Failure | None:
        """Two passes over the same inputs gave different answers."""
        left = [
            (_bytes(out) == byte).reshape(out.size, -1).all(axis=1)
            for out, byte in zip((first, second), POISONS, strict=True)
        ]
        unwritten = left[0] & left[1]
        if unwritten.any():
            at = np.unravel_index(int(unwritten.argmax()), first.shape)
            place = tuple(int(i) for i in at)
            share = f"{int(unwritten.sum())} of {unwritten.size} elements"
            return self._fail(
                when, "unwritten", f"never writes element {place}, one of {share}", sample, first, place
            )
        if self._follows_poison(first, second):
            reason = f"element {index} depends on what output or workspace held before the pass"
            return self._fail(when, "unwritten", reason, sample, first, index)
        for out in (first, second):
            failure = self._judged(when, sample, out, None)
            if failure is not None:
                reason = (
                    f"repeated runs on the same inputs differ, first at element {index}: "
                    f"{first[index]:.6g}, then {second[index]:.6g}"
                )
                return self._fail(when, "race", reason, sample, out, index)
        note = "repeated runs differ in their last bits"
        if note not in self.notes:
            self.notes.append(note)
        return None

    def _follows_poison(self, first: np.ndarray, second: np.ndarray) -> bool:
        """Whether each poison gives the same answer every time; a race would have to fall out alike eight
        times."""
        return all(
            _first_difference(before, self._pass(byte)) is None
            for _ in range(4)
            for before, byte in zip((first, second), POISONS, strict=True)
        )

    def _judged(self, when: str, sample: Sample, got: np.ndarray, last: Sample | None) -> Failure | None:
        found = compare(got, sample, self.precision)
        if found.stats.ok:
            self._note(found.stats)
            return None
        if last is not None and last is not sample and compare(got, last, self.precision).stats.ok:
            reason = "answers for the inputs of the pass before, not for those it was given"
            return self._fail(when, "stale", reason, sample, got, found.index)
        if found.broken:
            return self._fail(when, "nan", found.stats.reason, sample, got, found.index, found)
        for _ in range(3):
            again = self._pass(POISONS[0])
            differs = _first_difference(got, again)
            if differs is not None:
                reason = (
                    f"repeated runs on the same inputs differ, first at element {differs}: "
                    f"{got[differs]:.6g}, then {again[differs]:.6g}"
                )
                return self._fail(when, "race", reason, sample, got, differs)
        reason = (
            f"{found.wrong:,} of {got.size:,} elements are wrong, first {found.index}: "
            f"{found.got} instead of {found.expected}"
        )
        if abs(float(found.got)) > UNLIKELY:
            reason += " (so large a value comes from reading outside a buffer)"
        return self._fail(when, "wrong", reason, sample, got, found.index, found)

    def _fail(
        self,
        when: str,
        fault: Any,
        reason: str,
        sample: Sample,
        got: np.ndarray,
        index: tuple[int, ...] = (),
        found: Comparison | None = None,
    ) -> Failure:
        found = found or compare(got, sample, self.precision)
        place = index or found.index
        finding = Finding(
            fault=fault,
            reason=reason,
            when=when,
            params=words(self.params),
            index=place,
            expected=f"{_at(sample, place):.6g}" if place else "",
            got=f"{got[place]:.6g}" if place else "",
            wrong=found.wrong,
            elements=int(got.size),
            error=found.stats,
        )
        self.failure = Failure(finding, self.params, sample, got, error_map(got, sample))
        return self.failure


# ----------------------------------------------------------------------------------------------- comparison


@dataclass(frozen=True)
class Comparison:
    """An answer against the oracle's. index: the first element that is off by more than the bound × the
    largest value; wrong: how many are; broken: it is NaN or infinite."""

    stats: ErrorStats
    index: tuple[int, ...] = ()
    expected: str = ""
    got: str = ""
    wrong: int = 0
    broken: bool = False


def compare(got: np.ndarray, sample: Sample, precision: str) -> Comparison:
    """The rule of bench.accuracy.error_stats, in pieces, so that a batch of any size fits beside its
    answers."""
    bound = BOUNDS[precision]
    largest = float(np.abs(sample.expected).max(initial=0.0)) or 1.0
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
    norm = math.sqrt(reference) or math.sqrt(max(1, got.size))
    rel_l2 = math.sqrt(squares) / norm
    reason = ""
    if broken:
        word = "NaN" if np.isnan(got[index]) else "infinity"
        reason = f"{word} at element {index}, where {_at(sample, index):.6g} should be"
        rel_l2 = worst = float(np.finfo(np.float64).max)
    elif rel_l2 > bound:
        reason = f"relative L2 error {rel_l2:.2e} is above {bound:.0e}"
    elif worst > ELEMENT_FACTOR * bound * largest:
        reason = f"element {index} is off by more than {ELEMENT_FACTOR:.0f} × {bound:.0e} of the largest"
    stats = ErrorStats(
        rel_l2=rel_l2,
        max_abs=worst,
        mean_abs=total / max(1, got.size),
        max_rel=worst / largest if not broken else worst,
        bound=bound,
        ok=not reason,
        reason=reason,
    )
    if not index:
        return Comparison(stats)
    return Comparison(stats, index, f"{_at(sample, index):.6g}", f"{got[index]:.6g}", wrong, broken)


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
        part, expected = _side_by_side(got, sample, rows)
        with np.errstate(all="ignore"):
            values = part.astype(np.float64)
            difference = np.abs(values - expected)
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
    for rows in _pieces(got):
        part, expected = _side_by_side(got, sample, rows)
        with np.errstate(all="ignore"):
            difference = np.abs(part.astype(np.float64) - expected)
        difference[~np.isfinite(part.astype(np.float64))] = np.nan
        folded = difference.reshape(-1, *found.shape)
        found = np.maximum(found, folded.max(axis=0, initial=0.0))
    return found


def _pieces(got: np.ndarray) -> list[slice]:
    """An answer's rows in pieces that are compared at once."""
    if got.ndim < 2:
        return [slice(0, len(got))]
    a_row = max(1, math.prod(got.shape[1:])) * 8
    step = max(1, CHUNK_NBYTES // a_row)
    return [slice(start, start + step) for start in range(0, got.shape[0], step)]


def _side_by_side(got: np.ndarray, sample: Sample, rows: slice) -> tuple[np.ndarray, np.ndarray]:
    """These rows of an answer, and what they should be in float64."""
    part = got[rows]
    if sample.rows is None:
        wanted = sample.expected.reshape(got.shape)[rows]
    else:
        wanted = sample.expected[sample.rows[rows]]
    return part, wanted.reshape(part.shape).astype(np.float64, copy=False)


def _places(rows: slice) -> np.ndarray:
    return np.arange(rows.start, rows.stop)


def _at(sample: Sample, index: tuple[int, ...]) -> float:
    if sample.rows is not None:
        index = (int(sample.rows[index[0]]), *index[1:])
        return float(sample.expected[index])
    flat = sample.expected.reshape(-1)
    return float(sample.expected[index]) if len(index) == sample.expected.ndim else float(flat[index[-1]])


def _bytes(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _first_difference(a: np.ndarray, b: np.ndarray) -> tuple[int, ...] | None:
    """The first element whose bytes differ."""
    left, right = _bytes(a), _bytes(b)
    for start in range(0, left.size, CHUNK_NBYTES):
        changed = left[start : start + CHUNK_NBYTES] != right[start : start + CHUNK_NBYTES]
        if changed.any():
            element = (start + int(changed.argmax())) // a.itemsize
            return tuple(int(i) for i in np.unravel_index(element, a.shape))
    return None


__all__ = ["Comparison", "Failure", "Sample", "Trial", "compare", "draw", "error_map"]
