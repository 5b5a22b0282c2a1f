"""A table is data first, as a chart is: columns that know how to read a row, and rows that are the records
that there are. Drawn here as CSV, JSON and Markdown, by bench.views.tables.grid for a terminal and by
gui.widgets.table_view in the window, each from the one definition of a column.

CSV and JSON hold plain numbers in base units that the column's name tells; what is not known is empty (CSV)
or null (JSON), never a made-up number. What people read has a mark behind each figure that is to be doubted
(bench.results.doubt).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import msgspec

from bench.results import doubt
from bench.results.records import Environment
from bench.words import plain
from bench.words.version import version

FORMATS = ("table", "csv", "json", "md")
R = TypeVar("R")
S = TypeVar("S")


def as_text(value: Any) -> str:
    """Counts in groups of three digits, everything else as it is."""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class Column(Generic[R]):
    """name: as in CSV and JSON, with the unit of its values; value: of a row, None for what is not known
    (without it the item or attribute of that name); text: the value as people read it; doubts: what speaks
    against a row's figure, which is then marked.

    title: the heading where people read it (None: the name); tip: what it is, in a sentence; left: flush
    left, as words are; cell: the text as of the row, where that is more than its value's; style: of the text
    in a terminal, as rich names it; idle: where all are zero, there is nothing to tell. holds: the type of
    its values (None: words where it is flush left, whole numbers where they read as they are, else numbers).
    fill: a cell's colour on light paper or on dark, "#RRGGBB" or "" for the paper's own; why: what is behind
    a row's figure, a sentence a line, for whoever points at it.
    """

    name: str
    value: Callable[[R], Any] | None = None
    text: Callable[[Any], str] = as_text
    doubts: Callable[[R], tuple[str, ...]] | None = None
    title: str | None = None
    tip: str = ""
    left: bool = False
    cell: Callable[[R], str] | None = None
    style: Callable[[R], str] | None = None
    idle: bool = False
    holds: type | None = None
    fill: Callable[[R, bool], str] | None = None
    why: Callable[[R], str] | None = None

    @property
    def heading(self) -> str:
        return self.spaced if self.title is None else self.title

    @property
    def spaced(self) -> str:
        return self.name.replace("_", " ")

    def of(self, row: R) -> Any:
        """The value of a row, plain and in base units."""
        if self.value is not None:
            return self.value(row)
        return row[self.name] if isinstance(row, Mapping) else getattr(row, self.name)

    def doubted(self, row: R) -> tuple[str, ...]:
        return self.doubts(row) if self.doubts is not None else ()

    def reasons(self, row: R) -> str:
        """What is behind a row's figure and speaks against it, a sentence a line."""
        return self.why(row) if self.why is not None else "\n".join(self.doubted(row))

    def words(self, row: R) -> str:
        """The value of a row as people read it, "" for what is not known; without a mark."""
        if self.cell is not None:
            return self.cell(row)
        value = self.of(row)
        return "" if value is None else self.text(value)

    def shown(self, row: R) -> str:
        """The same with its mark."""
        return doubt.marked(self.words(row), self.doubted(row))

    def named(self, row: R) -> str:
        """The same below the column's name: words and counts as they stand in CSV."""
        value = self.of(row)
        if value is None or not (isinstance(value, str) or self.text is as_text):
            return self.shown(row)
        return doubt.marked(str(value), self.doubted(row))

    def through(self, get: Callable[[S], R]) -> Column[S]:
        """The same of rows that hold one."""
        return Column(
            self.name,
            lambda row: self.of(get(row)),
            self.text,
            lambda row: self.doubted(get(row)),
            self.title,
            self.tip,
            self.left,
            None if self.cell is None else lambda row: self.words(get(row)),
            holds=self.holds,
        )

    def has_content(self, rows: Iterable[R]) -> bool:
        """Whether there is something in it."""
        return any(self.words(row) and not (self.idle and not self.of(row)) for row in rows)


