"""What the program writes is as docs/formats.json says: the file is of today's types, and real outputs, new
and old, are held against it."""

from __future__ import annotations

import ast
import copy
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import main
from bench.commands import formats
from bench.measure.selfcheck import Selfcheck, SelfComparison
from bench.results import note, results_file
from bench.results.finding import Finding
from bench.results.kinds import kinds
from bench.results.ladder_records import RungMeasurement
from bench.results.ladder_rows import rows
from bench.results.records import Case, Job
from bench.results.stats import Interval
from bench.run.kinds.ladder import KIND as LADDER
from bench.views.tables import compiled_tables
from bench.views.tables import ladder_tables as tables
from bench.views.tables.table import to_json
from tests.bench.ladder.test_ladder_folders import example

ROOT = Path(formats.__file__).parents[2]
HELD = json.loads((ROOT / "docs" / "formats.json").read_text("utf-8"))
RECORDED = ROOT / "tests" / "bench" / "results" / "recorded"
SAMPLES = ROOT / "bench" / "results"
TYPES: dict[str, Callable[[Any], bool]] = {
    "null": lambda v: v is None,
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, int | float) and not isinstance(v, bool),
    "string": lambda v: isinstance(v, str),
    "array": lambda v: isinstance(v, list),
    "object": lambda v: isinstance(v, dict),
}
# All that schemas of ours say; what they may not say unseen is no check.
SAYS = {
    *("$ref", "anyOf", "type", "enum", "const", "properties", "required", "additionalProperties", "items"),
    *("prefixItems", "minItems", "maxItems", "title", "description", "default", "discriminator"),
}


def wrong(value: Any, schema: dict[str, Any], parts: dict[str, Any], at: str = "$") -> list[str]:
    """Where a value is not as a schema says. parts: what it may refer to."""
    assert set(schema) <= SAYS, set(schema) - SAYS
    if "$ref" in schema:
        beside = schema.get("properties", {})  # what a line has beside its record
        found = [
            w
            for name in beside
            if name in value
            for w in wrong(value[name], beside[name], parts, f"{at}.{name}")
        ]
        rest = {name: part for name, part in value.items() if name not in beside} if beside else value
        return found + wrong(rest, parts[schema["$ref"].removeprefix("#/$defs/")], parts, at)
    if "anyOf" in schema:
        tried = [wrong(value, one, parts, at) for one in schema["anyOf"]]
        return [] if [] in tried else min(tried, key=len)
    found = []
    if "type" in schema and not TYPES[schema["type"]](value):
        return [f"{at}: {value!r} is no {schema['type']}"]
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{at}: {value!r} is none of {schema['enum']}")
    if "const" in schema and value != schema["const"]:
        found.append(f"{at}: {value!r} is not {schema['const']!r}")
    if isinstance(value, dict):
        known = schema.get("properties", {})
        found += [f"{at}: no {name}" for name in schema.get("required", ()) if name not in value]
        for name, part in value.items():
            others = schema.get("additionalProperties", True if not known else None)
            if name in known:
                found += wrong(part, known[name], parts, f"{at}.{name}")
            elif isinstance(others, dict):
                found += wrong(part, others, parts, f"{at}.{name}")
            elif not others and known:
                found.append(f"{at}: {name} is not known")
    if isinstance(value, list):
        fixed = schema.get("prefixItems", [])
        for place, part in enumerate(value):
            of = fixed[place] if place < len(fixed) else schema.get("items", {})
            if of is not False:
                found += wrong(part, of, parts, f"{at}[{place}]")
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            found.append(f"{at}: {len(value)} items")
    return found


def against(name: str, value: Any) -> list[str]:
    """As somebody has it who takes this one schema out of the document."""
    whole = dict(HELD["formats"][name])
    parts = whole.pop("$defs")
    assert whole.pop("$schema") == formats.DIALECT
    return wrong(value, whole, parts)


def test_the_schemas_are_of_today_s_types() -> None:
    assert (ROOT / "docs" / "formats.json").read_text("utf-8") == formats.text(), (
        "a format changed: python -m bench.commands.formats docs/formats.json"
    )


@pytest.mark.parametrize("name", HELD["formats"])
def test_each_schema_holds_all_that_it_refers_to_and_nothing_else(name: str) -> None:
    whole = HELD["formats"][name]
    referred = set(re.findall(r'"#/\$defs/([^"]+)"', json.dumps(whole)))
    assert referred == set(whole["$defs"])
    assert '"$ref": "#/' not in json.dumps(whole).replace('"$ref": "#/$defs/', "")


