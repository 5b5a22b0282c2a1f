"""Which rung is the fastest, of those that were right and timed in the same rounds: said only where its
paired ratio to every other is decided, and where the medians that stand beside it say the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.ladder.show.rows import RungRow
from bench.results import stats
from bench.results.stats import SAME_BOUND, Comparison, Verdict
from bench.words import orders, units


@dataclass(frozen=True)
class Leading:
    """best: the rung of the least median; alike: those as fast within the bound; undecided: those that may
    be the faster, and why this is not decided, in short."""

    best: RungRow
    alike: tuple[RungRow, ...] = ()
    undecided: tuple[RungRow, ...] = ()
    why: str = ""

    @property
    def decided(self) -> bool:
        return not self.undecided

    @property
    def words(self) -> str:
        """ "03 tiled is the fastest", or that it is not decided between which."""
        if self.undecided:
            names = [row.case.label for row in (self.best, *self.undecided)]
            why = f" ({self.why})" if self.why else ""
            return f"the fastest is {orders.undecided_between(names)}{why}"
        if self.alike:
            few = orders.listed([row.case.label for row in self.alike])
            which = f"which {'is' if len(self.alike) == 1 else 'are'} as fast"
            within = units.percent(SAME_BOUND, 0)
            return f"{self.best.case.label} is the fastest but for {few}, {which} within {within}"
        return f"{self.best.case.label} is the fastest"


def leading(rows: Sequence[RungRow]) -> Leading | None:
    """Of the rungs that are right and have more than one sample; None where there is none."""
    timed = [row for row in rows if eligible(row)]
    if not timed:
        return None
    best, *others = sorted(timed, key=lambda row: row.time.value if row.time else 0.0)
    found = [(row, compared(best, row)) for row in others]
    undecided = [(row, it) for row, it in found if it.verdict not in (Verdict.FASTER, Verdict.SAME)]
    reasons = dict.fromkeys(orders.reason(it.undecided) for _, it in undecided)
    return Leading(
        best,
        tuple(row for row, it in found if it.verdict is Verdict.SAME),
        tuple(row for row, _ in undecided),
        next(iter(reasons)) if len(reasons) == 1 else "",
    )


def eligible(row: RungRow) -> bool:
    """Whether anything may be said of how fast a rung is: what is wrong or impossible is never ranked."""
    right = row.measurement.disposition == "ok" and not row.case.is_reference
    return right and row.beyond != "impossible" and row.time is not None and row.time.known


def compared(one: RungRow, other: RungRow) -> Comparison:
    """FASTER where `one` takes less time than `other`, which was timed in the same rounds."""
    return stats.compare(one.measurement, other.measurement)


def beside(one: RungRow, other: RungRow, ends: bool = False) -> str:
    """What is said of a rung beside another, behind "is" (bench.words.orders)."""
    found = compared(one, other)
    return orders.order(
        found.verdict, found.ratio.inverse, one.case.label, other.case.label, SAME_BOUND, ends=ends
    )