@dataclass(frozen=True)
class Table(Generic[R]):
    """key: what it is called among others; notes: what a reader must know, below its title."""

    columns: Sequence[Column[R]]
    rows: Sequence[R]
    title: str = ""
    notes: Sequence[str] = ()
    key: str = ""

    def telling(self) -> Table[R]:
        """The same without columns that tell nothing of any row."""
        if not self.rows:
            return self
        return replace(self, columns=tuple(c for c in self.columns if c.has_content(self.rows)))


def pick(columns: Iterable[Column[R]], *wanted: str | Column[R], **titles: str) -> tuple[Column[R], ...]:
    """Some columns by their names, in the order wanted, further ones between them; titles: other headings."""
    known = {column.name: column for column in columns}
    found = (known[item] if isinstance(item, str) else item for item in wanted)
    return tuple(replace(c, title=titles[c.name]) if c.name in titles else c for c in found)


def records(table: Table[R]) -> list[dict[str, Any]]:
    """One dictionary a row, by the columns' names: what a line of CSV and an object of JSON hold."""
    return [{column.name: _plain(column.of(row)) for column in table.columns} for row in table.rows]


def _plain(value: Any) -> Any:
    """A shape in one word."""
    return "x".join(map(str, value)) if isinstance(value, tuple) else value


def to_csv(table: Table[R]) -> str:
    """Comma-separated with a header line."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([column.name for column in table.columns])
    for record in records(table):
        writer.writerow(["" if value is None else plain.csv(value) for value in record.values()])
    return out.getvalue()


def to_json(value: Any) -> str:
    """Records, tables' and others, as JSON that people can read."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def to_markdown(table: Table[R], by_name: bool = False) -> str:
    """A pipe table of the columns that tell something. by_name: what CSV holds, below its columns' names."""
    columns = table.telling().columns
    heads = [column.spaced if by_name else column.heading or " " for column in columns]
    rule = ["---" if by_name or column.left else "---:" for column in columns]
    cells = Column.named if by_name else Column.shown
    lines = [heads, rule, *([cells(column, row) for column in columns] for row in table.rows)]
    return "".join("| " + " | ".join(plain.cell(cell) for cell in line) + " |\n" for line in lines)


def with_headings(tables: Iterable[Table[Any]], level: int = 2) -> str:
    """Markdown: each table below its heading and its notes."""
    parts = []
    for table in tables:
        notes = "".join(f"{plain.cell(note)}\n\n" for note in table.notes)
        parts.append(f"{'#' * level} {plain.cell(table.title)}\n\n{notes}{to_markdown(table)}")
    return "\n".join(parts)


SCHEMA = 1


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """The head of all of them. schema: of this output; kernelscope: the version that wrote it; environment:
    the machine on which it was measured, as its records say; commands, created_at: of what was measured, in
    the order in which it is shown.

    `--format json` has one shape a command, whatever was asked beside. Its rows are typed by the columns of
    the tables, so that the schemas of docs/formats.md say what there really is.
    """

    schema: int = SCHEMA
    kernelscope: str = ""
    environment: Environment = Environment()
    commands: tuple[str, ...] = ()
    created_at: tuple[str, ...] = ()


def head(headers: Sequence[Any]) -> dict[str, Any]:
    """The head's fields of what these headers of runs say."""
    return {
        "kernelscope": version(),
        "environment": headers[-1].environment if headers else Environment(),
        "commands": tuple(header.command for header in headers),
        "created_at": tuple(header.created_at for header in headers),
    }


def row_type(name: str, columns: Sequence[Column[Any]], doc: str = "", **further: Any) -> Any:
    """The type of a row of these columns (`table.records`): each is there, null where nothing is
    known. further: what a row holds beside."""
    fields = [(column.name, _type(column)) for column in columns]
    made = msgspec.defstruct(
        name, [*fields, *further.items()], kw_only=True, frozen=True, forbid_unknown_fields=True
    )
    made.__doc__ = doc or None
    return made


def _type(column: Column[Any]) -> Any:
    """What a column holds in JSON: what it says, or by how it reads."""
    held = column.holds or (str if column.left else int if column.text is as_text else float)
    return held | None
