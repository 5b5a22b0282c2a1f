"""A rung's session on one shape with inputs drawn for it, and the check of one answer: what is wrong with it,
as a finding."""

from __future__ import annotations

import ast
import math
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np

from bench.judge.failure import Failure
from bench.judge.remedies import remedy
from bench.measure.answers import of_tasks, one_node
from bench.measure.answers.comparison import (
    Comparison,
    compare,
    error_map,
    first_difference,
    in_words,
    value_at,
)
from bench.measure.answers.samples import Sample, distinct, draw, looked_at
from bench.results.finding import Finding
from bench.results.records import ErrorStats
from engine.cuda.simulated import SimulatedRungSession
from engine.rung_devices import prepare
from engine.rung_rows import bytes_of
from engine.rung_session import POISONS, RungSession
from kernels.ops import Params
from kernels.registry import Rung
from kernels.tasks import TaskParams

# What a kernel that runs without a GPU is found to do, the most telling first, as a fault.
FAULTS = {
    "outside": "outside",
    "misaligned": "outside",
    "input_written": "input_written",
    "divergent_barrier": "barrier",
    "barrier_mismatch": "barrier",
    "assert": "stopped",
    "trap": "stopped",
    "stuck": "barrier",
    "race": "race",
    "uninitialised": "uninitialised",
    "endless": "endless",
}
# An output beyond this is looked at as a whole once a check, and otherwise in some of its images.
LARGE_NBYTES = 64 << 20
PART_NBYTES = 24 << 20
UNLIKELY = 1e30  # larger than any answer here: a sentinel was read


