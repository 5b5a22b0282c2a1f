"""Standard output that is closed, full, gone or of another encoding, and Ctrl-C: no traceback."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import main
from tests.bench.results.test_folders import run

pytestmark = pytest.mark.slow

MAIN = Path(main.__file__)
SHOW = ["runs", "show", "run", "--format", "csv"]


def shell(folder: Path, command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command line of ours (`$KS`) as a shell runs it; its standard error is told apart."""
    ours = f"{sys.executable} {MAIN}"
    return subprocess.run(
        ["bash", "-c", command.replace("$KS", ours)],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("streams")
    run(path / "run")
    return path


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="/dev/full is Linux's")
@pytest.mark.parametrize("form", ["csv", "table"])
def test_a_full_standard_output_is_one_sentence(folder: Path, form: str) -> None:
    done = shell(folder, f"$KS runs show run --format {form} > /dev/full")
    assert done.returncode == 1
    assert done.stderr == "standard output cannot be written: no space left on device\n"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("$KS runs show run --layers | true; exit ${PIPESTATUS[0]}", (0, 1)),
        ("$KS runs show run --layers --format csv | head -c 1 > /dev/null; exit ${PIPESTATUS[0]}", (0, 1)),
        ("$KS runs show run >&-", (0, 1)),
        ("$KS runs show nowhere 2>&-", (2,)),
        ("$KS runs show nowhere 2>/dev/full", (1, 2)),
    ],
)
def test_streams_that_are_closed_or_gone_are_no_fault(folder: Path, command: str, code: tuple[int]) -> None:
    done = shell(folder, command)
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    assert done.returncode in code


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "xx_YY.nonsense", "PYTHONUTF8": "0"},
    ],
)
def test_any_encoding_will_do(folder: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, str(MAIN), "runs", "show", "run"],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
    assert b"lenet5" in done.stdout


def test_a_name_that_is_no_text_is_one_sentence(folder: Path) -> None:
    done = shell(folder, "$KS runs show $'\\xff\\xfe'")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


# Ctrl-C before the first line of ours, which takes it from Python, is of Python itself, which has a traceback
# of its own. So that line tells that it was reached.
BEGUN = """
import _signal, os, sys
path = sys.argv[1]
sys.argv[:], sys.path[0] = sys.argv[1:], os.path.dirname(path)
taken = _signal.signal
def begun(*given):
    _signal.signal = taken
    taken(*given)
    os.write(1, b"begun\\n")
_signal.signal = begun
exec(compile(open(path).read(), path, "exec"))
"""


def all_with(mark: str) -> list[int]:
    """Processes that have a word in the environment in which they were started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark.encode() in path.read_bytes():
                found.append(int(path.parent.name))
    return found


# From its first line on: while it is read in, while a comparison is prepared, while it is measured. At all of
# them: `KERNELSCOPE_SEED=all python -m pytest tests/test_streams.py -k any_moment`.
@pytest.mark.sampled(60)
@pytest.mark.parametrize("after_s", [n / 20 for n in range(60)])
def test_ctrl_c_at_any_moment_is_a_word_and_leaves_nobody(folder: Path, after_s: float) -> None:
    mark = f"INTERRUPTED={os.getpid()}-{after_s}-"
    process = subprocess.Popen(
        [sys.executable, "-c", BEGUN, str(MAIN), "compare", "--charts", "none", "--out", f"c{after_s}"],
        cwd=folder,
        env=os.environ | dict([mark.split("=")]),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
            time.sleep(after_s)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert "Traceback" not in out + err, err
    assert process.returncode in (130, -signal.SIGINT), err
    until = time.monotonic() + 30.0
    while (left := all_with(mark)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not left


def test_ctrl_c_waits_until_a_library_is_loaded(folder: Path) -> None:
    """It would be raised within what the library does when it starts, which may not be ready for that."""
    (folder / "library.py").write_text(
        "import signal\n"
        "signal.raise_signal(signal.SIGINT)\n"
        "for _ in range(1000): pass\n"
        "print('loaded', flush=True)\n"
    )
    text = (
        "import time; from bench.words import streams; streams.quiet_interrupts(); import library; "
        "time.sleep(60); print('slept')"
    )
    done = subprocess.run(
        [sys.executable, "-c", text],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join((str(MAIN.parent), str(folder)))},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "loaded\n", "cancelled\n")


def test_ctrl_c_where_python_drops_what_is_raised_comes_again(folder: Path) -> None:
    """In the middle of a finalizer or a callback of C. Here at once, as on a busy machine: while Python still
    is where it drops what is raised."""
    text = (
        "import signal, time\n"
        "from bench.words import streams\n"
        "streams._AGAIN_S = 0.0\n"
        "streams.quiet_interrupts()\n"
        "class Held:\n"
        "    def __del__(self): signal.raise_signal(signal.SIGINT)\n"
        "Held()\n"
        "print('dropped', flush=True)\n"
        "time.sleep(60)\n"
        "print('slept')"
    )
    done = subprocess.run(
        [sys.executable, "-c", text],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(MAIN.parent)},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, "cancelled\n")
    assert done.stdout in ("", "dropped", "dropped\n"), "wherever it came"


def test_what_runs_behind_a_shell_hears_no_ctrl_c(folder: Path) -> None:
    command = f"{sys.executable} {MAIN} runs show run --format csv"
    text = f"trap '' INT; {command} & pid=$!; sleep 0.2; kill -INT $pid; sleep 0.3; kill -INT $pid; wait $pid"
    done = shell(folder, text)
    assert done.returncode == 0, done.stderr
