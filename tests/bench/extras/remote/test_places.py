"""A place is set up, looked at, renewed and removed, through OpenSSH; what hinders it is said in a sentence.

The packages are not installed here: `python -m tests.package` does that, from the wheel."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import main
from bench.commands import checks
from bench.extras.remote import asking, doctor, installing, packing, places
from bench.extras.remote.places import Place
from bench.extras.remote.there import WHOLE
from bench.words import version
from engine.cpu import precompile
from kernels import numba_support
from kernels.errors import UnavailableError
from tests.bench.extras.remote.loopback import HOST, Loopback, needs_sshd

pytestmark = [needs_sshd, pytest.mark.slow]

PYTHON = f"{sys.prefix}/bin/python3"
ASKS_NO_DRIVER = "def wanted(): return 'cpu', ''"


def remote(*words: str) -> int:
    return main.main(["remote", *words])


def placed(lab: Loopback, home: Path | None = None) -> Path:
    """The packages, as if they had been installed: the environment of the tests. Returns the folder there."""
    folder = (home or lab.home) / installing.FOLDER
    own = installing.environment("cpu", PYTHON, ".".join(map(str, sys.version_info[:2])))
    folder.mkdir(parents=True)
    (folder / "kernelscope-place").write_text("1" * 32)
    lab.link_environment(folder / own)
    return folder


@pytest.mark.sampled(9, "places")
def test_a_place_is_set_up_renewed_and_removed(lab, capsys, monkeypatch):
    (lab.home / ".bashrc").write_text("echo Welcome; echo -n 'you have no mail'\n")
    folder = placed(lab)
    monkeypatch.setattr(installing, "COMPILE", "")  # what takes seconds, and is tried below
    assert remote("add", "lab", HOST, "--python", PYTHON, "--lease", "5") == 0
    shown = capsys.readouterr()
    assert "ort-cpu" in shown.out
    assert "lab is ready: it has no GPU" in shown.err
    place = places.load("lab")
    assert (place.folder, place.lease_s, place.extra) == (str(folder), 300, "cpu")
    assert place.refused()["ort-cpu"] == ""
    assert "NVIDIA" in place.refused()["engine-cuda"]
    root = folder / place.program / "kernelscope" / "_program"
    assert (root / "commit.txt").read_text().strip() == version.commit()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert os.listdir(folder / "cache")
    assert {path.name for path in lab.home.iterdir()} == {".bashrc", installing.FOLDER}

    # Of another version it is refused, with what mends it.
    places.save(msgspec.structs.replace(place, version="0.0.1 (12345678)"))
    with pytest.raises(
        UnavailableError, match=r"has Kernelscope 0\.0\.1 \(12345678\), and this is .*remote update lab"
    ):
        places.program(places.load("lab"), "bench.extras.remote.doctor")
    with monkeypatch.context() as patch:
        patch.setattr(installing, "examined", lambda place, says, new: place)  # as before: that takes seconds
        assert remote("update", "lab") == 0
    assert "sending" not in capsys.readouterr().err, "what is there was sent again"
    assert places.load("lab").version == version.described()

    assert remote("list") == 0
    assert version.described() in capsys.readouterr().out
    assert remote("add", "lab", HOST) == 2
    assert "is known already" in capsys.readouterr().err

    # Another place may use the same folder; nothing is removed below somebody who measures.
    places.save(msgspec.structs.replace(place, name="other"))
    assert remote("remove", "lab") == 2
    assert "uses the same folder there" in capsys.readouterr().err
    assert remote("remove", "other", "--only-here") == 0
    holds = "from bench.extras.remote import there; import sys; "
    holds += "held = there.hold(); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        ["env", f"PYTHONPATH={root}", sys.executable, "-P", "-c", holds],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as measuring:
        assert measuring.stdout is not None
        measuring.stdout.readline()
        assert remote("remove", "lab") == 1
        assert "a measurement is going on there" in capsys.readouterr().err
    assert remote("remove", "lab") == 0
    assert not folder.exists()
    assert Path(sys.prefix, "pyvenv.cfg").exists()
    assert places.names() == []


def test_the_kernels_are_compiled_before_the_doctor_looks(monkeypatch, capsys):
    done = []
    monkeypatch.setattr(numba_support, "known", lambda: False)
    monkeypatch.setattr(precompile, "finish", lambda: done.append("compiled"))
    monkeypatch.setattr(checks, "checks", lambda: done.append("looked") or ())
    monkeypatch.setattr(installing, "lines", lambda place, module, *words, says: doctor.main(words) or ["[]"])
    monkeypatch.setattr(places, "save", lambda place: None)
    installing.examined(Place(name="lab"), print, new=True)
    installing.examined(Place(name="lab"), print)
    assert done == ["compiled", "looked", "looked"]
    assert "compiling the CPU's kernels" in capsys.readouterr().err


@pytest.mark.sampled(9, "places")
def test_a_host_that_cannot_be_reached_is_told_in_the_words_of_ssh(lab, capsys):
    """Nothing waits for an answer, and nothing is kept of it."""
    (known,) = lab.folder.glob("known_hosts")
    allowed = lab.folder / "authorized_keys"

    def told() -> str:
        assert remote("add", "lab", HOST) == 2
        assert places.names() == []
        return capsys.readouterr().err

    keys, key = known.read_text(), allowed.read_text()
    try:
        known.write_text("")
        assert "Host key verification failed.; `ssh loopback` once" in (said := told()), said
        other = (lab.folder / "key.pub").read_text().split()[:2]
        known.write_text(" ".join([keys.split()[0], *other]) + "\n")
        assert "IDENTIFICATION HAS CHANGED" in (said := told()), said
        assert "ask who runs it" in said
        known.write_text(keys)
        allowed.write_text("")
        said = told()
        assert "Permission denied" in said, said
        assert "asks for a password, which Kernelscope never does: `ssh-copy-id loopback`" in said
    finally:
        known.write_text(keys)
        allowed.write_text(key)
    lab.stop()
    try:
        assert "Connection refused" in told()
    finally:
        lab.start()


def test_nothing_of_here_goes_along_and_a_connection_of_the_users_is_taken(lab):
    """Whatever the user's configuration says."""
    with (lab.folder / "config").open("a") as config:
        config.write("Host open\n  ForwardAgent yes\n  ForwardX11 yes\n  LocalForward 4000 localhost:4000\n")
        config.write("Host kept\n  ControlMaster auto\n  ControlPath ~/mine-%C\n")
    ssh, *words = places.command(Place(name="open", host="open"), "true")
    effective = subprocess.run(
        [ssh, "-G", *words], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    wanted = {
        "forwardagent no",
        "forwardx11 no",
        "clearallforwardings yes",
        "batchmode yes",
        "requesttty false",
    }
    assert wanted <= set(effective)
    assert any(line.startswith(f"controlpath {os.environ['XDG_RUNTIME_DIR']}/") for line in effective)
    assert not any("ControlPath" in word for word in places.command(Place(name="kept", host="kept"), "true"))


@pytest.mark.sampled(9, "places")
def test_what_is_missing_there_is_told_in_a_sentence(lab, capsys, monkeypatch, tmp_path):
    def told(*words: str, code: int = 2) -> str:
        assert remote("add", "lab", HOST, *words) == code
        places.forget("lab")
        return capsys.readouterr().err

    old = tmp_path / "python3.9"
    old.write_text("#!/bin/sh\necho 3.9.2 /usr/bin/python3.9\n")
    old.chmod(0o755)
    assert "Python 3.9.2 (/usr/bin/python3.9) is too old on lab: 3.11 or newer" in told("--python", str(old))
    assert "is no Python that runs on lab" in told("--python", "/nowhere/python")
    monkeypatch.setattr(asking, "PYTHONS", ("python9",))
    assert "there is no Python on lab: 3.11 or newer is needed; --python names another" in told()
    monkeypatch.undo()

    strange = lab.home / "mine"
    strange.mkdir()
    (strange / "thesis.tex").touch()
    assert "holds files of somebody else's" in told("--folder", "mine")
    assert [path.name for path in strange.iterdir()] == ["thesis.tex"]
    monkeypatch.setitem(installing.ROOM_NBYTES, "cpu", 1 << 60)
    assert "packages for cpu need about" in told("--python", PYTHON, code=1)
    assert told("--python", PYTHON, "--launch", "nowhere -p gpu").count("nowhere: command not found") == 2
    assert "has no GPU" not in told("--launch", "'")
    assert remote("add", "lab", "--", "-oProxyCommand=touch") == 2  # which ssh would take for an option
    assert "is no host" in capsys.readouterr().err


@pytest.mark.parametrize(
    "told",
    [
        {"extra": "../../../secrets"},  # whose text would be sent
        {"folder": "secrets"},
        {"markers": {"python_version": 3}},
        {"libc": ["glibc", "2.x"]},
        {"free": "much"},
        {"state": None},
    ],
)
def test_what_a_place_says_of_itself_names_nothing_here(monkeypatch, capsys, told):
    """Another side that is hostile, or of another make: one sentence, and nothing of here goes there."""
    seen = {
        "folder": "/home/you/x",
        "base": "/",
        "state": "new",
        "token": "",
        "writable": True,
        "free": 1 << 40,
    }
    seen |= {"extra": "cpu", "why": "", "whole": [], "libc": ["glibc", "2.36"], "markers": {}} | told
    asked = []

    def ask(place, do, *args, **request):
        asked.append(do)
        return seen

    monkeypatch.setattr(installing, "ask", ask)
    monkeypatch.setattr(installing, "python_of", lambda place, named: "/usr/bin/python3")
    assert remote("add", "evil", "host") == 1
    assert "evil says of itself what cannot be" in capsys.readouterr().err
    assert asked == ["look"]


@pytest.mark.sampled(9, "places")
def test_a_launch_prefix_that_sees_another_folder_takes_all_that_is_done(lab, capsys, monkeypatch, tmp_path):
    """As `docker exec` does; and one that sees the same takes what measures alone, as a queue does."""
    queue = tmp_path / "queue"
    queue.write_text(
        f'#!/bin/sh\necho waiting for a machine >&2\necho "$@" >>{tmp_path}/launched\nshift 2\nexec "$@"\n'
    )
    queue.chmod(0o755)
    monkeypatch.setitem(installing.ROOM_NBYTES, "cpu", 1 << 60)  # so that it ends before the packages
    assert remote("add", "lab", HOST, "--python", PYTHON, "--launch", f"{queue} -p gpu") == 1
    assert "lab: waiting for a machine" in capsys.readouterr().err
    place = places.load("lab")
    assert (place.shared, place.launch) == (True, (str(queue), "-p", "gpu"))
    assert len((tmp_path / "launched").read_text().splitlines()) == 2
    places.forget("lab")

    # What is in the home of the host, a container does not see.
    box, enter = tmp_path / "box", tmp_path / "enter"
    hidden = lab.home / installing.FOLDER / "kernelscope-place"
    enter.write_text(f'#!/bin/sh\ntest "$5" = {hidden} && exit 0\nHOME={box} exec "$@"\n')
    enter.chmod(0o755)
    assert remote("add", "lab", HOST, "--python", PYTHON, "--launch", str(enter)) == 1
    place = places.load("lab")
    assert (place.shared, place.folder) == (False, str(box / installing.FOLDER))


@contextlib.contextmanager
def _cut_when(lab: Loopback, path: Path) -> Iterator[None]:
    """Every connection breaks as soon as there is such a file."""

    def wait() -> None:
        while not path.exists() and not ended.wait(0.002):
            pass
        lab.cut()

    ended = threading.Event()
    thread = threading.Thread(target=wait)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _running_in(folder: Path) -> list[str]:
    """The commands that name a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if str(folder) in (words := path.read_bytes().replace(b"\0", b" ").decode(errors="replace")):
                found.append(words)
    return found


def _package(folder: Path, name: str, nbytes: int = 0) -> tuple[Path, str]:
    """A wheel without code, and its line of a lock file."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    files = {
        f"{name}.py": b"",
        f"{name}.bin": os.urandom(nbytes),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{it},,\n" for it in (*files, f"{info}/RECORD")).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for it, held in files.items():
            archive.writestr(it, held)
    return path, f"{name}==1.0 \\\n    --hash=sha256:{packing.digest(path)}\n"


@pytest.mark.sampled(9, "places")
def test_packages_are_sent_and_installed_once_whatever_breaks(lab, tmp_path):
    """The connection breaks while a file is sent, then while packages are installed: what came stays, nothing
    goes on there, and the same again ends well."""
    place = Place(name="lab", host=HOST, folder=installing.FOLDER, python=PYTHON)
    asking.ask(place, "begin", token="1" * 32)
    large, needed = _package(tmp_path, "large", 4 << 20)
    small, wanted = _package(tmp_path, "small")
    files = [small, large, packing.pip()]
    digests = {path.name: packing.digest(path) for path in files}
    folder = lab.home / installing.FOLDER

    def lacking() -> list[str]:
        return asking.ask(place, "lacking", files=digests)["names"]

    def put(names: list[str]) -> None:
        sent = [path for path in files if path.name in names]
        told = [(path.name, path.stat().st_size, digests[path.name]) for path in sent]
        asking.ask(place, "put", sent, files=told)

    assert lacking() == [path.name for path in files]
    told = [(path.name, path.stat().st_size, digests[path.name]) for path in files]
    told[2] = (told[2][0], 1 << 40, told[2][2])  # of the last file there is always more to come
    with _cut_when(lab, folder / "incoming" / f".{files[2].name}.part"), pytest.raises(UnavailableError):
        asking.ask(place, "put", files, files=told)
    assert lacking() == [files[2].name]
    put(lacking())
    assert lacking() == []

    def install(locks: list[str]) -> str:
        names = {"env": "env-a", "program": "program-a", "pip": files[2].name, "archive": "", "old": []}
        return asking.ask(place, "install", locks=locks, offline=True, **names)["lacks"]

    with _cut_when(lab, folder / "env-a" / "bin" / "python"), pytest.raises(UnavailableError):
        install([needed, wanted])
    until = time.monotonic() + 20
    while (going_on := _running_in(folder)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not going_on
    assert not (folder / "env-a" / WHOLE).exists()
    # The last list may fail; and nothing is installed that is not what the lock file means.
    lacks = install([needed, wanted.replace("sha256:", "sha256:0")[:-2] + "\n"])
    assert re.search("Numba could not be installed: .*hash", lacks, re.IGNORECASE), lacks
    (site,) = (folder / "env-a" / "lib").glob("python3*/site-packages")
    assert (site / "large.py").exists()
    assert not (folder / "incoming").exists()
    assert asking.ask(place, "look", pick_extra=ASKS_NO_DRIVER)["whole"] == ["env-a"]
    assert asking.ask(place, "remove") == {"removed": True}