@dataclass
class JudgedSession:
    """A rung's session and the judge of its answers. `notes`: what should be known of a right answer;
    `warnings`: of a time; `error`: the worst of the checks; `checks`: how many passes were judged; `failure`,
    `broken`: how a check between two turns ended that was not passed. first: whose session this is once more,
    on the same inputs, whose answers are known there. given: inputs, weights among them, in the place of
    drawn ones. simulated: a CUDA kernel runs without a GPU, and each of its accesses is watched. suspect:
    between its timed passes there are some over inputs that are all new.
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
    first: Self | None = None
    given: Sample | None = None
    simulated: bool | str = False
    suspect: bool = True

    def __post_init__(self) -> None:
        of = self.first
        # Drawn on by all instances: what one was given no other is given as new.
        self._random: np.random.Generator = of._random if of else np.random.default_rng(self.seed)
        self._random_part = np.random.default_rng(self.seed + 1)
        self._weights: tuple[np.ndarray, ...] = (
            of._weights
            if of
            else self.given.inputs
            if self.given
            else one_node.draw(distinct(self.params), self._random)
            if self.params.weight_inputs
            else ()
        )
        self._sample: Sample = of._sample if of else self.given or self.fresh()
        self._other: Sample | None = None
        self.pass_s = 0.0  # of the last pass that was checked
        self._data = self.params.data_inputs
        given = self._sample.given(self.params)
        self.session: RungSession = prepare(self.rung, self.params, given, self.threads, self.simulated)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.session.close()

    def fresh(self, half: str = "") -> Sample:
        """Inputs never seen before, with the trial's weights. half: see samples.draw."""
        return draw(self.params, self._random, self._weights, half)

    def another(self) -> Self:
        """The same rung prepared once more, at other addresses."""
        return replace(self, first=self, notes=self.notes, error=None, checks=0, failure=None, broken=None)

    @property
    def sample(self) -> Sample:
        """The inputs that lie there, with their answer."""
        return self._sample

    def _write(self, sample: Sample) -> None:
        given = sample.given(self.params)
        self.session.bind({f"input {i}": given[i] for i in self._data})

    def _pass(self, byte: int) -> np.ndarray:
        self._start(byte)
        return self._answer()

    def _answer(self) -> np.ndarray:
        return of_tasks.numbers(self.params, self.session.output())

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
            found = compare(self.session.output(rows), sample.at(rows), self.precision, self.rung.method)
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

    def _watched(self, when: str, sample: Sample, got: np.ndarray) -> Failure | None:
        """What was found of a kernel whose accesses are watched; of several the first, the others counted."""
        found = self.session.report.findings if isinstance(self.session, SimulatedRungSession) else []
        if not found:
            return None
        first = min(found, key=lambda finding: list(FAULTS).index(finding.kind))
        others = len({(one.kind, one.place) for one in found}) - 1
        more = f" (and {others} more such line{'s' * (others > 1)})" if others else ""
        told = "; ".join(filter(None, (first.words + more, remedy(first, self.rung.source))))
        return self._fail(when, FAULTS[first.kind], told, sample, got)

    def _unsteady(
        self, when: str, sample: Sample, first: np.ndarray, second: np.ndarray, index: tuple[int, ...]
    ) -> Failure | None:
        """Two passes over the same inputs gave different answers."""
        where = partial(of_tasks.place_in_words, self.params)
        left = [_left(self.params, out, byte) for out, byte in zip((first, second), POISONS, strict=True)]
        unwritten = left[0] & left[1]
        if unwritten.any() and (reason := began_with(sample, unwritten, self._pass, self.precision)):
            return self._fail(when, "unwritten", reason, sample, first, index)
        if unwritten.any():
            at = np.unravel_index(int(unwritten.argmax()), first.shape)
            place = tuple(int(i) for i in at)
            count = f"{int(unwritten.sum()):,} of {unwritten.size:,}"
            reason = f"never writes {count} elements, first {where(place)}"
            if unwritten.all() and self.rung.device == "cpu" and (hint := rebinding(self.rung.source)):
                reason += f"; {hint}"
            return self._fail(when, "unwritten", reason, sample, first, place)
        if self._follows_poison(first, second):
            started = began_with(sample, unwritten, self._pass, self.precision)
            held = f"element {where(index)} depends on what output or workspace held before the pass"
            reason = started or held
            return self._fail(when, "unwritten", reason, sample, first, index)
        for out in (first, second):
            failure = self._judged(when, sample, out, None)
            if failure is not None:
                reason = (
                    f"repeated runs on the same inputs differ, first at element {where(index)}: "
                    f"{', then '.join(in_words(first[index], second[index]))}"
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
        found = compare(got, sample, self.precision, self.rung.method)
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
                    f"repeated runs on the same inputs differ, first at element "
                    f"{of_tasks.place_in_words(self.params, differs)}: "
                    f"{', then '.join(in_words(got[differs], again[differs]))}"
                )
                return self._fail(when, "race", reason, sample, got, differs)
        if not found.index:  # each is off by little, and all by too much
            return self._fail(when, "wrong", found.stats.reason, sample, got, found=found)
        reason = (
            f"{found.wrong:,} of {got.size:,} elements are wrong, first {found.where}: "
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
        found = found or compare(got, sample, self.precision, self.rung.method)
        place = index or found.index
        expected, held = in_words(value_at(sample, place), got[place]) if place else ("", "")
        finding = Finding(
            fault=fault,
            reason=_with_names(reason, self.params),
            when=when,
            params=self.params.words,
            index=place,
            shape=tuple(map(int, got.shape)),
            expected=expected,
            got=held,
            wrong=found.wrong,
            elements=int(got.size),
            error=found.stats,
        )
        self.failure = Failure(finding, self.params, sample, got, error_map(got, sample))
        return self.failure


def _with_names(words: str, params: Params) -> str:
    """Inputs of a task by the names that its file gives them."""
    if not isinstance(params, TaskParams):
        return words
    names = [given.name for given in params.task.spec.input]
    return re.sub(r"(?:the )?\binput (\d+)\b", lambda m: names[int(m[1])], words)


def rebinding(source: str) -> str:
    """Where a Python kernel gives the name of its output to another array, in words; "" for nowhere."""
    bind = next((it for it in ast.parse(source).body if isinstance(it, ast.FunctionDef) and _binds(it)), None)
    if bind is None:
        return ""
    output = bind.args.args[2].arg
    for node in ast.walk(bind):
        if not isinstance(node, ast.Assign) or output not in _names(*node.targets, stored=True):
            continue
        if output not in _names(node.value):  # else it may be a view of it
            line = source.splitlines()[node.lineno - 1].strip()
            return f"`{line}` makes a new array and leaves the output as it was: write `{output}[...] = …`"
    return ""


def _binds(function: ast.FunctionDef) -> bool:
    """Whether it has the parameters of `bind`; one that was given as a function has a name of its own."""
    return len(function.args.args) == 4 and any(isinstance(it, ast.Return) for it in function.body)


def _names(*nodes: ast.AST, stored: bool = False) -> set[str]:
    """The names that are in an expression, or that it gives a value to."""
    wanted = ast.Store if stored else ast.Load
    every = (it for node in nodes for it in ast.walk(node))
    return {it.id for it in every if isinstance(it, ast.Name) and isinstance(it.ctx, wanted)}


# --------------------------------------------------------------------------------------------------- poison

# What an answer takes from what lay in the output or the workspace before the pass: a pass on zeros is right
# where a rung adds to it, one on large negative numbers where it takes the maximum with it.


def _left(p: Params, out: np.ndarray, byte: int) -> np.ndarray:
    """Which elements of an answer are as that byte left them."""
    if isinstance(p, TaskParams) and p.mixed:
        before = np.full(math.prod(p.output_shape) * np.dtype(p.out_dtype).itemsize, byte, np.uint8)
        return np.asarray(p.numbers(before.view(p.out_dtype)).view(np.int64) == out.view(np.int64))
    return np.asarray((bytes_of(out) == byte).reshape(out.size, -1).all(axis=1))


# A byte to fill with, and what a rung does that is right upon it. As float32: 0, and −1.7e38.
_STARTS = (
    (0x00, "adds to what the output or the workspace held before the pass, instead of beginning at 0"),
    (0xFE, "takes the maximum with what the output or the workspace held before the pass"),
)


def began_with(
    sample: Sample, unwritten: np.ndarray, pass_on: Callable[[int], np.ndarray], precision: str
) -> str:
    """Words for how an answer follows from what lay there; "" where it does not, or nothing is known of how.

    unwritten: elements that two passes on other bytes left as they were; pass_on: the answer of a pass on
    one."""
    changed = np.zeros(unwritten.shape, bool)
    for byte, words in _STARTS:
        got = pass_on(byte)
        if compare(got, sample, precision).stats.ok:
            return words
        changed |= ~_left(sample.params, got, byte).reshape(unwritten.shape)
    if (unwritten & changed).any():
        return "depends on what the output or the workspace held before the pass"
    return ""
