"""`remote`: machines elsewhere that measure for this one: set up, looked at, renewed, removed."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

import typer

from bench.commands.given import number
from bench.words.option import Number

if TYPE_CHECKING:
    from bench.extras.remote.asking import Says
    from bench.extras.remote.places import Place

app = typer.Typer(
    name="remote",
    no_args_is_help=True,
    help="Machines elsewhere that measure, reached by ssh or a queue.",
    rich_markup_mode=None,
)
COMMAND = app
NAME = typer.Argument(metavar="NAME", help="What the place is called here.")


@app.command("add")
def add_command(
    name: str = NAME,
    host: str = typer.Argument(
        "", metavar="HOST", help="As ssh takes it: user@host, or a name of its configuration."
    ),
    launch: str = typer.Option(
        "", metavar="WORDS", help='Before what measures there: "srun -p gpu --gres=gpu:1".'
    ),
    folder: str = typer.Option("", metavar="DIR", help="A new folder there; default: ~/.kernelscope-place."),
    python: str = typer.Option(
        "", metavar="PATH", help="The Python there; default: the first that is new enough."
    ),
    offline: bool = typer.Option(
        False, "--offline", help="It reaches no registry: packages are sent from here."
    ),
    lease: float = number(
        60.0,
        "--lease",
        Number(kind=float, most=10_000),
        "How long it goes on when nobody listens any more.",
        metavar="MINUTES",
    ),
) -> None:
    """Set up a machine elsewhere, with this program in one folder.

    It is reached by ssh with your own configuration and keys; nothing here asks for a password. Then `doctor`
    says what that machine can run. Exit code 0: something can run there; 1: nothing can; 2: bad input, or it
    cannot be reached or set up."""
    from bench.extras.remote import installing
    from bench.extras.remote.places import Place
    from kernels.errors import InputError

    try:
        words = tuple(shlex.split(launch))
    except ValueError as error:
        raise InputError(f"--launch {launch!r} is no command: {error}") from error
    place = Place(
        name=name,
        host=host,
        launch=words,
        folder=folder or installing.FOLDER,
        offline=offline,
        lease_s=60 * lease,
    )
    _report(installing.added(place, python, _says(name)))


@app.command("list")
def list_command() -> None:
    """Show the places, as they were when last looked at."""
    from bench.extras.remote import places
    from bench.views.tables.grid import Grid
    from bench.views.tables.table import Column, Table
    from bench.words.called import CALLED
    from bench.words.terminal import console
    from kernels.errors import KernelscopeError

    names = places.names()
    if not names:
        print(f"no place is known; `{CALLED} remote add lab user@host` adds one", file=sys.stderr)
        return
    rows = []
    for name in names:
        try:
            place = places.load(name)
        except KernelscopeError as error:  # of one place; the others are told all the same
            rows.append((name, "", "", "", str(error), ""))
            continue
        through = shlex.join(place.launch)
        state = place.version or f"not installed: `{CALLED} remote update {name}`"
        rows.append(
            (
                name,
                place.host or "this machine",
                through,
                place.gpu or ("no GPU" if place.doctor else ""),
                state,
                place.looked[:16],
            )
        )
    titles = ("name", "host", "through", "GPU", "Kernelscope", "looked at")
    columns: list[Column[tuple[str, ...]]] = [
        Column(title, lambda row, at=at: row[at], left=True)  # type: ignore[misc]
        for at, title in enumerate(titles)
    ]
    console().print(Grid(Table(columns, rows), wraps=set(titles), airy=True))


@app.command("doctor")
def doctor_command(name: str = NAME) -> None:
    """Say what a place can run, and what is missing there."""
    from bench.extras.remote import installing, places

    _report(installing.examined(places.load(name), _says(name)))


@app.command("update")
def update_command(
    name: str = NAME,
    python: str = typer.Option("", metavar="PATH", help="Another Python there; default: as before."),
    offline: bool | None = typer.Option(
        None, "--offline/--online", help="Packages are sent from here, or fetched there; default: as before."
    ),
) -> None:
    """Install this version there, or go on where it broke off."""
    import msgspec

    from bench.extras.remote import installing, places

    place = places.load(name)
    if offline is not None:
        place = msgspec.structs.replace(place, offline=offline)
    _report(installing.updated(place, python, _says(name)))


@app.command("remove")
def remove_command(
    name: str = NAME,
    only_here: bool = typer.Option(False, "--only-here", help="Forget it, and leave there what is there."),
) -> None:
    """Forget a place, and remove its folder there with all in it."""
    from bench.extras.remote import installing, places

    place = places.load(name)
    if not only_here:
        _says(name)("removing its folder there")
    gone = installing.removed(place, only_here)
    there = f"; {place.folder} there is gone" if gone else ""
    print(f"{name} is forgotten{there}", file=sys.stderr)


def _says(name: str) -> Says:
    return lambda text: print(f"{name}: {text}", file=sys.stderr, flush=True)


def _report(place: Place) -> None:
    from bench.commands.doctor import report
    from bench.words.called import CALLED

    status = report(place.doctor)
    if not status:
        runs = f"{place.gpu}; " if place.gpu else "it has no GPU that can be used, so CPU backends alone; "
        print(
            f"{place.name} is ready: {runs}`{CALLED} compare … --on {place.name}` measures there",
            file=sys.stderr,
        )
    raise typer.Exit(status)
