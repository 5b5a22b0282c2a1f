"""`runs report`: a Markdown report of one run, or of several that are pieces of one comparison."""

from __future__ import annotations

from pathlib import Path

import typer


def report(
    runs: list[Path] = typer.Argument(
        metavar="RUN…", help="Run folders; of a case in several, the latest counts."
    ),
    out: Path = typer.Option(..., metavar="FILE.md", help="The report."),
    charts: Path | None = typer.Option(
        None, metavar="DIR", help="Where its charts go; without it, a folder beside it, named after it."
    ),
    title: str = typer.Option("", metavar="TEXT", help="Its heading; without it, the device's name."),
) -> None:
    """Write a report of saved runs: what was measured how, a table and charts a model, what falls short."""
    from bench.report import write

    for path in write(runs, out, charts, title):
        print(path)
