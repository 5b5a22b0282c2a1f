"""The tables of a report of ladders: one ladder's rungs, rungs over batch sizes, published times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bench.results import doubt
from bench.results.ladder_rows import RungRow
from bench.views.reports.course_times import Beside
from bench.views.tables import ladder_tables
from bench.views.tables.table import Column, Table, pick, to_markdown
from bench.words import orders, units

_KNOWN = {column.name: column for column in ladder_tables.COLUMNS}


def _label(row: RungRow) -> str:
    label = ladder_tables.label(row)
    return f"**{label}**" if row.case.is_reference else label


def _time(row: RungRow) -> str:
    low, high = (_KNOWN[name].words(row) for name in ("low_s", "high_s"))
    return _KNOWN["median_s"].shown(row) + (f" ({low} to {high})" if low and high else "")


def _rate(row: RungRow) -> str:
    return _KNOWN["flops_per_s"].shown(row) or _KNOWN["bytes_per_s"].shown(row)


def _nbytes(name: str) -> Column[RungRow]:
    """Where there are any."""
    return replace(_KNOWN[name], cell=lambda row: _KNOWN[name].words(row) if _KNOWN[name].of(row) else "")


_COLUMNS = pick(
    ladder_tables.COLUMNS,
    replace(ladder_tables.LABEL, cell=_label),
    "precision",
    ladder_tables.RESULT,
    Column("time", cell=_time, title="time (95 % interval)"),
    Column("rate", cell=_rate),
    "share_of_limit",
    ladder_tables.ERROR,
    "speedup",
    "gain",
    "registers",
    *map(_nbytes, ("shared_nbytes", "stack_nbytes", "spill_nbytes")),
    "occupancy",
    speedup="vs reference",
    occupancy="occupancy",
)


def of_rungs(found: Sequence[RungRow]) -> Table[RungRow]:
    """What people read of one ladder."""
    several = len({row.case.precision for row in found}) > 1
    return Table([c for c in _COLUMNS if several or c.name != "precision"], found)


def table(found: Sequence[RungRow]) -> str:
    """The same in Markdown; a column that nothing is known for is left out."""
    return to_markdown(of_rungs(found))


def overview(ladders: Sequence[tuple[int, Sequence[RungRow]]]) -> Table[RungRow]:
    """Rungs × batch sizes of one node, given (batch size, rows) each: the time, and how it stands to the
    reference in the same precision."""
    first: dict[_Key, RungRow] = {}
    for _, found in ladders:
        for row in found:
            first.setdefault(_key(row), row)
    # Stable: references in their own order.
    rows = [first[key] for key in sorted(first, key=lambda key: key[:2])]
    several = len({row.case.precision for row in rows}) > 1
    columns = pick(ladder_tables.COLUMNS, ladder_tables.LABEL, *(["precision"] if several else []))
    batches = (_at(batch, {_key(row): row for row in found}) for batch, found in ladders)
    return Table([*columns, *batches], rows)


def over_models(ladders: Sequence[tuple[str, Sequence[RungRow]]], title: str = "") -> Table[RungRow]:
    """Rungs × models of one node each, given (model, rows): the time, and how it stands to the reference of
    its own run; behind two, the first's time over the second's."""
    first: dict[_Key, RungRow] = {}
    for _, found in ladders:
        for row in found:
            first.setdefault(_key(row), row)
    rows = [first[key] for key in sorted(first, key=lambda key: key[:2])]
    held = {model: {_key(row): row for row in found} for model, found in ladders}
    columns = [_on(model, of) for model, of in held.items()]
    notes = ["In brackets: the reference's time over the rung's, in the same run."]
    if len(held) == 2:
        one, other = held.values()
        names = list(held)
        columns.append(
            Column("ratio", cell=lambda row: _over(one.get(_key(row)), other.get(_key(row))), title="ratio")
        )
        notes.append(
            f"Ratio: {names[0]}'s time over {names[1]}'s. The two were measured one after the other: hold "
            "it against the references' own ratio, which the machine's state alone explains."
        )
    return Table(
        [*pick(ladder_tables.COLUMNS, ladder_tables.LABEL), *columns], rows, title, tuple(notes), "models"
    )


def _on(model: str, held: Mapping[_Key, RungRow]) -> Column[RungRow]:
    """What rungs came to on a model."""
    return Column(f"model_{model}", cell=lambda row: _came_to(held.get(_key(row))), title=model)


def _over(first: RungRow | None, second: RungRow | None) -> str:
    """A time over another, with the widest interval that both allow."""
    if first is None or second is None or first.time is None or second.time is None:
        return ""
    one, other = first.time, second.time
    if not (one.known and other.known):
        return orders.NOT_DECIDED
    low, high = one.low / other.high, one.high / other.low
    if low <= 1 <= high:
        return doubt.marked(orders.NOT_DECIDED, (*first.doubts, *second.doubts))
    longer = low > 1
    value, *ends = (
        units.times(ratio if longer else 1 / ratio)
        for ratio in (one.value / other.value, *((low, high) if longer else (high, low)))
    )
    text = f"{value} {'longer' if longer else 'shorter'} ({ends[0]} to {ends[1]})"
    return doubt.marked(text, (*first.doubts, *second.doubts))


_Key = tuple[bool, int, str, str]


def _key(row: RungRow) -> _Key:
    return row.case.is_reference, row.case.number, row.case.rung, row.case.precision


def _at(batch: int, held: Mapping[_Key, RungRow]) -> Column[RungRow]:
    """What rungs came to at a batch size."""
    return Column(f"batch_{batch}", cell=lambda row: _came_to(held.get(_key(row))), title=f"batch {batch:,}")


def _came_to(row: RungRow | None) -> str:
    if row is None:
        return ""
    if row.time is None:
        return ladder_tables.result(row)
    against = f" ({_KNOWN['speedup'].shown(row)})" if row.speedup else ""
    return _KNOWN["median_s"].shown(row) + against


_COURSE: tuple[Column[Beside], ...] = (
    Column("what", title="published step", left=True),
    Column("published", title="published, their machine"),
    Column("ours", title="ours, this machine"),
    Column("rung", title="our rung", left=True),
)


def course(found: Sequence[Beside]) -> Table[Beside]:
    """Published times and ours beside them."""
    return Table(_COURSE, found)
