"""The tables of a report of ladders: one ladder's rungs, rungs over batch sizes, published times."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from bench.results import doubt, stats
from bench.results.ladder_records import Ladder
from bench.results.ladder_rows import RungRow
from bench.results.rows import title
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
            f"Ratio: {names[0]}'s time divided by {names[1]}'s. One was measured after the other, and the "
            "machine may have changed in between. The reference does the same in both: its ratio shows how "
            "much of a ratio may be the machine's doing."
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
    busy = any(stats.overloaded(row.measurement.load) for row in (first, second))
    if busy or not (one.known and other.known):
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


FILE = Path(__file__).with_name("course_times.toml")


class Published(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One time of a report; see the file."""

    what: str
    seconds: float
    device: str
    rung: str


class CourseTimes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A report's times, and the node of ours that they are set beside."""

    source: str
    machine: str
    model: str
    batch: int
    times: tuple[Published, ...]


class Beside(msgspec.Struct, frozen=True):
    """A published time and what stands beside it: our time and its rung, in words ("": nothing does)."""

    what: str
    published: str
    ours: str
    rung: str


def load(path: Path = FILE) -> CourseTimes:
    """The times that come with the program. Raises msgspec.ValidationError where the file is not as above."""
    return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), CourseTimes)


def beside(
    course: CourseTimes, ladders: Sequence[tuple[Ladder, Sequence[RungRow]]]
) -> tuple[list[Ladder], list[Beside]]:
    """The ladders on the report's model at its batch size, and each published time beside theirs; nothing
    where there is no such ladder."""
    ours = [
        (ladder, rows)
        for ladder, rows in ladders
        if ladder.job.model and title(ladder.job.model) == course.model and ladder.job.batch == course.batch
    ]
    made: list[Beside] = []
    for published in course.times if ours else ():
        row = next(
            (like for ladder, rows in ours if (like := _like(published, ladder, rows)) is not None), None
        )
        made.append(
            Beside(
                published.what,
                units.si(published.seconds, "s", 4),
                units.duration(row.time.value) if row is not None and row.time else "",
                row.case.label if row is not None else "",
            )
        )
    return [ladder for ladder, _ in ours], made


def _like(published: Published, ladder: Ladder, rows: Sequence[RungRow]) -> RungRow | None:
    """The rung of a ladder that does what was published."""
    if ladder.job.device != published.device:
        return None
    timed = [
        row
        for row in rows
        if row.time
        and row.case.precision == "fp32"
        and not (row.case.is_reference or row.case.yardstick or row.case.user)
    ]
    if published.rung == "fastest":
        return min(timed, key=lambda row: row.time.value if row.time else 0.0, default=None)
    return next((row for row in timed if row.name == published.rung), None)
