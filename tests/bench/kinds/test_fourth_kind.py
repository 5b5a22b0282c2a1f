"""A fourth kind of run costs four files (`fourth/toy`) and changes none: it is found by its file, and all
that holds for the others holds for it."""

import dataclasses
import importlib.util
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import main
from bench.kinds.folders import begin, copy, open_folder
from bench.kinds.registry import kinds
from bench.kinds.summaries import listed, summaries
from bench.kinds.thin import thin
from bench.results.messages import CaseStarted
from bench.results.store import RESULTS_FILE
from bench.run import client
from bench.run.progress import RunProgress
from bench.run.supervisor import LaunchWorker, Result, Supervisor
from kernels.errors import InputError
from tests.bench.kinds import fourth
from tests.bench.kinds.fourth import planned

RECORDED = Path(__file__).parent / "recorded"
HERE = client.worker_environment()


@pytest.fixture
def toy():
    with fourth.there() as module:
        yield module


@pytest.fixture
def measured(toy, tmp_path):
    """A folder in `runs`, run by the worker."""
    folder = begin(toy.KIND, planned(toy, 2, 13, 4), None, tmp_path / "runs", "toy 2 13 4")
    outcome = client.run(folder.job, folder.missing(), folder)
    assert (outcome.reason, outcome.cancelled) == ("", False)
    return folder.path


def test_it_takes_four_files():
    assert len([path for path in (fourth.HERE / "toy").iterdir() if path.suffix == ".py"]) <= 4


def test_it_is_run_watched_and_told(toy, measured, tmp_path, capsys):
    folder = open_folder(measured)
    assert folder.kind is toy.KIND
    assert [(m.case.number, m.disposition, m.square) for m in folder.measurements()] == [
        (2, "ok", 4),
        (13, "crashed", 0),
        (4, "ok", 16),
    ]
    reason = folder.measurements()[1].reason
    assert reason == "the worker ended with exit code 3 (at: square): bad luck"
    assert folder.header.environment.machine == "a head"
    assert "bad luck" in folder.log.read_text()
    assert [case.number for case in folder.missing(retry=True)] == [13]
    assert toy.KIND.command_line(folder.job) == "python main.py toy --numbers 2,13,4"
    other = toy.KIND.create(tmp_path / "other", planned(toy, 3))
    with RunProgress(toy.KIND, 1) as shown:
        client.run(other.job, other.missing(), other, shown)
    assert "[1/1] the square of 3: ok" in capsys.readouterr().err


def test_its_command_is_one_of_the_programs(tmp_path):
    code = (
        "import sys, bench\n"
        f"bench.__path__.append({str(fourth.HERE)!r})\n"
        "import main\n"
        "sys.exit(main.main(sys.argv[1:]))"
    )
    words = ["toy", "--numbers", "3,13", "--out", str(tmp_path / "made")]
    told = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, env=HERE)
    assert (told.returncode, told.stdout) == (1, "3,ok,9\n13,crashed,0\n"), told.stderr
    assert "[2/2] the square of 13: crashed (the worker ended with exit code 3" in told.stderr


def test_the_supervisor_settles_what_a_worker_took_with_it(toy):
    header = planned(toy, 2, 13)
    machine = Supervisor(toy.KIND, header.job, header.cases, "there")
    (launch,) = machine.start(0)
    assert msgspec.json.decode(launch.line, type=toy.KIND.reads).folder == "there"
    machine.feed(msgspec.json.encode(CaseStarted(case=header.cases[1], stage="square")) + b"\n", 1)
    result, again = machine.on_exit(-9, "", 2)
    assert isinstance(result, Result)
    assert (result.measurement.case.number, result.measurement.facts) == (13, {"killed by": "SIGKILL"})
    assert isinstance(again, LaunchWorker)


