"""The Markdown tables of a report of ladders: one ladder's rungs, rungs over batch sizes, published times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.ladder.show import tables as ladder_tables
from bench.ladder.show.course_times import Beside
from bench.ladder.show.rows import RungRow
from bench.results import doubt
from bench.show import tables
from bench.words import units


def table(found: Sequence[RungRow]) -> str:
    """One ladder as a Markdown table; a column that nothing is known for is left out."""

    def column(value: object) -> list[str]:
        assert callable(value)
        return [value(row) or "" for row in found]

    precisions = {row.case.precision for row in found}
    facts = [row.measurement.compiled for row in found]
    columns: list[tuple[str, list[str], bool]] = [
        ("rung", column(lambda r: f"**{ladder_tables.label(r)}**" if r.case.is_reference else
                        ladder_tables.label(r)), True),
        ("in", column(lambda r: r.case.precision) if len(precisions) > 1 else [], True),
        ("result", column(ladder_tables.result), True),
        ("time (95 % interval)", column(_time), False),
        ("rate", column(lambda r: doubt.marked(_rate(r), r.doubts)), False),
        ("of limit", column(lambda r: doubt.marked(units.percent(r.limit, 1) if r.limit else "", r.doubts)),
         False),
        ("error", column(_error), False),
        ("vs reference", column(_speedup), False),
        ("gain", column(_gain), False),
        ("regs", [f"{f['registers']:.0f}" if "registers" in f else "" for f in facts], False),
        ("shared", [_nbytes(f, "shared_nbytes") for f in facts], False),
        ("stack", [_nbytes(f, "stack_nbytes") for f in facts], False),
        ("spills", [_nbytes(f, "spill_nbytes") for f in facts], False),
        ("occupancy", [units.percent(f["occupancy"], 0) if "occupancy" in f else "" for f in facts], False),
    ]  # fmt: skip
    return _pipes(columns)


def overview(ladders: Sequence[tuple[int, Sequence[RungRow]]]) -> str:
    """Rungs × batch sizes of one node, given (batch size, rows) each: the time, and how it stands to the
    reference in the same precision."""
    order: dict[tuple[bool, int, str, str], None] = {}
    for _, found in ladders:
        for row in found:
            case = row.case
            order.setdefault((case.is_reference, case.number, case.rung, case.precision))
    keys = sorted(order, key=lambda key: key[:2])  # stable: references in their own order
    columns: list[tuple[str, list[str], bool]] = [("rung", [], True), ("in", [], True)]
    for key in keys:
        shown = next(r for _, found in ladders for r in found if _key(r) == key)
        columns[0][1].append(ladder_tables.label(shown))
        columns[1][1].append(shown.case.precision)
    if len({key[3] for key in keys}) == 1:
        columns.pop()
    for batch, found in ladders:
        held = {_key(row): row for row in found}
        cells = [_beside_reference(held.get(key)) for key in keys]
        columns.append((f"batch {batch:,}", cells, False))
    return _pipes(columns)


def _key(row: RungRow) -> tuple[bool, int, str, str]:
    return row.case.is_reference, row.case.number, row.case.rung, row.case.precision


def _beside_reference(row: RungRow | None) -> str:
    if row is None:
        return ""
    if row.time is None:
        return ladder_tables.result(row)
    against = f" ({_speedup(row)})" if row.speedup else ""
    return doubt.marked(units.duration(row.time.value), row.doubts) + against


def course(found: Sequence[Beside]) -> str:
    """Published times and ours beside them."""
    return _pipes(
        [
            ("published step", [row.what for row in found], True),
            ("published, their machine", [row.published for row in found], False),
            ("ours, this machine", [row.ours for row in found], False),
            ("our rung", [row.rung for row in found], True),
        ]
    )


def _time(row: RungRow) -> str:
    if row.time is None:
        return ""
    value = doubt.marked(units.duration(row.time.value), row.doubts)
    if not row.time.known:
        return value
    low, high = (units.duration(bound) for bound in (row.time.low, row.time.high))
    return f"{value} ({low} to {high})"


def _rate(row: RungRow) -> str:
    if row.flops_per_s:
        return units.si(row.flops_per_s, "FLOP/s")
    return units.si(row.bytes_per_s, "B/s") if row.bytes_per_s else ""


def _speedup(row: RungRow) -> str:
    return doubt.marked(units.times(row.speedup.value), row.speedup_doubts) if row.speedup else ""


def _gain(row: RungRow) -> str:
    if row.gain is None:
        return ""
    return doubt.marked(units.times(row.gain.value) + ("\\*" if row.beside else ""), row.gain_doubts)


def _error(row: RungRow) -> str:
    error = row.measurement.error
    return tables.exponent(error.rel_l2) if error and row.measurement.disposition == "ok" else ""


def _nbytes(facts: Mapping[str, float], name: str) -> str:
    return units.nbytes(facts[name]) if facts.get(name) else ""


def _pipes(columns: Sequence[tuple[str, list[str], bool]]) -> str:
    """(header, cells, whether they are words) a column; columns without a filled cell are left out."""
    kept = [column for column in columns if any(column[1])]
    lines = [[name for name, _, _ in kept], ["---" if words else "---:" for _, _, words in kept]]
    lines += [list(line) for line in zip(*(cells for _, cells, _ in kept), strict=True)]
    return tables.pipes(lines)
