"""How far apart the two runs of a need are, case by case: by their speed-ups where a reference ran beside
both, else by their times (bench.diff)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.diff import between
from bench.diff.records import Change
from bench.goals.needs import Taken
from bench.words import units
from kernels.errors import InputError

BOUND = 0.05
WORDS = units.percent(BOUND, 0)


@dataclass(frozen=True)
class Repeated:
    """The cases that two runs have in common; why: where they cannot be compared."""

    name: str
    changes: tuple[Change, ...] = ()
    why: str = ""


def repeated(taken: Taken) -> list[Repeated]:
    """One for each pair of runs: of a need, or in the order in which the user named them."""
    first, second = taken.runs
    if set(second) <= set(first):
        pairs = [(name, first[name], second[name]) for name in first if name in second]
    else:
        pairs = [
            (one.path.name, one, other) for one, other in zip(first.values(), second.values(), strict=False)
        ]
    found = []
    for name, one, other in pairs:
        try:
            changes = between.between(one.path, other.path, BOUND).changes
            found.append(Repeated(name, tuple(change for change in changes if change.ratio is not None)))
        except InputError as error:
            found.append(Repeated(name, why=str(error)))
    return found


def within(change: Change) -> bool:
    """Whether the second run gives the figure of the first again."""
    assert change.ratio is not None
    return 1 / (1 + BOUND) <= change.ratio.value <= 1 + BOUND


def said(change: Change) -> str:
    """ "yes", "no", or that the difference is within what is known of it."""
    if within(change):
        return "yes"
    ratio = change.ratio
    assert ratio is not None
    unsure = ratio.known and ratio.low <= 1 + BOUND and ratio.high >= 1 / (1 + BOUND)
    return "unclear" if unsure else "no"


def sentence(found: Sequence[Repeated]) -> str:
    """How many of all cases are within the bound, and the furthest."""
    changes = [change for each in found for change in each.changes]
    if not changes:
        return "There is no second run."
    parts = []
    for by, what in (("speed-up", "speed-ups"), ("time", "times of references")):
        of = [change for change in changes if change.by == by]
        if of:
            near = sum(map(within, of))
            parts.append(f"{near:,} of {len(of):,} {what} {'is' if near == 1 else 'are'} within {WORDS}")
    far = max(changes, key=lambda change: max(_value(change), 1 / _value(change)))
    furthest = (
        "" if within(far) else f"; the furthest is {far.pair.words}, {units.times(_value(far))} as fast"
    )
    return f"Of the second run {' and '.join(parts)} of the first{furthest}."


def _value(change: Change) -> float:
    assert change.ratio is not None
    return change.ratio.value
