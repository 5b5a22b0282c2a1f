"""What action.yml does with what the program says: its steps are run with bash, on a program that only ends
as it is told. `python -m tests.action` runs them with the program itself."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.action import runner
from tests.action.__main__ import UNSEEN, replaced

# Ends as `codes` beside it says, and leaves a run where --out names one. It keeps what it was called with.
PROGRAM = """
import pathlib, sys
here = pathlib.Path(__file__).parent
codes = dict(line.split("=") for line in (here / "codes").read_text().split())
words = sys.argv[1:]
what = "gate" if "--fail-on" in words else words[1] if words[0] == "runs" else "measure"
with open(here.parent / "called", "a") as called:
    print(what, *words, file=called)
code = int(codes.get(what, 0))
if "--out" in words and code < 2:
    pathlib.Path(words[words.index("--out") + 1]).mkdir()
print("# what", what, "says")
sys.exit(code)
"""


def done(
    folder: Path, before: str = "", after: str = "", pull_request: bool = True, **inputs: str
) -> runner.Job:
    """The action on a repository whose program ends as `before` says in the base, as `after` in the head."""
    folder.mkdir(exist_ok=True)
    program = {"program/main.py": PROGRAM, ".gitignore": "called\n", "kept/run.json": "{}"}
    head = folder / "head with a space"
    base = runner.repository(
        head, {**program, "program/codes": before}, {"program/codes": after, "kept/run.json": "changed"}
    )
    python = folder / "temporary/kernelscope/bin/python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    given = {name.replace("_", "-"): value for name, value in inputs.items()}
    results = folder / "temporary/kernelscope-results"
    results.mkdir()
    return runner.run(
        head,
        folder / "temporary",
        {"program": "program", **given},
        base if pull_request else "",
        done={"install": {"results": str(results)}},
    )


def called(folder: Path, tree: str = "head with a space") -> list[str]:
    path = folder / tree / "called"
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("before", "after", "inputs", "verdict", "code"),
    [
        ("", "", {}, "ok", 0),
        ("", "gate=1", {}, "failed", 1),  # slower, or wrong
        ("", "measure=1 gate=1", {}, "failed", 1),
        ("measure=1", "", {}, "ok", 0),  # the base was wrong, and the head is not
        ("", "gate=2", {}, "undecided", 0),  # the machine was busy in every case
        ("", "gate=2", {"undecided": "fail"}, "undecided", 1),
        ("", "diff=2", {}, "", 2),  # the two cannot be compared at all
        ("", "measure=2", {}, "", 2),  # the command is wrong
        ("measure=2", "", {}, "ok", 0),  # the base has no such kernel yet
        ("measure=2", "measure=1", {}, "failed", 1),
    ],
)
def test_the_action_ends_as_what_was_measured_says(
    tmp_path: Path, before: str, after: str, inputs: dict[str, str], verdict: str, code: int
) -> None:
    job = done(tmp_path, before, after, **inputs)
    assert (job.verdict, job.code) == (verdict, code), job.log
    if verdict:
        assert f"**Result: {verdict}**" in job.summary
        assert "what show says" in job.summary
        assert ("what diff says" in job.summary) == ("measure=2" not in before)
    assert ("could not be measured" in job.log) == ("measure=2" in before)


def test_without_a_pull_request_it_only_measures(tmp_path: Path) -> None:
    well = done(tmp_path / "a", pull_request=False)
    assert (well.code, well.verdict) == (0, "ok")
    assert [line.split()[0] for line in called(tmp_path / "a")] == ["measure", "show"]
    assert done(tmp_path / "b", after="measure=1", pull_request=False).code == 1


def test_words_in_quotes_stay_together(tmp_path: Path) -> None:
    assert done(tmp_path, command="ladder conv --kernels 'my kernels'", fail_on="wrong", bound="7%").code == 0
    head = tmp_path / "temporary/kernelscope-results/head"
    base = head.with_name("base")
    assert called(tmp_path) == [
        f"measure ladder --charts none conv --kernels my kernels --out {head}",
        f"show runs show {head} --format md",
        f"diff runs diff {base} {head} --bound 7% --format md",
        f"gate runs diff {base} {head} --bound 7% --fail-on wrong --junit {base.with_name('diff.xml')}",
    ]


def test_a_kept_baseline_is_the_base_s_own(tmp_path: Path) -> None:
    """A pull request that changes the file it is held against changes nothing."""
    assert done(tmp_path, baseline="kept").code == 0
    assert (tmp_path / "temporary/kernelscope-results/base/run.json").read_text() == "{}"
    assert called(tmp_path, "temporary/kernelscope-base") == []


def test_every_input_and_output_is_there_and_documented() -> None:
    told = runner.action()
    text = (runner.ROOT / "action.yml").read_text("utf-8")
    used = set(re.findall(r"inputs\.([\w-]+)", text))
    assert used == set(told["inputs"])
    rows = set(
        re.findall(r"^\| `([\w-]+)` \|", (runner.ROOT / "docs/ci.md").read_text("utf-8"), re.MULTILINE)
    )
    assert rows == {*told["inputs"], *told["outputs"]}
    # What a workflow or a pull request writes goes to bash as a variable; put into its text it would be run.
    assert [step["name"] for step in told["runs"]["steps"] if "${{" in step.get("run", "")] == []


def test_the_workflow_gives_the_action_what_it_knows() -> None:
    import yaml

    for path in (runner.ROOT / ".github/workflows").glob("*.yml"):
        for job in yaml.safe_load(path.read_text("utf-8"))["jobs"].values():
            for step in job["steps"]:
                if step.get("uses") == "./":
                    assert set(step["with"]) <= set(runner.action()["inputs"])


def test_an_unknown_expression_is_an_error() -> None:
    with pytest.raises(KeyError):
        runner.filled("${{ steps.gone.outputs.x }}", {})


def test_the_copy_that_sees_nobody_else_can_be_made() -> None:
    for name, old, new in UNSEEN:
        replaced((runner.ROOT / name).read_text("utf-8"), old, new)
