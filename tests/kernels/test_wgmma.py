"""Convolutions and products by warpgroups on the host: what goes on in the background as late as it may be,
operands read as they are swizzled. On the device they are run by tests/kernels/test_cuda_rungs.py."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kernels import launch, registry
from kernels.estimates import wgmma_tiles
from kernels.launch import nhwc
from kernels.layouts import PLAIN, ROUNDED
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from kernels.packing import WIDE_SLAB_NBYTES
from kernels.registry import Rung
from tests.bench.judge import on_the_host
from tests.kernels import cuda_cases
from tests.kernels.hosted import answer

pytestmark = pytest.mark.slow

RUNGS = [rung for rung in registry.rungs("cuda", "conv") if rung.launch == "conv_nhwc_wgmma"]

# Pixels, channels and slabs that nothing divides; groups of whole chunks; strides, dilation, one-sided pads.
CASES = [
    Conv(3, 20, 9, 7, 70, 3, 3, 9, 7, 1, 1, 1, 1, 1, 1, bias=True, activation="relu"),
    Conv(1, 48, 13, 13, 128, 3, 3, 13, 13, 1, 1, 1, 1, 1, 1, group=2),
    Conv(7, 5, 8, 11, 192, 2, 3, 4, 5, 2, 2, 0, 1, 0, 0, bias=True),
    Conv(
        2,
        33,
        12,
        9,
        100,
        3,
        2,
        8,
        8,
        1,
        1,
        0,
        0,
        0,
        1,
        dilation_h=2,
        dilation_w=2,
        bias=True,
        activation="tanh",
    ),
]

PRODUCTS = [rung for rung in registry.rungs("cuda", "gemm") if rung.launch == "gemm_wgmma"]


def _ways(rung: Rung) -> list[tuple[str, str]]:
    return [(reads, writes) for reads in rung.reads for writes in rung.writes]


def _operands(rung: Rung) -> int:
    return int(rung.defines.get("OPERANDS", 1))


def _skip_without_room(rung: Rung, tile: tuple[int, int], stages: int) -> None:
    waves = wgmma_tiles.conv_waves if rung.op == "conv" else wgmma_tiles.gemm_waves
    if tile not in waves(_operands(rung)):
        pytest.skip(f"{rung.name} has no tiles of {tile}")
    if stages > wgmma_tiles.stages(*tile, _operands(rung))[0]:
        pytest.skip(f"no multiprocessor has room for {stages} slabs of {tile}")
    if stages * WIDE_SLAB_NBYTES * sum(tile) < 4 * tile[0] * (tile[1] + 8):
        pytest.skip(f"{stages} slabs of {tile} leave no room to lay sums out, and are more on any device")


@pytest.mark.sampled(16)
@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.name)
@pytest.mark.parametrize("params", CASES, ids=str)
def test_products_in_the_background_are_those_of_the_slabs_that_were_copied(
    rung: Rung, params: Conv, hosted: on_the_host.Hosted
) -> None:
    case = cuda_cases.conv_case(np.random.default_rng(0), params)
    ran = 0
    for reads, writes in _ways(rung):
        as_laid_out = rung.in_layouts(reads, writes)
        if launch.refusal(params, as_laid_out):
            continue
        for at_end in (True, False):
            found = answer(hosted, as_laid_out, case, at_end)
            assert cuda_cases.differs(found, case, rung.precision) == "", (reads, writes)
        ran += 1
    assert ran


@pytest.mark.sampled(16)
@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.name)
@pytest.mark.parametrize("stages", [3, 4])
@pytest.mark.parametrize("tile", wgmma_tiles.CONV_WAVES, ids=str)
def test_no_slab_is_overwritten_before_it_was_multiplied(
    rung: Rung,
    stages: int,
    tile: tuple[int, int],
    hosted: on_the_host.Hosted,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _skip_without_room(rung, tile, stages)
    monkeypatch.setattr(wgmma_tiles, "fit_clusters", lambda *_: wgmma_tiles.Cut(*tile, 1))
    monkeypatch.setattr(wgmma_tiles, "stages", lambda *_: (stages, 1))
    params = replace(CASES[0], c=64, n=1)
    as_laid_out = rung.in_layouts(rung.reads[-1], rung.writes[-1])
    case = cuda_cases.conv_case(np.random.default_rng(0), params)
    assert cuda_cases.differs(answer(hosted, as_laid_out, case), case, rung.precision) == ""


@pytest.mark.sampled(4)
@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.name)
def test_few_channels_are_folded_and_many_images_laid_out_a_few_at_a_time(
    rung: Rung, hosted: on_the_host.Hosted, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = Conv(5, 3, 20, 23, 50, 5, 6, 6, 7, 3, 3, 1, 2, 0, 1, bias=True)
    monkeypatch.setattr(nhwc, "_KEPT_NBYTES", 10_000)
    monkeypatch.setattr(nhwc, "_KEPT_OF_TWO", 1)
    case = cuda_cases.conv_case(np.random.default_rng(0), params)
    for writes in rung.writes:
        as_laid_out = rung.in_layouts(PLAIN, writes)
        how = launch.launch(params, as_laid_out)
        assert how.defines["FOLD"] == 3
        assert len(how.before) > 2
        assert cuda_cases.differs(answer(hosted, as_laid_out, case), case, rung.precision) == ""


@pytest.mark.sampled(4, "long")
def test_images_in_chunks_are_scaled_a_few_at_a_time_too(
    hosted: on_the_host.Hosted, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = replace(CASES[0], n=5, c=22)  # whose last chunk of four is half zeros
    monkeypatch.setattr(nhwc, "_KEPT_NBYTES", 10_000)
    case = cuda_cases.conv_case(np.random.default_rng(0), params)
    rung = registry.find("cuda", "conv", "wgmma_scaled")
    for writes in rung.writes:
        as_laid_out = rung.in_layouts(ROUNDED, writes)
        how = launch.launch(params, as_laid_out)
        assert len(how.before) > 2
        assert how.before[0].function == "conv_largest"
        assert cuda_cases.differs(answer(hosted, as_laid_out, case), case, rung.precision) == ""


@pytest.mark.sampled(24)
@pytest.mark.parametrize("rung", PRODUCTS, ids=lambda rung: rung.name)
@pytest.mark.parametrize(
    "cut", [wgmma_tiles.Cut(*cut) for cut in ((128, 64, 1), (128, 96, 2), (256, 128, 1), (128, 192, 3))]
)
@pytest.mark.parametrize(("m", "n", "k"), [(1, 13, 177), (66, 70, 273)])
def test_products_of_rows_that_no_tile_divides_in_parts(
    rung: Rung,
    cut: wgmma_tiles.Cut,
    m: int,
    n: int,
    k: int,
    hosted: on_the_host.Hosted,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _skip_without_room(rung, cut[:2], 3)
    monkeypatch.setattr(wgmma_tiles, "fit_parts", lambda *_: cut)
    for params in (
        Gemm(m, n, k, trans_b=True, alpha=0.5, beta=2.0, bias=True, activation="tanh"),
        Gemm(m, n, k),
    ):
        case = cuda_cases.gemm_case(np.random.default_rng(0), params)
        for reads, writes in _ways(rung):
            found = answer(hosted, rung.in_layouts(reads, writes), case, at_end=cut.parts == 1)
            assert cuda_cases.differs(found, case, rung.precision) == "", (reads, writes)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("scale", [1e-30, 1e30])
@pytest.mark.parametrize(("name", "bound"), [("wgmma_split", 1e-6), ("wgmma_scaled", 1e-3)])
def test_numbers_as_halves_or_sums_of_two_are_scaled_image_by_image(
    name: str, bound: float, scale: float, hosted: on_the_host.Hosted
) -> None:
    convolution = replace(CASES[0], bias=False, activation=None)
    for op, case, images in (
        ("conv", cuda_cases.conv_case(np.random.default_rng(0), convolution), 3),
        ("gemm", cuda_cases.gemm_case(np.random.default_rng(0), Gemm(66, 70, 273, trans_b=True)), 66),
    ):
        rung = registry.find("cuda", op, name)
        plain = answer(hosted, rung, case).reshape(images, -1)
        given = case.inputs[0].reshape(images, -1)
        given[1] *= np.float32(scale)
        given[2] = 0
        found = answer(hosted, rung, case).reshape(images, -1)
        np.testing.assert_array_equal(found[0], plain[0])  # whatever the others are multiplied by
        other = found[1].astype(np.float64) / scale
        assert np.linalg.norm(other - plain[1]) < bound * np.linalg.norm(plain[1])
        assert not found[2].any()


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", ["wgmma_split", "wgmma_scaled"])
@pytest.mark.parametrize("place", [0, 1, 2, 3, 700, -4, -3, -2, -1])
def test_the_largest_number_of_an_image_is_found_wherever_it_is(
    place: int, name: str, hosted: on_the_host.Hosted
) -> None:
    params = replace(
        CASES[0], c=21, h=7, w=7, out_h=7, out_w=7
    )  # an odd number of words, so that images begin anywhere
    case = cuda_cases.conv_case(np.random.default_rng(0), replace(params, bias=False, activation=None))
    for image in case.inputs[0]:
        image.flat[place] = 1e7  # infinite in float16 unless it is scaled
    assert np.isfinite(answer(hosted, registry.find("cuda", "conv", name), case)).all()


def test_it_is_for_the_one_architecture_that_has_its_instructions() -> None:
    params = Conv(1024, 256, 13, 13, 384, 3, 3, 13, 13, 1, 1, 1, 1, 1, 1)
    for rung in RUNGS:
        assert rung.refusal(params, (9, 0)) is None
        for other in ((8, 0), (10, 0)):
            assert "9.0 itself" in str(rung.refusal(params, other))
        assert rung.suits(params)
        assert not rung.suits(replace(params, n=1))


def test_tiles_are_those_that_make_for_the_shortest_waves() -> None:
    def fit(images: int, wide: int, batch: int = 1) -> tuple[int, ...]:
        return wgmma_tiles.fit_clusters(images * 169, wide, 72, 1, batch)

    widest = {384: (192, 192), 128: (128, 128), 192: (192, 192), 96: (128, 96), 64: (128, 64), 50: (128, 64)}
    assert {wide: fit(1024, wide)[:2] for wide in widest} == widest
    assert fit(64, 384) == (128, 128, 1)  # in one wave, where wider ones take two
    assert fit(64, 192, 2) == (192, 192, 1)  # in one too, where narrower ones take two
    cut = wgmma_tiles.fit_clusters(8 * 169, 384, 72, 1, 1)
    assert cut.parts > 1
    assert cut.parts * 11 * -(-384 // cut.columns) <= 132


def test_a_sum_is_taken_in_parts_where_blocks_would_be_few() -> None:
    assert wgmma_tiles.fit_parts(1024, 4096, 288) == (256, 128, 1)
    cut = wgmma_tiles.fit_parts(256, 4096, 288)
    assert cut.parts > 1
    assert 2 * -(-4096 // cut.columns) * cut.parts > 100
