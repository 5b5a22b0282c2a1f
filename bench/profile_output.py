"""Tables of a profile for a terminal, as CSV, JSON and Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bench import profile_names, tables, units
from bench.profile_records import CaseProfile, Profile
from bench.profile_tables import Column, Table

if TYPE_CHECKING:
    from rich.console import RenderableType

NAME_WIDTH = 60


def text(column: Column, value: Any) -> str:
    """A value as people read it, "" for what is not known."""
    if value is None:
        return ""
    match column.kind:
        case "ns":
            return units.duration(value)
        case "seconds":
            return f"{value:.2f} s"
        case "share":
            return units.percent(value)
        case "rate":
            return units.si(value)
        case "nbytes":
            return units.nbytes(value)
        case "count":
            return f"{value:,}"
        case "factor":
            return f"{value:.2f}"
        case _:
            return str(value)


def terminal(found: Sequence[Table], short: bool = True) -> RenderableType:
    """The tables for people. short: long names of kernels without their templates and parameters."""
    from rich import box
    from rich.console import Group
    from rich.table import Table as RichTable
    from rich.text import Text

    made: list[RenderableType] = []
    for table in found:
        shown = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
        columns = [column for column in table.columns if _tells(column, table)]
        lines = [[_shown(column, row[column.name], short) for column in columns] for row in table.rows]
        for place, column in enumerate(columns):
            left = column.kind == "text"
            # What is numbers keeps its width; the last text, a sentence, takes what is left.
            width = max((len(line[place]) for line in lines), default=0)
            wraps = left and place == len(columns) - 1
            shown.add_column(
                column.title,
                justify="left" if left else "right",
                no_wrap=not wraps,
                overflow="fold" if wraps else "ellipsis",
                min_width=None if left else max(width, len(column.title)),
            )
        for line in lines:
            shown.add_row(*(Text(cell) for cell in line))
        made += [Text(table.title, style="bold"), *(Text(note, style="dim") for note in table.notes), shown]
    return Group(*made)


def to_csv(table: Table) -> str:
    """One table, every column in base units."""
    names = [column.name for column in table.columns]
    return tables.to_csv([{name: row[name] for name in names} for row in table.rows], names)


def to_json(profile: Profile, profiles: Sequence[CaseProfile], found: Sequence[Table]) -> str:
    """The profile, its cases, and the tables' rows by their titles."""
    return tables.to_json(
        {
            "job": profile.job,
            "environment": profile.environment,
            "limits": profile.limits,
            "cases": profiles,
            "tables": [
                {"key": table.key, "title": table.title, "rows": list(table.rows), "notes": table.notes}
                for table in found
            ],
        }
    )


def to_markdown(found: Sequence[Table], level: int = 2) -> str:
    """A heading, a pipe table and its notes for each."""
    parts = []
    for table in found:
        cells = [[column.title or " " for column in table.columns]]
        cells.append(["---" if column.kind == "text" else "---:" for column in table.columns])
        cells += [[text(column, row[column.name]) for column in table.columns] for row in table.rows]
        notes = "".join(f"{note}\n\n" for note in table.notes)
        parts.append(f"{'#' * level} {table.title}\n\n{notes}{tables.pipes(cells)}")
    return "\n".join(parts)


def _tells(column: Column, table: Table) -> bool:
    """Whether a column says anything: a part that no case has, or what is known of none, is left out."""
    if not table.rows:
        return True
    idle = (None, 0, 0.0) if table.key == "breakdown" and column.kind == "ns" else (None,)
    return any(row[column.name] not in idle for row in table.rows)


def _shown(column: Column, value: Any, short: bool) -> str:
    cell = text(column, value)
    return profile_names.short(cell, NAME_WIDTH) if short and _is_kernel(column, cell) else cell


def _is_kernel(column: Column, cell: str) -> bool:
    return column.name == "name" and ("<" in cell or "(" in cell) and not cell.startswith("(")
