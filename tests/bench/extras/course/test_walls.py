"""What keeps in what was handed in: what a process in it may do, what lies in its root, and what is said.

`python -m tests.bench.extras.course.hostile` grades a class of whom each tries something else."""

from __future__ import annotations

import importlib.util
import inspect
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import main
from bench.extras.course import judging, walls
from bench.extras.course.records import GradeCase
from bench.results.finding import Finding
from bench.results.ladder_records import RungCase, RungMeasurement
from kernels import confine, cpu, numba_support, registry
from kernels.errors import UnavailableError
from tests.bench.extras.course import classroom, hostile

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the walls are Linux's")
CASE = GradeCase(student="ada", exercise="softmax")

FILTERED = """
import ctypes, fcntl, mmap, os, resource, signal, socket, sys, termios, threading, time
from kernels import confine
libc = ctypes.CDLL(None, use_errno=True)
pair = os.pipe()
if not confine.install_filter(walled=True): print("none"); sys.exit()
def tried(what, *deed):
    try:
        failed = deed[0](*deed[1:]) == -1
    except OSError:
        failed = True
    print(what, "refused" if failed else "done")
other, own = os.getppid(), os.getpid()
tried("cores", os.sched_setaffinity, 0, os.sched_getaffinity(0))
tried("class", os.sched_setscheduler, 0, os.SCHED_OTHER, os.sched_param(0))
tried("priority", os.setpriority, os.PRIO_PROCESS, 0, 19)
tried("limits of another", resource.prlimit, other, resource.RLIMIT_CORE)
tried("own limits", resource.setrlimit, resource.RLIMIT_CORE, (0, 0))
tried("own limits by number", resource.prlimit, own, resource.RLIMIT_CORE)
tried("signal", os.kill, other, 0)
tried("signal to all", os.kill, -1, 0)
tried("signal to its group", os.kill, 0, 0)
tried("own signal", os.kill, own, 0)
tried("own thread's signal", signal.pthread_kill, threading.get_ident(), 0)
tried("socket", socket.socket, socket.AF_UNIX)
tried("pair", socket.socketpair)
tried("namespace", libc.unshare, 0x10000000)
tried("tracing", libc.ptrace, 16, other, 0, 0)
tried("nameless file", os.memfd_create, "name")
tried("owner of signals", fcntl.fcntl, pair[0], fcntl.F_SETOWN, other)
tried("flags", fcntl.fcntl, pair[0], fcntl.F_SETFL, os.O_NONBLOCK)
tried("merging", mmap.mmap(-1, 4096).madvise, 12)
tried("advice", mmap.mmap(-1, 4096).madvise, mmap.MADV_DONTNEED)
tried("date", os.utime, "/dev/null")
tried("log", libc.klogctl, 10, None, 0)
tried("core of its own", libc.prctl, 62, 1, 0, 0, 0)
tried("outlives its judge", libc.prctl, 1, 0, 0, 0, 0)
tried("ends with its judge", libc.prctl, 1, 9, 0, 0, 0)
file = open(os.__file__)
tried("lock", fcntl.flock, file, fcntl.LOCK_SH | fcntl.LOCK_NB)
tried("lock of a part", fcntl.lockf, file, fcntl.LOCK_SH | fcntl.LOCK_NB)
tried("who opens", libc.inotify_init)
tried("what lies in memory", os.preadv, file.fileno(), [bytearray(1)], 0, os.RWF_NOWAIT)
tried("which pages of it do", libc.mincore, None, 0, None)
tried("forgets a file", os.posix_fadvise, file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
tried("has it written", os.fsync, file.fileno())
tried("another name of it", os.link, os.__file__, "/nowhere/link")
tried("a hint that stays", fcntl.fcntl, file, 1036, bytes(8))
tried("how a file is kept", fcntl.ioctl, file, 0x80086601, bytes(8))
tried("how much there is to read", fcntl.ioctl, pair[0], termios.FIONREAD, bytes(4))
tried("room", os.statvfs, "/")
tried("time of another", time.clock_gettime, ~other << 3 | 2)
tried("own time", libc.clock_gettime, 2, ctypes.create_string_buffer(16))
tried("how busy all are", libc.sysinfo, ctypes.create_string_buffer(1024))
futex, word = 202 if os.uname().machine == "x86_64" else 98, ctypes.byref(ctypes.c_int32(0))
tried("wakes others", libc.syscall, futex, word, 1, 1, 0, 0, 0)
tried("wakes its own", libc.syscall, futex, word, 129, 1, 0, 0, 0)
tried("cores of another", os.sched_getaffinity, other)
tried("own cores", os.sched_getaffinity, 0)
tried("group of another", os.getpgid, other)
tried("priority of another", os.getpriority, os.PRIO_PROCESS, other)
tried("own priority", os.getpriority, os.PRIO_PROCESS, 0)
tried("fork", os.fork)
thread = threading.Thread(target=print, args=("thread done",)); thread.start(); thread.join()
"""
ALLOWED = {
    "own limits",
    "own limits by number",
    "own signal",
    "own thread's signal",
    "flags",
    "advice",
    "how much there is to read",
    "own time",
    "ends with its judge",
    "wakes its own",
    "own cores",
    "own priority",
    "thread",
}


