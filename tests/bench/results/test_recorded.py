"""Folders of each kind as they were recorded before (`recorded/`): they open, say, export, copy, thin and
resume as they did then, and are refused where they were."""

import shutil
from pathlib import Path

import msgspec
import pytest

import main
from bench.results.folders import copy, open_folder
from bench.results.messages import ModelLoaded
from bench.results.store import RESULTS_FILE
from bench.results.summaries import listed, summary
from bench.results.surroundings import ModelInfo
from bench.results.thin import thin
from kernels.errors import InputError

pytestmark = pytest.mark.slow

RECORDED = Path(__file__).parent / "recorded"
SAID = RECORDED / "said"  # what was said of each folder when it was recorded
KINDS = {"comparison": "run.json", "ladder": "ladder.json", "profile": "profile.json"}


@pytest.fixture(params=KINDS)
def recorded(request, tmp_path):
    """A copy of a recorded folder, which may be written to."""
    path = tmp_path / request.param
    shutil.copytree(RECORDED / request.param, path)
    return path


def said(arguments, capsys):
    assert main.main([str(word) for word in arguments]) == 0
    return capsys.readouterr().out


def test_it_is_shown_as_it_was(recorded, capsys):
    expected = (SAID / f"{recorded.name}.csv").read_text(encoding="utf-8")
    assert said(["runs", "show", recorded, "--format", "csv"], capsys) == expected
    for form in ("md", "json", "table"):
        word = "reference" if form == "md" and recorded.name == "ladder" else "cpu"
        assert word in said(["runs", "show", recorded, "--format", form], capsys).lower()


@pytest.mark.sampled(6)
@pytest.mark.usefixtures("blank_pictures")
def test_it_is_exported_and_reported_as_it_was(recorded, tmp_path, capsys):
    said(["export", recorded, "--charts", "csv", "--csv", "--out", tmp_path / "out"], capsys)
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert "\n".join(names) + "\n" == (SAID / f"{recorded.name}.exported").read_text(encoding="utf-8")
    said(["runs", "report", recorded, "--out", tmp_path / "report.md"], capsys)
    assert recorded.name in (tmp_path / "report.md").read_text(encoding="utf-8").lower()
    assert list((tmp_path / "report").glob("*.png"))


def test_its_line_in_a_list(recorded):
    held = msgspec.json.decode(msgspec.json.encode(summary(recorded), enc_hook=str))
    said = msgspec.json.decode((SAID / f"{recorded.name}.line.json").read_bytes())
    assert held | {"path": recorded.name} == said | {"lost": 0}  # which nobody counted then


def test_what_is_missing_is_gone_on_with_and_the_rest_left_as_it_is(recorded):
    results = recorded / RESULTS_FILE
    whole, measured = results.read_bytes(), open_folder(recorded).measurements()
    first, rest = whole.split(b"\n", 1)
    results.write_bytes(first + b"\n" + rest[:40])  # cut by a kill
    folder = open_folder(recorded)
    before = (recorded / KINDS[recorded.name]).read_bytes()
    assert len(folder.measurements()) == 1
    folder.claim()
    with pytest.raises(InputError, match="is being measured by another process"):
        open_folder(recorded).claim()
    for line in rest.splitlines(keepends=True):
        folder.append(msgspec.json.decode(line, type=type(folder.measurements()[0])))
    folder.close()
    assert results.read_bytes().startswith(first + b"\n"), "to the byte"
    assert open_folder(recorded).measurements() == measured
    assert (recorded / KINDS[recorded.name]).read_bytes() == before


def test_a_header_that_changes_is_written_in_the_version_of_today(recorded):
    """The recorded ladder and profile are of the first, with the limits of one device and with one model."""
    folder = open_folder(recorded)
    folder.take_message(ModelLoaded(model=ModelInfo(name="another")))
    again = open_folder(recorded).header
    assert again == folder.header
    known = [] if recorded.name == "ladder" else ["lenet5-digits"]
    assert [model.name for model in again.models] == [*known, "another"]
    limits = {"comparison": [], "ladder": ["cpu"], "profile": ["cpu"]}[recorded.name]
    assert [found.device for found in again.limits.values()] == list(again.limits) == limits
    held = msgspec.json.decode((recorded / KINDS[recorded.name]).read_bytes())
    assert held.get("schema", 1) == folder.kind.schema


def test_a_damaged_line_costs_its_case(recorded, caplog):
    lines = (recorded / RESULTS_FILE).read_bytes().splitlines(keepends=True)
    (recorded / RESULTS_FILE).write_bytes(b"".join([lines[0].replace(b'"ok"', b'"of"'), *lines[1:]]))
    assert len(open_folder(recorded).measurements()) == len(lines) - 1
    assert "line 1 of" in caplog.text
    assert "damaged" in caplog.text


def test_one_of_a_newer_version_is_refused_and_listed(recorded):
    file = recorded / KINDS[recorded.name]
    held = msgspec.json.decode(file.read_bytes()) | {"schema": 99}
    file.write_bytes(msgspec.json.encode(held))
    with pytest.raises(InputError, match=r"recorded by a newer Kernelscope \(schema 99"):
        open_folder(recorded)
    line = listed(recorded)
    assert line.problem == "recorded by a newer Kernelscope (schema 99)"
    assert (line.kind, line.created_at) == (recorded.name, held["created_at"])


def test_it_is_copied_and_thinned(recorded, tmp_path):
    made = copy(recorded, tmp_path / "copy")
    assert {p.relative_to(made): p.read_bytes() for p in made.rglob("*") if p.is_file()} == {
        p.relative_to(recorded): p.read_bytes() for p in recorded.rglob("*") if p.is_file()
    }
    thin(recorded, tmp_path / "thin", 60_000)
    again = open_folder(tmp_path / "thin").measurements()
    assert [m.case for m in again] == [m.case for m in open_folder(recorded).measurements()]
