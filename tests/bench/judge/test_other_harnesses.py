"""The checks of other programs, written anew, tell a right kernel from a wrong one: run on the host."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernels import nvrtc, registry
from tests.bench.judge import corpus, on_the_host, other_harnesses
from tests.bench.judge.other_harnesses import Compared, Device, Kernel, Verdict

pytestmark = pytest.mark.skipif(on_the_host.COMPILER is None, reason="no compiler for the host")


def test_the_checks_tell_right_from_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hosted = on_the_host.Hosted(tmp_path)
    monkeypatch.setattr(nvrtc, "compile_rung", hosted.compiled)
    device = Device(hosted)
    params = corpus.find("gemm_few_rows", "cuda").params
    naive = registry.find("cuda", "gemm", "naive")
    right = Kernel(device, naive, params)
    said = {}
    for name in ("naive", "gemm_only_where_poisoned", "gemm_every_eighth_launch"):
        kernel = Kernel(device, registry.find("cuda", "gemm", name, [corpus.FOLDER / "cuda"]), params)
        said[name] = other_harnesses.kernelbench(device, kernel, right, seed=1, timed=3)
        said[name]["PyGPUBench"] = other_harnesses.pygpubench(device, kernel, right, seed=1, cases=9)
    assert {check: verdict.wrong for check, verdict in said["naive"].items()} == dict.fromkeys(
        other_harnesses.TOLERANCES, ""
    )
    assert all(verdict.ns > 0 for verdict in said["naive"].values())
    assert all(verdict.wrong for verdict in said["gemm_only_where_poisoned"].values())
    assert said["gemm_every_eighth_launch"]["PyGPUBench"].wrong


def test_who_is_let_through_is_counted_by_our_own_rule() -> None:
    checks = {"KernelBench": Verdict("", 50.0), "KernelBench, first version": Verdict("draw 1 of 5"),
              "PyGPUBench": Verdict("", 90.0)}  # fmt: skip
    full = dict.fromkeys(other_harnesses.TOLERANCES, 100.0)
    one = Compared("it", "changes", ("incorrect", "ok"), checks, full)
    assert [one.through(check) for check in other_harnesses.TOLERANCES] == [True, False, False]
    told = other_harnesses.page([one], [], "a GPU", "command")
    assert "| KernelBench | 1 | 0 | 0 | 1 | 0 | 0 |" in told
    assert "| PyGPUBench | 1 | 0 | 1 | 0 | 0 | 0 |" in told
