"""What came of a comparison, in the few words of a list: the speed-ups that its tables show, as spans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.results import doubt
from bench.results.records import Run, stem
from bench.results.rows import Row, by_model, label, rows
from bench.words import units

READS = ("reference", "samples_ns", "rounds", "instances", "quantile", "load", "validity")


def words(run: Run, lines: Sequence[Any]) -> str:
    """ "engine-cpu 0.45–1.3× ort-cpu"; with several models each after its name. A "!" is behind a span of
    which a figure is doubted."""
    found = by_model(rows(lines))
    told = {model: text for model, items in found.items() if (text := ", ".join(_spans(items)))}
    if len(found) == 1:
        return next(iter(told.values()), "")
    return "; ".join(f"{stem(model)}: {text}" for model, text in told.items())


def _spans(items: Sequence[Row]) -> list[str]:
    """Of each contender over the batch sizes."""
    compared: dict[tuple[str, str], list[Row]] = {}
    for row in items:
        if row.speedup is not None and row.against is not None:
            who = label(row.case.backend, row.case.precision)
            compared.setdefault((who, row.against.case.backend), []).append(row)
    made = []
    for (who, reference), its in compared.items():
        low, high = (units.digits(pick(row.speedup or 0.0 for row in its)) for pick in (min, max))
        span = low if low == high else f"{low}–{high}"
        doubts = [text for row in its for text in row.speedup_doubts]
        made.append(doubt.marked(f"{who} {span}× {reference}", doubts))
    return made
