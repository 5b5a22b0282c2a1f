"""A run shared by several places, over the program's own lines."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench.commands.measuring import Ending
from bench.extras.fleet import device_lock, spread
from bench.extras.fleet.executor import elsewhere
from bench.results.messages import Log
from bench.results.records import Case, Job, Run
from bench.run import elsewhere as reached
from bench.run.kinds.comparison import KIND as COMPARISON
from kernels.errors import InputError
from tests.bench.extras.remote import scripted, there


@pytest.fixture
def known(tmp_path, monkeypatch):
    """known(name, …): a place with a worker of known figures."""
    monkeypatch.setenv("KERNELSCOPE_CONFIG", str(tmp_path / "config" / "kernelscope.toml"))
    monkeypatch.setenv(device_lock.FOLDER, str(tmp_path / "locks"))
    made = {}

    def command(name, kind, files=False):
        return there.command(made[name], files=files)

    monkeypatch.setattr(reached, "worker_command", command)

    def add(name, **fields):
        made[name] = there.make(tmp_path, name, **fields)
        return made[name]

    return add


@pytest.mark.sampled(5, "lines")
def test_what_a_place_that_cannot_be_reached_gives_up_the_other_measures(known, tmp_path):
    lab, _ = known("lab"), known("farm", launch=("false",))
    job = Job(models=("net",), backends=("engine-cpu",), timeout_s=60.0)
    cases = tuple(Case(model="net", backend="engine-cpu", precision="fp32", batch=n) for n in (1, 2, 4))
    told = []
    with COMPARISON.create(tmp_path / "run", Run(job=job, cases=cases)) as folder:
        ending = spread.measure(folder, cases, elsewhere(["farm", "lab"]), told.append)
        found = folder.measurements()
    assert ending == Ending()
    assert {m.case.key: m.samples_ns[0] for m in found} == dict(there.said(lab))
    assert len(found) == len(there.said(lab)) == 3
    assert {m.facts["machine"] for m in found} == {"lab"}
    (warned,) = [m.text for m in told if isinstance(m, Log) and m.level == "warning"]
    assert warned.startswith("farm gave up")
    assert "farm cannot be reached" in warned
    assert [path.name for path in (folder.path / "machines").iterdir()] == ["lab.json"]
    assert len(list((folder.path / "predictions").iterdir())) == 3
    there.until(lambda: not there.processes(lab))


@pytest.mark.sampled(5, "lines")
def test_what_was_measured_while_the_program_here_was_dead_is_fetched(known, tmp_path):
    both = [known("farm"), known("lab")]
    job = Job(models=("gated",), backends=("engine-cpu", "ort-cpu"), timeout_s=60.0)
    cases = tuple(
        Case(model="gated", backend=backend, precision="fp32", batch=batch)
        for batch in (1, 2, 4)
        for backend in job.backends
    )
    path = tmp_path / "run"
    COMPARISON.create(path, Run(job=job, cases=cases))
    words = [sys.executable, "-m", "tests.bench.extras.remote.cuts", "--measure", str(path), "farm,lab"]
    with subprocess.Popen(words, cwd=there.ROOT) as program:
        there.until(lambda: all(there.said(place) for place in both))
        program.kill()
    for place in both:
        Path(place.folder, scripted.OPEN).touch()
    there.until(lambda: [len(there.said(place)) for place in both] == [2, 2])
    there.until(lambda: not any(map(there.workers, both)))
    assert reached.of_run(path) == "farm,lab"
    with COMPARISON.resume(path) as folder:
        ending = spread.measure(folder, folder.missing(), elsewhere(["farm", "lab"]), lambda event: None)
        found = folder.measurements()
    assert ending == Ending()
    said = [pair for place in both for pair in there.said(place)]
    assert sorted((m.case.key, m.samples_ns[0]) for m in found) == sorted(said), "each was measured once"
    assert len(said) == len(cases)
    assert reached.of_run(path) == ""
    there.until(lambda: not any(map(there.processes, both)))


@pytest.mark.sampled(5, "lines")
def test_what_one_place_began_alone_is_fetched_before_several_go_on(known, tmp_path):
    both = [known("farm"), known("lab")]
    job = Job(models=("gated",), backends=("engine-cpu",), timeout_s=60.0)
    cases = tuple(Case(model="gated", backend="engine-cpu", precision="fp32", batch=n) for n in (1, 2, 4))
    path = tmp_path / "run"
    COMPARISON.create(path, Run(job=job, cases=cases))
    words = [sys.executable, "-m", "tests.bench.extras.remote.cuts", "--measure", str(path), "lab"]
    with subprocess.Popen(words, cwd=there.ROOT) as program:
        there.until(lambda: len(there.said(both[1])) == 1)
        program.kill()
    heard = []
    with COMPARISON.resume(path) as folder:
        names = ("farm", "lab")
        ending = spread.measure(folder, folder.missing(), elsewhere(names), heard.append, places=names)
        found = folder.measurements()
    assert ending == Ending()
    assert len(found) == 3
    assert not [m for m in heard if getattr(m, "disposition", "") == "cancelled"]
    said = [pair for place in both for pair in there.said(place)]
    assert sorted((m.case.key, m.samples_ns[0]) for m in found) == sorted(said), "each was measured once"
    assert reached.of_run(path) == ""
    there.until(lambda: not any(map(there.processes, both)))


def test_a_place_that_nobody_added_is_named_with_the_nearest(known):
    known("lab")
    with pytest.raises(InputError, match="lab"):
        elsewhere(["lab", "lap"])
