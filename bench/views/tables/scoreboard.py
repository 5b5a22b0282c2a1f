"""The scoreboard (bench.views.charts.scoreboard) as a table: a line a contender, a column a batch size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from bench.results import doubt
from bench.results.records import Measurement, Run
from bench.results.rows import Row
from bench.views.charts.scoreboard import Cell, Line, Scoreboard, fill
from bench.views.sentences.verdicts import ModelVerdict
from bench.views.tables import comparison_tables as tables
from bench.views.tables.grid import Grid
from bench.views.tables.table import Column, Output, Table, head, records, row_type
from bench.words import palette

if TYPE_CHECKING:
    from rich.console import RenderableType

DECIDED = ("faster", "same", "slower")
SLOWER, OPEN = "▼", "?"  # where there is no room for the words
_BATCH = "batch_"  # how the name of a batch size's column begins


def table(board: Scoreboard, small: bool = False) -> Table[Line]:
    """A column's value is the ratio, the reference's time over the own, where it is decided; what people read
    is the cell's text, in the cell's colour. Whom a line is beside is told where not all are beside the
    same. small: for a place with little room: only the lines that are compared, in few letters."""
    contender: Column[Line] = Column(
        "contender",
        title="batch" if small else "backend, by batch size",
        left=True,
        cell=_named,
        why=lambda line: f"{line.contender} beside {line.reference}" if small and line.reference else "",
    )
    beside: Column[Line] = Column("reference", lambda line: line.reference or None, title="beside", left=True)
    several = (beside,) if len(board.references) > 1 and not small else ()
    columns = (contender, *several, *(_column(batch, small) for batch in board.batches))
    lines = tuple(line for line in board.lines if not (small and line.is_reference))
    return Table(columns, lines if board.has_comparisons else (), board.title)


def _named(line: Line) -> str:
    return f"{line.contender}, time" if line.is_reference else line.contender


def _column(batch: int, small: bool) -> Column[Line]:
    def at(line: Line) -> Cell:
        return line.at(batch)

    def value(line: Line) -> float | None:
        return at(line).speedup if at(line).grade in DECIDED else None

    def text(line: Line) -> str:
        return _few_letters(at(line)) if small else at(line).text.removesuffix(doubt.MARK)

    return Column(
        f"{_BATCH}{batch}",
        value,
        title=f"{batch:,}",
        tip=f"batch size {batch:,}",
        cell=text,
        doubts=lambda line: at(line).doubts,
        style=lambda line: _style(at(line)),
        fill=lambda line, dark: fill(at(line), dark),
        why=lambda line: at(line).why,
        holds=float,
    )


def _few_letters(cell: Cell) -> str:
    """A cell's text without words: "▼ 2.00×" takes twice as long, OPEN is not decided."""
    text = cell.text.removesuffix(doubt.MARK)
    if cell.grade == "undecided":
        return OPEN
    return f"{SLOWER} {text.removesuffix(' slower')}" if text.endswith(" slower") else text


def batch_of(column: Column[Line]) -> int | None:
    """The batch size of a column of `table`; None of the others."""
    return int(column.name.removeprefix(_BATCH)) if column.name.startswith(_BATCH) else None


# A cell a line, as CSV and JSON have it: with what is behind it, of whatever grade.
_OF_CELL = ("batch", "grade", "speedup", "low", "high", "text", "why")


def numbers(board: Scoreboard) -> Table[dict[str, Any]]:
    """Every cell that there is, a row each."""
    names = ("contender", "reference", *_OF_CELL)
    rows = [
        {"contender": line.contender, "reference": line.reference or None}
        | {name: getattr(cell, name) for name in _OF_CELL}
        for line in board.lines
        for cell in line.cells
        if cell.grade != "absent"
    ]
    return Table([Column[dict[str, Any]](name) for name in names], rows, board.title)


def _style(cell: Cell) -> str:
    """In a terminal, whose paper nobody knows: a cell brings its own."""
    if cell.grade == "wrong":
        return "bold red"
    if colour := fill(cell):
        return f"{palette.ink_on(colour)} on {colour}"
    return "dim"


def terminal(found: Sequence[ModelVerdict]) -> list[RenderableType]:
    """Each model's line, and its board below."""
    from rich.text import Text

    made: list[RenderableType] = []
    for verdict in found:
        if verdict.line:
            made.append(Text.assemble((verdict.subject, "bold"), f": {verdict.text}"))
        if verdict.board.has_comparisons:
            made += [Grid(table(verdict.board), below=True), Text()]
    return made


CASE = row_type("ComparisonCase", tables.COLUMNS, "A case, as a line of CSV has it.")
LAYER = row_type("ComparisonLayer", tables.LAYER_COLUMNS, "A layer of a case, as a line of CSV has it.")


class ScoreboardOutput(Scoreboard, frozen=True, kw_only=True):
    """line: what it comes to, in words."""

    line: str


def scoreboard_output(verdict: ModelVerdict) -> ScoreboardOutput:
    """A model's scoreboard with the line above it."""
    return ScoreboardOutput(**msgspec.structs.asdict(verdict.board), line=verdict.text)


class ComparisonOutput(Output, frozen=True, kw_only=True):
    """layers: null unless --layers asks for them. scoreboards: one a model, or of a model of many contenders
    one for each precision."""

    cases: tuple[CASE, ...]  # type: ignore[valid-type]
    layers: tuple[LAYER, ...] | None  # type: ignore[valid-type]
    scoreboards: tuple[ScoreboardOutput, ...] = ()


def output(
    runs: Sequence[Run],
    shown: Sequence[Row],
    said: Sequence[ModelVerdict],
    layers: Sequence[Measurement] | None,
) -> ComparisonOutput:
    """layers: the measurements whose layers are asked for."""
    return ComparisonOutput(
        **head(runs),
        cases=tuple(records(tables.table(shown))),
        layers=None if layers is None else tuple(records(tables.layer_table(layers))),
        scoreboards=tuple(map(scoreboard_output, said)),
    )
