"""A kernel that says fp16 or bf16 rounds its factors to the nearest number of that type, once, and adds in
float32; whoever cuts bits off, or keeps its sums in 16 bits, is found, though both are within the bound."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench import judge
from bench.judge import narrow_digits
from bench.measure.answers import one_node
from kernels import numba_support, nvrtc, registry
from kernels.ops import Params, sized
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from kernels.precision import PRECISIONS, narrow

_FILE = """# op = "{op}"
# rung = 990
# name = "short"
# idea = "Planted."
# precision = "{precision}"
import ml_dtypes
import numpy as np

from tests.bench.judge import right

held = np.dtype("{held}")
LAST = np.uint32((1 << 23 - ml_dtypes.finfo(held).nmant) - 1)


def nearest(x):
    return x.astype(held).astype(np.float32)


def cut(x):
    return (x.view(np.uint32) & ~LAST).view(np.float32)


def upwards(x):
    return ((x.view(np.uint32) + (LAST >> 1) + 1) & ~LAST).view(np.float32)


def bind(p, inputs, output, workspace):
    x, w, *rest = inputs

    def run():
        output[...] = {made}

    return run
"""
RIGHT = {
    "rounds": "right.{op}(p, nearest(x), nearest(w), *rest)",
    "keeps more": "right.{op}(p, x, nearest(w), *rest)",
}
WRONG = {
    "cuts the inputs": ("right.{op}(p, cut(x), nearest(w), *rest)", "does not round the inputs"),
    "cuts the weights": ("right.{op}(p, nearest(x), cut(w), *rest)", "does not round the weights"),
    "rounds half-way numbers upwards": (
        "right.{op}(p, upwards(x), nearest(w), *rest)", "does not round the inputs",
    ),
    "keeps its sums in 16 bits": (
        "nearest(right.{op}(p, nearest(x), nearest(w), *rest).astype(np.float32))", "does not add in float32",
    ),
}  # fmt: skip
TIMED: dict[str, Params] = {
    "conv": sized(Conv(2, 6, 12, 12, 8, 3, 3, 0, 0)),
    "gemm": Gemm(16, 64, 96),
}


def _written(folder: Path, op: str, precision: str, made: str) -> registry.Rung:
    text = _FILE.format(op=op, precision=precision, held=narrow(precision), made=made.format(op=op))
    (folder / "990_short.py").write_text(text)
    return registry.find("cpu", op, "short", [folder])


@pytest.mark.sampled(4)
@pytest.mark.parametrize("op", TIMED)
@pytest.mark.parametrize("precision", ["fp16", "bf16"])
@pytest.mark.parametrize("what", [*WRONG, *RIGHT])
def test_who_rounds_otherwise_is_found(op: str, precision: str, what: str, tmp_path: Path) -> None:
    if what in RIGHT:
        rung = _written(tmp_path, op, precision, RIGHT[what])
        judge.examine(rung, TIMED[op], precision, threads=1, quick=True).close()
        return
    made, told = WRONG[what]
    with pytest.raises(judge.Wrong, match=told) as found:
        judge.examine(_written(tmp_path, op, precision, made), TIMED[op], precision, threads=1, quick=True)
    assert found.value.finding.fault == "digits"


_KERNEL = """/*
op = "gemm"
rung = 91
name = "mine"
idea = "Planted."
launch = "one_thread_an_output"
precision = "bf16"
[needs]
batch = 1
bias = false
activation = ["none"]
*/
#include "half.cuh"

__device__ float held(float v) { return half_to_float((half_bits)to_halves(v, 0.0f)); }
__device__ float cut(float v) { return __uint_as_float(__float_as_uint(v) & 0xffff0000u); }

extern "C" __global__ void gemm(const float* a, const float* b, const float* bias, float* y,
                                const GemmParams p) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= p.m * p.n) return;
    float sum = 0.0f;
    for (int k = 0; k < p.k; ++k) {
        const float u = a[p.trans_a ? k * p.m + i / p.n : i / p.n * p.k + k];
        const float v = b[p.trans_b ? i % p.n * p.k + k : k * p.n + i % p.n];
        sum = ADDED;
    }
    y[i] = p.alpha * sum;
}
"""


@pytest.mark.slow
@pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable()))
@pytest.mark.skipif(numba_support.unavailable() is not None, reason=str(numba_support.unavailable()))
@pytest.mark.parametrize(
    ("added", "told"),
    [
        ("sum + held(u) * held(v)", ""),
        ("sum + cut(u) * cut(v)", "does not round the inputs"),
        ("held(sum + held(u) * held(v))", "does not add in float32"),
    ],
    ids=["right", "cut", "short sums"],
)
def test_a_cuda_kernel_without_a_gpu_is_judged_so_too(added: str, told: str, tmp_path: Path) -> None:
    text = _KERNEL.replace("ADDED", added).replace("[needs]", "[defines]\nBF16 = 1\n[needs]")
    (tmp_path / "91_mine.cu").write_text(text)
    rung, p = registry.find("cuda", "gemm", "mine", [tmp_path]), Gemm(5, 7, 9)
    if not told:
        judge.examine(rung, p, "bf16", quick=True, simulated=True).close()
        return
    with pytest.raises(judge.Wrong, match=told):
        judge.examine(rung, p, "bf16", quick=True, simulated=True)


@pytest.mark.parametrize("held", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    "p",
    [
        Gemm(3, 9, 13, trans_a=True, trans_b=True, batch=3, stride_a=39, stride_b=117, bias=True),
        sized(Conv(2, 6, 9, 9, 4, 3, 3, 0, 0, 1, 1, 1, 1, 1, 1, group=2, bias=True, activation="relu")),
    ],
)
def test_a_right_answer_passes_and_one_rounding_less_does_not(p: Params, held: str) -> None:
    random = np.random.default_rng(0)
    found = list(narrow_digits.probes(p, held, random))
    assert [probe.which for probe in found] == ["sums", "the inputs", "the weights"]
    for probe in found:
        right = one_node.answer(p, probe.sample.inputs)
        assert np.abs(right).max() < 6e4, "float16 holds it"
        nearest = right.astype(np.float32).astype(held).astype(np.float64)
        assert probe.fault(right, random) == ""
        assert (probe.fault(nearest, random) == "") == probe.rounds
        assert probe.fault(np.nextafter(nearest.astype(held), np.array(0, held)).astype(np.float64), random)
    tanh = sized(Conv(1, 2, 5, 5, 2, 3, 3, 0, 0, activation="tanh"))
    assert not list(narrow_digits.probes(tanh, held, random)), "of which no bits can be told"


def test_the_bound_alone_lets_them_through() -> None:
    random = np.random.default_rng(0)
    x, w = (random.standard_normal(shape).astype(np.float32) for shape in ((16, 96), (96, 64)))
    cut = [(a.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32).astype(np.float64) for a in (x, w)]
    right = x.astype(np.float64) @ w
    assert np.linalg.norm(cut[0] @ cut[1] - right) < PRECISIONS["bf16"].bound * np.linalg.norm(right)
