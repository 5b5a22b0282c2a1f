"""Convolutions of small images in float32 whose blocks have a slice of the channels each, on the host:
clusters that complete each other's sums, bands that end within the image, slices of different length, warps
whose lanes have two sets of maps. On the device they are run by tests/kernels/test_cuda_rungs.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.planning import choices
from kernels import launch, nvrtc, registry
from kernels.errors import UnsupportedError
from kernels.estimates import float_slices as estimate
from kernels.estimates.image_slices import grid
from kernels.launch import image_slices
from kernels.ops import ACTIVATIONS
from kernels.ops.conv import Conv
from tests import sampling
from tests.bench.judge import on_the_host
from tests.kernels import cuda_cases
from tests.kernels.hosted import answer

pytestmark = pytest.mark.slow

RUNG = registry.find("cuda", "conv", "slices")
MOST = image_slices.limits(RUNG)

CASES = {
    "alexnet-3": Conv(1, 80, 7, 7, 48, 3, 3, 7, 7, 1, 1, 1, 1, 1, 1, bias=True, activation="relu"),
    "alexnet-2": Conv(2, 48, 9, 9, 64, 5, 5, 9, 9, 1, 1, 2, 2, 2, 2, group=2, bias=True),
    "odd": Conv(3, 37, 5, 11, 21, 3, 2, 5, 10, 1, 1, 1, 0, 1, 0, bias=True, activation="tanh"),
    "batch": Conv(7, 20, 4, 3, 17, 1, 1, 4, 3, activation="sigmoid"),
    "strides": Conv(1, 24, 15, 17, 16, 7, 7, 8, 6, 2, 3, 3, 2, 3, 3, bias=True),
    "dilation": Conv(2, 33, 13, 12, 19, 3, 3, 10, 5, 1, 2, 2, 0, 1, 3, 2, 3, bias=True),
    "groups": Conv(1, 72, 6, 5, 48, 3, 3, 6, 5, 1, 1, 1, 1, 1, 1, group=3, bias=True, activation="relu6"),
    "rows": Conv(1, 16, 3, 90, 16, 1, 3, 3, 90, 1, 1, 0, 1, 0, 1),
    "large-window": Conv(1, 5, 7, 7, 8, 7, 7, 7, 7, 1, 1, 3, 3, 3, 3, activation="relu"),
    "wider-than-the-image": Conv(1, 4, 2, 2, 16, 3, 3, 6, 6, 1, 1, 3, 3, 3, 3, bias=True),
    "one": Conv(1, 1, 1, 1, 1, 1, 1, 1, 1, bias=True),
}


def _case(params: Conv, seed: int = 0) -> cuda_cases.Case:
    return cuda_cases.conv_case(np.random.default_rng(seed), params)


def _alexnet(images: int) -> dict[str, Conv]:
    """Its second convolution to its fifth."""
    of: dict[str, Any] = {"bias": True, "activation": "relu"}
    three = (3, 3, 13, 13, 1, 1, 1, 1, 1, 1)
    return {
        "conv2": Conv(images, 96, 27, 27, 256, 5, 5, 27, 27, 1, 1, 2, 2, 2, 2, group=2, **of),
        "conv3": Conv(images, 256, 13, 13, 384, *three, **of),
        "conv4": Conv(images, 384, 13, 13, 384, *three, group=2, **of),
        "conv5": Conv(images, 384, 13, 13, 256, *three, group=2, **of),
    }


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", CASES)
def test_every_tap_reads_the_same_pixels_shifted(name: str, hosted: on_the_host.Hosted) -> None:
    case = _case(CASES[name])
    for at_end in (True, False):
        assert cuda_cases.differs(answer(hosted, RUNG, case, at_end), case, RUNG.precision) == ""


# Maps and ranks, maps and pixels of a thread, teams, spread, rows.
@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "cut",
    [
        (16, 1, 8, 2, 1, 1, 7),
        (16, 3, 8, 1, 2, 1, 3),
        (16, 5, 16, 2, 4, 1, 4),
        (32, 4, 16, 3, 3, 2, 5),
        (24, 8, 12, 4, 2, 2, 7),
        (24, 2, 8, 1, 1, 1, 2),
        (32, 7, 8, 1, 8, 2, 1),
        (16, 6, 4, 5, 3, 4, 6),
    ],
    ids=str,
)
def test_a_cluster_completes_a_sum_however_it_is_cut(
    cut: tuple[int, ...], hosted: on_the_host.Hosted, monkeypatch: pytest.MonkeyPatch
) -> None:
    maps, ranks, of_thread, each, teams, spread, band = cut
    case = _case(CASES["alexnet-3"])
    of = image_slices.sums(CASES["alexnet-3"], RUNG)
    pitch, needed = estimate.places(of, band, spread)
    slots = -(-needed // each) * each
    its = estimate.Cut(maps, ranks, of_thread, each, teams, spread, band, pitch, slots)
    monkeypatch.setattr(estimate, "fit", lambda *_: its)
    assert launch.launch(case.params, RUNG).grid == (-(-48 // maps) * ranks, -(-7 // band), 1)
    assert cuda_cases.differs(answer(hosted, RUNG, case), case, RUNG.precision) == ""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("activation", [None, *ACTIVATIONS])
def test_every_activation(activation: str | None, hosted: on_the_host.Hosted) -> None:
    case = _case(replace(CASES["odd"], n=1, activation=activation))
    assert cuda_cases.differs(answer(hosted, RUNG, case), case, RUNG.precision) == ""


def test_what_lies_beside_a_window_has_no_say(hosted: on_the_host.Hosted) -> None:
    case = _case(replace(CASES["alexnet-3"], bias=False, activation=None))
    x = case.inputs[0]
    assert x is not None
    x[..., 3] = np.inf
    found = answer(hosted, RUNG, case)
    assert np.isfinite(found[..., :2]).all()
    assert np.isfinite(found[..., 5:]).all()


@pytest.mark.parametrize("name", CASES)
def test_a_lane_has_pixels_of_one_bank_alone(name: str) -> None:
    of = image_slices.sums(CASES[name], RUNG)
    for spread in (1, 2):
        lanes = 32 // spread
        for band in range(1, of.out_h + 1):
            pitch, slots = estimate.places(of, band, spread)
            assert pitch >= of.columns_read
            assert slots * lanes >= band * of.out_w
            if of.stride_h == of.stride_w == 1:
                rows, columns = np.divmod(np.arange(band * of.out_w), of.out_w)
                assert np.bincount((rows * pitch + columns) % lanes).max() == slots


@pytest.mark.sampled(2)
@pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable()))
@pytest.mark.parametrize("images", [1, 8])
def test_sums_stay_in_registers_and_the_rest_in_shared_memory(images: int) -> None:
    # How many warps a cut has at least no kernel asks: what is compiled is the same for the same cut.
    texts = [RUNG.source.partition("*/")[2], *(header.text for header in registry.headers(RUNG))]
    assert not any("LEAST_WARPS" in text for text in texts)
    for params in sampling.some("layers of float slices", list(_alexnet(images).values()), 1):
        for least_warps in sampling.some("warps of float slices", RUNG.tune["LEAST_WARPS"], 1):
            rung = replace(RUNG, defines={**RUNG.defines, "LEAST_WARPS": least_warps})
            how = launch.launch(params, rung)
            used = nvrtc.resources(nvrtc.compile_rung(RUNG, "sm_90", how.defines), "conv")
            assert used is not None
            # What a long sum came to before the piece at hand may lie in memory, what was added exactly and
            # what that lost beside it; sums and the rest do not.
            wholes = 3 * 4 * int(how.defines["OF_THREAD"]) * int(how.defines["EACH"])
            assert used.spill_nbytes == 0, f"{used}"
            assert used.stack_nbytes <= wholes + 32, f"{used}"
            assert used.registers * how.block[0] <= 65536
            assert used.shared_nbytes + how.shared_nbytes <= 227 << 10
            cut = estimate.fit(image_slices.sums(params, RUNG), *image_slices.limits(rung))
            assert cut is not None
            assert cut.warps >= least_warps
            # Where a long sum is put by in pieces the compiler takes more, if a block leaves them to it.
            assert used.registers <= estimate.registers(cut) + (40 if used.stack_nbytes else 8)


@pytest.mark.parametrize("precision", ["fp32", "fp32-tc", "fp16"])
def test_it_is_timed_where_its_estimate_promises_something(precision: str) -> None:
    small = Conv(1, 32, 32, 32, 32, 3, 3, 32, 32, 1, 1, 1, 1, 1, 1)
    found = choices.candidates("cuda", small, "fp32", True, (9, 0))
    assert found.index(RUNG) == 1  # what is tried first is taken untimed, and slow ones may end the search
    assert RUNG not in choices.candidates("cuda", small, "fp32", False, (9, 0)), "it packs weights"
    for images in (1, 8, 64):
        for name, params in _alexnet(images).items():
            found = choices.candidates("cuda", params, precision, True, (9, 0))
            assert RUNG not in found, (name, images)
    first = Conv(1, 3, 227, 227, 96, 11, 11, 55, 55, 4, 4, bias=True)
    assert RUNG not in choices.candidates("cuda", first, "fp32", True, (9, 0))
    assert RUNG.refusal(_alexnet(1)["conv3"], (9, 0)) is None, "named, it is taken all the same"
    assert RUNG.refusal(_alexnet(1)["conv3"], (8, 0))


def test_the_estimate_gives_no_layer_less_than_what_others_took_where_it_was_not_taken() -> None:
    # µs of AlexNet's third convolution of one image on an NVIDIA H100, where it was among what was timed.
    us = launch.launch(_alexnet(1)["conv3"], RUNG).microseconds
    assert us is not None
    assert us > 23.3


@pytest.mark.parametrize("images", [1, 8])
def test_an_image_of_alexnet_fills_most_of_the_device_once(images: int) -> None:
    for params in _alexnet(images).values():
        of = image_slices.sums(params, RUNG)
        cut = estimate.fit(of, *MOST)
        assert cut is not None
        assert estimate.clocks(of, cut) == min(estimate.clocks(of, one) for one in estimate.cuts(of, *MOST))
        blocks = np.prod(grid(of, cut))
        assert blocks >= 120
        if images == 1:
            assert blocks <= estimate.at_once(cut.ranks) <= 132


def test_what_does_not_fit_is_refused_in_words() -> None:
    with pytest.raises(UnsupportedError, match="shared memory"):
        launch.launch(Conv(1, 16, 1, 8000, 16, 1, 101, 1, 7900), RUNG)
    with pytest.raises(UnsupportedError, match="up to 16 images"):
        launch.launch(replace(CASES["batch"], n=17), RUNG)


def test_the_estimate_knows_what_the_kernel_writes_out() -> None:
    assert f"constexpr int UNROLLED = {estimate.UNROLLED};" in RUNG.source
