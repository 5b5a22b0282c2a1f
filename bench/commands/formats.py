"""The JSON schemas of all that the program writes for others to read, derived from its types:

    python -m bench.commands.formats docs/formats.json kernelscope/records.py

The second file has the outputs of commands as Python's types, for the package kernelscope. They are found by
the kinds of run: what each keeps, says and prints. What is written beside stands here, and of satellites in
their modules `file_formats.py`.
"""

from __future__ import annotations

import json
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
    from bench.commands.judge_server import Judged, Ready, Refused, Request, Said
    from bench.results.events import AnyEvent
    from bench.results.machine_limits import MachineLimits
    from bench.results.saves import Save
    from bench.views.tables.compiled_tables import CompiledOutput
    from bench.views.tables.judgement_tables import JudgementOutput
    from bench.views.tables.save_tables import SavesOutput

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
    found["judge --format json"] = JudgementOutput
    found["what judge --serve reads"] = Request
    found["what judge --serve says"] = Ready | Said | Judged | Refused
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


def client() -> str:
    """The module kernelscope.records: what commands print as JSON, as types of Python."""
    found = {
        name: part
        for one in schema({name: kind for name, kind in formats().items() if name in CLIENT_READS})[
            "formats"
        ].values()
        for name, part in one["$defs"].items()
    }
    lines: list[str] = []
    made: set[str] = set()

    def write(name: str) -> None:
        if name in made:
            return
        made.add(name)
        one = found[name]
        for other in _names(one):
            write(other)
        fields = dict(one.get("properties", {}))
        tag = fields.pop("type")["enum"][0] if _tagged(fields) else ""
        told = f', tag_field="type", tag="{tag}"' if tag else ""
        lines.append(f"\n\nclass {name}(msgspec.Struct, frozen=True, kw_only=True{told}):\n")
        doc = one.get("description", f"Part of what a command prints: {name}.")
        lines.append(f'    """{doc}"""\n\n' if "\n" not in doc else f'    """{doc.rstrip()}\n    """\n\n')
        for field, kind in fields.items():
            lines.append(f"    {field}: {_written(kind)}{_default(kind, field in one['required'])}\n")

    for name in sorted(found):
        write(name)
    body = "".join(lines)
    return CLIENT_HEAD.format(typing="Any, Literal" if "Any" in body else "Literal") + body


def _tagged(fields: dict[str, Any]) -> bool:
    """Whether a record says by its field `type` which of several it is."""
    return len(fields.get("type", {}).get("enum", ())) == 1


CLIENT_READS = (
    "compare --format json",
    "ladder --format json",
    "profile --format json",
    "judge --format json",
)
CLIENT_HEAD = '''"""What the program prints as JSON, as records. Made of the program's own types:

    python -m bench.commands.formats docs/formats.json kernelscope/records.py

Values are in base units, which the names say: `_s` seconds, `_ns` nanoseconds, `_nbytes` bytes, `_per_s` a
second; shares are fractions. What is not known is None.
"""

from __future__ import annotations

from typing import {typing}

import msgspec
'''
_PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def _names(part: Any) -> list[str]:
    """The definitions that a part of a schema names."""
    if isinstance(part, dict):
        own = [part["$ref"].rpartition("/")[2]] if "$ref" in part else []
        return own + [name for value in part.values() for name in _names(value)]
    return [name for value in part for name in _names(value)] if isinstance(part, list) else []


def _written(part: dict[str, Any]) -> str:
    """The Python type of a part of a schema."""
    if "$ref" in part:
        return str(part["$ref"].rpartition("/")[2])
    if "anyOf" in part:
        return " | ".join(map(_written, part["anyOf"]))
    if "enum" in part:
        return f"Literal[{', '.join(json.dumps(value) for value in part['enum'])}]"
    match part.get("type"):
        case "array" if isinstance(part.get("items"), dict):
            return f"tuple[{_written(part['items'])}, ...]"
        case "array":
            return "tuple[Any, ...]"
        case "object":
            others = part.get("additionalProperties")
            return f"dict[str, {_written(others)}]" if isinstance(others, dict) else "dict[str, Any]"
        case name:
            return _PLAIN.get(str(name), "Any")


def _default(part: dict[str, Any], required: bool) -> str:
    """What stands behind a field's type."""
    if required or "default" not in part:
        return "" if required else " = msgspec.field(default_factory=dict)"
    value = part["default"]
    if "$ref" in part:
        return f" = msgspec.field(default_factory={_written(part)})"
    if isinstance(value, dict):
        return " = msgspec.field(default_factory=dict)"
    if isinstance(value, str):
        return f" = {json.dumps(value)}"
    return f" = {tuple(value) if isinstance(value, list) else value!r}"


def text() -> str:
    return msgspec.json.format(msgspec.json.encode(schema()), indent=1).decode() + "\n"


def main(arguments: Sequence[str]) -> int:
    if not 1 <= len(arguments) <= 2:
        print(
            "name the files to write: python -m bench.commands.formats docs/formats.json "
            "kernelscope/records.py",
            file=sys.stderr,
        )
        return 2
    from bench.results.store import write_atomically

    for path, made in zip(arguments, (text, client), strict=False):
        write_atomically(Path(path), made().encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