@LINUX
def test_others_are_left_alone_and_ones_own_goes_on() -> None:
    done = subprocess.run([sys.executable, "-c", FILTERED], capture_output=True, text=True, check=True)
    said = done.stdout.splitlines()
    if said == ["none"]:
        pytest.skip("this system has no seccomp")
    assert {line.removesuffix(" done") for line in said if line.endswith(" done")} == ALLOWED
    assert len(said) == FILTERED.count("tried(") - 1 + 1  # its definition is none; the thread is one


@pytest.mark.sampled(4, "long")
@LINUX
def test_its_root_holds_python_and_the_modules_of_the_assignment_alone(tmp_path: Path) -> None:
    root = walls.tree("cpu", ("numpy",))
    files = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    for held in (
        "numpy/__init__.py",
        "msgspec/__init__.py",
        "kernels/cpu/common.py",
        "engine/cpu/session.py",
    ):
        assert any(name.endswith(held) for name in files), held
    for kept_out in (
        "onnxruntime/",
        "onnx/",
        "/numba/__init__",
        "01_stable.py",
        "etc/",
        "bench/",
        ".onnx",
        "tasks/scan/",
    ):
        assert not [name for name in files if kept_out in name], kept_out
    assert all(path.stat().st_mode & 0o4 for path in root.rglob("*.py"))
    # Whoever reads one first leaves no date.
    for path in (root, *root.rglob("kernels/*")):
        before = path.stat().st_atime_ns
        _ = list(path.iterdir()) if path.is_dir() else path.read_bytes()
        assert path.stat().st_atime_ns == before, path
    with pytest.raises(UnavailableError, match="no-such-module"):
        walls.packages(["no-such-module"])


