"""`config`: the settings that hold here, and where each is from."""

from __future__ import annotations

import sys

import typer


def config(
    trust: bool = typer.Option(
        False, "--trust", help="Agree to the project's file as it is now: to kernels and machines in it."
    ),
) -> None:
    """Show the settings that hold here, and where each is from.

    A setting is an option that need not be typed. It is looked for in an environment variable; in
    kernelscope.toml, or [tool.kernelscope] of pyproject.toml, in this folder or one above; and in the user's
    own kernelscope.toml."""
    from bench.run import settings
    from bench.views.tables.grid import Grid
    from bench.views.tables.table import Column, Table
    from bench.words.terminal import console

    if trust:
        print(f"trusted as it is now: {settings.trust()}", file=sys.stderr)
    found, usual = settings.known(), _usual()
    rows = []
    for name, option in settings.LASTING.items():
        setting = found.get(name)
        value = usual.get(option.parameter, "–") if setting is None else ", ".join(setting.texts)
        where = "default" if setting is None else setting.where
        if setting is not None and option.runs and not setting.trusted:
            where += "; not taken without `config --trust`"
        rows.append((name, value, where))
    own = settings.user_file()
    print(f"the user's file: {own}{'' if own.is_file() else ' (not written yet)'}", file=sys.stderr)
    print(f"the project's file: {settings.project_file() or 'none'}", file=sys.stderr)
    columns: list[Column[tuple[str, str, str]]] = [
        Column(title, lambda row, place=place: row[place], left=True)  # type: ignore[misc]
        for place, title in enumerate(("setting", "value", "from"))
    ]
    console().print(Grid(Table(columns, rows), wraps={"setting", "value", "from"}, airy=True))


def _usual() -> dict[str, str]:
    """What applies without a setting, by the option's parameter, as one would type it; where commands differ,
    with their names."""
    from bench.commands.compare import compare
    from bench.commands.ladder import ladder
    from bench.commands.profile import profile
    from bench.commands.selfcheck import selfcheck

    told: dict[str, dict[str, list[str]]] = {}
    for command in (compare, ladder, profile, selfcheck):
        for parameter, text in command.defaults().items():  # type: ignore[attr-defined]
            if text:
                told.setdefault(parameter, {}).setdefault(text, []).append(command.__name__)
    return {
        parameter: next(iter(texts))
        if len(texts) == 1
        else ", ".join(f"{text} ({', '.join(names)})" for text, names in texts.items())
        for parameter, texts in told.items()
    }
