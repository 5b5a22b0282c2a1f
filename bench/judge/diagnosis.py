"""Which mistake explains a rung's wrong answers.

An explanation is given only if it holds on every shape that fails: the answers with that mistake
(bench.judge.mistakes), computed in float64, are exactly the answers of the rung; or all answers are off by
one factor, one amount or the rounding of a narrower type (bench.judge.patterns). The shapes that are right
count, too: a mistake that would also have made those wrong is named for the failing ones only. If two
mistakes give the same answers on everything that was tried, both are named. If nothing explains every failing
shape, the finding says only where it is wrong (bench.judge.places).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bench.judge import patterns, tried_shape
from bench.judge.failure import Failure
from bench.judge.samples import Sample
from bench.judge.tried_shape import Explanation, TriedShape
from kernels.ops import Params

TOLD = 2  # mistakes that are named where nothing tells them apart


def explain(
    failures: Sequence[Failure], passed: Sequence[tuple[Params, Sample]], precision: str
) -> Explanation | None:
    """(fault, words) of what explains all failures, or None."""
    wrong = [tried_shape.case(f.params, f.sample, f.got, precision) for f in failures]
    right = [tried_shape.case(p, sample, None, precision) for p, sample in passed]
    wrong.sort(key=lambda case: case.expected.size)
    found = _made(wrong, right)
    if found is None:
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
