"""What a report says of two of its figures, held against ours: the same, the other way, or open."""

from __future__ import annotations

from dataclasses import dataclass

from bench.extras.reports.courses.presets import Claim, Course
from bench.extras.reports.courses.tables import shown
from bench.extras.reports.courses.values import ours
from bench.extras.reports.needs import LACKS_GPU, NEEDS_GPU, Taken
from bench.results import doubt
from bench.results.stats import SAME_BOUND, Interval
from bench.words import units

FAR = 2.0  # times apart: what unrest by some percent does not explain


@dataclass(frozen=True)
class Held:
    """kind: "agrees", "contradicts", or "open" where ours does not decide it."""

    kind: str
    sentence: str


_ENDS = {
    "agrees": "Ours says the same.",
    "contradicts": "Ours contradicts it.",
    "open": "Ours does not decide it: ",
}


def held(course: Course, claim: Claim, taken: Taken) -> Held:
    """A claim against what was measured here. Nothing is claimed from a figure that is to be doubted, nor
    from a time that has no interval: one sample decides nothing."""
    lines = course.line(claim.first), course.line(claim.second)
    said, known, why = _said(claim, lines[0].published, lines[1].published), [], ""
    unsteady: list[tuple[str, str]] = []
    both = [(line, ours(course, line, taken)) for line in lines]
    # What is not there first: that another was taken once matters less.
    both.sort(key=lambda it: (it[1].why != NEEDS_GPU, it[1].value is not None))
    for line, found in both:
        if found.value is None and found.why == NEEDS_GPU:
            why = LACKS_GPU
        elif found.value is None:
            why = f"there is no “{line.what}”: {found.why}"
        elif found.doubts:
            why = f"“{line.what}” is to be doubted: {doubt.in_short(found.doubts)}"
        elif found.low is None or found.high is None:
            both_shown = " and ".join(shown(ours(course, one, taken), one) for one in lines)
            why = f"“{line.what}” has no interval, as it was taken once (here {both_shown})"
        else:
            known.append(Interval(found.value, found.low, found.high))
            unsteady += [(f"“{line.what}” is unsteady, as {text}", text) for text in found.unsteady]
            continue
        return Held("open", f"{said}. {_ENDS['open']}{why}.")
    first, second = known
    # The two were measured at different times, and what was on the machine then may be all that parts them;
    # not what moved a median by some percent, if they are far apart.
    wide = first.relative > doubt.STEADY or second.relative > doubt.STEADY
    if unsteady and wide:
        apart = max(first.low / second.high, (second.low or second.value) / first.high)
        if apart < FAR or not all(text.startswith(doubt.UNSTEADY) for _, text in unsteady):
            return Held("open", f"{said}. {_ENDS['open']}{unsteady[0][0]}.")
    if lines[0].unit == "fraction":
        kind, told = _fractions(claim, first, second)
    else:
        published = lines[0].published, lines[1].published
        theirs = published[0] / published[1] if published[0] and published[1] else None
        kind, told = _times(claim, first, second, theirs)
    if kind == "open":
        return Held(kind, f"{said}. {_ENDS[kind]}{told}.")
    return Held(kind, f"{said}; ours: {told}. {_ENDS[kind]}")


def _said(claim: Claim, first: float | None, second: float | None) -> str:
    """In their words where these are kept; else it is their figures that say it, and not they."""
    theirs = f" ({units.times(first / second)})" if first and second else ""
    if claim.quote:
        return (
            f"They say that {claim.says}, in their words “{claim.quote}”; their figures{theirs or ': none'}"
        )
    return f"By their figures{theirs} {claim.says}"


def _kind(agrees: bool) -> str:
    return "agrees" if agrees else "contradicts"


def _times(claim: Claim, first: Interval, second: Interval, theirs: float | None) -> tuple[str, str]:
    """By their ends, as they were measured apart: the widest ratio that both intervals allow."""
    low, high = first.low / second.high, first.high / (second.low or second.value)
    ratio = f"{units.times(first.value / second.value)} ({units.times(low)} to {units.times(high)})"
    told = f"“{claim.first}” takes {ratio} the time of “{claim.second}”"
    if high < 1 / (1 + SAME_BOUND) or low > 1 + SAME_BOUND:
        return _kind(not claim.same and low > 1), told
    if low >= 1 - SAME_BOUND and high <= 1 + SAME_BOUND:
        if not claim.same and theirs and theirs <= 1 + SAME_BOUND:  # theirs are as near to each other as ours
            return "open", f"both theirs and ours are the same within ±{SAME_BOUND:.0%}"
        return _kind(claim.same), f"{told}, the same within ±{SAME_BOUND:.0%}"
    return "open", "the interval of the ratio reaches across the bound of ±2 %"


def _fractions(claim: Claim, first: Interval, second: Interval) -> tuple[str, str]:
    """Accuracies: apart where their intervals are; the same only where they are equal."""
    told = f"{units.percent(first.value)} and {units.percent(second.value)}"
    if first.low > second.high or second.low > first.high:
        return _kind(not claim.same and first.value > second.value), told
    if claim.same and first.value == second.value:
        return "agrees", told
    return "open", "the intervals of the two accuracies overlap"
