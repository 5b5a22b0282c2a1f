"""cuBLAS as the yardsticks call it, a fake one that reads memory as the real one does; stages in order."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from engine.cuda import stages
from engine.cuda.stages import CublasLibrary, kernel_calls
from kernels import registry
from kernels.errors import UnavailableError
from kernels.launch import Product, launch
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from tests.kernels import cuda_cases, interpreted
from tests.standin.modules.cublas import FakeCublas

ALEXNET = Conv(5, 96, 27, 27, 256, 5, 5, 27, 27, 1, 1, 2, 2, 2, 2, group=2, bias=True)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeCublas:
    made = FakeCublas()
    monkeypatch.setattr(stages, "_library", lambda: made)
    return made


def _cupy() -> Any:
    return SimpleNamespace(
        cuda=SimpleNamespace(
            Device=lambda: SimpleNamespace(compute_capability="90"),
            Memory=lambda nbytes: SimpleNamespace(ptr=4096, size=nbytes),
            get_current_stream=lambda: SimpleNamespace(ptr=77),
        )
    )


def test_cublas_gets_row_major_matrices_as_its_own_transposed(fake: FakeCublas) -> None:
    rung = registry.find("cuda", "gemm", "cublas")
    handle = stages.Cublas(_cupy())
    largest = 0
    for case in cuda_cases.cases("gemm"):
        if case.params.dtype != "float32":  # which no rung gives to cuBLAS
            continue
        buffers = interpreted.buffers(case, 0)
        fake.calls.clear()
        product = launch(case.params, rung).before[0]
        assert isinstance(product, Product)
        handle.product(product, {name: array.ctypes.data for name, array in buffers.items()})
        actual = interpreted.finished_gemm(case.params, buffers["output"], case.inputs[2])
        assert not (problem := cuda_cases.differs(actual, case)), f"{case.params}: {problem}"
        assert fake.calls.count("product") == math.ceil(case.params.batch / 65535)
        assert fake.calls[:2] == ["cublasSetStream_v2", "cublasSetWorkspace_v2"]
        largest = max(largest, case.params.batch)
    assert largest > 65535
    del handle
    assert fake.destroyed == 1


def test_a_product_that_fails_and_a_missing_library_are_told_in_words(
    fake: FakeCublas, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = stages.Cublas(_cupy())
    product = launch(Gemm(3, 5, 7), registry.find("cuda", "gemm", "cublas")).before[0]
    assert isinstance(product, Product)
    monkeypatch.setattr(fake, "cublasSgemmStridedBatched_64", lambda *_: 13, raising=False)
    with pytest.raises(RuntimeError, match="cuBLAS failed at the product of 3 × 7 by 7 × 5: out of"):
        handle.product(product, {"input 0": 0, "input 1": 0, "output": 0})
    monkeypatch.undo()
    stages._library.cache_clear()

    def missing(name: str) -> None:
        raise RuntimeError(f"no lib{name} here")

    monkeypatch.setitem(sys.modules, "cuda.pathfinder", SimpleNamespace(load_nvidia_dynamic_lib=missing))
    with pytest.raises(UnavailableError, match="the extras cuda and cuda12 bring it"):
        stages.Cublas(_cupy())


def test_stages_start_in_order_each_with_its_own_arguments(fake: FakeCublas) -> None:
    rung = registry.find("cuda", "conv", "im2col_cublas")
    how = launch(ALEXNET, replace(rung, defines={**rung.defines, "SCRATCH_MIB": 16}))
    started: list[tuple[str, int, int, int]] = []

    def kernel(name: str) -> Any:
        def start(grid: Any, block: Any, arguments: Any, shared_mem: int) -> None:
            started.append((name, int(arguments[0]), int(arguments[3]), int(arguments[5]["n"])))

        return start

    class Products(CublasLibrary):
        def cublas(self) -> Any:
            product = lambda it, addresses: started.append(("cuBLAS", it.n, 0, 0))  # noqa: E731
            return SimpleNamespace(product=product)

    module = SimpleNamespace(get_function=kernel)
    for start in kernel_calls(_cupy(), module, rung, how, [0, 8, 16], 0, 4, Products(_cupy())):
        start()
    names = ["conv", "cuBLAS", "conv_finish"]
    assert [name for name, *_ in started] == names * (len(started) // 3)
    assert [images for name, _, _, images in started if name == "conv"] == [2, 2, 1]
    image, result = 4 * ALEXNET.c * ALEXNET.h * ALEXNET.w, 4 * ALEXNET.m * ALEXNET.out_h * ALEXNET.out_w
    assert [x for name, x, _, _ in started if name == "conv"] == [0, 2 * image, 4 * image]
    assert [y for name, _, y, _ in started if name == "conv_finish"] == [0, 2 * result, 4 * result]
