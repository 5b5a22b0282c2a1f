"""A rung (one kernel of a ladder) on one shape: its answers are checked before, during and after timing,
on inputs that change between the checks."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate

import numpy as np

from bench.judge import digits
from bench.judge.failure import Failure, Wrong
from bench.judge.judged_session import JudgedSession
from bench.judge.narrow_digits import Probe
from bench.measure.answers import accuracy, elements, of_tasks, one_node, timed_pass
from bench.measure.answers.comparison import bound_of, compare, first_difference, in_words
from bench.measure.answers.renewed import Mixing, Renewal
from bench.measure.answers.samples import Sample, as_held
from bench.results.finding import Finding
from engine.rung_session import POISONS
from engine.stirring import Renewable, Witnessed
from kernels.precision import PRECISIONS
from kernels.tasks import TaskParams

# If single elements cannot be compared with float64, whole rows are: as many as take so many operations.
ROWS_FLOPS = 4_000_000
TELLING = 1 << 16  # elements by which the typical size of an answer's elements is estimated


class Trial(JudgedSession):
    """One instance of a rung, with all checks of its answers. It is also the object that bench.measure.timing
    times.

    Each check returns None if all is right, else a Failure; it keeps the Failure in `failure`, too. `when`:
    words for the finding, such as "before timing". The fields are those of JudgedSession."""

    def __post_init__(self) -> None:
        super().__post_init__()
        renewal = self.first.renewal if self.first is not None else None
        host = self.rung.device == "cpu"
        self.mixing = Mixing(self.session, renewal, self._swap_inputs, host, self.suspect)

    @property
    def renewal(self) -> Renewal:
        """The times over all-new inputs, of all instances of the rung together."""
        return self.mixing.renewal

    def check(self, when: str, sample: Sample | None = None) -> Failure | None:
        """Run two passes over new inputs, and compare the answer with the right one. Before each pass the
        output is filled with other values ("poison"), so that elements that are not written show. Also
        checked: that both passes agree, and that nothing was written into the inputs or beside the output.
        sample: the inputs and their right answer (None: drawn now)."""
        session, last = self.session, self._sample
        self._sample = sample = sample or self.fresh()
        self._write(sample)
        part = self._part(sample)
        if part is not None and self._right_throughout(sample, part) and not session.strays():
            return None
        first, second = (self._pass(byte) for byte in POISONS)
        if told := self._watched(when, sample, first):
            return told
        if strays := session.strays():
            fault = "input_written" if strays[0].buffer.startswith("input") and (
                0 <= strays[0].offset < strays[0].size
            ) else "stray_write"  # fmt: skip
            return self._fail(when, fault, strays[0].words, sample, first)
        differs = first_difference(first, second)
        if differs is not None:
            return self._unsteady(when, sample, first, second, differs)
        return self._judged(when, sample, first, last)

    def check_unprepared(self, when: str, passes: int) -> Failure | None:
        """Passes as they follow each other while a kernel is timed: nothing is poisoned, and before every
        second one a single element of each input changes, else all do. Each has to be right."""
        session, sample = self.session, self._sample
        for number in range(passes):
            last, sample = sample, self._with_one_changed(sample) if number % 2 else self.fresh()
            self._sample = sample
            self._write(sample)
            session.run()
            session.synchronize()
            self.checks += 1
            got = self._answer()
            if failure := self._watched(when, sample, got) or self._judged(when, sample, got, last):
                return failure
        return None

    def _with_one_changed(self, sample: Sample) -> Sample:
        """The same inputs, but for an element of each, which becomes as its neighbour is."""
        inputs = [np.array(array, order="C") for array in sample.inputs]
        for index in self._data:
            flat = inputs[index].reshape(-1)
            at = int(self._random.integers(flat.size))
            flat[at] = flat[at - 1]
        return replace(sample, inputs=tuple(inputs), expected=one_node.answer(sample.params, inputs))

    def check_digits(self, which: str) -> Failure | None:
        """Check that the rung uses all bits of float32 (22 bits, if its method is "split"). The trial must
        have been created with `given` = a sample of bench.judge.digits. which: words for the factor whose
        bits are checked: "the inputs" or "the weights"."""
        sample = self._sample
        self._write(sample)
        got = self._pass(POISONS[0])
        off = digits.error(got, sample, np.random.default_rng(secrets.randbits(128)))
        splits = self.rung.method == "split"
        if off <= (digits.OF_TWO_PARTS if splits else digits.EXACT):
            return None
        sample = replace(sample, expected=one_node.answer(self.params, sample.inputs))
        second = self._pass(POISONS[1])
        if (differs := first_difference(got, second)) is not None:  # then the bits are not the cause
            return self._unsteady("before timing", sample, got, second, differs)
        reason = (
            f"holds fewer bits of {which} than two numbers of 11 bits: differences of numbers that differ "
            f"beyond the tenth bit are off by {off:.0e}. Who rounds factors says so in the header "
            "(tf32, fp16, bf16)"
            if splits
            else f"holds fewer bits of {which} than float32 has: differences of numbers that differ beyond "
            f"the tenth bit are off by {off:.0e}, where a direct kernel is exact. Who splits factors says so "
            'in the header (precision = "fp32-tc", method = "split"), and so does who rounds them (tf32,'
            " fp16, bf16)"
        )
        return self._fail("before timing", "digits", reason, sample, got)

    def check_rounding(self, probe: Probe) -> Failure | None:
        """Check that a rung in 16 bits rounds and adds as its precision says. The trial must have been
        created with `given` = the probe's sample."""
        self._write(probe.sample)
        got = self._pass(POISONS[0])
        reason = probe.fault(got, np.random.default_rng(secrets.randbits(128)))
        if not reason:
            return None
        sample = replace(probe.sample, expected=one_node.answer(self.params, probe.sample.inputs))
        second = self._pass(POISONS[1])
        if (differs := first_difference(got, second)) is not None:  # then the bits are not the cause
            return self._unsteady("before timing", sample, got, second, differs)
        return self._fail("before timing", "digits", reason, sample, got)

    def check_between(self) -> None:
        """As `spot_check`, between two turns of timing. It returns and raises nothing: a failure is raised by
        the next call of `time_runs` or `warm_runs`."""
        try:
            self.spot_check("during timing")
        except Exception as error:
            self.broken = error

    def spot_check(self, when: str, thorough: bool = False) -> Failure | None:
        """Check some timed passes, if the session recorded them, and the answer that lies in the output. Then
        write other inputs, and poison, for the next passes. thorough: compare several timed passes with
        float64 (for timed_pass.FLOAT64_S seconds), not only one."""
        self.mixing.end_turn()
        sample = self._sample
        self.session.synchronize()
        part = self._part(sample)
        if failure := self._check_new_passes(when):
            return failure
        if isinstance(self.session, Witnessed):
            if failure := self._check_timed_passes(self.session, when, thorough, part):
                return failure
            # Run once more over the inputs whose right answer is known.
            self._write(sample)
            self._start(POISONS[0])
        if not (part is not None and self._right(sample, [part])) and (
            failure := self._judged(when, sample, self._answer(), self._other)
        ):
            return failure
        self._swap_inputs()
        if not isinstance(self.session, Witnessed):  # a Witnessed poisons some elements itself
            self.session.poison(POISONS[0])
        return None

    def _swap_inputs(self) -> None:
        """Write other inputs for the next passes. The call after this one writes the present inputs again."""
        sample = self._sample
        self._other, self._sample = sample, self._other or self._other_sample(sample)
        self._write(self._sample)

    @property
    def _factor(self) -> float:
        """The error bound of the rung's method, divided by that of its precision."""
        bound = bound_of(self.params, self.precision, self.rung.method)
        return bound / PRECISIONS[self.precision].bound

    @property
    def _typical(self) -> float:
        """The root mean square of the right answer's elements, from many of them: a few elements may all be
        small by chance."""
        right = self._sample.expected.reshape(-1)
        if not right.size or right.dtype.kind != "f":
            return self._sample.typical
        some = right[np.random.default_rng(right.size).integers(0, right.size, min(right.size, TELLING))]
        return max(self._sample.typical, accuracy.length(some) / math.sqrt(some.size))

    def _other_sample(self, sample: Sample) -> Sample:
        """Other inputs than `sample`: those of the first instance, whose right answer is known; else new
        ones."""
        of = self.first
        known = [] if of is None else [one for one in (of._sample, of._other) if one is not None]
        return next((one for one in known if one is not sample), None) or self.fresh()

    def check_new(self, when: str) -> Failure | None:
        """Check recorded passes over all-new inputs, and measure whether the time depends on how many inputs
        changed. If so, `renewal.told` says it, and it is added to `notes`. None, without a check, if the
        session cannot run such passes (it is not Renewable)."""
        if not isinstance(self.session, Renewable):
            return None
        self.renewal.settle(self.mixing)
        if failure := self._check_new_passes(when):
            return failure
        if self.renewal.told and self.renewal.told not in self.notes:
            self.notes.append(self.renewal.told)
        return None

    def _check_new_passes(self, when: str) -> Failure | None:
        """Compare one recorded pass of each train over all-new inputs with float64."""
        for last in self.session.renewed() if isinstance(self.session, Renewable) else ():
            look = self._against_float64(timed_pass.PassCheck(*last), None)
            if look.wrong:
                return self._fail_timed(when, look)
        return None

    def _check_timed_passes(
        self, session: Witnessed, when: str, thorough: bool, rows: np.ndarray | None
    ) -> Failure | None:
        """Compare some timed passes with untimed ones over the same inputs, and some of these with float64.
        session: the trial's own. rows: numbers of the rows that are checked (None: all)."""
        count = len(rows) if rows is not None else 0
        part = None if rows is None else timed_pass.RowPart(rows, math.prod(self.params.output_shape[1:]))

        def again(inputs: timed_pass.Arrays) -> timed_pass.Arrays:
            self.session.bind(inputs)
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
            own=self._own_look,
        )
        for number, look in enumerate(looks):
            if not look.wrong and (number == 0 or left > 0):
                started = time.perf_counter()
                look = self._against_float64(look, rows)
                left -= time.perf_counter() - started
            if look.wrong:
                return self._fail_timed(when, look)
        return None

    @property
    def _own_look(self) -> timed_pass.OwnLook | None:
        """How values that a timed pass left are held against an answer; None: each against the one in its
        place."""
        p = self.params
        if isinstance(p, TaskParams) and p.mixed:
            return partial(self._look_in_parts, p)
        return None if of_tasks.ordered(p) else self._look_anywhere

    def _look_anywhere(
        self, places: np.ndarray, found: np.ndarray, answer: np.ndarray
    ) -> timed_pass.Off | None:
        """Of an answer whose order is open each value has to be one of the right one's."""
        bound = bound_of(self.params, self.precision)
        near = accuracy.ELEMENT_FACTOR * bound * float(np.abs(answer).max(initial=0))
        wrong = of_tasks.strangers(self.params, found, answer, near)
        if not wrong.any():
            return None
        at = int(wrong.argmax())
        stats = accuracy.failure(bound, "a value that the right answer does not have")
        return timed_pass.Off(stats, int(places[at]), float(found[at]), 0.0)

    def _look_in_parts(
        self, p: TaskParams, places: np.ndarray, found: np.ndarray, answer: np.ndarray
    ) -> timed_pass.Off | None:
        """Of a buffer of several types each output by its own bound."""
        bounds, before = p.bounds(self.precision), [0, *accumulate(map(math.prod, p.output_shapes))]
        for number, element, values, right in of_tasks.seen_in_parts(p, places, found, answer):
            expected = right.astype(np.float64)
            factor = bounds[number] / PRECISIONS[self.precision].bound
            whole = of_tasks.numbers(p, answer)[before[number] : before[number + 1]]
            typical = accuracy.length(whole) / math.sqrt(whole.size)
            got = values.astype(np.float64)
            stats = accuracy.judged(got, expected, self.precision, factor, typical=typical)
            if not stats.ok:
                off = np.abs(got - expected)
                worst = int(np.where(np.isfinite(off), off, np.inf).argmax())
                at = before[number] + int(element[worst])
                return timed_pass.Off(stats, at, float(got[worst]), float(expected[worst]))
        return None

    def _against_float64(self, look: timed_pass.PassCheck, rows: np.ndarray | None) -> timed_pass.PassCheck:
        """Compare some elements of an answer, or some rows, drawn at random, with float64. Returns `look` as
        it is if they are right, else with what is wrong. rows: numbers of the rows that the answer has (None:
        all)."""
        p, got = self.params, of_tasks.numbers(self.params, look.answers["output"])
        data = {i: look.inputs[f"input {i}"] for i in self._data}
        inputs = [data.get(i, array) for i, array in enumerate(self._sample.inputs)]
        if isinstance(p, TaskParams):
            return self._against_reference(p, look, got, inputs)
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
        with np.errstate(all="ignore"):  # NaN counts as the largest error
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

    def _against_reference(
        self, p: TaskParams, look: timed_pass.PassCheck, got: np.ndarray, inputs: Sequence[np.ndarray]
    ) -> timed_pass.PassCheck:
        """As `_against_float64`: all of a task's answer."""
        sample = replace(self._sample, inputs=tuple(inputs), expected=one_node.answer(p, inputs))
        found = compare(got, sample, self.precision, self.rung.method)
        if found.stats.ok:
            return look
        place = int(np.ravel_multi_index(found.index, got.shape)) if found.index else 0
        values = (float(found.got), float(found.expected)) if found.index else (0.0, 0.0)
        return replace(
            look, wrong="output", stats=found.stats, place=place, got=values[0], expected=values[1]
        )

    def _fail_timed(self, when: str, look: timed_pass.PassCheck) -> Failure:
        shape = of_tasks.answer_shape(self.params)
        expected, held = in_words(look.expected, look.got)
        finding = Finding(
            fault="unwritten" if look.unwritten else "wrong",
            reason=look.words,
            when=when,
            params=self.params.words,
            index=tuple(int(i) for i in np.unravel_index(look.place, shape)),
            shape=tuple(map(int, shape)),
            expected=expected,
            got=held,
            elements=math.prod(shape),
            error=look.stats,
        )
        got = of_tasks.numbers(self.params, np.asarray(look.answers["output"]))
        self.failure = Failure(finding, self.params, self._sample, got)
        return self.failure

    @property
    def one_thread(self) -> bool:
        """Whether its passes use one thread only (engine.backend.in_one_thread)."""
        return self.mixing.one_thread

    @property
    def parts_ns(self) -> Sequence[float]:
        """ns of a pass in each part of the last samples, for a session of one thread
        (engine.backend.parts_ns)."""
        return self.mixing.parts_ns

    def time_runs(self, count: int, cold: bool = False) -> int:
        """Time `count` passes; returns ns, all together (see Mixing.time_runs). Raises Wrong if a check has
        failed, and the error that a check between two turns raised."""
        self._raise_failure()
        return self.mixing.time_runs(count, cold)

    def warm_runs(self, count: int) -> int:
        """Run `count` warm-up passes; returns ns, all together (engine.backend.Warmed). Raises as
        `time_runs`."""
        self._raise_failure()
        return self.mixing.warm_runs(count)

    def _raise_failure(self) -> None:
        """Raise what an earlier check found, if it found anything."""
        if self.broken is not None:
            raise self.broken
        if self.failure is not None:
            raise Wrong(self.failure.finding, self.failure.error_map, self.failure)
