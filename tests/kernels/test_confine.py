"""What is shut in can neither write, nor read what is not for it, nor reach the network or its judge."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernels import confine

TRIES = """
import os, signal, socket, sys
from kernels import confine
if confine.isolate_network() and "network" in sys.argv: print("no walls"); sys.exit()
if confine.restrict(tuple(sys.argv[2:3])): print("no walls"); sys.exit()
def tried(what, *deed):
    try:
        deed[0](*deed[1:])
    except OSError as error:
        print(what, "refused")
    else:
        print(what, "done")
tried("read", open, sys.argv[2] + "/allowed")
tried("read of another", open, sys.argv[1] + "/other")
tried("list", os.listdir, sys.argv[1])
tried("write", open, sys.argv[2] + "/allowed", "w")
tried("make", os.mkdir, sys.argv[2] + "/new")
tried("signal", os.kill, os.getppid(), 0)
tried("network", socket.create_connection, ("127.0.0.1", int(sys.argv[3])), 2)
import numpy; tried("null", open, "/dev/null", "w")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the walls are Linux's")
def test_what_is_shut_in_reads_what_it_needs_and_nothing_else(tmp_path: Path) -> None:
    import socket

    (tmp_path / "other").write_text("another's")
    allowed = tmp_path / "mine"
    allowed.mkdir()
    (allowed / "allowed").write_text("one's own")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        command = [sys.executable, "-c", TRIES, str(tmp_path), str(allowed), port]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    if said == ["no walls"]:
        pytest.skip("this kernel has no Landlock")
    wanted = {
        "read done",
        "read of another refused",
        "list refused",
        "write refused",
        "make refused",
        "null done",
    }
    assert wanted <= set(said)
    assert "network refused" in said
    if "signal refused" not in said:
        assert tuple(map(int, os.uname().release.split(".")[:2])) < (6, 12)


