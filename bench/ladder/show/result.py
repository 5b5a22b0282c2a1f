"""What came of a ladder, in the few words of a list: its fastest right rung, beside the reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.ladder.records import Ladder
from bench.ladder.show.leading import leading
from bench.ladder.show.rows import rows
from bench.results import doubt
from bench.results.stats import SAME_BOUND
from bench.words import orders, units

READS = ("samples_ns", "rounds", "instances", "quantile", "load", "validity", "notes", "nbytes")


def words(ladder: Ladder, lines: Sequence[Any]) -> str:
    """ "02 tiled 1.30× faster than the reference", or its time where there was no reference; where it is not
    decided which is the fastest, that."""
    timed = [row for row in rows(ladder, lines) if row.time is not None and not row.case.is_reference]
    lead = leading(timed)
    if lead is None:
        return f"{orders.NOT_DECIDED} from one sample" if timed else ""
    best = lead.best
    if not lead.decided:
        return orders.undecided_between([row.case.label for row in (best, *lead.undecided)])
    if best.speedup is not None:
        told = orders.order(
            best.verdict, best.speedup, best.case.label, "the reference", SAME_BOUND, ends=False
        )
        if not orders.decided(best.verdict):
            return told
        return doubt.marked(f"{best.case.label} {told}", best.speedup_doubts)
    assert best.time is not None
    return f"{best.case.label} {doubt.marked(units.duration(best.time.value), best.doubts)}"
