"""A figure of ours, out of what was measured; or why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.results import doubt, stats
from bench.results.records import Case, Measurement, TimedResult, compared_in, stem
from bench.results.rows import COMPLETED, Row, derive
from bench.words import orders


@dataclass(frozen=True)
class Figure:
    """value: in base units (None: `why` says why there is none), with the ends of its 95 % interval (None:
    not known) and what speaks against it. unsteady: what speaks against holding it against what was measured
    at another time; failed: whether it is a failure of ours that there is none; rung: which rung it is of;
    few: of how many images, where what it stands beside is of more."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    doubts: tuple[str, ...] = ()
    why: str = ""
    failed: bool = False
    rung: str = ""
    few: int = 0
    unsteady: tuple[str, ...] = ()


def time(
    ns: float,
    low: float | None,
    high: float | None,
    doubts: tuple[str, ...] = (),
    rung: str = "",
    of: TimedResult[Any] | None = None,
) -> Figure:
    """A time with its interval, in nanoseconds. of: of what it is the time."""
    low, high = (None if end is None else end * 1e-9 for end in (low, high))
    busy = orders.reason(stats.overloaded(of.load)) if of is not None else ""
    unsteady = (*([busy] if busy else ()), *doubt.unsteady(of))
    return Figure(ns * 1e-9, low, high, doubts, rung=rung, unsteady=unsteady)


def find(
    measurements: Sequence[Measurement], model: str, backend: str, precision: str, batch: int
) -> Measurement | None:
    """The last of these cases; None where there is none."""

    def is_it(case: Case) -> bool:
        found = (stem(case.model), case.backend, case.precision, case.batch)
        return found == (model, backend, precision, batch)

    return next((m for m in reversed(measurements) if is_it(m.case)), None)


def row_of(
    measurements: Sequence[Measurement],
    model: str,
    backend: str,
    precision: str,
    batch: int,
    against: str = "",
    than: str = "",
    rival: str = "",
) -> Row | None:
    """A case beside another backend at the same batch size, in its own precision; fp32-tc, which no reference
    has, stands for fp32. than, rival: the precision and the model of the other, which may then be the same
    backend. None where it was not measured."""
    own = find(measurements, model, backend, precision, batch)
    if own is None:
        return None
    theirs = rival or model
    other = find(measurements, theirs, against, than or precision, batch) if against else None
    if against and not than and (other is None or other.disposition == "unsupported"):
        other = find(measurements, theirs, against, compared_in(precision), batch) or other
    timed = other is not None and other.disposition in COMPLETED and other.samples_ns
    return derive(own, other if timed else None)
