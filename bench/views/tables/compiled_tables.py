"""A ladder that was compiled and not timed as a table for people, and as CSV, JSON and Markdown; of what ran
on the CPU with its counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bench.results.ladder_records import ARCHITECTURE, COUNTS, FLOOR, FLOOR_S, LadderJob, RungMeasurement
from bench.results.ladder_rows import RungRow
from bench.views.tables import count_columns, ladder_tables
from bench.views.tables.grid import Grid
from bench.views.tables.table import Column, Output, Table, pick, records, row_type
from bench.words import units
from bench.words.version import version

FEW = 3  # rungs, of which each is gone through line by line
WITHOUT_TIMES = "simulated: answers and counts, no times"

if TYPE_CHECKING:
    from rich.console import RenderableType


def _fact(name: str, title: str | None = None) -> Column[RungRow]:
    return Column(name, lambda row: row.measurement.facts.get(name), title=title, left=True)


_FOR = _fact(ARCHITECTURE, "for")
_FIGURES = ("registers", "shared_nbytes", "stack_nbytes", "spill_nbytes", "threads", "occupancy")
_FLOOR: Column[RungRow] = Column(
    FLOOR_S,
    lambda row: float(told) if (told := row.measurement.facts.get(FLOOR_S)) else None,
    lambda seconds: f"≥ {units.duration(seconds * 1e9)}",
    title="floor",
    tip="Below which no pass stays on the GPU that was named, from counts and its data sheet: no time",
    holds=float,
    idle=True,
)
# The ladder's columns that are known without a run, and what was compiled for what.
COLUMNS = pick(
    ladder_tables.COLUMNS,
    *("number", "rung", "whose", "precision", "language", "side"),
    _FOR,
    *("disposition", "fault", *_FIGURES),
    *(column.name for column in count_columns.COLUMNS),
    _FLOOR,
    *map(_fact, ("grid", "block", "kernel", COUNTS, FLOOR)),
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
_SIMULATED = pick(
    COLUMNS,
    ladder_tables.LABEL,
    "precision",
    replace(ladder_tables.RESULT, style=ladder_tables.style),
    *count_columns.SHOWN,
    FLOOR_S,
)


RUNG = row_type("CompiledRung", COLUMNS, "A rung as the compiler made it for an architecture.")


class CompiledOutput(Output, frozen=True, kw_only=True):
    """`ladder --compile --format json`, and of CUDA rungs on a machine without a GPU: nothing was timed, so
    there is no machine. simulated: they ran on the CPU, and were judged and counted."""

    title: str
    device: str
    precision: str | None
    simulated: bool = False
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
        simulated=job.simulated,
        rungs=tuple(records(table(found))),
    )


def terminal(job: LadderJob, found: Sequence[RungMeasurement]) -> RenderableType:
    """The table for people; below it why a rung has no figures."""
    from rich.console import Group
    from rich.text import Text

    lines = [Text(line, style="dim") for line in remarks(found)]
    columns = _SIMULATED if job.simulated else _TERMINAL
    if not any(FLOOR_S in m.facts for m in found):
        columns = tuple(column for column in columns if column.name != FLOOR_S)
    title = f"{job.title} ({WITHOUT_TIMES})" if job.simulated else job.title
    return Group(Text(title, style="bold"), Grid(replace(table(found), columns=columns), below=True), *lines)


def remarks(found: Sequence[RungMeasurement]) -> list[str]:
    """Why rungs have no figures, each sentence once, what their lines cost, and what the figures are. Of a
    whole ladder the user's own rungs alone are gone through line by line."""
    said: dict[tuple[str, str], list[str]] = {}
    for m in found:
        reason = m.reason or ("" if m.compiled else "a library does the work, which is compiled already")
        if reason:
            said.setdefault((ladder_tables.label(RungRow(m)), reason), []).append(m.facts[ARCHITECTURE])
    several = len({m.facts[ARCHITECTURE] for m in found}) > 1
    noted = [f"{ladder_tables.label(RungRow(m))}: ! {text}" for m in found for text in m.notes]
    counted = [m for m in found if COUNTS in m.facts]
    told = counted if len(counted) <= FEW else [m for m in counted if m.case.user]
    for m in told:
        label = ladder_tables.label(RungRow(m))
        noted += [f"{label}: {words}" for words in m.facts[COUNTS].splitlines()]
        noted += [f"{label}: {m.facts[FLOOR]}"] if FLOOR in m.facts else []
    lines = list(dict.fromkeys(noted))
    for (label, reason), archs in said.items():
        where = f" for {', '.join(archs)}" if several else ""
        lines.append(f"{label}{where}: {reason}")
    if not any(COUNTS in m.facts or m.finding for m in found):
        if not any(m.compiled for m in found):
            return lines
        lines.append(
            "compiled, not run: registers a thread, shared memory and threads a block, stack a thread "
            "(arrays indexed at run time, and room for spills), spills (the bytes that instructions store "
            "and load for want of registers), and the share of a multiprocessor's warps that fit beside each "
            "other"
        )
        return lines
    if len(told) < len(counted):
        lines.append("what a rung's lines cost is told where it is one of a few: --rung NAME")
    lines.append(
        f"{WITHOUT_TIMES}. They ran on the CPU, with every access to memory watched. {count_columns.MEANING}"
    )
    return lines
