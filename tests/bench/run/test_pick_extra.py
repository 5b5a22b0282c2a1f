"""The choice of the dependency set follows what the driver says."""

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
