"""The table of a report of goals that is of the other clock: images a second from host to host, ours beside
each reference, as it comes and tuned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.extras.reports.goals import judged
from bench.extras.reports.goals.judged import Measured
from bench.extras.reports.goals.presets import Goals
from bench.extras.reports.goals.tables import LENIENT, STRICT
from bench.results.rows import EndToEndRow, Row, title
from bench.show.table import Column, Table
from bench.words import orders, units

NOTE = (
    "Host images to host answers by the host's clock, in turns; a reference is sent the same bytes from the "
    "same buffers. A tuned one runs in the configuration that was found fastest for its forward pass."
)


@dataclass(frozen=True)
class Beside:
    """A case of ours with its references: of each the row of ours held against it, and its own, by name."""

    own: Row
    flow: EndToEndRow
    others: dict[str, tuple[EndToEndRow, EndToEndRow]]


def tables(goals: Goals, run: Measured) -> list[Table[Beside]]:
    """One, or none where nothing was measured from end to end."""
    found = _rows(goals, run)
    if not found:
        return []
    reference = f"ort-{goals.device}"
    columns: tuple[Column[Beside], ...] = (
        Column("model", lambda line: line.own.title, left=True),
        Column("precision", lambda line: line.own.case.precision, left=True),
        Column("batch", lambda line: line.own.case.batch),
        Column(
            "ours_images_per_s",
            lambda line: line.flow.images_per_s,
            units.si,
            lambda line: line.flow.doubts,
            "ours, images/s",
        ),
        Column("in_flight", lambda line: line.flow.record.lanes, cell=_lanes, title="batches in flight"),
        *_of(reference, "default"),
        *_of(reference + STRICT, "tuned within the bound"),
        *_of(reference + LENIENT, "tuned"),
    )
    return [Table(columns, found, "From end to end", (NOTE,), key="end-to-end")]


def _rows(goals: Goals, run: Measured) -> list[Beside]:
    """A line for each case of ours that was measured so, the latest of each."""
    found: dict[tuple[str, str, int], Beside] = {}
    engine, reference = f"engine-{goals.device}", f"ort-{goals.device}"
    for measurements in run.by_need.values():
        for made in measurements:
            case = made.case
            if case.backend != engine or made.end_to_end is None:
                continue
            at = title(case.model), engine, case.precision, case.batch
            own = judged.row_of(measurements, *at)
            if own is None or (flow := own.end_to_end) is None:
                continue
            others = {}
            for name in (reference, reference + STRICT, reference + LENIENT):
                row = judged.row_of(measurements, *at, name)
                theirs = judged.row_of(measurements, at[0], name, case.precision, case.batch)
                if row is None or theirs is None or row.end_to_end is None or theirs.end_to_end is None:
                    continue
                others[name] = row.end_to_end, theirs.end_to_end
            found[title(case.model), case.precision, case.batch] = Beside(own, flow, others)
    return list(found.values())


def _of(name: str, what: str) -> tuple[Column[Beside], ...]:
    """A reference's rate, and ours beside it."""

    def get(of: Callable[[EndToEndRow, EndToEndRow], Any], nothing: Any = None) -> Callable[[Beside], Any]:
        return lambda line: of(*line.others[name]) if name in line.others else nothing

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


def _lanes(line: Beside) -> str:
    """Ours, and a reference's where it had room for another number."""
    ours = line.flow.record.lanes
    other = [
        f"{name} {its.record.lanes}" for name, (_, its) in line.others.items() if its.record.lanes != ours
    ]
    return f"{ours} ({', '.join(other)})" if other else str(ours)


def _ratio(ours: EndToEndRow, theirs: EndToEndRow) -> str:
    return orders.cell(ours.verdict, ours.speedup, ours.speedup_low, ours.speedup_high)
