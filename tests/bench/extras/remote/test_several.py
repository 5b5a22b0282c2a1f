"""A run shared by several places, over the program's own lines."""

import pytest

from bench.commands.measuring import Ending
from bench.extras.fleet import device_lock, spread
from bench.extras.fleet.executor import elsewhere
from bench.results.messages import Log
from bench.results.records import Case, Job, Run
from bench.run import elsewhere as reached
from bench.run.kinds.comparison import KIND as COMPARISON
from kernels.errors import InputError
from tests.bench.extras.remote import there


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


def test_a_place_that_nobody_added_is_named_with_the_nearest(known):
    known("lab")
    with pytest.raises(InputError, match="lab"):
        elsewhere(["lab", "lap"])
