"""What came of a ladder, in the few words of a list: its fastest right rung, beside the reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.ladder.records import Ladder
from bench.ladder.show.rows import rows
from bench.results import doubt
from bench.words import units

READS = ("samples_ns", "rounds", "instances", "quantile", "load", "validity", "notes", "nbytes")


def words(ladder: Ladder, lines: Sequence[Any]) -> str:
    """ "tiled 1.30× the reference", or its time where there was no reference."""
    timed = [row for row in rows(ladder, lines) if row.time is not None and not row.case.is_reference]
    if not timed:
        return ""
    best = min(timed, key=lambda row: row.time.value if row.time is not None else 0.0)
    if best.speedup is not None:
        told = f"{best.name} {units.times(best.speedup.value)} the reference"
        return doubt.marked(told, best.speedup_doubts)
    assert best.time is not None
    return f"{best.name} {doubt.marked(units.duration(best.time.value), best.doubts)}"
