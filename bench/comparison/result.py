"""What came of a comparison, in the few words of a list: the speed-ups that its tables show, as spans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.results import doubt
from bench.results.records import Run, stem
from bench.results.rows import Row, by_model, label, rows
from bench.words import orders

READS = ("reference", "samples_ns", "rounds", "instances", "quantile", "load", "validity")


def words(run: Run, lines: Sequence[Any]) -> str:
    """ "engine-cpu 1.30× to 2.40× faster than ort-cpu"; with several models each after its name. A "!" is
    behind a span of which a figure is doubted; what is not decided is told as that."""
    found = by_model(rows(lines))
    told = {model: text for model, items in found.items() if (text := ", ".join(_spans(items)))}
    if len(found) == 1:
        return next(iter(told.values()), "")
    return "; ".join(f"{stem(model)}: {text}" for model, text in told.items())


def _spans(items: Sequence[Row]) -> list[str]:
    """Of each contender over the batch sizes, a span for each verdict."""
    compared: dict[tuple[str, str], list[Row]] = {}
    for row in items:
        if row.speedup is not None and row.against is not None:
            who = label(row.case.backend, row.case.precision)
            compared.setdefault((who, row.against.case.backend), []).append(row)
    made = []
    for (who, reference), its in compared.items():
        parts = []
        for verdict in orders.WORDS:
            if alike := [row for row in its if row.verdict == verdict]:
                decided = orders.decided(verdict)
                doubts = [text for row in alike for text in row.speedup_doubts if decided]
                some = f" in {len(alike)} of {len(its)}" if len(alike) < len(its) else ""
                told = orders.compared_with(verdict, [row.speedup for row in alike], reference)
                parts.append(doubt.marked(told + some, doubts))
        made.append(f"{who} {', '.join(parts)}")
    return made
