"""What the user names a run and notes of it: in its folder, in lists, in copies; a note that is broken."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import main
from bench.results import note
from bench.results.store import NOTE_FILE
from bench.results.summaries import SAMPLE, summary
from bench.results.thin import thin
from bench.run.kinds.comparison import KIND
from bench.views.charts.comparison_charts import charts
from bench.words import units
from tests.bench import synthetic
from tests.bench.results.test_thin import saved

CPU = ("engine-cpu", "ort-cpu")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return saved(tmp_path / "runs" / "20260102-030405-lenet5-digits", *synthetic.run(backends=CPU)).path


def test_a_name_and_a_note_stand_in_the_list_and_go_where_the_run_goes(run, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(run.parent)
    assert main.main(["runs", "name", str(run), "before tuning", "--note", "laptop on its battery"]) == 0
    assert main.main(["runs", "list", "."]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "before" in said
    assert "battery" in said
    assert main.main(["runs", "show", str(run)]) == 0
    assert "laptop on its battery" in capsys.readouterr().out
    kept = note.Note(name="before tuning", text="laptop on its battery")
    assert main.main(["runs", "copy", str(run), str(tmp_path / "copied")]) == 0
    thin(run, tmp_path / "thinned")
    assert note.read(tmp_path / "copied") == note.read(tmp_path / "thinned") == kept
    assert main.main(["runs", "name", str(run), "after"]) == 0
    assert note.read(run) == note.Note(name="after", text="laptop on its battery"), "the note stays"
    note.write(run, note.Note())
    assert not (run / NOTE_FILE).exists()


def test_a_name_is_a_line_and_is_of_a_run(run, tmp_path, capsys):
    kept = note.write(run, note.Note(name="two\nlines\x1b[31m" + "x" * 900, text="y" * 90_000))
    assert "\n" not in kept.name
    assert "\x1b" not in kept.name
    assert len(kept.name) == note.NAME_CHARACTERS
    assert len(kept.text) == note.TEXT_CHARACTERS
    assert main.main(["runs", "name", str(tmp_path), "mine"]) == 2
    assert "holds no run" in capsys.readouterr().err
    assert not (tmp_path / NOTE_FILE).exists()


@pytest.mark.parametrize("spoil", ["broken", "newer"])
def test_a_note_that_cannot_be_read_hides_no_run(run, spoil):
    (run / NOTE_FILE).write_text("{" if spoil == "broken" else '{"schema": 99, "name": "x"}')
    found = summary(run)
    assert (found.called, found.problem) == ("", "")
    assert found.ok


def test_the_result_is_that_of_the_tables():
    """The spans are those of the speed-ups that the chart draws."""
    told, folder = summary(SAMPLE).result, KIND.open(SAMPLE)
    drawn = {c.name: c for c in charts([(folder.header, folder.measurements())])}
    line = next(
        s for p in drawn["lenet5-digits-speed"].panels[:1] for s in p.series if s.backend == "engine-cuda"
    )
    values = [point.y for point in line.points]
    ends = f"{units.times(min(values))} to {units.times(max(values))} faster than ort-cuda"
    assert f"engine-cuda {ends}" in told.split(";")[0]


def test_what_is_left_of_a_run_is_counted(run, tmp_path):
    assert not summary(run).resumable
    results = run / "results.jsonl"
    lines = results.read_bytes().splitlines(keepends=True)
    results.write_bytes(b"".join(lines[:-2]))
    found = summary(run)
    assert (found.left, found.resumable) == (2, True)
    other = shutil.copytree(run, tmp_path / "other")
    (other / "results.jsonl").write_bytes(b"")
    assert summary(other).left == found.cases
