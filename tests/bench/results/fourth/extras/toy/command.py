"""Its command; and how one is shown, exported, reported and made small."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from bench.commands import measuring
from bench.results.folders import open_folder
from bench.views.tables.table import Column, Table
from bench.words.option import integers


def toy(
    numbers: str = typer.Option("1", metavar="N,N,…"),
    out: Path | None = typer.Option(None, metavar="DIR"),
) -> None:
    """Square numbers."""
    from bench.extras.toy.kind import KIND, Toy, ToyCase, ToyJob

    wanted = integers(numbers, "--numbers")
    header = Toy(job=ToyJob(numbers=wanted), cases=tuple(ToyCase(number=number) for number in wanted))
    folder = measuring.begin(KIND, header, out)
    outcome = measuring.measure([folder])
    show(folder, "table")
    raise typer.Exit(outcome.status(all(m.disposition == "ok" for m in folder.measurements())))


COMMAND = toy
GRADES, LESS = (None,), "square fewer numbers"
READS = ("square",)
COLUMNS: tuple[Column[Any], ...] = (
    Column("number", lambda m: m.case.number),
    Column("disposition"),
    Column("square"),
)


def show(folder: Any, format: str) -> None:
    sys.stdout.write(_table(folder))


def below(folder: Any) -> tuple[str, ...]:
    return (f"by {folder.header.environment.machine}",)


def charts(folder: Any) -> list[Any]:
    return []


def numbers(folder: Any) -> dict[str, Table[Any]]:
    return {"squares": Table(COLUMNS, folder.measurements())}


def result(header: Any, lines: Sequence[Any]) -> str:
    return f"{sum(line.square for line in lines)} in all"


def write(first: Any, second: Any, third: Any = None, fourth: Any = None) -> list[Path]:
    """A report (paths, out, charts, heading)."""
    second.write_text("\n".join(_table(open_folder(path)) for path in first))
    return [second]


def lines(folder: Any, measurements: Sequence[Any], target: Path, grade: None) -> Sequence[Any]:
    """One made small: nothing of it goes."""
    return measurements


def _table(folder: Any) -> str:
    return "".join(f"{m.case.number},{m.disposition},{m.square}\n" for m in folder.measurements())
