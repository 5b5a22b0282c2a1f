"""Rungs that may begin before the kernel in front of them has ended."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.cuda.replays import overlap as cuda_overlap
from kernels import arguments, launch, nvrtc, registry
from kernels.errors import KernelError
from tests.kernels import cuda_cases

pytestmark = pytest.mark.slow

ARCH = "sm_90"
needs_nvrtc = pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable()))
PRODUCT = """
#include "async.cuh"
#include "overlap.cuh"
extern "C" __global__ void gemm(const float* __restrict__ a, const float* __restrict__ b, const float* bias,
                                float* y, const GemmParams p) {
    const int i = threadIdx.x;
    %s
}"""
SUM = "float s = 0.0f; for (int k = 0; k < p.k; ++k) s += a[k] * b[k * p.n + i];"


def _product(folder: Path, body: str) -> registry.Rung:
    header = """/*
op = "gemm"
rung = 99
name = "mine"
idea = "A test."
launch = "one_thread_an_output"
"""
    text = f"{header}overlaps = true\n*/\n{PRODUCT % body}"
    (folder / "99_mine.cu").write_text(text)
    return registry.find("cuda", "gemm", 99, [folder])


@needs_nvrtc
@pytest.mark.parametrize(
    "body",
    [
        f"wait_for_previous(); a = written(a); {SUM} y[i] = s;",
        # Weights may be read before: nothing that runs writes them.
        f"float first = b[i]; wait_for_previous(); a = written(a); {SUM} y[i] = s + first;",
        "const float* from = a + 1; wait_for_previous(); from = written(from); y[i] = from[i] * b[i];",
    ],
)
def test_a_kernel_that_reads_what_was_written_behind_the_wait_compiles(tmp_path: Path, body: str) -> None:
    assert nvrtc.compile_rung(_product(tmp_path, body), ARCH).exists()


@needs_nvrtc
@pytest.mark.parametrize(
    ("body", "said"),
    [
        (f"{SUM} y[i] = s;", "never calls wait_for_previous"),
        (f"{SUM} wait_for_previous(); y[i] = s;", "reads parameter 1 before wait_for_previous"),
        (f"wait_for_previous(); {SUM} y[i] = s;", "reads parameter 1 as memory that never changes"),
        (
            "const float* from = p.m > 3 ? a : b; wait_for_previous(); y[i] = from[i];",
            "reads parameter 1 or parameter 2 as memory that never changes",
        ),
        (f"y[i] = 0.0f; wait_for_previous(); a = written(a); {SUM} y[i] = s;", "writes parameter 4 before"),
        (
            "__shared__ float4 s[32]; copy_async_16(s + i, a); wait_for_previous(); y[i] = s[i].x;",
            "reads parameter 1 before wait_for_previous",
        ),
    ],
)
def test_a_kernel_that_touches_too_early_what_another_writes_is_refused(
    tmp_path: Path, body: str, said: str
) -> None:
    rung = _product(tmp_path, body)
    with pytest.raises(KernelError, match=said) as caught:
        nvrtc.compile_rung(rung, ARCH)
    assert str(tmp_path / "99_mine.cu") in str(caught.value)
    nvrtc.compile_rung(rung, "sm_80")  # where none begins early
    nvrtc.compile_rung(replace(rung, overlaps=False), ARCH)


@pytest.mark.sampled(3)
@needs_nvrtc
@pytest.mark.parametrize(
    ("op", "name"), [("gemm", "tensor_tf32"), ("conv", "split_sum"), ("lrn_pool", "column_bands")]
)
def test_one_of_ours_is_refused_where_the_pointer_is_not_taken_anew(op: str, name: str) -> None:
    rung = registry.find("cuda", op, name)
    case = next(c for c in cuda_cases.cases(op) if cuda_cases.takes(rung, c.params, (9, 0)))
    defines = launch.launch(case.params, rung).defines
    nvrtc.compile_rung(rung, ARCH, defines)
    blunted = replace(
        rung, source=f'#include "overlap.cuh"\n#define written(pointer) (pointer)\n{rung.source}'
    )
    with pytest.raises(KernelError, match="as memory that never changes"):
        nvrtc.compile_rung(blunted, ARCH, defines)


def test_arguments_lie_in_memory_as_the_driver_takes_them() -> None:
    struct = arguments.packed("unary", (np.int64(2**33 + 1), np.int32(3), np.float32(0.5), np.float32(-1)))
    given = (np.uint64(2**40 + 5), np.int32(-7), np.float32(0.5), np.int64(2**33))
    held = cuda_overlap._Arguments((*given, struct))
    pointers = ctypes.cast(held.address, ctypes.POINTER(ctypes.c_void_p))
    kinds = (ctypes.c_uint64, ctypes.c_int32, ctypes.c_float, ctypes.c_int64)
    read = [
        ctypes.cast(pointers[i], ctypes.POINTER(kind)).contents.value  # type: ignore[attr-defined]
        for i, kind in enumerate(kinds)
    ]
    assert read == [value.item() for value in given]
    assert pointers[4] is not None
    assert ctypes.string_at(pointers[4], struct.nbytes) == struct.tobytes()
