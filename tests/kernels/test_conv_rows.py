"""Convolutions out of rows of the image itself, on the host: rings of rows that wrap around over many turns
and images, words of a window's row that no four divide. On the device they are run by
tests/kernels/test_cuda_rungs.py."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kernels import launch, nvrtc, packing, registry
from kernels.errors import UnsupportedError
from kernels.launch import image_rows
from kernels.ops.conv import Conv
from kernels.registry import Rung
from tests import sampling
from tests.bench.judge import on_the_host
from tests.kernels import cuda_cases
from tests.kernels.hosted import answer

pytestmark = pytest.mark.slow

RUNGS = [rung for rung in registry.rungs("cuda", "conv") if rung.launch == "conv_image_rows"]

CASES = {
    "alexnet": Conv(3, 3, 43, 39, 96, 11, 11, 9, 8, 4, 4, bias=True, activation="relu"),
    "resnet": Conv(2, 3, 23, 26, 50, 7, 7, 12, 13, 2, 2, 3, 3, 3, 3, bias=True),
    "lenet": Conv(7, 1, 28, 28, 6, 5, 5, 24, 24),
    "same": Conv(3, 3, 13, 11, 130, 3, 3, 13, 11, 1, 1, 1, 1, 1, 1, bias=True, activation="tanh"),
    "one-sided": Conv(1, 2, 12, 9, 20, 2, 3, 13, 5, 1, 2, 2, 0, 0, 2),
    "apart": Conv(2, 5, 17, 20, 64, 2, 1, 6, 7, 3, 3, 0, 1, 1, 0, bias=True),
    "pixels": Conv(3, 4, 7, 5, 70, 1, 1, 7, 5),
}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.name)
@pytest.mark.parametrize("name", CASES)
def test_windows_are_read_out_of_rows(rung: Rung, name: str, hosted: on_the_host.Hosted) -> None:
    case = cuda_cases.conv_case(np.random.default_rng(0), CASES[name])
    for writes in rung.writes:
        as_laid_out = rung.in_layouts(rung.reads[0], writes)
        for at_end in (True, False):
            found = answer(hosted, as_laid_out, case, at_end)
            assert cuda_cases.differs(found, case, rung.precision) == "", writes


@pytest.mark.sampled(12)
@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.name)
@pytest.mark.parametrize(("groups", "blocks"), [(1, 1), (2, 2), (3, 1)])
def test_a_ring_of_rows_wraps_around_over_turns_and_images(
    rung: Rung, groups: int, blocks: int, hosted: on_the_host.Hosted, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = cuda_cases.conv_case(np.random.default_rng(1), CASES["same" if groups == 3 else "lenet"])
    plain = answer(hosted, rung, case)
    monkeypatch.setattr(image_rows, "MULTIPROCESSORS", blocks)
    rung = replace(rung, defines={**rung.defines, "GROUPS": groups})
    found = answer(hosted, rung, case)
    assert launch.launch(case.params, rung).grid[0] == blocks
    np.testing.assert_array_equal(found, plain)  # whoever computes it, and beside whom


def test_what_lies_beside_a_window_has_no_say(hosted: on_the_host.Hosted) -> None:
    params = Conv(1, 3, 9, 40, 64, 3, 3, 7, 38)  # an odd number of halves, of which a word holds two
    case = cuda_cases.conv_case(np.random.default_rng(2), params)
    x = case.inputs[0]
    assert x is not None
    x[..., 20] = np.inf
    for rung in RUNGS:
        found = answer(hosted, rung, case)
        assert np.isfinite(found[..., :18]).all()
        assert np.isfinite(found[..., 21:]).all()


@pytest.mark.sampled(4, "long")
@pytest.mark.parametrize("rung", [r for r in RUNGS if "OPERANDS" in r.defines], ids=lambda rung: rung.name)
def test_images_of_sums_of_two_are_scaled_each_by_its_own(rung: Rung, hosted: on_the_host.Hosted) -> None:
    case = cuda_cases.conv_case(
        np.random.default_rng(0), replace(CASES["alexnet"], bias=False, activation=None)
    )
    plain, x = answer(hosted, rung, case), case.inputs[0]
    assert x is not None
    x[1] *= np.float32(1e30)
    x[2] = 0
    found = answer(hosted, rung, case)
    np.testing.assert_array_equal(found[0], plain[0])
    assert np.linalg.norm(found[1] / 1e30 - plain[1]) < 1e-6 * np.linalg.norm(plain[1])
    assert not found[2].any()


@pytest.mark.parametrize(("deep", "values"), [(3, 1), (3, 2), (4, 2)])
@pytest.mark.parametrize(("kh", "kw"), [(11, 11), (7, 7), (5, 3), (1, 1), (3, 4)])
def test_steps_of_the_sum_come_in_quartets(deep: int, values: int, kh: int, kw: int) -> None:
    """Each lane's word of each quartet, by the arithmetic of cuda/conv_rows.cuh."""
    weight = np.arange(1, 2 * 3 * kh * kw + 1, dtype=np.float32).reshape(2, 3, kh, kw)
    steps = packing.row_quartets(weight, deep, values).reshape(2, -1, 4, values)
    run = -(-kw * deep // values)
    whole, tall = run // 4, -(-kh // 4)
    assert steps.shape[1] == kh * whole + run % 4 * tall
    for quartet in range(steps.shape[1]):
        for lane in range(4):
            if quartet < kh * whole:
                row, word = quartet // whole, quartet % whole * 4 + lane
            else:
                rest = quartet - kh * whole
                row, word = rest % tall * 4 + lane, whole * 4 + rest // tall
            for value in range(values):
                column, channel = divmod(word * values + value, deep)
                real = row < kh and column < kw and channel < 3
                expected = weight[:, channel, row, column] if real else np.zeros(2)
                np.testing.assert_array_equal(steps[:, quartet, lane, value], expected)


def test_a_sum_of_alexnet_takes_46_instructions() -> None:
    first = Conv(256, 3, 227, 227, 96, 11, 11, 55, 55, 4, 4, bias=True)
    rung = RUNGS[0]
    how = launch.launch(first, rung)
    assert how.packed[1](np.zeros((96, 3, 11, 11), np.float32)).shape == (1, 12, 96, 32)  # four in a slab
    assert how.grid == (132, 1, 1)
    assert how.shared_nbytes <= 227 << 10


@pytest.mark.sampled(24)
@pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable()))
@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.name)
@pytest.mark.parametrize("outputs", [64, 96, 128, 192])
def test_sums_and_what_is_read_ahead_stay_in_registers(rung: Rung, outputs: int) -> None:
    first = (
        Conv(256, 3, 227, 227, outputs, 11, 11, 55, 55, 4, 4, bias=True, activation="relu"),
        Conv(256, 3, 224, 224, outputs, 7, 7, 112, 112, 2, 2, 3, 3, 3, 3, bias=True),
    )
    for params in sampling.some("first convolutions by rows", first, 1):
        as_laid_out = rung.in_layouts(rung.reads[0], rung.writes[-1])
        how = launch.launch(params, as_laid_out)
        used = nvrtc.resources(nvrtc.compile_rung(as_laid_out, "sm_90", how.defines), "conv")
        assert used is not None
        assert used.spill_nbytes == 0, f"{used}"
        assert used.registers * how.block[0] <= 65536
        assert used.shared_nbytes + how.shared_nbytes <= 227 << 10


@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.name)
def test_what_does_not_fit_or_has_many_channels_is_for_others(rung: Rung) -> None:
    first = Conv(256, 3, 227, 227, 96, 11, 11, 55, 55, 4, 4, bias=True)
    assert rung.refusal(first, (9, 0)) is None
    assert rung.suits(first)
    assert not rung.suits(replace(first, n=1, m=24))
    many = Conv(256, 256, 13, 13, 384, 3, 3, 13, 13, 1, 1, 1, 1, 1, 1)
    assert not rung.suits(many)
    with pytest.raises(UnsupportedError, match="shared memory"):
        launch.launch(many, rung)
    assert rung.refusal(replace(first, group=3, m=96), (9, 0))
    assert rung.refusal(replace(first, dilation_w=2, out_w=50), (9, 0))
    with pytest.raises(UnsupportedError, match="columns"):
        launch.launch(Conv(1, 1, 3, 4000, 64, 3, 3, 1, 3998), rung)
