"""`ladder --compile --simulate`: CUDA kernels judged on a machine without a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

import main
from kernels import numba_support, nvrtc, registry

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable())),
    pytest.mark.skipif(numba_support.unavailable() is not None, reason=str(numba_support.unavailable())),
]

SHAPE = ["ladder", "conv", "--shape", "2,3,12,12,4,5", "--compile", "--simulate", "--arch", "sm_80"]


def own(folder: Path, ours: str, old: str = "", new: str = "") -> list[str]:
    """A copy of a rung of ours, with a change; the options for it."""
    rung = registry.find("cuda", "conv", ours)
    text = rung.source.replace(f"rung = {rung.number}", "rung = 90").replace(f'"{rung.name}"', '"mine"')
    assert old in text
    (folder / "90_mine.cu").write_text(text.replace(old, new))
    return [*SHAPE, "--kernels", str(folder), "--rung", "mine"]


def test_a_right_kernel_is_right_and_its_cost_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(own(tmp_path, "shared_image")) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "warp instructions" in said
    assert "wavefronts" in said
    assert "no time is known" in said


def test_a_missing_barrier_is_named_with_its_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = own(tmp_path, "shared_image", "__syncthreads();", "")
    assert main.main(line) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "no __syncthreads() lies between" in said or "which nobody has written" in said
    assert "90_mine.cu:" in said


def test_simulate_needs_compile(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["ladder", "conv", "--simulate"]) == 2
    assert "--compile" in capsys.readouterr().err
