"""`runs report`: a Markdown report of one run, or of several that are pieces of one comparison; or of
ladders."""

from __future__ import annotations

from pathlib import Path

import typer


def report(
    runs: list[Path] = typer.Argument(
        metavar="RUN…", help="Run folders (of a case in several, the latest counts), or ladders' folders."
    ),
    out: Path = typer.Option(..., metavar="FILE.md", help="The report."),
    charts: Path | None = typer.Option(
        None, metavar="DIR", help="Where its charts go; without it, a folder beside it, named after it."
    ),
    title: str = typer.Option("", metavar="TEXT", help="Its heading; without it, the device's name."),
) -> None:
    """Write a report of saved runs: what was measured how, a table and charts a model, what falls short. Of
    ladders: a table, charts and a sentence a rung for every batch size, and an overview of each node."""
    from bench.ladder_store import is_ladder
    from kernels.errors import InputError

    ladders = [path for path in runs if is_ladder(path)]
    if ladders and len(ladders) != len(runs):
        other = next(path for path in runs if path not in ladders)
        raise InputError(f"{ladders[0]} is a ladder and {other} is none: report the two apart")
    if ladders:
        from bench.ladder_report import write
    else:
        from bench.report import write
    for path in write(runs, out, charts, title):
        print(path)