def test_what_numba_needs_is_there_behind_a_wall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No process can be started to try it; a function that is kept has a file and a module."""
    monkeypatch.setattr(confine, "forbidden", lambda: True)
    monkeypatch.setattr(numba_support, "_kept", lambda: tmp_path / "nothing")
    monkeypatch.setattr(numba_support, "_tried", lambda: pytest.fail("a process was started"))
    monkeypatch.chdir(tmp_path)
    held = replace(registry.find("cpu", "softmax", "stable"), path=Path("/nowhere/90_mine.py"))
    bind = cpu.load(held).bind
    monkeypatch.delitem(sys.modules, bind.__module__ if inspect.getmodule(bind) else "it has no module")
    assert (tmp_path / "90_mine.py").read_text() == held.source
    if importlib.util.find_spec("numba") is not None:
        assert numba_support.unavailable.__wrapped__() is None


def test_without_a_wall_nothing_is_graded_and_how_to_get_one_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(walls, "_lacks", lambda name: "it is not installed")
    (tmp_path / "assignment.toml").write_text(classroom.assignment(["softmax"], budget=0.02))
    classroom.hand_in(tmp_path / "in" / "ada", {"softmax": "nothing"})
    command = ["course", "grade", str(tmp_path / "in"), "--assignment", str(tmp_path)]
    command += ["--out", str(tmp_path / "out")]
    assert main.main(command) != 0
    said = capsys.readouterr().err
    assert "apt install bubblewrap" in said
    assert "--no-walls" in said
    assert not (tmp_path / "out").exists()
    assert main.main([*command, "--no-walls"]) == 0
    told = (tmp_path / "out" / "gradescope" / "ada" / "results.json").read_text()
    assert "--no-walls" in told


def own(reason: str, **fields: object) -> RungMeasurement:
    return RungMeasurement(case=RungCase(rung="submission"), reason=reason, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("disposition", ["failed", "crashed", "out_of_memory", "unsupported", "timed_out"])
def test_who_has_seen_a_hidden_shape_has_no_words_of_its_own(disposition: str) -> None:
    said = own("the kernel failed: ValueError: axis 70001, exit code 113", disposition=disposition)
    assert judging.not_passed(CASE, said, seen=False).reason == said.reason
    told = judging.not_passed(CASE, said, seen=True)
    assert told.disposition == disposition
    assert "hidden shape" in told.reason
    assert not hostile.TOLD.search(told.reason)
    assert "113" not in told.reason


def test_what_is_wrong_is_told_without_numbers_once_a_hidden_shape_was_seen() -> None:
    finding = Finding(
        fault="pad", reason="70001 of 70001 are wrong", when="during timing", params="axis 100",
        index=(70001,), expected="1", got="70001", wrong=70001, elements=70001,
    )  # fmt: skip
    told = judging.not_passed(CASE, own("70001", disposition="incorrect", finding=finding), seen=True)
    assert told.reason == "its answer is wrong after it was tried on a hidden shape (pad)"
    assert not hostile.TOLD.search(repr(told))


def test_who_changes_settings_is_disqualified_with_the_reason() -> None:
    kept = own("the kernel changed the cores of the process of a rung: a kernel leaves others alone",
               disposition="failed")  # fmt: skip
    assert judging.not_passed(CASE, kept, seen=False).reason.startswith("disqualified: the kernel changed")
    changed = own(
        "", disposition="ok", facts={"undone": "the kernel changed the priority of its own process"}
    )
    told = judging.not_passed(CASE, changed, seen=False)
    assert (told.disposition, told.reason) == ("failed", f"disqualified: {changed.facts['undone']}")
    # Who has seen a hidden shape could have said that itself, or in which settings it changed.
    for said in (own("axis 70001: a kernel leaves others alone", disposition="failed"),
                 own("", disposition="ok", facts={"undone": "axis 70001"})):  # fmt: skip
        told = judging.not_passed(CASE, said, seen=True)
        assert told.reason.startswith("disqualified: ")
        assert not hostile.TOLD.search(told.reason)
    assert "disqualified: the kernel changed the priority" in judging.not_passed(CASE, changed, False).reason


def test_what_a_killed_grading_left_is_removed_and_what_another_uses_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walls.tempfile, "gettempdir", lambda: str(tmp_path))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    for name in (f"kernelscope-work-{ended.pid}-a", f"kernelscope-work-{os.getpid()}-b", "another"):
        (tmp_path / name / "in").mkdir(parents=True)
    here = os.open(".", os.O_RDONLY)
    os.chdir(tmp_path / f"kernelscope-work-{ended.pid}-a")
    for _ in range(1500):  # more than Python calls itself
        os.mkdir("d")
        os.chdir("d")
    os.fchdir(here)
    os.close(here)
    elsewhere = tmp_path / "elsewhere" / "root" / walls._OWN / "a"
    elsewhere.mkdir(parents=True)
    link = tmp_path / f"kernelscope-work-{ended.pid}-c"
    link.symlink_to(tmp_path / "elsewhere")
    others = tmp_path / f"kernelscope-work-{ended.pid}-d"
    if os.geteuid() == 0:  # what another user put there, to have something removed
        others.mkdir()
        (others / "root").symlink_to(tmp_path / "elsewhere" / "root")
        os.chown(others, 12_345, 12_345)
    walls.sweep()
    assert elsewhere.is_dir()
    assert link.is_symlink()
    left = {path.name for path in tmp_path.iterdir()}
    assert {f"kernelscope-work-{os.getpid()}-b", "another"} <= left
    assert not Path("/proc/self").exists() or f"kernelscope-work-{ended.pid}-a" not in left


FILLS = """
import os
from kernels import confine
said, made = os.dup(1), 0
if not os.fork():
    confine.hide_memory()
    confine.shut_in(said)
    try:
        while made < 100_000:
            os.mkdir(str(made))
            made += 1
    finally:
        os.write(said, str(made).encode())
        os._exit(0)
os.wait()
"""


@pytest.mark.sampled(4, "long")
@LINUX
def test_who_makes_folders_without_end_fills_no_disk(tmp_path: Path) -> None:
    if lacking := walls.standing()[walls.UID]:
        pytest.skip(lacking)
    with walls.Walls(walls.UID).around([sys.executable, "-P", "-c", FILLS], tmp_path, {}) as (command, _):
        (own,) = walls.tree("cpu", walls.MODULES).glob(f"own/{tmp_path.name}")
        if not os.path.ismount(own):
            pytest.skip("nothing can be mounted here")
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert 1_000 < int(done.stdout) < 20_000
    assert not own.exists()


LEADERLESS = """
import ctypes, os, sys, threading, time
os.setuid(int(sys.argv[1]))
threading.Thread(target=time.sleep, args=(600,)).start()
print("leaves", flush=True)
ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)  # this thread ends, and no other
"""


@LINUX
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="who ends others' is root")
def test_who_looks_dead_and_goes_on_is_ended() -> None:
    uid = str(walls.FIRST_UID + walls.UIDS)
    with subprocess.Popen([sys.executable, "-c", LEADERLESS, uid], stdout=subprocess.PIPE) as left:
        assert left.stdout is not None
        left.stdout.readline()
        time.sleep(0.1)
        assert left.poll() is None
        try:
            walls.end_all_of(int(uid))
            left.wait(60)  # its status is that of its first thread
        finally:
            left.kill()


def test_each_hostile_submission_is_a_file_of_its_own_that_compiles() -> None:
    outside = hostile.Outside(Path("/somewhere"))
    held = hostile.corpus()
    assert len({each.name for each in held}) == len(held) >= 60
    for each in held:
        if not each.cuda:
            compile(hostile.text_of(each, outside, ["a", "b"]), each.name, "exec")
    assert {each.name for each in held} >= set(hostile.SAMPLE)
