"""Its command; and how one is shown, exported, reported and made small."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import typer

from bench.commands import measuring
from bench.kinds.folders import open_folder
from bench.kinds.options import integers


def toy(
    numbers: str = typer.Option("1", metavar="N,N,…"),
    out: Path | None = typer.Option(None, metavar="DIR"),
) -> None:
    """Square numbers."""
    from bench.toy.kind import KIND, Toy, ToyCase, ToyJob

    wanted = integers(numbers, "--numbers")
    header = Toy(job=ToyJob(numbers=wanted), cases=tuple(ToyCase(number=number) for number in wanted))
    folder = measuring.begin(KIND, header, out)
    outcome = measuring.measure([folder])
    show(folder, "table")
    raise typer.Exit(outcome.status(all(m.disposition == "ok" for m in folder.measurements())))


COMMAND = toy
GRADES, LESS = (None,), "square fewer numbers"


def show(folder: Any, format: str, layers: bool = False) -> tuple[str, ...]:
    sys.stdout.write(_table(folder))
    return (f"by {folder.header.environment.machine}",)


def export(folder: Any, over: Path | None) -> tuple[Callable[[], list[Any]], Callable[[], dict[str, str]]]:
    return list, lambda: {"squares.csv": _table(folder)}


def write(first: Any, second: Any, third: Any = None, fourth: Any = None) -> list[Path]:
    """A report (paths, out, charts, heading)."""
    second.write_text("\n".join(_table(open_folder(path)) for path in first))
    return [second]


def lines(folder: Any, measurements: Sequence[Any], target: Path, grade: None) -> Sequence[Any]:
    """One made small: nothing of it goes."""
    return measurements


def _table(folder: Any) -> str:
    return "".join(f"{m.case.number},{m.disposition},{m.square}\n" for m in folder.measurements())
