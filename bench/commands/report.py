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
        None, metavar="DIR", help="Where its charts go; without it, a folder beside it, named after it."
    ),
    title: str = typer.Option("", metavar="TEXT", help="Its heading; without it, the device's name."),
) -> None:
    """Write a report of saved runs: what was measured how, a table and charts a model, what falls short. Of
    ladders: a table, charts and a sentence a rung for every batch size, and an overview of each node. Of
    profiles: where the time goes, case by case, and what starting cold costs."""
    from bench.ladder.store import is_ladder
    from bench.profile.store import is_profile
    from kernels.errors import InputError

    ladders = [path for path in runs if is_ladder(path)]
    profiles = [path for path in runs if is_profile(path)]
    for what, its in (("a ladder", ladders), ("a profile", profiles)):
        if its and len(its) != len(runs):
            other = next(path for path in runs if path not in its)
            raise InputError(f"{its[0]} is {what} and {other} is none: report the two apart")
    if profiles:
        from bench.profile.show.report import write
    elif ladders:
        from bench.ladder.show.report import write
    else:
        from bench.show.report import write
    for path in write(runs, out, charts, title):
        print(path)
