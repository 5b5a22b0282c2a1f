"""The choice of the dependency set follows what the driver says."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench.run.pick_extra import EXTRAS, choose

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("version", "extra"), [(13010, "cuda"), (13000, "cuda"), (12090, "cuda12"), (11080, "cpu"), (None, "cpu")]
)
def test_follows_the_driver(version, extra):
    chosen, why = choose(version, "no NVIDIA driver answers")
    assert chosen == extra
    assert why


def test_every_extra_has_its_locks():
    for extra in EXTRAS:
        for lock in (f"{extra}.txt", f"dev-{extra}.txt"):
            text = (ROOT / "locks" / lock).read_text()
            assert "--hash=sha256:" in text
            assert "://" not in text


def test_wish_is_checked():
    result = subprocess.run(
        [sys.executable, ROOT / "bench" / "run" / "pick_extra.py"],
        env={"KERNELSCOPE_EXTRA": "rocm"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 1
    assert "cpu, cuda, cuda12" in result.stderr


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("make"), reason="of make on Linux")
@pytest.mark.parametrize(
    ("words", "extra", "installs"),
    [
        ("torch", "cpu", False),
        ("torch TORCH=yes", "cpu", True),
        ("torch", "cuda", True),
        ("openvino", "cpu", True),
    ],
)
def test_without_a_gpu_make_torch_says_how_large_it_is_and_installs_nothing_unasked(
    tmp_path: Path, words: str, extra: str, installs: bool
):
    """Nobody is there to answer. uv is played by a script that notes what it is asked."""
    for part in ("Makefile", "bench/run/pick_extra.py", "locks/torch.txt", "locks/openvino.txt"):
        (tmp_path / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / part, tmp_path / part)
    (tmp_path / "uv").write_text('#!/bin/sh\nmkdir -p .venv-torch .venv-openvino; echo "$@" >>asked\n')
    (tmp_path / "uv").chmod(0o755)
    done = subprocess.run(
        ["make", *words.split(), "UV=./uv"],
        cwd=tmp_path,
        env=os.environ | {"KERNELSCOPE_EXTRA": extra, "MAKEFLAGS": ""},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    asked = (tmp_path / "asked").read_text() if (tmp_path / "asked").exists() else ""
    assert ("pip install" in asked, done.returncode == 0) == (installs, installs), done.stderr
    if not installs:
        assert "5.4 GB" in done.stderr
        assert "make torch TORCH=yes" in done.stderr
