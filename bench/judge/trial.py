"""One rung on one shape: checks of what it makes of inputs never seen before, before, during and after it is
timed."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bench.judge import poison, renewed
from bench.judge.comparison import Comparison, compare, error_map, first_difference, value_at
from bench.judge.samples import ORACLE_FLOPS, Sample, distinct, draw, looked_at
from bench.ladder.records import Finding
from bench.measure.answers import accuracy, one_node, oracle, timed_pass
from bench.results.records import ErrorStats
from engine.rung_rows import raw
from engine.rung_session import POISONS, RungSession, prepare
from engine.witness import Renewable, Witnessed
from kernels.ops import Params
from kernels.registry import Rung

# An output beyond this is looked at as a whole once a check, and otherwise in some of its images.
LARGE_NBYTES = 64 << 20
PART_NBYTES = 24 << 20
UNLIKELY = 1e30  # larger than any answer here: a sentinel was read


@dataclass(frozen=True)
class Failure:
    """A finding with what it was found on, for a diagnosis; got is the whole batch's answer."""

    finding: Finding
    params: Params
    sample: Sample
    got: np.ndarray
    error_map: np.ndarray | None = None

    @property
    def where(self) -> str:
        """How many elements are wrong and which is the first, or what was seen to be wrong."""
        if self.finding.fault != "stale":
            return self.finding.reason
        found = self.finding
        return (
            f"{found.wrong:,} of {found.elements:,} elements are wrong, first {found.index}: {found.got} "
            f"instead of {found.expected}"
        )