def test_the_page_of_formats_tells_each_of_them() -> None:
    page = (ROOT / "docs" / "formats.md").read_text("utf-8")
    assert [name for name in HELD["formats"] if f"`{name}`" not in page] == []
    named = set(re.findall(r"\| `([^`]+)` \|", page))
    assert {name for name in named if not name.endswith(".npz")} == set(HELD["formats"])


@pytest.mark.parametrize("place", [RECORDED, SAMPLES], ids=["recorded before", "samples"])
@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.name)
def test_folders_old_and_new_and_what_is_printed_of_them(
    kind: Any, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = next(path.parent for path in place.glob(f"*/{kind.file}"))
    header = kind.open(folder).header  # of whichever version, as it would be written now
    assert against(kind.file, json.loads(msgspec.json.encode(header))) == []
    lines = (folder / "results.jsonl").read_bytes().splitlines()
    assert lines
    for line in lines:
        assert against(f"results.jsonl of {kind.a}", json.loads(results_file.whole(line))) == []
    for file in folder.glob("events/*.jsonl.gz"):
        for line in gzip.decompress(file.read_bytes()).splitlines()[:50]:
            assert against("events/CASE.jsonl.gz", json.loads(line)) == []
    shapes = set()
    for further in ((), ("--layers",)) if kind.layered else ((),):
        assert main.main(["runs", "show", str(folder), "--format", "json", *further]) == 0
        printed = json.loads(capsys.readouterr().out)
        assert against(f"{kind.verb} --format json", printed) == []
        assert printed["kernelscope"]
        assert printed["environment"]["cpu"]
        assert printed["commands"]
        shapes.add(tuple(printed))
    assert len(shapes) == 1, "one shape, whatever is asked beside"


def test_a_finding_is_told_with_its_fault_index_and_shape() -> None:
    ladder, found = example()
    finding = Finding(
        fault="bias", reason="the bias is missing", index=(0, 3, 1), shape=(1, 4, 4), expected="1", got="0"
    )
    found = [msgspec.structs.replace(m, finding=finding) if m.case.user else m for m in found]
    printed = json.loads(to_json(tables.output(ladder, rows(ladder, found), [])))
    assert against("ladder --format json", printed) == []
    told = next(rung for rung in printed["rungs"] if rung["whose"] == "yours")
    assert (told["fault"], told["finding"]["index"], told["finding"]["shape"]) == (
        "bias",
        [0, 3, 1],
        [1, 4, 4],
    )
    assert {rung["finding"] for rung in printed["rungs"] if rung is not told} == {None}


def test_what_has_no_folder_of_a_kind(tmp_path: Path) -> None:
    ladder, found = example()
    compiled = [
        RungMeasurement(
            case=m.case, disposition="ok", facts={"compiled for": "sm_80"}, compiled={"registers": 40}
        )
        for m in found
    ]
    printed = json.loads(to_json(compiled_tables.output(ladder.job, compiled)))
    assert against("ladder --compile --format json", printed) == []
    case = Case(model="m", backend="engine-cpu", precision="fp32", batch=1)
    one = SelfComparison(case=case, ratio=Interval(1.0, 0.9, 1.1), verdict="UNCLEAR", round_ratios=(1.0,))
    held = Selfcheck(job=Job(models=("m",), backends=("engine-cpu",)), times=1, comparisons=(one,))
    assert against("selfcheck --format json", json.loads(msgspec.json.encode(held))) == []
    LADDER.create(tmp_path / "it", ladder)
    note.write(tmp_path / "it", note.Note(name="mine"))
    assert against("note.json", json.loads((tmp_path / "it" / "note.json").read_bytes())) == []


def test_what_is_not_as_it_should_be_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    """The check itself: a field less, one more, one of another type."""
    assert main.main(["runs", "show", str(RECORDED / "comparison"), "--format", "json", "--layers"]) == 0
    right = json.loads(capsys.readouterr().out)

    def without(made: Any) -> None:
        del made["cases"][0]["verdict"]

    def further(made: Any) -> None:
        made["cases"][0]["speed"] = 1

    def text(made: Any) -> None:
        made["layers"][0]["time_s"] = "1 ms"

    def as_before(made: Any) -> None:
        made["layers"] = {}

    for change in (without, further, text, as_before):
        made = copy.deepcopy(right)
        change(made)
        assert against("compare --format json", made), change


def test_the_client_s_records_are_of_today_s_types() -> None:
    kept = (ROOT / "kernelscope" / "records.py").read_text("utf-8")
    assert ast.dump(ast.parse(kept)) == ast.dump(ast.parse(formats.client())), (
        "an output changed: python -m bench.commands.formats docs/formats.json kernelscope/records.py"
    )
