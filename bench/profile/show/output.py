"""Tables of a profile for a terminal, as CSV, JSON and Markdown."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bench.profile.records import CaseProfile, Profile
from bench.profile.show import names as profile_names
from bench.profile.show.tables import Column, Table
from bench.show import tables
from bench.words import plain, units

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


def terminal(found: Sequence[Table], short: bool = True, width: int | None = None) -> RenderableType:
    """The tables for people. short: long names of kernels without their templates and parameters; width: of
    the terminal; a table that is wider goes on below, its first columns repeated."""
    from rich import box
    from rich.console import Group
    from rich.table import Table as RichTable
    from rich.text import Text

    made: list[RenderableType] = []
    for table in found:
        columns = [column for column in table.columns if _tells(column, table)]
        lines = [[_shown(column, row[column.name], short) for column in columns] for row in table.rows]
        widths = [
            max(len(column.title), *(len(line[place]) for line in lines), 0)
            for place, column in enumerate(columns)
        ]
        made += [Text(table.title, style="bold"), *(Text(note, style="dim") for note in table.notes)]
        for places in _side_by_side(columns, widths, width):
            shown = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
            for place in places:
                left = columns[place].kind == "text"
                # What is numbers keeps its width; the last text, a sentence, takes what is left.
                wraps = left and place == len(columns) - 1
                shown.add_column(
                    columns[place].title,
                    justify="left" if left else "right",
                    no_wrap=not wraps,
                    overflow="fold" if wraps else "ellipsis",
                    min_width=None if left else widths[place],
                )
            for line in lines:
                shown.add_row(*(Text(line[place]) for place in places))
            made.append(shown)
    return Group(*made)


def _side_by_side(columns: Sequence[Column], widths: Sequence[int], room: int | None) -> list[list[int]]:
    """Places of the columns that fit beside one another, in each the first ones, which say what a line is of.
    A last column of text wraps, and needs no room of its own."""
    count = len(columns) - (columns[-1].kind == "text" if columns else 0)
    if room is None or sum(widths[:count]) + 2 * count <= room:
        return [list(range(len(columns)))]
    firsts = list(
        itertools.takewhile(lambda i: columns[i].kind == "text" or columns[i].name == "batch", range(count))
    )
    found: list[list[int]] = []
    now, used = list(firsts), sum(widths[i] + 2 for i in firsts)
    for place in range(len(firsts), len(columns)):
        if len(now) > len(firsts) and used + widths[place] + 2 > room:
            found.append(now)
            now, used = list(firsts), sum(widths[i] + 2 for i in firsts)
        now.append(place)
        used += widths[place] + 2
    return [*found, now]


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
    """A heading, its notes and a pipe table of every column that says something, for each."""
    parts = []
    for table in found:
        columns = [column for column in table.columns if _tells(column, table)]
        cells = [[column.title or " " for column in columns]]
        cells.append(["---" if column.kind == "text" else "---:" for column in columns])
        cells += [[text(column, row[column.name]) for column in columns] for row in table.rows]
        notes = "".join(f"{plain.cell(note)}\n\n" for note in table.notes)
        parts.append(f"{'#' * level} {plain.cell(table.title)}\n\n{notes}{tables.pipes(cells)}")
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