@dataclass
class Trial:
    """A rung's session and the judge of it; also what bench.measure.timing takes samples of. `notes`: what
    should be known of a right answer; `warnings`: of a time; `error`: the worst of the checks; `checks`: how
    many passes were judged; `failure`, `broken`: how a check between two turns ended that was not passed.
    first: whose session this is once more, on the same inputs, whose answers are known there.
    """

    rung: Rung
    params: Params
    precision: str = "fp32"
    seed: int = 0
    threads: int | None = None
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    error: ErrorStats | None = None
    checks: int = 0
    failure: Failure | None = None
    broken: Exception | None = None
    first: Trial | None = None

    def __post_init__(self) -> None:
        of = self.first
        # Drawn on by all instances: what one was given no other is given as new.
        self._random: np.random.Generator = of._random if of else np.random.default_rng(self.seed)
        self._random_part = np.random.default_rng(self.seed + 1)
        self._weights: tuple[np.ndarray, ...] = (
            of._weights if of else one_node.draw(distinct(self.params), self._random)
        )
        self._sample: Sample = of._sample if of else self.fresh()
        self._other: Sample | None = None
        self.pass_s = 0.0  # of the last pass that was checked
        self._data = self.params.data_inputs
        given = self._sample.given(self.params)
        self.session: RungSession = prepare(self.rung, self.params, given, self.threads)

    def __enter__(self) -> Trial:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.session.close()

    def fresh(self) -> Sample:
        """Inputs never seen before, with the trial's weights."""
        return draw(self.params, self._random, self._weights)

    def another(self) -> Trial:
        """The same rung prepared once more, at other addresses."""
        return replace(self, first=self, notes=self.notes, error=None, checks=0, failure=None, broken=None)

    @property
    def sample(self) -> Sample:
        """The inputs that lie there, with their answer."""
        return self._sample

    # ----------------------------------------------------------------------------------------------- checks

    def check(self, when: str, sample: Sample | None = None) -> Failure | None:
        """Fresh inputs, two passes on different poison, sentinels, inputs, answer. None where all is
        right."""
        session, last = self.session, self._sample
        self._sample = sample = sample or self.fresh()
        self._write(sample)
        part = self._part(sample)
        if part is not None and self._right_throughout(sample, part) and not session.strays():
            return None
        first, second = (self._pass(byte) for byte in POISONS)
        if strays := session.strays():
            fault = "input_written" if strays[0].buffer.startswith("input") and (
                0 <= strays[0].offset < strays[0].size
            ) else "stray_write"  # fmt: skip
            return self._fail(when, fault, strays[0].words, sample, first)
        differs = first_difference(first, second)
        if differs is not None:
            return self._unsteady(when, sample, first, second, differs)
        return self._judged(when, sample, first, last)

    def check_between(self) -> None:
        """As `spot_check`, between two turns: how it ended is told when the next one is to be taken."""
        try:
            self.spot_check("during timing")
        except Exception as error:
            self.broken = error

    def spot_check(self, when: str, thorough: bool = False) -> Failure | None:
        """The answers of timed passes, or the one that the last of them left; then other inputs lie there,
        and poison, for the next ones. thorough: not one answer alone is held against float64."""
        sample = self._sample
        self.session.synchronize()
        part = self._part(sample)
        if isinstance(self.session, Witnessed):
            if failure := self._timed_right(self.session, when, thorough, part):
                return failure
            # And once more the inputs whose answer is known throughout.
            self._write(sample)
            self._start(POISONS[0])
        if not (part is not None and self._right(sample, [part])) and (
            failure := self._judged(when, sample, self.session.output(), self._other)
        ):
            return failure
        self._other, self._sample = sample, self._other or self._unlike(sample)
        self._write(self._sample)
        if not isinstance(self.session, Witnessed):  # which poisons some itself; the rest is an old answer
            self.session.poison(POISONS[0])
        return None

    def _unlike(self, sample: Sample) -> Sample:
        """Other inputs than these: some that the first instance has the answer of, else new ones."""
        of = self.first
        known = [] if of is None else [one for one in (of._sample, of._other) if one is not None]
        return next((one for one in known if one is not sample), None) or self.fresh()

    def check_new(self, when: str) -> Failure | None:
        """Whether it is faster where few of its inputs changed, and right where all did. What does not say
        that it is wrong is a warning."""
        shapes, item = self.params.input_shapes, np.dtype(self.params.dtype).itemsize
        nbytes = item * sum(math.prod(shapes[i]) for i in self._data)
        if not isinstance(self.session, Renewable) or nbytes > renewed.MOST_NBYTES:
            return None
        told = renewed.asked(self.session)
        if (last := self.session.renewed()) is not None:
            look = timed_pass.PassCheck(*last)
            stats = self._row_right(look, None)
            if stats is not None and not stats.ok:
                return self._fail_timed(when, replace(look, wrong="output", stats=stats))
        if told is not None and told.remembers:
            finding = Finding(fault="remembers", reason=told.words, when=when, params=self.params.words)
            self._write(self._sample)
            self.failure = Failure(finding, self.params, self._sample, self._pass(POISONS[0]))
            return self.failure
        if told is not None:
            self.warnings.append(told.words)
        return None

    def _timed_right(
        self, session: Witnessed, when: str, thorough: bool, rows: np.ndarray | None
    ) -> Failure | None:
        """Some timed passes, each beside an untimed one over the same inputs. rows: those that are looked at
        where not all are."""
        count = len(rows) if rows is not None else 0
        part = None if rows is None else timed_pass.RowPart(rows, math.prod(self.params.output_shape[1:]))

        def again(inputs: timed_pass.Arrays) -> timed_pass.Arrays:
            self.session.write([inputs[f"input {i}"] for i in self._data])
            self._start(POISONS[0])
            return {"output": self.session.output(rows) if count else self.session.output()}

        left = timed_pass.FLOAT64_S if thorough else 0.0
        looks = timed_pass.looks(session, again, self.precision, part=part, typical=self._sample.typical)
        for number, look in enumerate(looks):
            if not look.wrong and (number == 0 or left > 0):
                started = time.perf_counter()
                stats = self._row_right(look, rows)
                left -= time.perf_counter() - started
                if stats is not None and not stats.ok:
                    look = replace(look, wrong="output", stats=stats)
            if look.wrong:
                return self._fail_timed(when, look)
        return None

    def _row_right(self, look: timed_pass.PassCheck, rows: np.ndarray | None) -> ErrorStats | None:
        """One row of a batch, or all of what has no rows, against float64; None where that takes long. rows:
        those that the answer is of, where it is not of all."""
        p, count = self.params, self.params.rows
        data = {i: look.inputs[f"input {i}"] for i in self._data}
        got = look.answers["output"]
        if count is not None:
            place = secrets.randbelow(count if rows is None else len(rows))
            row = place if rows is None else int(rows[place])
            p = p.of_rows(1)
            shapes = p.input_shapes
            for i, array in data.items():
                if self.params.has_rows(i):
                    data[i] = array.reshape(count, -1)[row].reshape(shapes[i])
            got = got.reshape(count if rows is None else len(rows), -1)[place].reshape(p.output_shape)
        if p.flops > ORACLE_FLOPS:
            return None
        made = one_node.graph(p, [data.get(i, array) for i, array in enumerate(self._sample.inputs)])
        answer = oracle.run(made, {f"in{i}": array for i, array in data.items()}, [one_node.OUTPUT])
        right = answer[one_node.OUTPUT].reshape(got.shape)
        return accuracy.judged(got, right, self.precision, typical=self._sample.typical)

    def _fail_timed(self, when: str, look: timed_pass.PassCheck) -> Failure:
        shape = self.params.output_shape
        finding = Finding(
            fault="unwritten" if look.unwritten else "wrong",
            reason=look.words,
            when=when,
            params=self.params.words,
            index=tuple(int(i) for i in np.unravel_index(look.place, shape)),
            expected=f"{look.expected:.6g}",
            got=f"{look.got:.6g}",
            elements=math.prod(shape),
            error=look.stats,
        )
        self.failure = Failure(finding, self.params, self._sample, np.asarray(look.answers["output"]))
        return self.failure

    def _write(self, sample: Sample) -> None:
        given = sample.given(self.params)
        self.session.write([given[i] for i in self._data])

    def time_runs(self, count: int, cold: bool = False) -> int:
        """As the session's; a trial that has failed takes no more samples."""
        if self.broken is not None:
            raise self.broken
        if self.failure is not None:
            from bench.judge import Wrong

            raise Wrong(self.failure.finding, self.failure.error_map, self.failure)
        return self.session.time_runs(count, cold)

    def _pass(self, byte: int) -> np.ndarray:
        self._start(byte)
        return self.session.output()

    def _start(self, byte: int) -> None:
        self.session.poison(byte)
        started = time.perf_counter()
        self.session.run()
        self.session.synchronize()
        self.pass_s = time.perf_counter() - started
        self.checks += 1

    # ------------------------------------------------------------------------------------- a part of it

    def _part(self, sample: Sample) -> np.ndarray | None:
        """Rows of a large output that are looked at where not all of it is; None of one that is not large."""
        count = self.params.output_shape[0]
        a_row = math.prod(self.params.output_shape[1:])
        if sample.rows is None or count * 4 * a_row <= LARGE_NBYTES:
            return None
        read = math.prod(sample.inputs[0].shape[1:])
        return looked_at(count, (a_row, read), PART_NBYTES // (4 * a_row), self._random_part)

    def _right(self, sample: Sample, parts: Iterable[np.ndarray]) -> bool:
        """Whether parts of the answer of the last pass are right."""
        for rows in parts:
            found = compare(self.session.output(rows), sample.at(rows), self.precision)
            if not found.stats.ok:
                return False
            self._note(found.stats)
        return True

    def _right_throughout(self, sample: Sample, part: np.ndarray) -> bool:
        """Whether all of a large answer is right, fetched piece by piece, and a pass on other poison gives
        the same bits in a part of it. What is wrong is left to a look at the whole."""
        self._start(POISONS[0])
        held = self.session.output(part)
        count, step = len(sample.rows if sample.rows is not None else ()), len(part)
        pieces = (np.arange(i, min(i + step, count)) for i in range(0, count, step))
        if not self._right(sample, pieces):
            return False
        self._start(POISONS[1])
        return first_difference(held, self.session.output(part)) is None

    def _note(self, stats: ErrorStats) -> None:
        if self.error is None or stats.rel_l2 > self.error.rel_l2:
            self.error = stats

    # ----------------------------------------------------------------------------------------- findings

    def _unsteady(
        self, when: str, sample: Sample, first: np.ndarray, second: np.ndarray, index: tuple[int, ...]
    ) -> Failure | None:
        """Two passes over the same inputs gave different answers."""
        left = [
            (raw(out) == byte).reshape(out.size, -1).all(axis=1)
            for out, byte in zip((first, second), POISONS, strict=True)
        ]
        unwritten = left[0] & left[1]
        if unwritten.any() and (reason := poison.began_with(sample, unwritten, self._pass, self.precision)):
            return self._fail(when, "unwritten", reason, sample, first, index)
        if unwritten.any():
            at = np.unravel_index(int(unwritten.argmax()), first.shape)
            place = tuple(int(i) for i in at)
            share = f"{int(unwritten.sum()):,} of {unwritten.size:,} elements"
            return self._fail(when, "unwritten", f"never writes {share}, first {place}", sample, first, place)
        if self._follows_poison(first, second):
            started = poison.began_with(sample, unwritten, self._pass, self.precision)
            reason = started or f"element {index} depends on what output or workspace held before the pass"
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
            first_difference(before, self._pass(byte)) is None
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
            differs = first_difference(got, again)
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
            params=self.params.words,
            index=place,
            expected=f"{value_at(sample, place):.6g}" if place else "",
            got=f"{got[place]:.6g}" if place else "",
            wrong=found.wrong,
            elements=int(got.size),
            error=found.stats,
        )
        self.failure = Failure(finding, self.params, sample, got, error_map(got, sample))
        return self.failure


__all__ = ["Comparison", "Failure", "Sample", "Trial", "compare", "draw", "error_map"]
