"""The JSON schemas of all that the program writes for others to read, derived from its types:

    python -m bench.commands.formats docs/formats.json

They are found by the kinds of run: what each keeps, says and prints; and by modules `file_formats.py`, which
say what is written beside.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.kinds.found import modules
from bench.kinds.note import Note
from bench.kinds.registry import kinds
from bench.measure.selfcheck import Selfcheck
from bench.results.store import NOTE_FILE, RESULTS_FILE

SUM = "the CRC-32 of the line before it, in hexadecimal; a line whose sum is wrong is damaged"
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def formats() -> dict[str, Any]:
    """Each format's name and its type."""
    from bench.results.machine_limits import MachineLimits

    found: dict[str, Any] = {}
    for kind in kinds():
        found[kind.file] = kind.header
        found[f"{RESULTS_FILE} of {kind.a}"] = kind.line
        found[f"what the worker of {kind.a} reads"] = kind.reads
        found[f"what the worker of {kind.a} says"] = kind.says
        output = getattr(kind.part("saved"), "OUTPUT", None)
        if output is not None:
            found[f"{kind.verb} --format json"] = output
    for module in (*modules("*/file_formats.py"), *modules("extras/*/file_formats.py")):
        found |= module.FORMATS
    found["limits.json"] = MachineLimits
    found["selfcheck --format json"] = Selfcheck
    found[NOTE_FILE] = Note
    return found


def schema(found: dict[str, Any] | None = None) -> dict[str, Any]:
    """All of them as one document: each format under its name, what they are made of once."""
    found = formats() if found is None else found
    made, parts = msgspec.json.schema_components(
        found.values(), ref_template="#/$defs/{name}", schema_hook=_anything
    )
    for name, one in zip(found, made, strict=True):
        if name.startswith(RESULTS_FILE):
            one["properties"] = {"sum": {"type": "string", "description": SUM}}
    return {
        "$schema": DIALECT,
        "title": "What Kernelscope writes",
        "formats": dict(zip(found, made, strict=True)),
        "$defs": dict(sorted(parts.items())),
    }


def _anything(kind: type) -> dict[str, Any]:
    """What may be any JSON: the fields of an operator's record."""
    if kind is object:
        return {"description": "any JSON"}
    raise NotImplementedError(kind)


def text() -> str:
    return msgspec.json.format(msgspec.json.encode(schema()), indent=1).decode() + "\n"


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1:
        print("name the file to write: python -m bench.commands.formats docs/formats.json", file=sys.stderr)
        return 2
    from bench.results.store import write_atomically

    write_atomically(Path(arguments[0]), text().encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
