"""A CUDA kernel judged on a GPU, from Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import kernelscope as ks
from bench.questions import rung_template

pytestmark = pytest.mark.gpu


def test_a_cuda_kernel_is_judged_with_what_its_compiler_tells(tmp_path: Path) -> None:
    path = rung_template.write("conv", "cuda", tmp_path)
    text = path.read_text()
    # One index beyond the output: what the driver makes of it costs this kernel alone.
    breaks = text.replace("y[", "y[(1ll << 40) + ")
    with ks.Judge(timeout=30) as judge:
        right = judge(path)
        broken = judge(breaks)
        again = judge(text)
    assert right.right is again.right is True, (right.why, again.why)
    assert right.device == "cuda"
    assert right.registers
    assert right.registers > 0
    assert right.time_s is not None
    assert right.reference is not None
    assert broken.right is False
    assert broken.outcome in ("crashed", "failed", "incorrect")
