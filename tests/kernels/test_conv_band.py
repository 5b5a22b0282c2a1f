"""Convolutions of images as they are, in every layout: right between pages that nobody may touch, with shared
memory full of NaN and copies that arrive as late as they may."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernels import launch, registry
from kernels.layouts import PLAIN
from kernels.ops.conv import Conv
from kernels.registry import HEADERS, Rung
from tests.bench.judge import on_the_host
from tests.kernels import cuda_cases
from tests.kernels.cuda_cases import Case
from tests.kernels.hosted import answer

pytestmark = pytest.mark.slow

RUNGS = [registry.find("cuda", "conv", name) for name in ("band_fp16", "band_tf32")]
ALEXNET = Conv(1, 3, 227, 227, 96, 11, 11, 55, 55, 4, 4, bias=True, activation="relu")
SHAPES = {
    "an image of AlexNet's width": replace(ALEXNET, h=23, m=17),
    "reads of two, padding on all sides": Conv(
        3, 2, 15, 21, 9, 7, 5, 0, 0, 2, 2, 3, 1, 2, 4, bias=True, activation="tanh"
    ),
    "reads of one, rows apart": Conv(7, 3, 12, 11, 20, 3, 3, 0, 0, 1, 1, 1, 1, 1, 1, 2, 1),
    "many images smaller than a tile": Conv(130, 1, 5, 6, 3, 3, 2, 0, 0, 3, 3, bias=True),
    "a row of the tile is a row of y": Conv(1, 8, 9, 259, 5, 2, 4, 0, 0, 3, 4, 0, 0, 1, 0),
    "one pixel": Conv(1, 1, 1, 1, 1, 1, 1, 0, 0, bias=True, activation="sigmoid"),
}


def _case(params: Conv) -> Case:
    return cuda_cases.conv_case(np.random.default_rng(0), params)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.name)
@pytest.mark.parametrize("params", SHAPES.values(), ids=SHAPES)
def test_every_shape_is_right_in_both_layouts(params: Conv, rung: Rung, hosted: on_the_host.Hosted) -> None:
    case = _case(params)
    for at_end, writes in enumerate(rung.writes):
        found = answer(hosted, rung.in_layouts(PLAIN, writes), case, at_end=bool(at_end))
        assert cuda_cases.differs(found, case, rung.precision) == "", writes


@pytest.mark.parametrize(
    ("its", "other"),
    [
        ("wait_for_all_but<STAGES - 2>();", "wait_for_all_but<STAGES - 1>();"),  # a slab too late
        ("__syncthreads();\n        copy_weights", "copy_weights"),  # the band is read before it is whole
        ("(unsigned)iy < (unsigned)p.h", "true"),  # rows above and below the image
        (
            "image * area + first + warp_row, (image + 1) * area",
            "image * area + first + warp_row, p.n * area + 1",
        ),
    ],
)
def test_what_such_a_kernel_may_do_wrong_is_found(
    its: str, other: str, hosted: on_the_host.Hosted, tmp_path: Path
) -> None:
    """Waits and barriers left out, reads and writes beyond the ends."""
    text = (HEADERS / "conv_band.cuh").read_text("utf-8")
    assert text.count(its) == 1
    (tmp_path / "conv_band.cuh").write_text(text.replace(its, other))
    ours = RUNGS[0].source.replace("rung = 28", "rung = 90").replace("band_fp16", "broken")
    (tmp_path / "90_broken.cu").write_text(ours)
    rung = registry.find("cuda", "conv", "broken", [tmp_path])
    case = _case(Conv(2, 2, 14, 15, 9, 7, 5, 0, 0, 2, 2, 3, 1, 2, 4, bias=True))
    assert cuda_cases.differs(answer(hosted, RUNGS[0], case), case, "fp16") == ""
    try:
        found = cuda_cases.differs(answer(hosted, rung, case), case, "fp16")
    except AssertionError as error:
        found = str(error)
    assert found != ""
    assert "wait, and nobody" not in found


def test_lanes_side_by_side_read_from_different_banks() -> None:
    """Sixteen lanes with eight bytes each, or eight with sixteen: AlexNet's first four or two pixels."""
    for rung, each, pixels in zip(RUNGS, (2, 4), (4, 2), strict=True):
        lead = int(launch.launch(ALEXNET, rung).defines["LEAD"])
        for first in range(11 * 3 - 3):  # of four pieces, in rows of three
            places = {(piece // 3 * lead + piece % 3 * 4 + 4 * pixel) * each
                      for piece in range(first, first + 4) for pixel in range(pixels)}  # fmt: skip
            assert len({place % 128 for place in places}) == len(places)


def test_what_it_is_not_for_is_refused_in_words() -> None:
    rung = RUNGS[0]
    assert launch.refusal(ALEXNET, rung) is None
    assert "up to 8 channels, not 64" in str(launch.refusal(replace(ALEXNET, c=64), rung))
    assert "not 2 apart" in str(launch.refusal(replace(ALEXNET, dilation_w=2), rung))
    assert "of shared memory" in str(launch.refusal(replace(ALEXNET, w=40_000, out_w=9_998), rung))
    assert "32 bits" in str(launch.refusal(replace(ALEXNET, n=2**20), rung))
    assert "needs group = 1" in str(rung.refusal(replace(ALEXNET, c=6, group=2)))


def test_it_is_taken_where_it_was_timed_to_be_faster_and_not_of_itself() -> None:
    for rung in RUNGS:
        able = registry.candidates("cuda", "conv", rung.precision)
        assert rung in able
        assert registry.default("cuda", ALEXNET, (9, 0), rung.precision) != rung
