"""The page of a rehearsal says what was run on what, and of which tree; the table fits a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from bench.results.records import Environment
from tests.rehearsal import report, state
from tests.rehearsal.machine import short_name
from tests.rehearsal.state import State
from tests.rehearsal.steps import Expect, Outcome, Step

HASH, OTHER = "a" * 64, "b" * 64
STEPS = [
    Step("the default comparison", "first of all", ("python", "main.py")),
    Step(
        "README.md:9 python main.py compare x | y",
        "README.md",
        ("python", "main.py", "compare", "x | y"),
        Expect((1,), bad="incorrect", fault="bias"),
        written="python main.py compare x | y",
        change="--batch 1 for 1..8",
    ),
    Step("tuned", "more", ("python", "main.py"), skip="no GPU"),
    Step("README.md:3 make run", "README.md", written="make run", left="it installs"),
    Step("README.md:4 python x", "README.md", written="python x", unknown="which program that is"),
    Step("last", "more", ("python", "main.py", "doctor")),
]


def held() -> State:
    outcomes = [
        Outcome(
            name=STEPS[0].name, outcome="ok", seconds=61.2, at="2026-01-02 03:04", before="not done after 5 s"
        ),
        Outcome(name=STEPS[1].name, outcome="failed", seconds=2.5, reason="exit code 0 | <none>"),
    ]
    return State(
        content=HASH,
        machine="h200",
        gpu="NVIDIA H200",
        environment=Environment(gpu="NVIDIA H200", cpu="Xeon", cores=16, driver="580.1", kernelscope="0.1.0"),
        outcomes={outcome.name: outcome for outcome in outcomes},
    )


def test_the_page_has_every_step_and_is_known_again(tmp_path: Path):
    text = report.page(STEPS, held())
    assert "- Xeon (16 cores) · NVIDIA H200 · driver 580.1\n- Kernelscope 0.1.0" in text
    assert "6 steps: 1 ok, 1 failed, 1 unknown, 1 skipped, 1 left out, 1 not yet; 64 s" in text
    assert (
        "| the default comparison | `python main.py` | exit code 0 | 61.2 | ok | at first: not done" in text
    )
    assert (
        "own kernel incorrect (bias) | 2.5 | failed | exit code 0 \\| &lt;none>; made small: --batch 1"
        in text
    )
    assert "## What failed" in text
    first_ever = report.page(STEPS, State(content=HASH, machine="h200-first-ever"))
    assert "nothing cached" in first_ever
    assert "every command of the documents" not in first_ever
    assert "README.md:4: the rehearsal does not know which program that is" in text
    assert all(line.replace("\\|", "").count("|") in (0, 7) for line in text.splitlines())
    brief = report.page(STEPS, held(), short=True)
    assert text.startswith(brief.rstrip("\n"))
    assert "README.md:9: exit code 0" in brief  # what failed
    assert "the default comparison" not in brief
    path = report.page_path("h200", tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text(brief)
    assert report.of_this_tree(HASH, tmp_path) == ["docs/results/rehearsal-h200.md is of this tree"]
    [other] = report.of_this_tree(OTHER, tmp_path)
    assert other == "docs/results/rehearsal-h200.md is of another tree (hash aaaaaaaaaaaa != bbbbbbbbbbbb)"
    path.write_text("# nothing of the kind\n")
    assert "does not say" in report.of_this_tree(HASH, tmp_path)[0]
    path.unlink()
    assert report.of_this_tree(HASH, tmp_path) == ["there is no page of a rehearsal in docs/results"]


def test_the_table_names_each_step_with_its_outcome(capsys: pytest.CaptureFixture[str]):
    Console(width=200).print(report.table(STEPS, held()))
    out = capsys.readouterr().out
    for word in ("README.md:9", "61.2", "failed", "no GPU", "it installs", "unknown", "not yet"):
        assert word in out


def test_state_goes_on_for_its_own_tree_and_machine_alone(tmp_path: Path):
    kept = held()
    kept.save(tmp_path)
    assert state.load(tmp_path, HASH, "h200") == kept
    assert state.load(tmp_path, OTHER, "h200") is None
    assert state.load(tmp_path, HASH, "cpu") is None
    assert state.load(tmp_path / "nowhere", HASH, "h200") is None
    assert kept.done(STEPS[0].name)
    assert not kept.done(STEPS[1].name)  # what failed is tried again, and that it failed is kept
    again = kept.add(Outcome(name=STEPS[1].name, outcome="ok"))
    assert again.before == "exit code 0 | <none>"


def test_a_gpu_gives_the_page_its_name():
    names = {"NVIDIA H200": "h200", "NVIDIA GeForce RTX 4090": "rtx-4090", "Tesla T4": "t4", "": "cpu"}
    names |= {"NVIDIA A100-SXM4-80GB": "a100", "NVIDIA H100 80GB HBM3": "h100", "NVIDIA GPU": "gpu"}
    assert {name: short_name(name) for name in names} == names
