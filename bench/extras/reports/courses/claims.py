"""What a report says of two of its figures, held against ours: the same, the other way, or open."""

from __future__ import annotations

from dataclasses import dataclass

from bench.extras.reports.courses.needs import NEEDS_GPU, Taken
from bench.extras.reports.courses.presets import Claim, Course
from bench.extras.reports.courses.values import ours
from bench.results import doubt
from bench.results.stats import SAME_BOUND, Interval
from bench.words import units


@dataclass(frozen=True)
class Held:
    """kind: "agrees", "contradicts", or "open" where ours does not decide it."""

    kind: str
    sentence: str


def held(course: Course, claim: Claim, taken: Taken) -> Held:
    """A claim against what was measured here. Nothing is claimed from a figure that is to be doubted, nor
    from a time that has no interval: one sample decides nothing."""
    lines = course.line(claim.first), course.line(claim.second)
    said = _said(claim, lines[0].published, lines[1].published)
    known = []
    for line in lines:
        found = ours(course, line, taken)
        if found.value is None and found.why == NEEDS_GPU:
            return _open(said, "it needs a GPU, and none was there")
        if found.value is None:
            return _open(said, f"there is no {line.what}: {found.why}")
        if found.doubts:
            return _open(said, f"{line.what} is to be doubted: {doubt.in_short(found.doubts)}")
        if found.low is None or found.high is None:
            return _open(said, f"{line.what} has no interval, as it was taken once")
        known.append(Interval(found.value, found.low, found.high))
    return (_fractions if lines[0].unit == "fraction" else _times)(claim, said, *known)


def _said(claim: Claim, first: float | None, second: float | None) -> str:
    """In their words where these are kept; else it is their figures that say it, and not they."""
    theirs = f" ({units.times(first / second)})" if first and second else ""
    if claim.quote:
        return (
            f"They say that {claim.says}, in their words “{claim.quote}”; their figures{theirs or ': none'}"
        )
    return f"By their figures{theirs} {claim.says}"


def _open(said: str, why: str) -> Held:
    return Held("open", f"{said}. Ours does not decide it: {why}.")


def _times(claim: Claim, said: str, first: Interval, second: Interval) -> Held:
    """By their ends, as they were measured apart: the widest ratio that both intervals allow."""
    ratio = first.value / second.value
    low, high = first.low / second.high, first.high / (second.low or second.value)
    spread = f"{units.times(ratio)} ({units.times(low)} to {units.times(high)})"
    if high < 1 / (1 + SAME_BOUND) or low > 1 + SAME_BOUND:
        agrees = not claim.same and low > 1
    elif claim.same and low >= 1 - SAME_BOUND and high <= 1 + SAME_BOUND:
        agrees = True
    else:
        return _open(said, "the interval of the ratio reaches across the bound of ±2 %")
    return _decided(agrees, f"{said}; ours: the first takes {spread} the time of the second")


def _fractions(claim: Claim, said: str, first: Interval, second: Interval) -> Held:
    """Accuracies: apart where their intervals are; the same only where they are equal."""
    apart = first.low > second.high or second.low > first.high
    if apart:
        agrees = not claim.same and first.value > second.value
    elif claim.same and first.value == second.value:
        agrees = True
    else:
        return _open(said, "the intervals of the two accuracies overlap")
    told = f"{units.percent(first.value)} and {units.percent(second.value)}"
    return _decided(agrees, f"{said}; ours: {told}")


def _decided(agrees: bool, said: str) -> Held:
    if agrees:
        return Held("agrees", f"{said}. Ours says the same.")
    return Held("contradicts", f"{said}. Ours contradicts it.")
