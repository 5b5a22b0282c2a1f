"""`runs report`: a Markdown report of one run, or of several that are pieces of one comparison; of ladders;
or of profiles."""

from __future__ import annotations

from pathlib import Path

import typer


def report(
    runs: list[Path] = typer.Argument(
        metavar="RUN…",
        help="Run folders (of a case in several, the latest counts); or ladders', or profiles'.",
    ),
    out: Path = typer.Option(..., metavar="FILE.md", help="The report."),
    charts: Path | None = typer.Option(
        None, metavar="DIR", help="The folder for its charts; default: one beside it, named after it."
    ),
    title: str = typer.Option("", metavar="TEXT", help="Its heading; default: the device's name."),
) -> None:
    """Write a report of saved runs: what was measured how, a table and charts a model, what falls short. Of
    ladders: a table, charts and a sentence a rung for every batch size, and an overview of each node. Of
    profiles: where the time goes, case by case, and what starting cold costs."""
    from bench.kinds.folders import open_folder
    from kernels.errors import InputError

    kinds = [open_folder(path).kind for path in runs]
    for kind, path in zip(kinds, runs, strict=True):
        if kind is not kinds[0]:
            raise InputError(f"{runs[0]} is {kinds[0].a} and {path} is {kind.a}: report the two apart")
    for path in kinds[0].part("report").write(runs, out, charts, title):
        print(path)
