"""What `--format json` writes: one shape a command, whatever was asked beside, with the program's version and
the machine it was measured on. Its rows are typed by the columns of the tables, so that the schemas of
docs/formats.md say what there really is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from bench.results.records import Environment
from bench.views.tables.table import Column, as_text
from bench.words.version import version

SCHEMA = 1


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """The head of all of them. schema: of this output; kernelscope: the version that wrote it; environment:
    the machine on which it was measured, as its records say; commands, created_at: of what was measured, in
    the order in which it is shown."""

    schema: int = SCHEMA
    kernelscope: str = ""
    environment: Environment = Environment()
    commands: tuple[str, ...] = ()
    created_at: tuple[str, ...] = ()


def head(headers: Sequence[Any]) -> dict[str, Any]:
    """The head's fields of what these headers of runs say."""
    return {
        "kernelscope": version(),
        "environment": headers[-1].environment if headers else Environment(),
        "commands": tuple(header.command for header in headers),
        "created_at": tuple(header.created_at for header in headers),
    }


def row(name: str, columns: Sequence[Column[Any]], doc: str = "", **further: Any) -> Any:
    """The type of a row of these columns (`table.records`): each is there, null where nothing is
    known. further: what a row holds beside."""
    fields = [(column.name, _type(column)) for column in columns]
    made = msgspec.defstruct(
        name, [*fields, *further.items()], kw_only=True, frozen=True, forbid_unknown_fields=True
    )
    made.__doc__ = doc or None
    return made


def _type(column: Column[Any]) -> Any:
    """What a column holds in JSON: what it says, or by how it reads."""
    held = column.holds or (str if column.left else int if column.text is as_text else float)
    return held | None
