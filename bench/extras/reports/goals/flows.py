"""The table of a report of goals that is of the other clock: images a second from host to host, ours beside
each reference, as it comes and tuned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.extras.reports.goals import tables
from bench.extras.reports.goals.judged import Measured
from bench.extras.reports.goals.presets import Goals
from bench.extras.reports.goals.tables import Beside
from bench.results.rows import EndToEndRow, derive
from bench.show.table import Column, Table
from bench.words import orders, units

NOTE = (
    "Host images to host answers by the host's clock, in turns; a reference is sent the same bytes from the "
    "same buffers. A tuned one runs in the configuration that was found fastest for its forward pass."
)


def table(goals: Goals, run: Measured) -> list[Table[Beside]]:
    """One, or none where nothing was measured from end to end."""
    found = [line for line in tables.rows(goals, run, flowing=True) if line.own.end_to_end is not None]
    columns = tables.beside(
        goals,
        _of,
        Column(
            "ours_images_per_s",
            lambda line: _ours(line).images_per_s,
            units.si,
            lambda line: _ours(line).doubts,
            "ours, images/s",
        ),
        Column("in_flight", lambda line: _ours(line).record.lanes, cell=_lanes, title="batches in flight"),
    )
    return [Table(columns, found, "From end to end", (NOTE,), key="end-to-end")] if found else []


def _ours(line: Beside) -> EndToEndRow:
    assert line.own.end_to_end is not None
    return line.own.end_to_end


def _pair(line: Beside, name: str) -> tuple[EndToEndRow, EndToEndRow] | None:
    """Ours held against a reference, and its own; None where there are not both."""
    row = line.others.get(name)
    if row is None or row.against is None:
        return None
    ours, theirs = row.end_to_end, derive(row.against, None).end_to_end
    return None if ours is None or theirs is None else (ours, theirs)


def _of(name: str, what: str) -> tuple[Column[Beside], ...]:
    """A reference's rate, and ours beside it."""

    def get(of: Callable[[EndToEndRow, EndToEndRow], Any], nothing: Any = None) -> Callable[[Beside], Any]:
        return lambda line: nothing if (pair := _pair(line, name)) is None else of(*pair)

    return (
        Column(
            f"{what}_images_per_s",
            get(lambda ours, theirs: theirs.images_per_s),
            units.si,
            get(lambda ours, theirs: theirs.doubts, ()),
            f"{what}, images/s",
        ),
        Column(
            f"{what}_speedup",
            get(lambda ours, theirs: ours.speedup),
            cell=get(_ratio, ""),
            doubts=get(lambda ours, theirs: ours.speedup_doubts, ()),
            title=f"speed-up over {what}",
        ),
    )


def _ratio(ours: EndToEndRow, theirs: EndToEndRow) -> str:
    return orders.cell(ours.verdict, ours.speedup, ours.speedup_low, ours.speedup_high)


def _lanes(line: Beside) -> str:
    """Ours, and a reference's where it had room for another number."""
    ours = _ours(line).record.lanes
    pairs = {name: pair for name in line.others if (pair := _pair(line, name)) is not None}
    other = [f"{name} {its.record.lanes}" for name, (_, its) in pairs.items() if its.record.lanes != ours]
    return f"{ours} ({', '.join(other)})" if other else str(ours)
