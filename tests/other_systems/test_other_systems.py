"""The program on systems that lack what Linux has; `python -m tests.other_systems` runs more of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.other_systems import SYSTEMS, environment, kernels
from tests.other_systems.__main__ import ONE, ROOT, SMALL

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="plays the other systems on Linux"),
]


def run(system: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command of the program as on that system, in a folder."""
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environment(system, without="numba,llvmlite") | {"QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        timeout=100,
    )


ASKS = """
import os, pathlib, select, signal, sys
has = [hasattr(os, "sched_setaffinity"), hasattr(os, "fork"), hasattr(signal, "SIGKILL")]
print(sys.platform, os.name, *has)
print(hasattr(select, "epoll"), pathlib.Path("/proc/self/status").exists(), os.path.exists("/proc/stat"))
try:
    import fcntl, resource
    print("has both")
except ImportError as error:
    print(error)
try:
    open("/proc/stat")
except OSError as error:
    print(type(error).__name__)
import psutil
print(psutil.Process().num_threads() > 0)
"""


@pytest.mark.parametrize(
    ("system", "told"),
    [
        ("win32", ["win32 nt False False False", "False False False", "No module named 'fcntl'"]),
        ("darwin", ["darwin posix False True True", "False False False", "has both"]),
    ],
)
def test_what_is_played_lacks_what_that_system_lacks(system: str, told: list[str], tmp_path: Path) -> None:
    """Else the tests below show nothing. What the program uses sees the real system all the same."""
    done = run(system, tmp_path, "-c", ASKS)
    assert done.stdout.splitlines() == [*told, "FileNotFoundError", "True"], done.stderr


@pytest.mark.parametrize("system", SYSTEMS)
def test_doctor_says_what_the_system_lacks_and_what_is_done_instead(system: str, tmp_path: Path) -> None:
    asks = "from bench.commands import checks\nfor it in checks._system(): print(it.name)"
    done = run(system, ROOT, "-c", asks)
    lacks = ["stopping", "walls", "forking", "memory limits", "cores", "load", "caches"]
    assert done.stdout.splitlines() == [*lacks, *(["file locks"] if system == "win32" else [])], done.stderr


def test_here_nothing_is_missing() -> None:
    from bench.commands import checks

    found = [check.name for check in checks.checks() if check.topic == "system"]
    assert set(found) <= {"forking", "caches"}, "what an old kernel or a container may lack"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_comparison_with_a_kernel_of_one_s_own_that_aborts(system: str, tmp_path: Path) -> None:
    """The reference is measured; the kernel, in a process of its own, costs itself alone."""
    kernels(tmp_path / "kernels", ("aborts",))
    words = ("compare", "lenet5-digits", "--batch", "4", "--images", "4", "--no-layer-pass", *SMALL, *ONE)
    own = ("--kernels", "kernels", "--rung", "conv1=aborts")
    done = run(system, tmp_path, str(ROOT / "main.py"), *words, *own)
    assert done.returncode == 1, done.stderr[-3000:]
    (lines,) = tmp_path.glob("runs/*/results.jsonl")
    cases = [json.loads(line) for line in lines.read_text().splitlines()]
    ended = {it["case"]["backend"]: (it["disposition"], it.get("reason", "")) for it in cases}
    assert ended["ort-cpu"] == ("ok", "")
    assert ended["engine-cpu"][0] == "crashed"
    assert "SIGABRT" in ended["engine-cpu"][1]
