"""The commands that README.md, CONTRIBUTING.md and docs/*.md tell a user to type, read out of these files.

A command is a line of a code block that begins with a program, or a code span that begins with `python` or
a command of main.py; in a table, "the same with `--x`" is the command of the row above with that beside it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.rehearsal.content import ROOT

SHELLS = ("sh", "bash", "shell", "console", "powershell")
_PROGRAM = re.compile(
    r"(?:\$ )?(?:sudo |\w+=\S+ )*"
    r"(?:python[0-9.]*|uvx?|pip3?|make|git|bash|sh|conda|apt(?:-get)?|docker|podman|curl|wget|\S+/bin/\S+|\./\S+)"
    r"(?: |$)"
)
_SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_SAME = re.compile(r"the same with `(--[^`]+)`")


@dataclass(frozen=True)
class Command:
    """One as it is written. line: where, from 1; inline: in a sentence or a table and not in a code block."""

    document: str
    line: int
    text: str
    inline: bool = False


def documents(root: Path = ROOT) -> list[Path]:
    """README.md, CONTRIBUTING.md and docs/*.md. What lies deeper records what was done elsewhere."""
    return [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").glob("*.md"))]


def every(root: Path = ROOT) -> list[Command]:
    """The commands of all documents in their order; one that is told twice, where it is told first."""
    names = cli_commands()
    found: dict[str, Command] = {}
    for path in documents(root):
        text = path.read_text(encoding="utf-8")
        for command in commands(text, path.relative_to(root).as_posix(), names):
            found.setdefault(command.text, command)
    return list(found.values())


@functools.cache
def cli_commands() -> frozenset[str]:
    """The first words that main.py knows."""
    import typer.main

    import main

    group = typer.main.get_command(main.app)
    return frozenset(group.commands)  # type: ignore[attr-defined]


def commands(text: str, document: str, names: frozenset[str]) -> Iterator[Command]:
    """Those of one document, in its order; names: the commands of main.py. In a block that has one, every
    line is one."""
    yield from sorted(_commands(text, document, names), key=lambda command: command.line)


def _commands(text: str, document: str, names: frozenset[str]) -> Iterator[Command]:
    prose: list[str] = []
    block: list[tuple[int, str]] = []
    shell = False
    for line, content, language in [*_lines(text), ("", None, "")]:
        prose.append("" if content is not None else line)
        if content is not None:
            shell |= language in SHELLS
            block.append((len(prose), content))
            continue
        if shell or any(_PROGRAM.match(told) for _, told in block):
            for number, told in block:
                if told and not told.startswith("#"):
                    yield Command(document, number, re.sub(r"\s+#\s.*", "", told.removeprefix("$ ")))
        block, shell = [], False
    yield from _spans("\n".join(prose), document, names)


def _lines(text: str) -> Iterator[tuple[str, str | None, str]]:
    """(line, what stands there if it is of a code block, the block's language), a line each. A line that goes
    on behind a backslash is told whole, at its last line."""
    fence, language, blank, inside, begun = "", "", True, False, ""
    for line in text.splitlines():
        bare = line.strip()
        opened = re.match(r"(`{3,}|~{3,})\s*(\w*)", bare)
        content: str | None = None
        if fence and bare.startswith(fence):
            fence = language = ""
        elif fence:
            content = bare
        elif opened:
            fence, language = opened[1], opened[2]
        else:
            inside = line.startswith("    ") and (inside or blank) and bool(bare)
            content = bare if inside else None
        blank = not bare
        if content is not None and content.endswith("\\"):
            begun, content = begun + content.removesuffix("\\"), ""
        elif content is not None:
            begun, content = "", begun + content
        yield line, content, language


def _spans(prose: str, document: str, names: frozenset[str]) -> Iterator[Command]:
    before = ""
    for found in re.finditer(f"{_SAME.pattern}|{_SPAN.pattern}", prose):
        line = prose.count("\n", 0, found.start()) + 1
        if found[1] is not None:
            if before:
                yield Command(document, line, f"{before} {' '.join(found[1].split())}", inline=True)
            continue
        text = " ".join(found[2].split())
        first, _, rest = text.partition(" ")
        if rest and (first in names or _PROGRAM.match(text)):
            yield Command(document, line, text, inline=True)
            before = text
