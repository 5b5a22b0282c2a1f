"""A ladder that was compiled and not run as a table for people, and as CSV, JSON and Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bench.ladder.measure.compiled import ARCHITECTURE
from bench.ladder.records import LadderJob, RungMeasurement
from bench.ladder.show import tables as ladder_tables
from bench.ladder.show.rows import RungRow
from bench.show import tables
from bench.words import units

if TYPE_CHECKING:
    from rich.console import RenderableType

_FROM_LADDER = (
    ("number", "rung", "whose", "precision", "side"),
    ("disposition", "registers", "shared_nbytes", "stack_nbytes", "spill_nbytes", "threads", "occupancy"),
    ("idea", "reason"),
)
_FACTS = ("grid", "block", "kernel")


def _columns() -> tuple[ladder_tables.Column, ...]:
    """The ladder's columns that are known without a run, and what was compiled for what."""
    known = {column[0]: column for column in ladder_tables.COLUMNS}
    first, middle, last = (tuple(known[name] for name in names) for names in _FROM_LADDER)
    return (*first, _fact(ARCHITECTURE), *middle, *map(_fact, _FACTS), *last)


def _fact(name: str) -> ladder_tables.Column:
    return name, lambda row: row.measurement.facts.get(name), str


def records(found: Sequence[RungMeasurement]) -> list[dict[str, Any]]:
    """One dictionary a rung and architecture, in base units, None for what is not known."""
    columns = _columns()
    return [{name: value(RungRow(m)) for name, value, _ in columns} for m in found]


def to_csv(found: Sequence[RungMeasurement]) -> str:
    return tables.to_csv(records(found), [name for name, _, _ in _columns()])


def to_json(job: LadderJob, found: Sequence[RungMeasurement]) -> str:
    shown = {"title": job.title, "device": job.device, "precision": job.precision or None}
    return tables.to_json(shown | {"rungs": records(found)})


def to_markdown(found: Sequence[RungMeasurement]) -> str:
    """A pipe table of every column that has a value somewhere."""
    return ladder_tables.to_markdown([RungRow(m) for m in found], _columns())


def terminal(job: LadderJob, found: Sequence[RungMeasurement]) -> RenderableType:
    """The table for people; below it why a rung has no figures."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for name in ("rung", "in", "for", "result"):
        table.add_column(name, no_wrap=True)
    for name in ("regs", "shared", "stack", "spills", "threads", "occ."):
        table.add_column(name, justify="right", no_wrap=True)
    for m in found:
        row, figures = RungRow(m), m.compiled
        style = {"ok": "", "unsupported": "dim"}.get(m.disposition, "bold red")
        table.add_row(
            ladder_tables.label(row),
            m.case.precision,
            m.facts[ARCHITECTURE],
            Text(ladder_tables.result(row), style=style),
            f"{figures['registers']:.0f}" if figures else "",
            units.nbytes(figures["shared_nbytes"]) if figures else "",
            units.nbytes(figures["stack_nbytes"]) if figures else "",
            units.nbytes(figures["spill_nbytes"]) if figures else "",
            f"{figures['threads']:.0f}" if figures else "",
            units.percent(figures["occupancy"], 0) if "occupancy" in figures else "",
        )
    lines = [Text(line, style="dim") for line in remarks(found)]
    return Group(Text(job.title, style="bold"), table, *lines)


def remarks(found: Sequence[RungMeasurement]) -> list[str]:
    """Why rungs have no figures, each sentence once, and what the figures are."""
    said: dict[tuple[str, str], list[str]] = {}
    for m in found:
        reason = m.reason or ("" if m.compiled else "a library does the work, which is compiled already")
        if reason:
            said.setdefault((ladder_tables.label(RungRow(m)), reason), []).append(m.facts[ARCHITECTURE])
    several = len({m.facts[ARCHITECTURE] for m in found}) > 1
    lines = []
    for (label, reason), archs in said.items():
        where = f" for {', '.join(archs)}" if several else ""
        lines.append(f"{label}{where}: {reason}")
    lines.append(
        "compiled, not run: registers a thread, shared memory and threads a block, stack a thread (arrays "
        "indexed at run time, and room for spills), spills (the bytes that instructions store and load for "
        "want of registers), and the share of a multiprocessor's warps that fit beside each other"
    )
    return lines
