"""Conversion to and from element types of few bits: every number of eight bits, every middle of two and what
lies beside it, infinities and NaN, each exactly as `onnx` converts it. The CUDA kernel is tried on the same
cases on the host (test_cuda_on_host.py) and on a device (test_cuda_rungs.py)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from kernels import registry
from kernels.cpu import load
from tests.kernels import cuda_cases
from tests.kernels.cuda_cases import Case


def test_the_cpus_copy_is_right_in_every_case() -> None:
    kernel = load(registry.find("cpu", "cast", 1))
    for case in cuda_cases.cases("cast"):
        p = case.params
        output = np.full(p.size * np.dtype(p.to).itemsize, 0xFF, np.uint8).view(p.to)
        scratch = np.full(kernel.workspace(p) // 4, np.nan, np.float32)
        with np.errstate(all="ignore"):
            kernel.bind(p, [case.inputs[0]], output, scratch)()
        assert cuda_cases.differs(output, case) == "", p.words


def _cut(case: Case) -> np.ndarray:
    """Not rounded: the nearest that is no larger in magnitude."""
    x, found = (np.asarray(a, np.float32) for a in (case.inputs[0], case.expected))
    further = np.abs(found) > np.abs(x)
    below = (case.expected.view(np.uint8) - further.astype(np.uint8)).view(case.expected.dtype)
    return np.where(further, below, case.expected)


def _other_end(case: Case) -> np.ndarray:
    """Beyond the largest as if `saturate` were the other."""
    x = np.asarray(case.inputs[0], np.float32)
    largest = np.nanmax(np.where(np.isfinite(x.astype(case.expected.dtype).astype(np.float32)), np.abs(x), 0))
    held = np.clip(x, -largest, largest) if not case.params.saturate else x
    return held.astype(case.expected.dtype)


@pytest.mark.parametrize("mistake", [_cut, _other_end])
@pytest.mark.parametrize("to", ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"])
def test_a_conversion_that_rounds_or_saturates_otherwise_is_found(
    to: str, mistake: Callable[[Case], np.ndarray]
) -> None:
    with np.errstate(all="ignore"):
        of_type = [c for c in cuda_cases.cases("cast") if c.params.to == to and c.params.dtype == "float32"]
        assert any(cuda_cases.differs(mistake(case), case) for case in of_type)
