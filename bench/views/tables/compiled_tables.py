"""A ladder that was compiled and not run as a table for people, and as CSV, JSON and Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bench.results.ladder_records import ARCHITECTURE, COUNTS, LadderJob, RungMeasurement
from bench.results.ladder_rows import RungRow
from bench.views.tables import ladder_tables
from bench.views.tables.grid import Grid
from bench.views.tables.table import Column, Output, Table, pick, records, row_type
from bench.words.version import version

if TYPE_CHECKING:
    from rich.console import RenderableType


def _fact(name: str, title: str | None = None) -> Column[RungRow]:
    return Column(name, lambda row: row.measurement.facts.get(name), title=title, left=True)


_FOR = _fact(ARCHITECTURE, "for")
_FIGURES = ("registers", "shared_nbytes", "stack_nbytes", "spill_nbytes", "threads", "occupancy")
# The ladder's columns that are known without a run, and what was compiled for what.
COLUMNS = pick(
    ladder_tables.COLUMNS,
    *("number", "rung", "whose", "precision", "language", "side"),
    _FOR,
    *("disposition", *_FIGURES),
    *map(_fact, ("grid", "block", "kernel", COUNTS)),
    *("idea", "reason"),
)
_TERMINAL = pick(
    COLUMNS,
    ladder_tables.LABEL,
    "precision",
    _FOR,
    replace(ladder_tables.RESULT, style=ladder_tables.style),
    *_FIGURES,
)


RUNG = row_type("CompiledRung", COLUMNS, "A rung as the compiler made it for an architecture.")


class CompiledOutput(Output, frozen=True, kw_only=True):
    """`ladder --compile --format json`: nothing ran, so there is no machine."""

    title: str
    device: str
    precision: str | None
    rungs: tuple[RUNG, ...]  # type: ignore[valid-type]


def table(found: Sequence[RungMeasurement]) -> Table[RungRow]:
    """A row a rung and architecture."""
    return Table(COLUMNS, [RungRow(measurement) for measurement in found])


def output(job: LadderJob, found: Sequence[RungMeasurement]) -> CompiledOutput:
    return CompiledOutput(
        kernelscope=version(),
        title=job.title,
        device=job.device,
        precision=job.precision or None,
        rungs=tuple(records(table(found))),
    )


def terminal(job: LadderJob, found: Sequence[RungMeasurement]) -> RenderableType:
    """The table for people; below it why a rung has no figures."""
    from rich.console import Group
    from rich.text import Text

    lines = [Text(line, style="dim") for line in remarks(found)]
    return Group(
        Text(job.title, style="bold"), Grid(replace(table(found), columns=_TERMINAL), below=True), *lines
    )


def remarks(found: Sequence[RungMeasurement]) -> list[str]:
    """Why rungs have no figures, each sentence once, and what the figures are."""
    said: dict[tuple[str, str], list[str]] = {}
    for m in found:
        reason = m.reason or ("" if m.compiled else "a library does the work, which is compiled already")
        if reason:
            said.setdefault((ladder_tables.label(RungRow(m)), reason), []).append(m.facts[ARCHITECTURE])
    several = len({m.facts[ARCHITECTURE] for m in found}) > 1
    noted = [f"{ladder_tables.label(RungRow(m))}: ! {text}" for m in found for text in m.notes]
    for m in found:
        label = ladder_tables.label(RungRow(m))
        noted += [f"{label}: {words}" for words in m.facts.get(COUNTS, "").splitlines()]
    lines = list(dict.fromkeys(noted))
    for (label, reason), archs in said.items():
        where = f" for {', '.join(archs)}" if several else ""
        lines.append(f"{label}{where}: {reason}")
    lines.append(
        "compiled, not run: registers a thread, shared memory and threads a block, stack a thread (arrays "
        "indexed at run time, and room for spills), spills (the bytes that instructions store and load for "
        "want of registers), and the share of a multiprocessor's warps that fit beside each other"
    )
    if any(COUNTS in m.facts or m.finding for m in found):
        lines.append(
            "run on the CPU, with every access to memory watched: counts are those of a GPU's instructions, "
            "and no time is known"
        )
    return lines
