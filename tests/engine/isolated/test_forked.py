"""Isolated processes that are forked: as if each had been started by itself, and gone when it should be."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from bench.extras.course import walls
from engine.isolated import pool
from engine.isolated.client import Child
from engine.isolated.forked import starting
from engine.isolated.forked.starting import Forked
from engine.rung_devices import prepare
from kernels import confine, registry
from kernels.errors import CrashedError
from kernels.ops.unary import Unary
from tests.bench.judge import written

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux"),
]
ROOT = Path(__file__).parents[3]
# What a kernel leaves wherever it can, and what one finds.
LEAVES = """
    np.left = registry_left = 1
    sys.modules["engine.isolated.open_engine"].left = 1
    sys.modules["engine.isolated.child"].Server.left = 1
    sys.modules["left"] = np
    os.environ["LEFT"] = "1"
    sys.path.insert(0, "/left")
    os.chdir("/")
    os.umask(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    np.random.seed(0)
    work(x, y)
"""
LOOKS = """
    import resource
    mask = os.umask(0)
    os.umask(mask)
    found = {{
        "left": [
            hasattr(np, "left"), hasattr(sys.modules["engine.isolated.open_engine"], "left"),
            hasattr(sys.modules["engine.isolated.child"].Server, "left"), "left" in sys.modules,
            "LEFT" in os.environ, "/left" in sys.path,
            signal.getsignal(signal.SIGTERM) is signal.SIG_IGN,
        ],
        "told": os.environ.get("KERNELSCOPE_TOLD", ""),
        "parent": os.getppid(),
        "folder": os.getcwd(),
        "umask": mask,
        "cores": sorted(os.sched_getaffinity(0)),
        "threads": len(os.listdir("/proc/self/task")),
        "sockets": sum("socket:" in os.readlink(f"/proc/self/fd/{{n}}")
                       for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{{n}}")),
        "leads": os.getsid(0) == os.getpgid(0) == os.getpid(),
        "drawn": np.random.random(),
    }}
    open({told!r}, "w").write(repr(found))
    work(x, y)
"""


def _run(folder: Path, name: str, body: str) -> Any:
    """A user's kernel once, in a process of its own."""
    written.write(folder / name, name, body)
    rung = registry.find("cpu", "unary", name, [folder / name])
    session = prepare(rung, Unary("tanh", 64), [np.zeros(64, np.float32)], 1)
    session.run()
    process = session._child._process  # type: ignore[attr-defined]
    session.close()
    return process


def _seen(folder: Path, name: str) -> dict[str, Any]:
    told = folder / f"told by {name}"
    process = _run(folder, name, LOOKS.format(told=str(told)))
    assert isinstance(process, Forked)
    assert process._started is None
    found: dict[str, Any] = ast.literal_eval(told.read_text())
    return found


def test_no_kernel_finds_what_another_left(tmp_path: Path) -> None:
    before = _seen(tmp_path, "first")
    _run(tmp_path, "leaves", LEAVES)
    after = _seen(tmp_path, "second")
    assert after["parent"] == before["parent"] == os.getpid()
    assert not any(after["left"])
    assert after["drawn"] != before["drawn"]
    told = ("folder", "umask", "cores", "threads", "sockets", "leads")
    assert {name: after[name] for name in told} == {name: before[name] for name in told}
    assert (after["sockets"], after["leads"]) == (1, True)


@pytest.mark.sampled(4, "long")
def test_one_is_told_what_a_started_one_would_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pool.close_all()  # one that lies ready was told what held before
    before = _seen(tmp_path, "first")
    pool.close_all()
    cores = os.sched_getaffinity(0)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("KERNELSCOPE_TOLD", "a word")
    mask = os.umask(0o027)
    os.sched_setaffinity(0, {min(cores)})
    try:
        found = _seen(tmp_path, "second")
    finally:
        os.umask(mask)
        os.sched_setaffinity(0, cores)
    assert (before["told"], before["umask"], before["cores"]) == ("", mask, sorted(cores))
    assert (found["told"], found["folder"]) == ("a word", str(tmp_path / "here"))
    assert (found["umask"], found["cores"]) == (0o027, [min(cores)])
    pool.close_all()


@pytest.mark.sampled(4, "long")
def test_one_that_is_to_be_shut_in_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if lacking := walls.standing()[walls.UID]:
        pytest.skip(lacking)
    (tmp_path / "other").write_text("another's")
    for name, value in {
        confine.WALLED_ROOT: str(walls.tree("cpu", ("numpy",))),
        confine.WALLED_TMP: "/own",
        confine.WALLED_UID: str(walls.FIRST_UID),
    }.items():
        monkeypatch.setenv(name, value)
    body = f"""
        try:
            open({str(tmp_path / "other")!r})
        except OSError:
            nowhere = [os.fstat(fd).st_rdev == os.stat("/dev/null").st_rdev for fd in (0, 1, 2)]
            raise ValueError(f"it is refused to {{os.getuid()}} at {{os.getcwd()}} and says {{nowhere}}")
        work(x, y)
    """
    pool.close_all()
    with pytest.raises(
        Exception, match=rf"refused to {walls.FIRST_UID} at /own and says \[True, True, True\]"
    ):
        _run(tmp_path, "own", body)
    pool.close_all()


def _template() -> int:
    (template,) = [it for it in starting._templates.values() if not it.gone]
    return template.pid


@pytest.fixture
def child() -> Iterator[Child]:
    starting.close_all()
    made = Child("a kernel's tries")
    made.call("note", 0)
    yield made
    made.close()


def test_a_template_that_is_gone_costs_nobody_and_another_follows(child: Child) -> None:
    gone = _template()
    os.kill(gone, signal.SIGKILL)
    _all_end([gone])
    other = Child("another's tries")
    other.call("note", 0)
    assert isinstance(other._process, Forked)
    assert other._process._started is None
    assert _template() != gone
    other.close()
    child.call("note", 0)


def test_how_one_ended_is_told(child: Child) -> None:
    os.kill(child.pid, signal.SIGABRT)
    os.kill(child.pid, signal.SIGCONT)
    with pytest.raises(CrashedError, match="was killed by SIGABRT"):
        child.call("note", 0)
    assert child._process.wait() == -signal.SIGABRT


def test_where_a_template_ends_before_it_forks_one_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    starting.close_all()
    monkeypatch.setattr(starting, "TEMPLATE", "this")  # prints a poem, and ends
    child = Child("a kernel's tries")
    child.call("note", 0)
    assert isinstance(child._process, Forked)
    assert child._process._started is not None
    child.close()
    assert child._process.wait() == -signal.SIGKILL


def test_a_template_with_a_thread_forks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    starting.close_all()
    (tmp_path / "threaded.py").write_text(
        "import os, threading, time\nfrom engine.isolated.forked import template\n"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\nos._exit(template.main())\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(starting, "TEMPLATE", "threaded")
    child = Child("a kernel's tries")
    child.call("note", 0)
    assert isinstance(child._process, Forked)
    assert child._process._started is not None
    child.close()
    starting.close_all()


def test_nothing_outlives_a_parent_that_is_killed() -> None:
    code = (
        "import os, signal\n"
        "from engine.isolated.client import Child\nfrom engine.isolated.forked import starting\n"
        "children = [Child('tries') for _ in range(2)]\nfor child in children: child.call('note', 0)\n"
        "(template,) = starting._templates.values()\n"
        "print(template.pid, *(child.pid for child in children), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    pids = [int(pid) for pid in ended.stdout.split()]
    assert len(set(pids)) == 3, ended.stderr
    _all_end(pids)


def _all_end(pids: list[int]) -> None:
    until = time.monotonic() + 60
    while any(map(_runs, pids)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not [pid for pid in pids if _runs(pid)]


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_where_the_system_tells_of_no_process_they_are_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One older than that which this Python was built for, or a container that forbids it."""

    def refused(pid: int, flags: int = 0) -> int:
        raise OSError(38, "Function not implemented")

    pool.close_all()
    monkeypatch.setattr(os, "pidfd_open", refused)
    starting.possible.cache_clear()
    try:
        assert not isinstance(_run(tmp_path, "plain", "    work(x, y)\n"), Forked)
    finally:
        starting.possible.cache_clear()
