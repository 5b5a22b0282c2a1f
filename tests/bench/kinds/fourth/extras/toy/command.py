"""Its command; and how one is shown, exported, reported and made small."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import typer

from bench.commands import measuring
from bench.results.folders import open_folder
from bench.results.results_file import line_of
from bench.results.store import RESULTS_FILE, write_atomically
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


def show(folder: Any, format: str, layers: bool = False) -> tuple[str, ...]:
    sys.stdout.write(_table(folder))
    return (f"by {folder.header.environment.machine}",)


def export(folder: Any, over: Path | None) -> tuple[Callable[[], list[Any]], Callable[[], dict[str, str]]]:
    return list, lambda: {"squares.csv": _table(folder)}


def write(first: Any, second: Any, third: Any = None, fourth: Any = None) -> list[Path]:
    """A report (paths, out, charts, heading), or one made small (folder, measurements, target, grade)."""
    if isinstance(first, Sequence):
        second.write_text("\n".join(_table(open_folder(path)) for path in first))
        return [second]
    write_atomically(third / first.kind.file, msgspec.json.encode(first.header))
    write_atomically(third / RESULTS_FILE, b"".join(map(line_of, second)))
    return []


def _table(folder: Any) -> str:
    return "".join(f"{m.case.number},{m.disposition},{m.square}\n" for m in folder.measurements())
