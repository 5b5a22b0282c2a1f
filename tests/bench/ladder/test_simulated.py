"""CUDA kernels judged on a machine without a GPU: by `ladder --device cuda`, with `--compile --simulate`, and
from Python."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

import kernelscope as ks
import main
from engine import backends
from kernels import numba_support, nvrtc, registry

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable())),
    pytest.mark.skipif(numba_support.unavailable() is not None, reason=str(numba_support.unavailable())),
]

SHAPE = ["ladder", "conv", "--shape", "2,3,12,12,4,5"]
RACE = "__syncthreads();", ""


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends.get("engine-cuda"), "unavailable", lambda: "there is no GPU", raising=True)


def own(folder: Path, ours: str, old: str = "", new: str = "") -> Path:
    """The folder with a copy of a rung of ours, with a change."""
    rung = registry.find("cuda", "conv", ours)
    text = rung.source.replace(f"rung = {rung.number}", "rung = 90").replace(f'"{rung.name}"', '"mine"')
    assert old in text
    (folder / "90_mine.cu").write_text(text.replace(old, new))
    return folder


def mine(folder: Path) -> list[str]:
    return [*SHAPE, "--kernels", str(folder), "--rung", "mine"]


@pytest.mark.sampled(4, "long")
def test_without_a_gpu_a_right_kernel_is_right_and_its_cost_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = [*mine(own(tmp_path, "shared_image")), "--device", "cuda"]
    assert main.main(line) == 0
    printed = capsys.readouterr()
    said = " ".join(printed.out.split())
    assert "simulated: answers and counts, no times" in " ".join(printed.err.split())
    assert "warp instructions" in said
    assert "wavefronts" in said
    assert "vs ref." not in said
    assert main.main([*line, "--gpu", "T4", "--format", "csv"]) == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert row["disposition"] == "ok"
    assert int(row["sectors"]) >= int(row["least_sectors"]) > 0
    assert [name for name in row if name.endswith("_s")] == ["floor_s"], "a column of times"
    assert 0 < float(row["floor_s"]) < 1e-3
    assert row["floor"].startswith("no less than")


def test_what_takes_a_gpu_is_refused_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = [*mine(own(tmp_path, "shared_image")), "--device", "cuda"]
    assert main.main([*line, "--tune"]) == 2
    assert "leave --tune away" in capsys.readouterr().err
    assert main.main([*line, "--gpu", "T5"]) == 2
    assert "RTX 4090" in capsys.readouterr().err
    monkeypatch.setattr(nvrtc, "unavailable", lambda: "it is not there")
    assert main.main(line) == 2
    said = capsys.readouterr().err
    assert "pip install" in said
    assert "there is no GPU" in said
    assert len(said.strip().splitlines()) == 1


@pytest.mark.sampled(4, "long")
def test_a_missing_barrier_is_named_with_its_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = mine(own(tmp_path, "shared_image", *RACE))
    assert main.main([*line, "--compile", "--simulate", "--arch", "sm_80"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "no __syncthreads() lies between" in said or "which nobody has written" in said
    assert "90_mine.cu:" in said


@pytest.mark.sampled(6, "longest")
def test_from_python_the_same_is_found_and_there_is_no_time(tmp_path: Path) -> None:
    path = own(tmp_path, "shared_image") / "90_mine.cu"
    with ks.Judge(simulated=True, shape=(2, 3, 12, 12, 4, 5)) as judge:
        says = 'if (threadIdx.x == 0) printf("from block %d\\n", blockIdx.x);'
        told = path.read_text().replace("    float sum = 0.0f;", f"    {says}\n    float sum = 0.0f;", 1)
        right, racy = judge(told), judge(path.read_text().replace(*RACE))
        with pytest.raises(ks.KernelscopeError, match="leave --beside away"):
            judge(path, beside="naive")
    assert right.right is True, right.why
    assert right.simulated
    assert (right.time_s, right.against, right.grade) == (None, (), "none")
    assert right.counted["instructions"] > 0
    assert any("sectors" in sentence for sentence in right.costs)
    assert "printed: from block 0 · from block 1" in right.costs
    assert (racy.right, racy.grade) == (False, "wrong")
    assert racy.finding is not None
    assert racy.finding.fault in ("race", "uninitialised")
    assert not racy.counted


@pytest.mark.sampled(4, "long")
def test_a_kernel_that_cannot_be_run_is_not_called_right(tmp_path: Path) -> None:
    loop = "    for (int om = 0;"
    does = "{ .reg .u32 t; vmad.u32.u32.u32 t, %0, %1, %2; }"
    rare = f'asm volatile("{does}" :: "r"(p.h), "r"(p.w), "r"(p.m));'
    path = own(tmp_path, "naive", loop, f"    {rare}\n{loop}") / "90_mine.cu"
    judged = ks.judge(path, simulated=True, shape=(1, 2, 6, 6, 2, 3))
    assert judged.right is None, judged
    assert judged.outcome == "unsupported"
    assert "cannot be run without a GPU" in judged.why
    assert "vmad" in judged.why


def test_simulate_needs_compile(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["ladder", "conv", "--simulate"]) == 2
    assert "--compile" in capsys.readouterr().err