def test_it_is_listed_beside_the_others(toy, measured, capsys, monkeypatch):
    (line,) = summaries(measured.parent)
    assert (line.kind, line.what, line.machine, line.cases) == ("toy", "toy: 3 numbers", "a head", 3)
    assert (line.measured, line.ok, line.failed) == (3, 2, 1)
    monkeypatch.chdir(measured.parent)
    assert main.main(["runs", "list", "."]) == 0
    assert "toy: 3 numbers" in capsys.readouterr().out


def test_it_is_shown_exported_and_reported(toy, measured, tmp_path, capsys):
    assert main.main(["runs", "show", str(measured)]) == 0
    assert capsys.readouterr().out.startswith("2,ok,4\n13,crashed,0\n4,ok,16\nby a head")
    assert main.main(["export", str(measured), "--charts", "none", "--csv"]) == 0
    assert (measured / "charts" / "squares.csv").read_text() == "2,ok,4\n13,crashed,0\n4,ok,16\n"
    report = ["runs", "report", str(measured), "--out", str(tmp_path / "r.md")]
    assert main.main(report) == 0
    assert "13,crashed" in (tmp_path / "r.md").read_text()
    for command, why in (
        ([*report, str(RECORDED / "ladder")], "report the two apart"),
        (["runs", "show", str(measured), "--layers"], "is none, but holds a toy"),
        (["export", str(measured), "--over", str(RECORDED / "comparison")], "a toy cannot be laid over"),
        (["compare", "--resume", str(measured)], "holds no run, but holds a toy"),
    ):
        assert main.main(command) == 2
        assert why in capsys.readouterr().err


def test_it_is_copied_and_made_small(toy, measured, tmp_path):
    for made in (copy(measured, tmp_path / "copy"), tmp_path / "small"):
        if made.name == "small":
            thin(measured, made)
        assert open_folder(made).measurements() == open_folder(measured).measurements()


def test_what_is_wrong_with_one_is_said(toy, measured):
    with open_folder(measured) as folder:
        folder.claim()
        with pytest.raises(InputError, match="is being measured by another process"):
            open_folder(measured).claim()
    with pytest.raises(InputError, match="already holds a toy; name another folder"):
        toy.KIND.create(measured, planned(toy, 1))
    lines = (measured / RESULTS_FILE).read_bytes().splitlines(keepends=True)
    (measured / RESULTS_FILE).write_bytes(
        lines[0].replace(b'"square":4', b'"square":5') + lines[1] + lines[2][:9]
    )
    assert [case.number for case in open_folder(measured).missing()] == [2, 4]
    file = measured / "toy.json"
    file.write_bytes(msgspec.json.encode(msgspec.json.decode(file.read_bytes()) | {"schema": 4}))
    with pytest.raises(InputError, match=r"a newer Kernelscope \(schema 4, this one reads 3\)"):
        open_folder(measured)
    assert listed(measured).problem == "recorded by a newer Kernelscope (schema 4)"


def test_without_its_files_its_folder_is_nobodys(tmp_path):
    (tmp_path / "toy.json").write_text("{}")
    assert listed(tmp_path) is None
    with pytest.raises(InputError, match="holds no run"):
        open_folder(tmp_path)


def test_no_kind_hides_another_and_what_they_name_is_there(toy):
    found = kinds()
    assert [kind.name for kind in found] == ["comparison", "ladder", "profile", "toy"]
    for of in ("name", "file", "verb", "header", "line"):
        assert len({getattr(kind, of) for kind in found}) == len(found), of
    for kind in found:
        for module in filter(None, (kind.worker[0], kind.thin, kind.saved, kind.report)):
            assert importlib.util.find_spec(module), f"{kind.a} names {module}"
        assert all(callable(getattr(kind.part("saved"), name)) for name in ("show", "export"))
        assert kind.part("thin").GRADES
        assert callable(kind.part("report").write)
    with pytest.raises(InputError, match="a toy cannot be thinned"):
        dataclasses.replace(toy.KIND, thin="").part("thin")
