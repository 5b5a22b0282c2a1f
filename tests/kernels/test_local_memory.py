"""Local memory as the compiler tells of it: arrays are stack, what lacks registers is spilled, and neither is
taken for the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernels import nvrtc, registry

pytestmark = pytest.mark.skipif(nvrtc.unavailable() is not None, reason="NVRTC is not installed")

HEADER = """/*
op = "unary"
rung = 90
name = "mine"
idea = "Of a test."
launch = "one_thread_an_output"
*/
"""
# 64 floats indexed at run time: 256 bytes of stack, and registers enough.
ARRAY = """extern "C" __global__ void unary(const float* x, float* y, const UnaryParams p) {
    float a[64];
    for (int i = 0; i < 64; i++) a[i] = x[i];
    for (int i = 0; i < p.size; i++) a[(int)x[i + 64] & 63] += x[i];
    y[threadIdx.x] = a[(threadIdx.x + p.kind) & 63];
}
"""
# 64 floats that live at once, in the 32 or 64 registers that so many threads leave.
CRAMPED = """extern "C" __global__ void __launch_bounds__(1024, 2)
unary(const float* x, float* y, const UnaryParams p) {
    float a[64];
#pragma unroll
    for (int i = 0; i < 64; i++) a[i] = x[i * p.size + threadIdx.x];
    for (int k = 0; k < p.kind; k++) {
#pragma unroll
        for (int i = 0; i < 64; i++) a[i] = a[i] * x[i + k] + a[(i + 7) & 63];
    }
    float s = 0;
#pragma unroll
    for (int i = 0; i < 64; i++) s += a[i] * y[i * p.size];
    y[threadIdx.x] = s;
}
"""
# The array is in a function that is called: the kernel's own frame holds none of it.
CALLED = """__device__ __noinline__ float pick(const float* x, int at) {
    float a[64];
    for (int i = 0; i < 64; i++) a[i] = x[i];
    a[(int)x[at] & 63] += 1;
    return a[at & 63];
}
extern "C" __global__ void unary(const float* x, float* y, const UnaryParams p) {
    y[threadIdx.x] = pick(x, threadIdx.x) + pick(y, p.kind);
}
"""
PLAIN = """extern "C" __global__ void unary(const float* x, float* y, const UnaryParams p) {
    y[threadIdx.x] = x[threadIdx.x];
}
"""


def resources(tmp_path: Path, source: str, arch: str) -> nvrtc.Resources:
    (tmp_path / "90_mine.cu").write_text(HEADER + source)
    used = nvrtc.resources(nvrtc.compile_rung(registry.find("cuda", "unary", 90, [tmp_path]), arch), "unary")
    assert used is not None
    return used


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_an_array_is_stack_and_no_spill(tmp_path: Path, arch: str) -> None:
    used = resources(tmp_path, ARRAY, arch)
    assert (used.stack_nbytes, used.spill_nbytes) == (256, 0)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_what_lacks_registers_is_spilled(tmp_path: Path, arch: str) -> None:
    used = resources(tmp_path, CRAMPED, arch)
    assert used.registers <= 32
    assert used.spill_nbytes >= 2 * 64  # stored and loaded
    assert used.stack_nbytes > 64  # where it lies


def test_the_stack_of_functions_that_are_called_counts(tmp_path: Path) -> None:
    used = resources(tmp_path, CALLED, "sm_90")
    assert used.stack_nbytes >= 256
    assert used.spill_nbytes < 64  # what a call saves, at most


def test_a_plain_kernel_has_neither(tmp_path: Path) -> None:
    used = resources(tmp_path, PLAIN, "sm_90")
    assert (used.stack_nbytes, used.spill_nbytes) == (0, 0)
