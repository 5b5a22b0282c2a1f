"""How far apart the two runs of a need are, case by case: by their speed-ups where a reference ran beside
both, else by their times (bench.views.diff)."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from bench.extras.reports.needs import Taken
from bench.run.kinds.comparison import RunFolder
from bench.views.diff import between
from bench.views.diff.records import Change
from bench.words import orders, units
from kernels.errors import InputError

BOUND = 0.05
WORDS = units.percent(BOUND, 0)
ALONE = "no case with a figure in it has one in a first run"


@dataclass(frozen=True)
class Repeated:
    """The cases that two runs have in common; why: where they cannot be compared."""

    name: str
    changes: tuple[Change, ...] = ()
    why: str = ""


def repeated(taken: Taken) -> list[Repeated]:
    """One for each second run: held against the first of its need, or, where the user named the runs, case by
    case against whichever have it. Of several that have a case the last named counts, as everywhere."""
    first, second = taken.runs
    told: set[str] = set()
    found = []
    for name, other in reversed(second.items()):
        if name in first:
            found.append(_held(other, [first[name]], set()))
        else:
            found.append(_held(other, [*reversed(first.values())], told))
    return found[::-1]


def _held(other: RunFolder, firsts: Sequence[RunFolder], told: set[str]) -> Repeated:
    """told: the cases that were held already, to which these come."""
    changes: list[Change] = []
    common = False
    for one in firsts:
        with contextlib.suppress(InputError):  # nothing in common: another may have
            for change in between.between(one.path, other.path, BOUND).changes:
                if change.ratio is None or change.pair.other:
                    continue
                common = True
                if change.pair.words not in told:
                    told.add(change.pair.words)
                    changes.append(change)
    return Repeated(other.path.name, tuple(changes), "" if common else ALONE)


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
    return orders.NOT_DECIDED if unsure else "no"


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
        ""
        if within(far)
        else f"; the furthest is {far.pair.words}, {orders.speed(_value(far))} in the second"
    )
    return f"Of the second run {' and '.join(parts)} of the first{furthest}."


def _value(change: Change) -> float:
    assert change.ratio is not None
    return change.ratio.value
