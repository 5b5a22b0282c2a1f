"""The JSON schemas of all that the program writes for others to read, derived from its types:

    python -m bench.commands.formats docs/formats.json

They are found by the kinds of run: what each keeps, says and prints. What is written beside stands here, and
of satellites in their modules `file_formats.py`.
"""

from __future__ import annotations

import pkgutil
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench import modules
from bench.measure.selfcheck import Selfcheck
from bench.results.kinds import kinds
from bench.results.note import Note
from bench.results.store import NOTE_FILE, RESULTS_FILE

SUM = "the CRC-32 of the line before it, in hexadecimal; a line whose sum is wrong is damaged"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE = re.compile(r'"#/\$defs/([^"]+)"')


def formats() -> dict[str, Any]:
    """Each format's name and its type."""
    from bench.commands.ladder_saves import Save, SavesOutput
    from bench.results.events import AnyEvent
    from bench.results.machine_limits import MachineLimits
    from bench.views.tables.compiled_tables import CompiledOutput

    found: dict[str, Any] = {}
    for kind in kinds():
        found[kind.file] = kind.header
        found[f"{RESULTS_FILE} of {kind.a}"] = kind.line
        found[f"what the worker of {kind.a} reads"] = kind.reads
        found[f"what the worker of {kind.a} says"] = kind.says
        if output := getattr(kind.part("view"), "OUTPUT", ""):
            found[f"{kind.verb} --format json"] = pkgutil.resolve_name(output)
    found["ladder --compile --format json"] = CompiledOutput
    found["ladder --saves --format json"] = SavesOutput
    found["saves.jsonl"] = Save
    found["events/CASE.jsonl.gz"] = AnyEvent
    for module in modules("extras/*/file_formats.py"):
        found |= module.FORMATS
    found["limits.json"] = MachineLimits
    found["selfcheck --format json"] = Selfcheck
    found[NOTE_FILE] = Note
    return found


def schema(found: dict[str, Any] | None = None) -> dict[str, Any]:
    """All of them as one document. Each format under its name is a schema that stands alone: taken out of the
    document it still holds all that it refers to."""
    found = formats() if found is None else found
    made, parts = msgspec.json.schema_components(
        found.values(), ref_template="#/$defs/{name}", schema_hook=_anything
    )
    for name, one in zip(found, made, strict=True):
        if name.startswith(RESULTS_FILE):
            one["properties"] = {"sum": {"type": "string", "description": SUM}}
    return {
        "title": "What Kernelscope writes",
        "formats": {
            name: {"$schema": DIALECT, **one, "$defs": _needed(one, parts)}
            for name, one in zip(found, made, strict=True)
        },
    }


def _needed(one: Any, parts: dict[str, Any]) -> dict[str, Any]:
    """The parts that a schema refers to, and those that these refer to."""
    found: set[str] = set()
    todo = [one]
    while todo:
        named = set(_REFERENCE.findall(msgspec.json.encode(todo.pop()).decode())) - found
        found |= named
        todo += [parts[name] for name in named]
    return {name: parts[name] for name in sorted(found)}


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
