"""Which mistake explains a rung's wrong answers.

An explanation is given only where it holds on every shape that fails: the answers with that mistake
(bench.judge.mistakes) are worked out in float64 and are the very answers that were got; or all answers are
off by one factor, one amount or the rounding of a narrower type (bench.judge.patterns). The shapes that are
right count too: a mistake that would have made those wrong as well is told of the failing ones alone. Where
two mistakes give the same answers on all that was tried, both are told. Where nothing explains every failing
shape, nothing is explained, and all that is said is where it is wrong (bench.judge.places).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bench.judge import mistakes
from bench.judge.comparison import bound_of
from bench.judge.mistakes import Mistake, common
from bench.judge.samples import Sample
from bench.judge.trial import Failure
from kernels.ops import Params

MOST_OUTPUTS = 1 << 20  # of an answer that is looked into,
MOST_FLOPS = 5e8  # and of the work that each mistake's answer is
EXPLAINED = 0.98  # of the elements: what lies beyond a buffer that is read past its end is anything
WIDE = 30  # times the bound, within which answers are the same,
NARROW = 1  # and of mistakes that are a rounding
TOLD = 2  # mistakes that are named where nothing tells them apart

Explanation = tuple[str, str]


@dataclass(frozen=True)
class TriedShape:
    """A shape that was tried: the answers that should be, and those that were got (None: right ones)."""

    params: Params
    inputs: tuple[np.ndarray, ...]
    expected: np.ndarray
    got: np.ndarray | None
    bound: float

    @property
    def largest(self) -> float:
        return float(np.abs(self.expected).max(initial=0.0)) or 1.0

    @property
    def small(self) -> bool:
        return self.expected.size <= MOST_OUTPUTS and self.params.flops <= MOST_FLOPS

    def mistakes(self) -> Iterator[Mistake]:
        """Those of its operator, then those of any."""
        inputs = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in self.inputs]
        yield from mistakes.of(self.params, inputs)
        yield from common.mistakes(self.params, inputs, self.expected)

    def differs(self, answer: np.ndarray, fault: str) -> np.ndarray:
        """Where an answer is another than the right one."""
        with np.errstate(all="ignore"):
            return np.asarray(~(np.abs(answer - self.expected) <= self._near(fault)))

    def has(self, answer: np.ndarray, fault: str) -> bool:
        """Whether this is the wrong answer that was got: where either differs from the right one, and as a
        whole."""
        assert self.got is not None
        with np.errstate(all="ignore"):
            same = (self.got == answer) | (np.abs(self.got - answer) <= self._near(fault))
        told, wrong = self.differs(answer, fault), self.differs(self.got, fault)
        if not told.any() or not wrong.any():
            return False
        return bool(min(part.mean() for part in (same, same[told], same[wrong])) >= EXPLAINED)

    def spoiled(self, answer: np.ndarray, fault: str) -> bool:
        """Whether an answer is wrong anywhere."""
        return bool(self.differs(answer, fault).any())

    def _near(self, fault: str) -> float:
        return (NARROW if fault == "half_precision" else WIDE) * self.bound * self.largest


def case(params: Params, sample: Sample, got: np.ndarray | None, precision: str) -> TriedShape:
    """Of the distinct images alone: a batch repeats them."""
    shape = sample.expected.shape
    if got is not None:
        got = got.reshape(-1)[: sample.expected.size].reshape(shape).astype(np.float64)
    return TriedShape(
        sample.params, sample.inputs, sample.expected.astype(np.float64), got, bound_of(params, precision)
    )


def explain(
    failures: Sequence[Failure], passed: Sequence[tuple[Params, Sample]], precision: str
) -> Explanation | None:
    """(fault, words) of what explains all failures, or None."""
    wrong = [case(f.params, f.sample, f.got, precision) for f in failures]
    right = [case(p, sample, None, precision) for p, sample in passed]
    wrong.sort(key=lambda case: case.expected.size)
    found = _made(wrong, right)
    if found is None:
        from bench.judge import patterns

        found = patterns.explain(wrong)
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
