"""Options → a command: its parameters, its help in groups, and what was typed as values."""

from __future__ import annotations

import functools
import importlib
import inspect
import shlex
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import typer
import typer.core

from bench.words.called import CALLED
from bench.words.option import Number, Option, Switch, by_name
from kernels.errors import InputError


@dataclass(frozen=True)
class Given:
    """What stands on the command line. names: of options; fields: of the job, as values. lasting: further
    fields, as environment and configuration files have them."""

    names: frozenset[str]
    fields: dict[str, Any]
    lasting: dict[str, Any] = field(default_factory=dict)

    def refuse_others(self, allowed: Collection[str], why: str) -> None:
        """Raises InputError, in words, where an option was given that is not allowed there."""
        for name in sorted(self.names - set(allowed)):
            raise InputError(f"{why}; leave --{name} away")


def read(options: Sequence[Option], typed: Mapping[str, Any]) -> tuple[Given, dict[str, Any]]:
    """What was typed → what is Given, and the values of options that are no part of a job. typed: by
    parameter, a text, a list of them, or whether a switch is on; None where it was left away. Raises
    InputError."""
    names: set[str] = set()
    fields: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for option in options:
        if (found := typed.get(option.parameter)) in (None, []):
            continue
        if found == "":
            raise InputError(f"{option.typed} is empty; give a value, or leave it away")
        names.add(option.name)
        if isinstance(option.value, Switch):
            value = option.value.on if found else option.value.off
        else:
            value = option.value.read([found] if isinstance(found, str) else found, option.typed)
        if option.fields:
            fields |= option.as_fields(value)
        else:
            others[option.parameter] = value
    for option in options:
        if option.name in names and option.needs and option.needs not in names:
            raise InputError(f"{option.typed} belongs to --{option.needs}; give that too")
    return Given(frozenset(names), fields), others


def _with_settings(options: Sequence[Option], given: Given) -> tuple[Given, dict[str, Any]]:
    """The same with what the user's settings say of options that were not typed, which is told on standard
    error; and the values of those that are no part of a job."""
    from bench.run import settings

    lasting: dict[str, Any] = {}
    others: dict[str, Any] = {}
    said: list[str] = []
    jobless = any(option.jobless for option in options if option.name in given.names)
    found = settings.values(
        option for option in options if option.name not in given.names and not (jobless and option.fields)
    )
    for option in (by_name(options, name) for name in found):
        if option.needs and option.needs not in given.names | found.keys():
            continue
        value = found[option.name]
        said += option.words(value)
        if option.fields:
            lasting |= option.as_fields(value)
        else:
            others[option.parameter] = value
    if said:
        told = f"settings: {shlex.join(said)} (`{CALLED} config` says where from)"
        print(told, file=sys.stderr)
    return replace(given, lasting=lasting), others


def command(options: Sequence[Option], kind: str = "") -> Callable[[Callable[..., int]], Callable[..., None]]:
    """Makes a command of a function. It is called with what was Given, and with the values of those options
    that are no part of a job, where they were; its result is the exit code. kind: of whose job the others are
    fields ("" none)."""

    def made(function: Callable[..., int]) -> Callable[..., None]:
        @functools.wraps(function)
        def run(**typed: Any) -> None:
            given, others = read(options, typed)
            given, lasting = _with_settings(options, given)
            raise typer.Exit(function(given, **others, **lasting))

        del run.__dict__["__wrapped__"]  # whose parameters are others
        parameters = [_parameter(option) for option in options]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        run.defaults = functools.partial(_defaults, options, kind, function)  # type: ignore[attr-defined]
        return run

    return made


def number(default: float | None, flag: str, value: Number, words: str, metavar: str = "N") -> Any:
    """The parameter of a command that has no list of options: a number, read and refused as theirs are.
    default: which applies where it is not given; None where `words` say what does."""

    def read_one(text: Any) -> Any:
        return value.read([str(text)], flag)

    return typer.Option(default, flag, parser=read_one, metavar=metavar, help=words)


class Grouped(typer.core.TyperCommand):
    """A command whose help has its options under headings, each with what applies where it is not given."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        found: dict[str, str] = getattr(self.callback, "defaults", dict)()
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                default = f"  [default: {found[parameter.name]}]" if found.get(parameter.name) else ""
                group = getattr(parameter, "rich_help_panel", None) or "Options"
                groups.setdefault(group, []).append((record[0].partition(" <")[0], record[1] + default))
        for group, records in groups.items():
            with formatter.section(group):
                formatter.write_dl(records)


def _parameter(option: Option) -> inspect.Parameter:
    needs = f"With --{option.needs}: " if option.needs else ""
    about: dict[str, Any] = {
        "help": f"{needs}{option.help}",
        "rich_help_panel": option.group or None,
        "show_default": False,
    }
    value, flag = option.value, f"--{option.name}"
    if isinstance(value, Switch):
        kind: Any = bool | None
        default = typer.Option(None, f"{flag}/--no-{option.name}" if value.both else flag, **about)
    else:
        kind = list[str] | None if value.repeated else str | None
        about["metavar"] = option.metavar or "|".join(value.known)
        if value.known:
            about["autocompletion"] = value.begun
        default = typer.Argument(None, **about) if option.argument else typer.Option(None, flag, **about)
    return inspect.Parameter(
        option.parameter, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind
    )


def _defaults(options: Sequence[Option], kind: str, function: Callable[..., int]) -> dict[str, str]:
    """What applies where an option is not given, by parameter, as one would type it; "" where its help says
    it or there is nothing."""
    job = importlib.import_module(f"bench.run.kinds.{kind}").KIND.job if kind else object
    own = inspect.signature(function).parameters
    found = {}
    for option in options:
        value = option.default(job) if option.fields else own[option.parameter].default
        if isinstance(option.value, Switch):
            found[option.parameter] = option.words(value)[0] if option.value.both and value is True else ""
        elif value not in (None, "", 0, (), inspect.Parameter.empty):
            found[option.parameter] = " ".join(option.value.write(value))
    return found
