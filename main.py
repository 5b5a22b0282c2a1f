"""Kernelscope's command line; without arguments, the window, or the default comparison where none can open.

Exit codes: `bench.words.exits`.
"""

import _signal  # built in: `signal` takes its time to load, as all that follows

if __name__ == "__main__" and _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # nothing has begun: Ctrl-C is the end, without a word

import functools
import sys
from collections.abc import Callable, Sequence

import typer

from bench import modules
from bench.commands import diff, models, runs
from bench.commands.compare import compare
from bench.commands.compare import default as default_comparison
from bench.commands.config import config
from bench.commands.export import export
from bench.commands.export_op import export_op
from bench.commands.given import Grouped
from bench.commands.judge import judge
from bench.commands.ladder import ladder
from bench.commands.profile import profile
from bench.commands.selfcheck import selfcheck
from bench.words import called, exits, plain, streams
from kernels.environment import PACKAGED
from kernels.errors import InputError, KernelscopeError, UnavailableError, UnsupportedError

app = typer.Typer(
    name="kernelscope",
    help="Is my kernel right, how fast is it beside the reference, and what holds it back?",
    add_completion=PACKAGED,  # a shell completes the name of a command, and `python main.py` is none
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
groups = {"models": models.app, "runs": runs.app}
commands = [compare, config, export, export_op, judge, ladder, profile, selfcheck]
for module in modules("extras/*/command.py"):  # satellites are found by their files
    if isinstance(module.COMMAND, typer.Typer):
        groups[module.COMMAND.info.name] = module.COMMAND
    elif hasattr(module, "GROUP"):
        groups[module.GROUP].command(module.NAME)(module.COMMAND)
    else:
        commands.append(module.COMMAND)
for command in sorted(commands, key=lambda command: command.__name__):
    app.command(cls=Grouped)(command)
runs.app.command()(diff.diff)
runs.app.add_typer(diff.baseline, name="baseline")
for name, group in sorted(groups.items()):
    app.add_typer(group, name=name)


@app.command()
def doctor() -> None:
    """Say what this machine can run, and what is missing.

    For what it cannot run, why, and what would help."""
    from bench.commands.doctor import doctor
    from gui.base import display

    raise typer.Exit(doctor(display.problem()))


@app.callback(invoke_without_command=True)
def default(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version, with the commit where known."),
) -> None:
    """Without a command: the window; without a display, the default comparison in the terminal."""
    if version:
        from bench.words.version import described

        print(f"kernelscope {described()}")
        raise typer.Exit(exits.OK)
    if context.invoked_subcommand is not None:
        return
    from bench.commands.measuring import warn_of_runtime
    from bench.run import settings
    from gui.base import display

    settings.known()  # what is wrong with a file of settings is told here, and not in the window
    if (problem := display.problem()) is None:
        warn_of_runtime()
        from gui.shell.app import run

        raise typer.Exit(run())
    print(f"{problem}; here is the default comparison in the terminal", file=sys.stderr)
    raise typer.Exit(default_comparison())


# The one usage error of typer that is public tells the class of all of them.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]


# As usage and errors name the command.
_NAME = called.WORDS[0] if PACKAGED else None

# What was asked for cannot be had, wrong input or right; everything else was tried and failed.
NOT_TO_BE_HAD = (InputError, UnsupportedError, UnavailableError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (sys.argv's unless given); the exit code."""
    streams.lenient()
    try:
        result = _command()(args=arguments, prog_name=_NAME, standalone_mode=False)
        streams.flush()
    except typer.Abort:
        return exits.CANCELLED
    except KeyboardInterrupt:
        print("cancelled", file=sys.stderr)
        return exits.CANCELLED
    except OSError as error:
        # Whoever read standard output has gone (`| head`), or it cannot be written; all else that reads and
        # writes says in a sentence what it was at.
        if (reason := streams.gone(error)) is None:
            raise
        if reason:
            print(reason, file=sys.stderr)
        return exits.FAILED
    except UnicodeEncodeError as error:
        print(f"a name is no text: {error.object[:200]!r}; rename it to go on", file=sys.stderr)
        return exits.REFUSED
    except UsageError as error:
        text = error.format_message()  # type: ignore[attr-defined]
        # Of a group without a command it is the whole help, which stays as it is.
        print(text if text.startswith("Usage:") else _one_line(text), file=sys.stderr)
        return exits.REFUSED
    except KernelscopeError as error:
        print(_one_line(str(error)), file=sys.stderr)
        return exits.REFUSED if isinstance(error, NOT_TO_BE_HAD) else exits.FAILED
    return result if isinstance(result, int) else exits.OK


@functools.cache
def _command() -> Callable[..., object]:
    """What `app` is made into: once, for it takes 13 ms."""
    return typer.main.get_command(app)


def _one_line(text: str) -> str:
    return " ".join(plain.printable(text).split())


if __name__ == "__main__":
    streams.quiet_interrupts()
    sys.exit(streams.last_words(main()))
