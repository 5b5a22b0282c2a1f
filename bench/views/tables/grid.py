"""A table (bench.views.tables.table) as rich draws it in a terminal."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from bench.results import doubt
from bench.views.tables.table import Column, Table

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.text import Text


WORDS = 26  # of a sentence that goes on below: with less room for it, columns are spared


@dataclass(frozen=True)
class Grid:
    """One table. least: columns' least widths; most: the most of words; spared: columns that a narrow
    terminal does without, first to last; wraps: columns whose text goes on below (others are cut); below:
    columns for which there is no room go on below, the first ones, which say what a line is of, repeated, for
    the lines that have anything there; airy: with more room between columns; last_apart: with a line above
    the last row; heading: what stands above it; framed: with room around it."""

    table: Table[Any]
    least: Mapping[str, int] = field(default_factory=dict)
    most: int | None = None
    spared: Sequence[str] = ()
    wraps: Collection[str] = ()
    below: bool = False
    airy: bool = False
    last_apart: bool = False
    heading: str | None = None
    framed: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns, least = self._kept(options.max_width), dict(self.least)
        if not self.below:
            yield self._drawn(columns, least)
            return
        widths = {c.name: max(len(c.heading), width(c, self.table.rows)) for c in columns}
        widths |= {c.name: min(widths[c.name], self.most) for c in columns if c.left and self.most}
        least |= {c.name: widths[c.name] for c in columns if not c.left}
        divider, edges = 3 if self.airy else 2, 2 if self.framed else 0
        parts = list(_side_by_side(columns, widths, options.max_width - edges, divider))
        repeated = [c.name for c in parts[0] if all(c in part for part in parts)] if len(parts) > 1 else []
        for number, part in enumerate(parts):
            told = [c for c in part if c.name not in repeated]
            rows = [row for row in self.table.rows if not number or any(c.words(row) for c in told)]
            if rows:
                yield replace(self, table=replace(self.table, rows=rows))._drawn(part, least)

    def _drawn(self, columns: Sequence[Column[Any]], least: Mapping[str, int]) -> RenderableType:
        from rich import box
        from rich.table import Table as RichTable

        made = RichTable(
            title=self.heading,
            title_justify="left",
            box=box.SIMPLE_HEAD,
            padding=(0, 1) if self.airy else (0, 1, 0, 0),
            pad_edge=False,
            show_edge=self.framed,
        )
        for column in columns:
            wraps = column.name in self.wraps
            made.add_column(
                column.heading,
                justify="left" if column.left else "right",
                no_wrap=not wraps,
                overflow="fold" if wraps else "ellipsis",
                min_width=least.get(column.name),
                max_width=self.most if column.left else None,
            )
        cells = [texts(column, self.table.rows) for column in columns]
        for place, line in enumerate(zip(*cells, strict=True)):
            if self.last_apart and place == len(self.table.rows) - 1:
                made.add_section()
            made.add_row(*line)
        return made

    def _kept(self, room: int) -> Sequence[Column[Any]]:
        """No figure is ever cut in half: a column takes a space and a divider beside its width."""
        kept = list(self.table.columns)
        for name in self.spared:
            if sum(self._needs(column) + 2 for column in kept) - 1 > room:
                kept = [column for column in kept if column.name != name]
        return kept

    def _needs(self, column: Column[Any]) -> int:
        needs = max(len(column.heading), self.least.get(column.name, 0), width(column, self.table.rows))
        return min(needs, WORDS) if column.name in self.wraps else needs


def texts(column: Column[Any], rows: Sequence[Any]) -> list[Text]:
    """A column's cells. Where a figure has a mark, the column has room for one behind each."""
    from rich.text import Text

    marks = [bool(column.doubted(row)) for row in rows]
    room = " " * len(doubt.MARK) if any(marks) and not column.left else ""
    found = []
    for row, marked in zip(rows, marks, strict=True):
        text = Text(column.words(row), style=column.style(row) if column.style is not None else "")
        if text:
            text.append(doubt.MARK if marked else room, style="yellow")
        found.append(text)
    return found


def width(column: Column[Any], rows: Sequence[Any]) -> int:
    return max((len(text) for text in texts(column, rows)), default=0)


def stacked(tables: Iterable[Table[Any]], spared: Sequence[str] = ()) -> RenderableType:
    """Tables with their titles and notes, each going on below where it is wider than the terminal. A last
    column of words, a sentence, takes what is left. spared: as of a Grid."""
    from rich.console import Group
    from rich.text import Text

    made: list[RenderableType] = []
    for table in tables:
        table = table.telling()
        made += [Text(table.title, style="bold"), *(Text(note, style="dim") for note in table.notes)]
        words = [c.name for c in table.columns[-1:] if c.left]
        made.append(Grid(table, wraps=words, spared=spared if words else (), below=True))
    return Group(*made)


def _side_by_side(
    columns: Sequence[Column[Any]], widths: Mapping[str, int], room: int, divider: int
) -> Iterator[Sequence[Column[Any]]]:
    """The columns that fit beside one another, the first ones in each. A last one of words needs no room.
    divider: what stands between two of them."""
    fixed = columns[:-1] if columns and columns[-1].left else columns

    def wide(some: Iterable[Column[Any]]) -> int:
        return sum(widths[column.name] + divider for column in some) - divider

    if wide(fixed) <= room:
        yield columns
        return
    firsts = list(itertools.takewhile(lambda column: column.left or column.name == "batch", fixed))
    now = list(firsts)
    for column in columns[len(firsts) :]:
        if len(now) > len(firsts) and wide([*now, column]) > room:
            yield now
            now = list(firsts)
        now.append(column)
    yield now
