"""`runs`: the folders of runs, ladders and profiles that there are, listed, shown, copied and made small."""

from __future__ import annotations

from pathlib import Path

import typer

from bench.commands.diff import RUNS
from bench.commands.given import number
from bench.words.called import CALLED
from bench.words.option import Number

app = typer.Typer(no_args_is_help=True, help="Saved runs, ladders and profiles.", rich_markup_mode=None)


@app.command("list")
def list_command(
    folder: Path = typer.Argument(RUNS, metavar="[DIR]", help="The folder that holds the run folders."),
) -> None:
    """List the runs in a folder, the oldest first.

    Comparisons, ladders and profiles; if one cannot be read, the reason."""
    from bench.results.summaries import summaries
    from bench.run import settings
    from bench.views.tables.grid import Grid
    from bench.views.tables.run_tables import COLUMNS
    from bench.views.tables.table import Table, pick
    from bench.words.terminal import console
    from kernels.errors import InputError

    if folder == RUNS:
        folder = settings.runs_folder()
    found = summaries(folder)
    if not found:
        if folder != RUNS and not folder.is_dir():
            raise InputError(f"there are no runs in {folder}: there is no such folder")
        print(f"no runs yet in {folder}; `{CALLED} compare` makes one")
        return
    # The run whole, so that it can be copied into the next command.
    given = ("called", "note")
    columns = pick(
        COLUMNS,
        *("path", "called", "created_at", "what", "machine", "meant", "measured", "failed", "note"),
    )
    columns = tuple(column for column in columns if column.name not in given or column.has_content(found))
    wraps = {column.name for column in columns} - {"path"}
    console().print(Grid(Table(columns, found), wraps=wraps, airy=True))


@app.command("name")
def name_command(
    run: Path = typer.Argument(metavar="RUN", help="A run's, a ladder's or a profile's folder."),
    name: str = typer.Argument("", metavar="[NAME]", help="What to call it; none takes the name away."),
    note: str | None = typer.Option(None, metavar="TEXT", help='Also note this of it; "" takes it away.'),
) -> None:
    """Name a run, or note something of it.

    Both are kept in its folder, and shown in lists and legends."""
    from bench.results import note as notes

    before = notes.read(run)
    kept = notes.write(run, notes.Note(name=name, text=before.text if note is None else note))
    print(f"{run}: {kept.name or run.absolute().name}")


@app.command("show")
def show_command(
    run: Path = typer.Argument(metavar="RUN", help="A run's, a ladder's or a profile's folder."),
    layers: bool = typer.Option(False, "--layers", help="Of a run: print every layer's time and errors too."),
    bisect: bool = typer.Option(
        False, "--bisect", help="Of a run: say at which layer each case first leaves the reference."
    ),
    output: str = typer.Option(
        "table",
        "--format",
        metavar="table|csv|json|md|html",
        help="What goes to stdout; html: a part of a page, as a notebook shows it.",
    ),
) -> None:
    """Print the tables of a saved run, ladder or profile.

    Its machine and settings stand below."""
    from bench.results import note
    from bench.results.folders import open_folder
    from bench.views.tables.table import FORMATS
    from bench.words.option import one_of
    from bench.words.terminal import console
    from kernels.errors import InputError

    wanted = one_of(output, (*FORMATS, "html"), "--format")
    folder = open_folder(run)
    for option, given in (("--layers", layers), ("--bisect", bisect)):
        if given and not folder.kind.layered:
            raise InputError(f"{option} is of a comparison; {run} is none, but holds {folder.kind.a}")
    view = folder.kind.part("view")
    view.show(folder, wanted, **({"layers": layers, "bisect": bisect} if folder.kind.layered else {}))
    if wanted == "table":
        kept = note.read(run)
        for line in (*filter(None, (kept.name, kept.text)), *view.below(folder)):
            console().print(line, style="dim", markup=False)
        if left := len(folder.missing()):
            console().print(f"{left} of {len(folder.cases)} cases are not measured yet", style="yellow")


@app.command("thin")
def thin_command(
    run: Path = typer.Argument(metavar="RUN", help="A run's, a ladder's or a profile's folder."),
    target: Path = typer.Argument(metavar="TO", help="The new folder to write."),
    nbytes: int = number(300_000, "--bytes", Number(), "Its largest size in bytes."),
) -> None:
    """Write a copy of a run that is small enough to send.

    All samples are kept, packed, so that every figure is derived again as it was. If that is not enough, the
    errors of a comparison's layers are left out but for one case of each backend, a ladder's error maps, and
    the events of a profile's middle batch sizes; the copy says so.
    """
    from bench.results.thin import thin

    print(f"{target}: {thin(run, target, nbytes):,} bytes")


@app.command("copy")
def copy_command(
    run: Path = typer.Argument(metavar="RUN", help="A run's, a ladder's or a profile's folder, or its file."),
    target: Path = typer.Argument(
        metavar="TO", help="The new folder to write; FILE.zip: all of it in one file."
    ),
) -> None:
    """Copy a run, a ladder or a profile.

    While it is being measured, all that is complete so far. A file that ends with .zip is opened by every
    command that shows a run, and by the window."""
    from bench.results.folders import copy

    print(copy(run, target))


@app.command()
def report(
    runs: list[Path] = typer.Argument(
        metavar="RUN…",
        help="Run folders (of a case in several, the latest counts); or ladders', or profiles'.",
    ),
    out: Path | None = typer.Option(
        None, metavar="FILE.html|FILE.md", help="The report, in the form of its ending."
    ),
    html: bool = typer.Option(
        False,
        "--html",
        help="HTML, all in one file; without --out, report.html among the first run's charts.",
    ),
    charts: Path | None = typer.Option(
        None, metavar="DIR", help="Of Markdown: the folder for its charts; default: one beside it."
    ),
    title: str = typer.Option("", metavar="TEXT", help="Its heading; default: the device's name."),
) -> None:
    """Write a report of saved runs.

    What was measured how, a table and charts a model, what falls short. Of
    ladders: a table, charts and a sentence a rung for every batch size, and an overview of each node. Of
    profiles: where the time goes, case by case, and what starting cold costs."""
    from bench.results.folders import open_folder
    from bench.views.reports import report_form
    from kernels.errors import InputError

    kinds = [open_folder(path).kind for path in runs]
    for kind, path in zip(kinds, runs, strict=True):
        if kind is not kinds[0]:
            raise InputError(f"{runs[0]} is {kinds[0].a} and {path} is {kind.a}: report the two apart")
    target = report_form.file_of(out, html, runs[0])
    report_form.form_of(target, charts)  # a name that means no form is told before anything is read
    for path in kinds[0].part("report").write(runs, target, charts, title):
        print(path)
