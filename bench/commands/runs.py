"""`runs list` and `runs show`: the folders of runs, ladders and profiles there are, and one of them in the
terminal."""

from __future__ import annotations

from pathlib import Path

import typer

app = typer.Typer(no_args_is_help=True, help="Saved runs, ladders and profiles.", rich_markup_mode=None)


@app.command("list")
def list_command(
    folder: Path = typer.Argument(Path("runs"), metavar="[DIR]", help="Where the run folders lie."),
) -> None:
    """Every run, ladder and profile in a folder, oldest first."""
    from rich import box
    from rich.table import Table

    from bench.commands.terminal import console
    from bench.summaries import summaries
    from kernels.errors import InputError

    found = summaries(folder)
    if not found:
        raise InputError(f"there is no run in {folder}; `python main.py compare` makes one")
    table = Table("run", "started", "what", "machine", box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in ("cases", "done", "failed"):
        table.add_column(name, justify="right")
    for item in found:
        table.add_row(
            str(item.path),
            item.started,
            item.what,
            item.machine,
            str(item.cases),
            str(item.measured),
            str(item.failed) if item.failed else "",
        )
    console().print(table)


@app.command("show")
def show_command(
    run: Path = typer.Argument(metavar="RUN", help="A run folder."),
    layers: bool = typer.Option(False, "--layers", help="Print every layer's time and errors too."),
    output: str = typer.Option("table", "--format", metavar="table|csv|json|md", help="What goes to stdout."),
) -> None:
    """The tables of a saved run, ladder or profile, with its machine and settings."""
    from bench.charts.footer import footer
    from bench.commands import parsing
    from bench.commands.compare import Output, show
    from bench.commands.terminal import console
    from bench.rows import in_order
    from bench.store import RunFolder
    from bench.summaries import kind_of
    from bench.tables import FORMATS

    wanted = parsing.one_of(output, FORMATS, "format")
    kind = kind_of(run)
    if kind == "ladder":
        _show_ladder(run, wanted)
        return
    if kind == "profile":
        _show_profile(run, wanted)
        return
    folder = RunFolder.open(run)
    measurements = in_order(folder.run, folder.measurements())
    show([(folder.run, measurements)], Output(wanted, (), layers))
    if wanted == "table":
        for line in footer([folder.run], measurements):
            console().print(line, style="dim", markup=False)
        if left := len(folder.missing()):
            console().print(f"{left} of {len(folder.run.cases)} cases are not measured yet", style="yellow")


def _show_ladder(path: Path, wanted: str) -> None:
    from bench.charts.ladder import footer
    from bench.commands.ladder import show
    from bench.commands.terminal import console
    from bench.ladder.store import LadderFolder

    folder = LadderFolder.open(path)
    show(folder, folder.measurements(), wanted)
    if wanted == "table":
        for line in footer(folder.ladder):
            console().print(line, style="dim", markup=False)
        if left := len(folder.missing()):
            count = len(folder.ladder.cases)
            console().print(f"{left} of {count} cases are not measured yet", style="yellow")


def _show_profile(path: Path, wanted: str) -> None:
    from bench.charts.footer import machine
    from bench.commands.profile import Shown, show
    from bench.commands.terminal import console
    from bench.profile.store import ProfileFolder

    folder = ProfileFolder.open(path)
    measurements = folder.measurements()
    show(folder, measurements, Shown(format=wanted))
    if wanted == "table":
        console().print(machine(folder.profile), style="dim", markup=False)
        if left := len(folder.profile.cases) - len(measurements):
            console().print(f"{left} of {len(folder.profile.cases)} cases were not profiled", style="yellow")


@app.command("thin")
def thin_command(
    run: Path = typer.Argument(metavar="RUN", help="A run folder."),
    target: Path = typer.Argument(metavar="TO", help="The new folder to write."),
    nbytes: int = typer.Option(300_000, "--bytes", metavar="N", min=1, help="How large it may be."),
) -> None:
    """Write a run again, small enough to send: charts and tables stay, most raw samples go."""
    from bench.thin import thin

    print(f"{target}: {thin(run, target, nbytes):,} bytes")


@app.command("copy")
def copy_command(
    run: Path = typer.Argument(metavar="RUN", help="A run folder."),
    target: Path = typer.Argument(metavar="TO", help="The new folder to write."),
) -> None:
    """Copy a run, also one that is being measured: what is whole so far comes along."""
    from bench.store import copy

    print(copy(run, target))
