"""What says that two runs are the same sees where they are not."""

import json
import shutil
from pathlib import Path

import msgspec
import pytest

from bench.results.records import MACHINE
from bench.run.kinds.comparison import KIND as COMPARISON
from tests.bench.extras.remote import there, whole

BEFORE = there.ROOT / "tests" / "golden" / "runs" / "before"


def change(folder: Path, how) -> None:
    """Change the lines of a run, each a dict."""
    file = folder / "results.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in how(lines)))


def other_rung(lines):
    next(layer for line in lines for layer in line["layers"] if layer.get("rung"))["rung"] = "another"
    return lines


def other_answers(lines):
    lines[2]["accuracy"] = {}
    return lines


@pytest.mark.parametrize(
    ("shared", "how", "told"),
    [
        (True, lambda lines: lines, ""),
        (True, other_rung, "layers: "),
        (False, other_rung, ""),
        (False, other_answers, "accuracy: "),
        (True, lambda lines: lines[1:], "cases: "),
        (True, lambda lines: [{**line, "facts": {}} for line in lines], "on which machine"),
    ],
)
def test_two_runs_that_differ_are_told_apart(tmp_path, shared, how, told):
    for name in ("here", "there"):
        shutil.copytree(BEFORE, tmp_path / name)
    change(tmp_path / "there", lambda lines: [{**line, "facts": {MACHINE: "lab"}} for line in lines])
    change(tmp_path / "there", how)
    found = whole.compared(tmp_path / "here", tmp_path / "there", shared)
    assert all(told in words for words in found) if told else not found
    assert bool(found) == bool(told)


def test_a_file_that_did_not_come_is_seen(tmp_path):
    for name in ("here", "there"):
        shutil.copytree(BEFORE, tmp_path / name)
    change(tmp_path / "there", lambda lines: [{**line, "facts": {MACHINE: "lab"}} for line in lines])
    next((tmp_path / "there" / "predictions").iterdir()).unlink()
    assert [words.split(":")[0] for words in whole.compared(tmp_path / "here", tmp_path / "there")] == [
        "files in predictions"
    ]


def test_what_the_diff_says_counts_where_it_is_decided(tmp_path):
    assert whole.told_by_diff(BEFORE, BEFORE)[1] == []
    with COMPARISON.open(BEFORE) as before, COMPARISON.create(tmp_path / "slow", before.header) as slow:
        slow.claim()
        for made in before.measurements():
            times = 2 if made.case.backend == "engine-cuda" else 1
            slow.append(msgspec.structs.replace(made, samples_ns=tuple(times * ns for ns in made.samples_ns)))
    assert len(whole.told_by_diff(BEFORE, tmp_path / "slow")[1]) == 2
