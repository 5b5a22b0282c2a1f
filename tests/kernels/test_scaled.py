"""Weights in float16 and a power of two for each column, in place of TF32 and of float32: as precise as the
rungs that read more, whatever rows and columns are multiplied by. Compiled for the host."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kernels import registry
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from tests.bench.judge import on_the_host
from tests.kernels import cuda_cases
from tests.kernels.cuda_cases import Case
from tests.kernels.hosted import answer

pytestmark = pytest.mark.slow

# A rung, what it stands beside, and the bound of its precision.
PRODUCTS = [
    ("scaled_columns", "streamed_tf32", Gemm(3, 90, 333, trans_b=True)),
    ("streamed_scaled", "streamed_tf32", Gemm(11, 45, 500)),
    ("wgmma_scaled", "wgmma_tf32", Gemm(66, 70, 273, trans_b=True)),
]
LONGER = [
    ("columns_24_bits", Gemm(3, 90, 1333, trans_b=True)),
    ("columns_24_bits", Gemm(8, 45, 512)),
    ("streamed_24_bits", Gemm(11, 45, 500)),
    ("streamed_24_bits", Gemm(8, 90, 333, trans_b=True)),
]
WAYS = ("as drawn", "rows", "columns", "both", "all")


def _case(params: Gemm, way: str) -> Case:
    """Rows, columns, both or every number multiplied by powers of two from 2^-20 to 2^20."""
    case = cuda_cases.gemm_case(np.random.default_rng(0), params)
    rng = np.random.default_rng(1)

    def powers(*shape: int) -> np.ndarray:
        return np.ldexp(np.float32(1), rng.integers(-20, 21, shape)).astype(np.float32)

    a, b = (array.reshape(array.shape[-2:]) for array in case.inputs[:2] if array is not None)
    right = b.T if params.trans_b else b
    if way in ("rows", "both"):
        a *= powers(params.m, 1)
    if way in ("columns", "both"):
        right *= powers(1, params.n)
    if way == "all":
        a *= powers(*a.shape)
        right *= powers(*right.shape)
    return replace(case, expected=(a.astype(np.float64) @ right.astype(np.float64))[None])


def _error(found: np.ndarray, case: Case) -> float:
    return float(np.linalg.norm(found.astype(np.float64) - case.expected) / np.linalg.norm(case.expected))


def _answer(hosted: on_the_host.Hosted, name: str, case: Case) -> np.ndarray:
    return answer(hosted, registry.find("cuda", "gemm", name), case)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("name", "beside", "params"), PRODUCTS, ids=str)
def test_the_error_is_that_of_tf32(
    name: str, beside: str, params: Gemm, way: str, hosted: on_the_host.Hosted
) -> None:
    case = _case(params, way)
    error = _error(_answer(hosted, name, case), case)
    assert error < 1e-3  # of 2e-3, the bound
    assert error < 1.05 * _error(_answer(hosted, beside, case), case) + 1e-6


@pytest.mark.sampled(5)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("name", "params"), LONGER, ids=str)
def test_the_error_of_eight_bits_more_is_a_few_of_the_last(
    name: str, params: Gemm, way: str, hosted: on_the_host.Hosted
) -> None:
    case = _case(params, way)
    assert _error(_answer(hosted, name, case), case) < 3e-6  # of 1e-5, the bound


@pytest.mark.parametrize(
    ("name", "params"), [*((name, params) for name, _, params in PRODUCTS), *LONGER], ids=str
)
def test_what_is_no_number_is_told_and_what_is_near_nothing_does_no_harm(
    name: str, params: Gemm, hosted: on_the_host.Hosted
) -> None:
    case = _case(params, "as drawn")
    a, b = (array.reshape(array.shape[-2:]) for array in case.inputs[:2] if array is not None)
    columns = b if params.trans_b else b.T
    columns[0] = 0
    columns[1] *= np.float32(1e-42)  # subnormal numbers all
    columns[2, ::2] *= np.float32(1e-42)
    columns[3, 7], columns[4, 8] = np.inf, np.nan
    plain = _answer(hosted, name, case)[0]
    exact = a.astype(np.float64) @ columns.T.astype(np.float64)
    assert not np.isfinite(plain[:, 3:5]).any()
    plain[:, 3:5] = exact[:, 3:5] = 0
    assert not plain[:, 0].any()
    assert np.abs(plain[:, 1]).max() < 1e-40
    assert np.linalg.norm(plain - exact) < 2e-3 * np.linalg.norm(exact)
    assert np.linalg.norm(plain[:, 2] - exact[:, 2]) < 2e-3 * np.linalg.norm(exact[:, 2])
    a[0] = 0
    a[1, 5], a[2, 6] = np.nan, -np.inf
    found = _answer(hosted, name, case)[0]
    assert not found[0, [0, 1, 2, *range(5, params.n)]].any()
    assert not np.isfinite(found[1:3, 5:]).any()


@pytest.mark.parametrize(
    ("name", "params"), [*((name, params) for name, _, params in PRODUCTS), *LONGER], ids=str
)
def test_sums_overflow_no_sooner_than_weights_ask_for(
    name: str, params: Gemm, hosted: on_the_host.Hosted
) -> None:
    case = _case(params, "as drawn")
    a, b = (array.reshape(array.shape[-2:]) for array in case.inputs[:2] if array is not None)
    b[np.abs(b) < 2.0**-8] = 0
    a *= np.float32(2.0**114)  # 2e34, and with the largest weight in [2^14, 2^15) sums beyond float32
    right = b.T if params.trans_b else b
    case = replace(case, expected=(a.astype(np.float64) @ right.astype(np.float64))[None])
    found = _answer(hosted, name, case)
    assert np.isfinite(found).all()
    assert _error(found, case) < (3e-6 if (name, params) in LONGER else 1e-3)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("scale", [1.0, 2.0**-20, 2.0**20])
def test_images_and_filters_are_as_precise_in_scaled_halves(scale: float, hosted: on_the_host.Hosted) -> None:
    params = Conv(3, 20, 9, 7, 70, 3, 3, 9, 7, 1, 1, 1, 1, 1, 1)
    case = cuda_cases.conv_case(np.random.default_rng(0), params)
    x, weight = (array for array in case.inputs[:2] if array is not None)
    powers = np.ldexp(1.0, np.random.default_rng(1).integers(-20, 21, (70, 1, 1)))
    weight *= powers[..., None].astype(np.float32)
    x[1] *= np.float32(scale)
    x[2] = 0
    expected = case.expected.reshape(3, 70, 9, 7) * powers
    expected[1] *= scale
    expected[2] = 0
    for image in (0, 1):
        for channels in (slice(None), slice(5), slice(64, 70)):
            errors = []
            for name in ("wgmma_scaled", "wgmma_tf32"):
                found = answer(hosted, registry.find("cuda", "conv", name), case).reshape(expected.shape)
                assert not found[2].any()
                off = found[image, channels].astype(np.float64) - expected[image, channels]
                errors.append(np.linalg.norm(off) / np.linalg.norm(expected[image, channels]))
            assert errors[0] < min(1e-3, 1.05 * errors[1])


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_an_image_that_is_no_number_somewhere_tells_so_there_and_nowhere_else(
    value: float, hosted: on_the_host.Hosted
) -> None:
    case = cuda_cases.conv_case(np.random.default_rng(0), Conv(2, 8, 9, 7, 64, 3, 3, 7, 5))
    rung = registry.find("cuda", "conv", "wgmma_scaled")
    plain = answer(hosted, rung, case)
    x = case.inputs[0]
    assert x is not None
    x[1, 3, 4, 2] = value
    found = answer(hosted, rung, case)
    touched = np.zeros(found.shape, bool)
    touched[1, :, 2:5, 0:3] = True
    assert not np.isfinite(found[touched]).any()
    np.testing.assert_allclose(found[~touched], plain[~touched], rtol=1e-2, atol=1e-2)
