"""`--on`: where it leads, and what is said where it cannot."""

import msgspec
import pytest

from bench.commands import measuring
from bench.commands.checks import Check
from bench.extras.remote import places
from bench.extras.remote.line import NOTE, Note
from bench.run import client, elsewhere
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.run.kinds.ladder import KIND as LADDER
from bench.words.version import described
from kernels.errors import InputError, UnavailableError
from tests.bench.extras.remote import there


@pytest.fixture
def known(tmp_path, monkeypatch):
    """Two places, one of which has a GPU."""
    monkeypatch.setenv("KERNELSCOPE_CONFIG", str(tmp_path / "config.toml"))
    backends = [Check("backends", name, "ok", "can run (fp32)") for name in ("engine-cpu", "ort-cpu")]
    gpu = [
        Check("gpu", "GPU", "ok", "NVIDIA H100 (80 GB)"),
        Check("backends", "engine-cuda", "ok", "can run"),
    ]
    fields = {"folder": "/there", "env": "env-1", "program": "program-1", "version": described()}
    places.save(places.Place(name="plain", doctor=tuple(backends), **fields))
    places.save(places.Place(name="lab", doctor=(*backends, *gpu), **fields))


def test_the_device_is_the_one_that_is_there(known):
    assert (elsewhere.device("lab", ""), elsewhere.device("plain", "")) == ("cuda", "cpu")
    assert elsewhere.device("lab", "cpu") == "cpu"
    with pytest.raises(UnavailableError, match="plain has no GPU, as its doctor saw it"):
        elsewhere.device("plain", "cuda")


def test_backends_are_those_that_can_run_there(known):
    assert set(elsewhere.backends(["plain"])) == {"engine-cpu", "ort-cpu"}
    assert set(elsewhere.backends(["plain", "lab"])) == {"engine-cpu", "ort-cpu", "engine-cuda"}
    places.save(msgspec.structs.replace(places.load("plain"), doctor=()))
    with pytest.raises(InputError, match="remote doctor plain"):
        elsewhere.backends(["plain"])


def test_what_cannot_be_is_said_with_what_mends_it(known):
    with pytest.raises(InputError, match=r"'lap' is not known.*lab"):
        elsewhere.worker_command("lap", LADDER)
    with pytest.raises(InputError, match="--on and --cluster say two things"):
        measuring.Where(cluster="local", on=("lab",))
    places.save(msgspec.structs.replace(places.load("lab"), program=""))
    with pytest.raises(UnavailableError, match=r"not installed on lab yet: .*remote update lab"):
        elsewhere.worker_command("lab", LADDER)
    places.save(msgspec.structs.replace(places.load("plain"), version="0.0.1"))
    with pytest.raises(UnavailableError, match=r"plain has Kernelscope 0\.0\.1, .*remote update plain"):
        elsewhere.worker_command("plain", LADDER)


def test_a_run_goes_on_where_it_was_begun(known, tmp_path, monkeypatch, capsys):
    taken = []

    def run(*_, command, **__):
        taken.append(command and command[4])
        return client.Outcome(())

    monkeypatch.setattr(client, "run", run)
    folder = COMPARISON.create(tmp_path / "run", there.run_of(1))
    (folder.path / NOTE).write_bytes(msgspec.json.encode(Note("plain", "0" * 32, "job", 1)))
    measuring.measure([folder])
    assert "this run was begun on plain and goes on there" in capsys.readouterr().err
    measuring.measure([folder], where=measuring.Where(on=("lab",)))
    assert "begun on plain; --on plain goes on there" in capsys.readouterr().err
    places.forget("plain")
    measuring.measure([folder])
    assert "begun on plain, which is no place any more; it goes on here" in capsys.readouterr().err
    assert taken == ["plain", "lab", None]
