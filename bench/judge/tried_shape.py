"""A shape on which a rung was tried, as the diagnosis sees it: does a mistake give the wrong answers that the
rung gave?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bench.judge.mistakes import Mistake, mistakes, of_any
from bench.measure.answers import of_tasks
from bench.measure.answers.comparison import bound_of
from bench.measure.answers.samples import Sample
from kernels.ops import Params

MOST_OUTPUTS = 1 << 20  # of an answer that is looked into,
MOST_FLOPS = 5e8  # and of the work that each mistake's answer is
EXPLAINED = 0.98  # of the elements: what lies beyond a buffer that is read past its end is anything
WIDE = 30  # times the bound, within which answers are the same,
NARROW = 1  # and of mistakes that are a rounding

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
        yield from mistakes(self.params, *inputs)
        yield from of_any(self.params, inputs, self.expected)

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
            same |= np.isnan(self.got) & np.isnan(answer)
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
    expected = of_tasks.sorted_(sample.params, sample.expected.astype(np.float64))
    if got is not None:
        got = got.reshape(-1)[: sample.expected.size].reshape(shape).astype(np.float64)
        got = of_tasks.sorted_(sample.params, got)
    return TriedShape(sample.params, sample.inputs, expected, got, bound_of(params, precision))
