"""The list of all commands and options as a page, from the command line itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer.main


def markdown() -> str:
    """Every command of main.py: what it does, how it is called, and its options under their headings."""
    import main

    found = typer.main.get_command(main.app)
    context = found.make_context("kernelscope", [], resilient_parsing=True)
    head = (
        "# All commands and options\n\nThis page is made from the command line itself. "
        "[Commands](../docs/commands.md) explains them. `python main.py COMMAND --help` prints the same.\n"
    )
    return head + "".join(_commands(found, context, 2))


def _commands(group: Any, context: Any, level: int) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command.hidden:
            continue
        inner = type(context)(command, info_name=name, parent=context)
        yield from _command(command, inner, level)
        if hasattr(command, "list_commands"):
            yield from _commands(command, inner, min(level + 1, 3))


def _command(command: Any, context: Any, level: int) -> Iterator[str]:
    path = context.command_path.removeprefix("kernelscope ")
    yield f"\n{'#' * level} {path}\n\n{_prose(command.help or '')}\n"
    if hasattr(command, "list_commands"):
        return
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"\n```text\npython main.py {path} {usage}\n```\n"
    defaults: dict[str, str] = getattr(command.callback, "defaults", dict)()
    groups: dict[str, list[str]] = {}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is None or "--help" in record[0]:
            continue
        default = f" Default: `{defaults[parameter.name]}`." if defaults.get(parameter.name) else ""
        heading = getattr(parameter, "rich_help_panel", None) or "Options"
        line = f"| {_names(record[0])} | {_cell(record[1])}{default} |\n"
        groups.setdefault(heading, []).append(line)
    for heading, lines in groups.items():
        yield f"\n**{heading}**\n\n| Option | What it does |\n| --- | --- |\n{''.join(lines)}"


def _names(text: str) -> str:
    """ "--layers / --no-layers" as code, each name for itself."""
    plain = text.partition(" <")[0].replace("|", "\\|")
    return " / ".join(f"`{part}`" for part in re.split(r" / |, (?=-)", plain))


def _cell(text: str) -> str:
    """Of what options say of themselves, which is plain text: nothing of it is Markdown's, but what stands in
    backticks."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    plain = [part if part.startswith("`") else re.sub(r"([\\*_<>\[\]])", r"\\\1", part) for part in parts]
    return "".join(plain).replace("|", "\\|")


def _prose(text: str) -> str:
    return "\n\n".join(_cell(part) for part in re.split(r"\n\s*\n", text.strip()))
