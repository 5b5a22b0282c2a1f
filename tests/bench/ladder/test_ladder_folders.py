"""Ladders on the disk: gone on with after a kill, listed, shown and exported beside runs."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import msgspec
import pytest

import main
from bench.questions import ladder_plan
from bench.results import summaries
from bench.results.records import Environment
from bench.results.store import RESULTS_FILE
from bench.run.kinds.ladder import KIND as LADDER
from bench.run.kinds.ladder import LadderFolder
from kernels.errors import InputError
from tests.bench.ladder.test_ladder import example, measured, small_job

pytestmark = pytest.mark.usefixtures("in_a_folder")


def saved(path: Path) -> LadderFolder:
    """A ladder's folder with everything measured."""
    ladder, found = example()
    folder = LADDER.create(path, msgspec.structs.replace(ladder, created_at="2026-01-02T03:04:05"))
    for measurement in found:
        folder.append(measurement)
    return folder


@pytest.mark.sampled(4, "long")
def test_a_ladder_that_was_killed_goes_on_with_the_cases_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planned = ladder_plan.plan(small_job(rungs=("shift_and_add", "im2col")))
    planned = msgspec.structs.replace(planned, environment=Environment(machine="the first"))
    folder = LADDER.create(tmp_path / "half", planned)
    done = measured("shift_and_add", 1, 5e5)
    folder.append(done)
    with (folder.path / RESULTS_FILE).open("ab") as stream:
        stream.write(b'{"case":{"rung":"im2col","num')
    assert [case.key for case in folder.missing()] == ["im2col", "reference"]
    code = main.main(["ladder", "--resume", "half", "--format", "json", "--charts", "none"])
    out, err = capsys.readouterr()
    assert code == 0, err
    assert [r["disposition"] for r in json.loads(out)["rungs"]] == ["ok"] * 3
    assert "[2/3]" in err
    assert "[3/3]" in err
    again = LADDER.open(folder.path)
    assert not again.missing()
    assert again.measurements()[0] == done
    assert again.header.environment.machine == "the first"
    assert main.main(["ladder", "--resume", "half", "--charts", "none"]) == 0  # nothing left: shown again


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--budget", "1"], "leave --budget away"),
        (["--rung", "2"], "leave --rung away"),
        ([], "holds no ladder"),
    ],
)  # fmt: skip
def test_going_on_takes_no_other_settings(
    more: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["ladder", "--resume", "none", *more]) == 2
    assert words in capsys.readouterr().err


def test_ladders_are_listed_and_shown_with_runs_and_are_no_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    saved(tmp_path / "runs" / "one")
    (tmp_path / "runs" / "broken").mkdir()
    (tmp_path / "runs" / "broken" / LADDER.file).write_text("{")
    broken, found = summaries.summaries(tmp_path / "runs")  # the window's list
    assert (broken.kind, broken.name) == ("ladder", "broken")
    assert broken.problem.startswith("cannot be read: ladder.json is broken")
    assert found == summaries.summary(tmp_path / "runs" / "one")
    assert (found.kind, found.backends, found.measured, found.ok) == ("ladder", ("engine-cpu",), 6, 5)
    with pytest.raises(InputError, match="holds no run"):
        summaries.summary(tmp_path / "runs")
    assert main.main(["runs", "list"]) == 0
    out = capsys.readouterr().out
    assert "conv ladder: 4×6×14×17" in out
    assert "2026-01-02 03:04" in out
    (line,) = (line for line in out.splitlines() if "runs/one" in line)
    assert line.split()[-2:] == ["6", "6"], out  # cases, done
    assert main.main(["runs", "show", "runs/one"]) == 0
    assert "90 mine (yours)" in capsys.readouterr().out
    assert main.main(["runs", "show", "runs/one", "--format", "csv"]) == 0
    assert [r["rung"] for r in csv.DictReader(capsys.readouterr().out.splitlines())][-1] == "reference"


def test_a_ladders_charts_and_numbers_are_exported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved(tmp_path / "one")
    assert main.main(["export", "one", "--charts", "svg,csv", "--csv", "--out", "there"]) == 0
    names = {path.name for path in Path("there").iterdir()}
    assert names == {
        "ladder-speed.svg", "ladder-speed.csv", "ladder-limits.svg", "ladder-limits.csv", "results.csv"
    }  # fmt: skip
    near = list(csv.DictReader(Path("there/ladder-limits.csv").read_text().splitlines()))
    assert {line["panel"] for line in near} == {"fp32"}, "the lane"
    assert {"02 better", "90 mine"} <= {line["series"] for line in near}
    assert all(0 < float(line["value"]) < 2 for line in near), "shares of the limit"
    capsys.readouterr()
    assert main.main(["export", "one", "--chart", "ladder-limits", "--file", "near.png"]) == 0
    assert Path("near.png").read_bytes().startswith(b"\x89PNG")
    assert main.main(["export", "one", "--charts", "svg", "--over", "one"]) == 2
    assert "--over" in capsys.readouterr().err


def test_a_ladder_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    folder = saved(tmp_path / "one")
    held = json.loads((folder.path / LADDER.file).read_text())
    (folder.path / LADDER.file).write_text(json.dumps(held | {"schema": 99}))
    with pytest.raises(InputError, match="newer Kernelscope"):
        LADDER.open(folder.path)
