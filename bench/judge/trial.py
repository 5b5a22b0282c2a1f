"""One rung on one shape: its answers to new inputs are checked before, during and after it is timed."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bench.judge import digits
from bench.judge.failure import Failure, Wrong
from bench.judge.judged_session import JudgedSession
from bench.measure.answers import accuracy, elements, one_node, timed_pass
from bench.measure.answers.comparison import bound_of, first_difference
from bench.measure.answers.renewed import Mixing, Renewal
from bench.measure.answers.samples import Sample, as_held
from bench.results.finding import Finding
from engine.rung_session import POISONS
from engine.stirring import Renewable, Witnessed
from kernels.precision import PRECISIONS

ROWS_FLOPS = 4_000_000  # of rows that are held against float64 together, where elements alone cannot be
TELLING = 1 << 16  # elements of an answer that say how large its elements are


class Trial(JudgedSession):
    """What is checked of a rung, and when; also what bench.measure.timing takes samples of. `renewal`: its
    trains over inputs that are all new, those of all instances."""

    def __post_init__(self) -> None:
        super().__post_init__()
        renewal = self.first.renewal if self.first is not None else None
        users = self.rung.user and self.rung.device == "cpu"
        self.mixing = Mixing(self.session, renewal, self._other_inputs, pauses=users)

    @property
    def renewal(self) -> Renewal:
        return self.mixing.renewal

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

    def check_digits(self, which: str) -> Failure | None:
        """Whether all bits of float32 count where the sample is one of bench.judge.digits; which: the factor
        that has them."""
        sample = self._sample
        self._write(sample)
        got = self._pass(POISONS[0])
        off = digits.error(got, sample, np.random.default_rng(secrets.randbits(128)))
        splits = self.rung.method == "split"
        if off <= (digits.OF_TWO_PARTS if splits else digits.EXACT):
            return None
        sample = replace(sample, expected=one_node.answer(self.params, sample.inputs))
        second = self._pass(POISONS[1])
        if (differs := first_difference(got, second)) is not None:  # then its digits are not what is wrong
            return self._unsteady("before timing", sample, got, second, differs)
        reason = (
            f"holds fewer bits of {which} than two numbers of 11 bits: differences of numbers that differ "
            f"beyond the tenth bit are off by {off:.0e}. Who rounds factors says so in the header "
            "(tf32, fp16)"
            if splits
            else f"holds fewer bits of {which} than float32 has: differences of numbers that differ beyond "
            f"the tenth bit are off by {off:.0e}, where a direct kernel is exact. Who splits factors says so "
            'in the header (precision = "fp32-tc", method = "split"), and so does who rounds them (tf32,'
            " fp16)"
        )
        return self._fail("before timing", "digits", reason, sample, got)

    def check_between(self) -> None:
        """As `spot_check`, between two turns: how it ended is told when the next one is to be taken."""
        try:
            self.spot_check("during timing")
        except Exception as error:
            self.broken = error

    def spot_check(self, when: str, thorough: bool = False) -> Failure | None:
        """The answers of timed passes, or the one that the last of them left; then other inputs lie there,
        and poison, for the next ones. thorough: not one answer alone is held against float64."""
        self.mixing.end_turn()
        sample = self._sample
        self.session.synchronize()
        part = self._part(sample)
        if failure := self._new_right(when):
            return failure
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
        self._other_inputs()
        if not isinstance(self.session, Witnessed):  # which poisons some itself; the rest is an old answer
            self.session.poison(POISONS[0])
        return None

    def _other_inputs(self) -> None:
        """From now on others than those that lie there, and these again the time after."""
        sample = self._sample
        self._other, self._sample = sample, self._other or self._unlike(sample)
        self._write(self._sample)

    @property
    def _factor(self) -> float:
        """The bound of its method over that of its precision."""
        bound = bound_of(self.params, self.precision, self.rung.method)
        return bound / PRECISIONS[self.precision].bound

    @property
    def _typical(self) -> float:
        """What an element of an answer is in the root mean square, as many of them tell it: of few elements
        that are looked at it may be less by chance."""
        right = self._sample.expected.reshape(-1)
        if not right.size or right.dtype.kind != "f":
            return self._sample.typical
        some = right[np.random.default_rng(right.size).integers(0, right.size, min(right.size, TELLING))]
        return max(self._sample.typical, accuracy.length(some) / math.sqrt(some.size))

    def _unlike(self, sample: Sample) -> Sample:
        """Other inputs than these: some that the first instance has the answer of, else new ones."""
        of = self.first
        known = [] if of is None else [one for one in (of._sample, of._other) if one is not None]
        return next((one for one in known if one is not sample), None) or self.fresh()

    def check_new(self, when: str) -> Failure | None:
        """Whether it is right over inputs that are all new; and whether its time hangs on how much of them
        changed, which `renewal` tells then."""
        if not isinstance(self.session, Renewable):
            return None
        self.renewal.settle(self.mixing)
        if failure := self._new_right(when):
            return failure
        if self.renewal.told and self.renewal.told not in self.notes:
            self.notes.append(self.renewal.told)
        return None

    def _new_right(self, when: str) -> Failure | None:
        """Whether a pass of each train over new inputs was, as float64 says."""
        for last in self.session.renewed() if isinstance(self.session, Renewable) else ():
            look = self._beside_float64(timed_pass.PassCheck(*last), None)
            if look.wrong:
                return self._fail_timed(when, look)
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
        seen = [*self.mixing.seen, *timed_pass.seen(session)]
        self.mixing.seen.clear()
        looks = timed_pass.looks(
            seen,
            again,
            self.precision,
            self._factor,
            part=part,
            typical=self._sample.typical,
            seconds=timed_pass.LOOKS_S if self.rung.user else 0.0,
        )
        for number, look in enumerate(looks):
            if not look.wrong and (number == 0 or left > 0):
                started = time.perf_counter()
                look = self._beside_float64(look, rows)
                left -= time.perf_counter() - started
            if look.wrong:
                return self._fail_timed(when, look)
        return None

    def _beside_float64(self, look: timed_pass.PassCheck, rows: np.ndarray | None) -> timed_pass.PassCheck:
        """What was found of some elements of an answer, drawn now, or of some rows of a batch, beside
        float64: as it was where that is right. rows: those that the answer is of, where it is not of all."""
        p, got = self.params, look.answers["output"]
        data = {i: look.inputs[f"input {i}"] for i in self._data}
        inputs = [data.get(i, array) for i, array in enumerate(self._sample.inputs)]
        random = np.random.default_rng(secrets.randbits(128))
        size = p.outputs // (p.rows or 1)
        if elements.known(p):
            lying = elements.drawn(got.shape, random)
            places = lying if rows is None else rows[lying // size] * size + lying % size
            right = elements.answer(p, inputs, places)
        else:
            if (whole := p.rows) is not None:
                count = max(1, min(whole, elements.DRAWN, ROWS_FLOPS * whole // max(1, p.flops)))
                chosen = random.choice(len(rows) if rows is not None else whole, count)
                drawn = chosen if rows is None else rows[chosen]
                p = p.of_rows(count)
                inputs = [
                    array.reshape(whole, -1)[drawn].reshape(shape) if p.has_rows(i) else array
                    for i, (array, shape) in enumerate(zip(inputs, p.input_shapes, strict=True))
                ]
                lying, places = ((at[:, None] * size + np.arange(size)).reshape(-1) for at in (chosen, drawn))
            else:
                lying = places = np.arange(p.outputs)
            right = one_node.answer(p, inputs).reshape(-1)
        right = as_held(p, right)
        found = got.reshape(-1)[lying]
        stats = accuracy.judged(found, right, self.precision, self._factor, typical=self._typical)
        if stats.ok:
            return look
        with np.errstate(all="ignore"):  # of what is no number nothing is further off
            off = np.nan_to_num(np.abs(found.astype(np.float64) - right), nan=np.inf)
        worst = int(off.argmax())
        return replace(
            look,
            wrong="output",
            stats=stats,
            place=int(places[worst]),
            got=float(found[worst]),
            expected=float(right[worst]),
        )

    def _fail_timed(self, when: str, look: timed_pass.PassCheck) -> Failure:
        shape = self.params.output_shape
        finding = Finding(
            fault="unwritten" if look.unwritten else "wrong",
            reason=look.words,
            when=when,
            params=self.params.words,
            index=tuple(int(i) for i in np.unravel_index(look.place, shape)),
            shape=tuple(map(int, shape)),
            expected=f"{look.expected:.6g}",
            got=f"{look.got:.6g}",
            elements=math.prod(shape),
            error=look.stats,
        )
        self.failure = Failure(finding, self.params, self._sample, np.asarray(look.answers["output"]))
        return self.failure

    @property
    def one_thread(self) -> bool:
        return self.mixing.one_thread

    @property
    def parts_ns(self) -> Sequence[float]:
        return self.mixing.parts_ns

    def time_runs(self, count: int, cold: bool = False) -> int:
        """As the session's; a trial that has failed takes no more samples."""
        self._sound()
        return self.mixing.time_runs(count, cold)

    def warm_runs(self, count: int) -> int:
        """See engine.backend.Warmed."""
        self._sound()
        return self.mixing.warm_runs(count)

    def _sound(self) -> None:
        if self.broken is not None:
            raise self.broken
        if self.failure is not None:
            raise Wrong(self.failure.finding, self.failure.error_map, self.failure)