def test_memory_is_limited_for_what_is_started_too() -> None:
    code = (
        "import subprocess, sys; from kernels import confine; confine.limit_memory(300)\n"
        "child = 'from kernels import processes; processes.unlimited(); bytearray(1 << 30)'\n"
        "sys.exit(subprocess.run([sys.executable, '-c', child], stderr=subprocess.DEVNULL).returncode)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 1


KEPT = """
import ctypes, os, signal, site, socket, sys, threading
from kernels import confine
confine.forbid_background_work()
libc = ctypes.CDLL(None, use_errno=True)
def tried(what, *deed):
    try:
        failed = deed[0](*deed[1:]) == -1
    except OSError:
        failed = True
    print(what, "refused" if failed else "done")
def ended(make, *given):
    made = make(*given)
    if made == 0:
        os._exit(0)
    if made > 0:
        os.waitpid(made, 0)
    return made
tried("process", ended, os.fork)
tried("program", os.posix_spawn, sys.executable, [sys.executable, "-c", ""], {})
clone, perf_event_open = (56, 298) if os.uname().machine == "x86_64" else (220, 241)
tried("process by clone", ended, libc.syscall, clone, signal.SIGCHLD, 0, 0, 0, 0)
tried("timer", libc.timer_create, 1, None, ctypes.byref(ctypes.c_void_p()))
tried("timer by a file", libc.timerfd_create, 1, 0)
tried("counter", libc.syscall, perf_event_open, bytes(128), 0, -1, -1, 0)
tried("group", open, "/proc/self/autogroup", "w")
tried("own name", open, "/proc/self/comm", "w")
tried("socket", socket.socket, socket.AF_UNIX)
tried("signal", os.kill, os.getppid(), 0)
tried("own signal", os.kill, os.getpid(), 0)
for name in ("here", "there"):
    tried("folder", os.mkdir, f"{sys.argv[1]}/{name}")
tried("file", open, f"{sys.argv[1]}/here/file", "w")
tried("move", os.replace, f"{sys.argv[1]}/here/file", f"{sys.argv[1]}/there/file")
run = sys.argv[2]
tried("line in a run", open, f"{run}/results.jsonl", "a")
tried("cut", os.truncate, f"{run}/results.jsonl", 0)
tried("replaced", os.replace, f"{sys.argv[1]}/there/file", f"{run}/results.jsonl")
tried("removed", os.remove, f"{run}/results.jsonl")
tried("linked", os.symlink, "/", f"{run}/link")
tried("linked from outside", os.link, f"{run}/results.jsonl", f"{sys.argv[1]}/here/link")
tried("made", open, f"{run}/new", "w")
tried("folder moved", os.rename, run, f"{run}-2")
tried("beside a run", open, f"{os.path.dirname(run)}/notes", "a")
tried("in the cache", open, os.path.join(os.environ["KERNELSCOPE_CACHE"], "entry"), "w")
tried("in its own cache", open, confine.writable_cache() / "entry", "w")
tried("in the program", open, confine.__file__, "r+")
tried("in the user's packages", os.makedirs, os.path.join(site.getusersitepackages(), "new"))
tried("by a link", open, f"{sys.argv[1]}/link/results.jsonl", "a")
thread = threading.Thread(target=print, args=("thread done",))
thread.start(); thread.join()
print("open" if confine.missing_restrictions(os.getpid()) else "kept")
"""


IN_A_RUN = (
    "line in a run", "cut", "replaced", "removed", "linked", "linked from outside", "made", "folder moved",
    "beside a run", "in the cache", "in the program", "in the user's packages", "by a link",
)  # fmt: skip


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the walls are Linux's")
@pytest.mark.parametrize("kept", [True, False])
def test_what_a_user_wrote_leaves_nothing_that_goes_on(
    kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, elsewhere = tmp_path / "runs", tmp_path / "elsewhere"
    (runs / "run").mkdir(parents=True)
    (runs / "run" / "results.jsonl").write_text("{}\n")
    (runs / "notes").touch()
    elsewhere.mkdir()
    (elsewhere / "link").symlink_to(runs / "run")
    (tmp_path / "cache").mkdir()
    monkeypatch.delenv(confine.KEPT, raising=False)
    confine.keep_unwritten(str(runs / "run"))
    environment = os.environ | {"KERNELSCOPE_CACHE": str(tmp_path / "cache"), "HOME": str(tmp_path / "home")}
    environment |= {} if kept else {confine.OPEN: "1"}
    command = [sys.executable, "-c", KEPT, str(elsewhere), str(runs / "run")]
    said = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    lines = set(said.splitlines())
    assert {"file done", "move done", "own signal done", "thread done"} <= lines
    assert not kept or "in its own cache done" in lines
    if not kept:
        assert {"process done", "program done", "open"} <= lines
        return
    if "open" in lines:
        pytest.skip("this system has no seccomp")
    wanted = ("process", "program", "process by clone", "timer", "timer by a file", "counter", "socket")
    assert {f"{what} refused" for what in wanted} <= lines
    if "own name refused" in lines:  # there is Landlock
        assert "group refused" in lines
        assert {f"{what} refused" for what in IN_A_RUN} <= lines
        assert sorted(path.name for path in runs.rglob("*")) == ["notes", "results.jsonl", "run"]
        assert (runs / "run" / "results.jsonl").read_text() == "{}\n"
        if tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 12):
            assert "signal refused" in lines


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the walls are Linux's")
def test_a_cache_that_cannot_be_written_opens_no_folder(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    script = (
        "import sys\nfrom kernels import confine\nconfine.keep_unwritten(sys.argv[1])\n"
        "confine.forbid_background_work()\nopen(sys.argv[1] + '/forged', 'w')\n"
    )
    environment = os.environ | {
        "KERNELSCOPE_CACHE": "/dev/null/no-folder",
        "PYTHONPATH": str(Path(confine.__file__).parents[1]),
    }
    done = subprocess.run(
        [sys.executable, "-c", script, str(kept)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert "PermissionError" in done.stderr
    assert not (kept / "forged").exists()
