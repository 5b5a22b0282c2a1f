"""Several runs side by side: each case of each run beside the same case of the first, their baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.results.stats import SAME_BOUND
from bench.views.diff.between import between
from bench.views.diff.records import Change, Named, Pair
from bench.views.diff.tables import said
from bench.views.tables.comparison_tables import seconds
from bench.views.tables.table import Column, Table
from bench.words import orders


@dataclass(frozen=True)
class Beside:
    """One case. pair: the case, with the first run as `a`; changes: of each other run, in their order (None:
    the run has nothing of it)."""

    pair: Pair
    changes: tuple[Change | None, ...]


@dataclass(frozen=True)
class Several:
    """kind: of the runs; base: the run that the others are held against; who: what a contender is called."""

    kind: str
    base: Named
    others: tuple[Named, ...]
    rows: tuple[Beside, ...]
    who: str = "backend"


def several(base: Path, others: Sequence[Path], bound: float = SAME_BOUND) -> Several:
    """Hold each of these runs against the first. bound: as in `between`. Raises InputError as that does."""
    diffs = [between(base, other, bound) for other in others]
    first: dict[str, Pair] = {}
    found: list[dict[str, Change]] = []
    for diff in diffs:
        for change in diff.changes:
            first.setdefault(change.pair.key, change.pair)
        found.append({change.pair.key: change for change in diff.changes if change.pair.b is not None})
    rows = tuple(Beside(pair, tuple(each.get(key) for each in found)) for key, pair in first.items())
    return Several(diffs[0].kind, diffs[0].a, tuple(diff.b for diff in diffs), rows, diffs[0].who)


def table(found: Several) -> Table[Beside]:
    """A row for each case: the first run's time, and what each other is beside it."""
    columns: list[Column[Beside]] = []
    if len({row.pair.model for row in found.rows}) > 1:
        columns.append(Column("model", lambda row: row.pair.model or None, left=True))
    columns += [
        Column("who", lambda row: row.pair.who, title=found.who, left=True),
        Column("batch", lambda row: row.pair.batch or None),
        Column("base_s", _base, seconds, title=f"{found.base.name} (baseline)", tip=found.base.words),
    ]
    columns += [_beside(place, other) for place, other in enumerate(found.others)]
    return Table(tuple(columns), found.rows, "Cases of all runs", key="several")


def change_at(row: Beside, column: str) -> Change | None:
    """What stands in a column of the table; None for a column of the baseline."""
    _, _, number = column.partition("run_")
    return row.changes[int(number) - 1] if number.isdigit() else None


def _base(row: Beside) -> float | None:
    side = row.pair.a
    return side.time.value * 1e-9 if side is not None and side.time is not None else None


def _beside(place: int, other: Named) -> Column[Beside]:
    """What a run is beside the baseline. place: of the run among the others."""

    def ratio(row: Beside) -> float | None:
        change = row.changes[place]
        return change.ratio.value if change is not None and change.ratio is not None else None

    def doubts(row: Beside) -> tuple[str, ...]:
        change = row.changes[place]
        return change.doubts if change is not None else ()

    return Column(
        f"run_{place + 1}",
        ratio,
        doubts=doubts,
        title=other.name,
        tip=f"{other.words}\nBeside the baseline",
        left=True,
        cell=lambda row: _told(row.changes[place]),
        style=lambda row: _style(row.changes[place]),
        holds=float,
    )


def _told(change: Change | None) -> str:
    if change is None:
        return ""
    if change.wrong:
        return "wrong"
    if change.pair.a is None:
        return "only here"
    return said(change) or orders.NOT_DECIDED


def _style(change: Change | None) -> str:
    if change is None:
        return "dim"
    return "bold red" if change.wrong else orders.STYLES[orders.role(change.verdict, change.doubts)]
