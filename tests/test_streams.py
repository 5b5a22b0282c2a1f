"""Standard output that is closed, full, gone or of another encoding, and Ctrl-C: no traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import main
from tests.bench.kinds.test_folders import run

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


# Not before Python itself has begun, which has a traceback of its own.
@pytest.mark.parametrize("after_s", [0.25, 0.5, 1.0, 1.5, 3.0])
def test_ctrl_c_at_any_moment_is_a_word(folder: Path, after_s: float) -> None:
    process = subprocess.Popen(
        [sys.executable, str(MAIN), "compare", "--charts", "none", "--out", f"c{after_s}"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(after_s)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in out + err, err
    assert process.returncode in (130, -signal.SIGINT, 2, 1)
