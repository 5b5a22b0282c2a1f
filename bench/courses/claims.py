"""What a report says of two of its figures, held against ours: the same, the other way, or open."""

from __future__ import annotations

from dataclasses import dataclass

from bench.courses.needs import Taken
from bench.courses.presets import Claim, Course
from bench.courses.values import Ours, ours
from bench.results.stats import SAME_BOUND
from bench.words import units


@dataclass(frozen=True)
class Held:
    """kind: "agrees", "contradicts", or "open" where ours cannot tell."""

    kind: str
    sentence: str


def held(course: Course, claim: Claim, taken: Taken) -> Held:
    """A claim against what was measured here."""
    lines = course.line(claim.first), course.line(claim.second)
    theirs = _theirs(lines[0].published, lines[1].published)
    quoted = f', in their words "{claim.quote}"' if claim.quote else ""
    said = f"They say that {claim.says}{quoted}" + (f" ({theirs})" if theirs else "")
    first, second = (ours(course, line, taken) for line in lines)
    for line, found in zip(lines, (first, second), strict=True):
        if found.value is None:
            return Held("open", f"{said}. Ours cannot tell: {line.what}: {found.why}.")
    if lines[0].unit == "fraction":
        return _fractions(claim, said, first, second)
    low, ratio, high = _ratio(first, second)
    spread = (
        f"{units.times(ratio)} ({units.times(low)} to {units.times(high)})"
        if low < high
        else units.times(ratio)
    )
    ours_words = f"ours: the first takes {spread} the time of the second"
    if claim.same:
        differs = high < 1 / (1 + SAME_BOUND) or low > 1 + SAME_BOUND
        alike = low >= 1 - SAME_BOUND and high <= 1 + SAME_BOUND
        kind = "contradicts" if differs else "agrees" if alike else "open"
    else:
        kind = "agrees" if low > 1 + SAME_BOUND else "contradicts" if high < 1 / (1 + SAME_BOUND) else "open"
    # Without intervals a small difference says nothing.
    if low == high and abs(ratio - 1) < 0.1:
        kind = "open"
    doubts = " (to be doubted)" if first.doubts or second.doubts else ""
    return Held(kind, f"{said}; {ours_words}{doubts}. {_verdict(kind)}")


def _fractions(claim: Claim, said: str, first: Ours, second: Ours) -> Held:
    """Accuracies: apart where their intervals are."""
    assert first.value is not None
    assert second.value is not None
    ends = [
        (o.low if o.low is not None else o.value, o.high if o.high is not None else o.value)
        for o in (first, second)
    ]
    apart = ends[0][0] > ends[1][1] or ends[1][0] > ends[0][1]  # type: ignore[operator]
    larger = first.value > second.value
    told = f"ours: {units.percent(first.value)} and {units.percent(second.value)}"
    if claim.same:
        kind = "contradicts" if apart else "agrees"
    else:
        kind = ("agrees" if larger else "contradicts") if apart else "open"
    return Held(kind, f"{said}; {told}. {_verdict(kind)}")


def _ratio(first: Ours, second: Ours) -> tuple[float, float, float]:
    """By their ends, as they were measured apart: the widest that both intervals allow."""
    assert first.value
    assert second.value
    low = (first.low or first.value) / (second.high or second.value)
    high = (first.high or first.value) / (second.low or second.value)
    return low, first.value / second.value, high


def _theirs(first: float | None, second: float | None) -> str:
    return f"their figures: {units.times(first / second)}" if first and second else ""


def _verdict(kind: str) -> str:
    return {
        "agrees": "Ours says the same.",
        "contradicts": "Ours contradicts it.",
        "open": "Ours is unclear.",
    }[kind]
